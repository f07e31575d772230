/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/http/client.h"
#include "perf.h"

enum { LONG_LEASE_MS = 60000, START_MS = 20000, STOP_MS = 5000, STEP_US = 5000 };
static const char *const names[] = {"metad", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};
_Static_assert(sizeof names / sizeof names[0] == 3 + PERF_MAX_DEAD, "one each");

/* The path of a daemon: --bin, or beside us, or in sbin. */
static int find_program(const struct perf_options *o, const char *name, char out[PATH_MAX],
                        struct base_errbuf *err)
{
    static const char *const places[] = {".", "../sbin"};
    char self[PATH_MAX];
    if (o->bin != NULL) {
        snprintf(out, PATH_MAX, "%s/%s", o->bin, name);
        if (access(out, X_OK) == 0)
            return 0;
    }
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    for (size_t i = 0; i < 2 && n > 0 && o->bin == NULL; i++) {
        self[n] = '\0';
        if (snprintf(out, PATH_MAX, "%s/%s/%s", dirname(self), places[i], name) < PATH_MAX &&
            access(out, X_OK) == 0)
            return 0;
        n = readlink("/proc/self/exe", self, sizeof self - 1);
    }
    return base_err(err, -ENOENT, "%s was not found: name its directory with --bin", name);
}

static int write_file(const char *path, const char *text, struct base_errbuf *err)
{
    FILE *f = fopen(path, "we");
    if (f == NULL)
        return base_err(err, -errno, "%s: %s", path, strerror(errno));
    bool written = fputs(text, f) >= 0;
    if (fclose(f) != 0 || !written)
        return base_err(err, -EIO, "%s cannot be written", path);
    return 0;
}

static uint32_t power_of_two(uint32_t least, uint32_t n)
{
    while (least < n)
        least *= 2;
    return least;
}

/* A soft device of our own, or the device that was named, with the GID of the metaserver (0) or of
 * an agent. */
static int write_fabric(const struct perf_local *l, const struct perf_options *o, int which,
                        char out[256], struct base_errbuf *err)
{
    const char *gid = o->gids;
    if (gid == NULL) {
        const bool modelled = which > 0 && o->model != NULL;
        snprintf(out, 256, "[fabric]\nprovider = soft\ndevice = %s\n%s%s\n", l->device,
                 modelled ? "model = " : "", modelled ? o->model : "");
        return 0;
    }
    for (int i = 0; i < which && gid != NULL; i++)
        gid = (gid = strchr(gid, ',')) != NULL ? gid + 1 : NULL;
    if (gid == NULL || *gid == '\0')
        return base_err(err, -EINVAL, "--gids must be three, such as 10.0.1.1,10.0.1.2,10.0.1.3");
    snprintf(out, 256, "[fabric]\nprovider = verbs\ndevice = %.64s\ngid = %.*s\n", o->verbs.device,
             (int)strcspn(gid, ","), gid);
    return 0;
}

static int configure(const struct perf_local *l, const struct perf_options *o, int which,
                     char path[96], struct base_errbuf *err)
{
    char text[2048], fabric[256];
    int status = write_fabric(l, o, which, fabric, err);
    if (status != 0)
        return status;
    uint32_t slots = power_of_two(256, o->depth);
    char lane_cpu[16] = "any";
    if (l->pinned && o->test != PERF_LANES)
        snprintf(lane_cpu, sizeof lane_cpu, "%d", l->lane_cpu);
    const bool meets = o->test == PERF_MEMORY || (o->test == PERF_CONNECT && !o->cached);
    const unsigned long long unknown = meets ? o->count : o->test == PERF_ISOLATION ? o->silent : 0;
    /* For memory, the second agent has all that the first has, but for the peers. */
    const unsigned long long peers = o->test != PERF_MEMORY ? unknown + 1024
                                     : which == 1           ? unknown
                                                            : 1;
    const bool many = o->test == PERF_MESH || o->test == PERF_STORM || o->test == PERF_FAIRNESS ||
                      o->test == PERF_LOOKUP || o->test == PERF_MERGE || o->test == PERF_LANES;
    const uint32_t workers = many ? o->workers : 16;
    char transport[32] = "", windows[96] = "", other[64] = "", lease[32] = "";
    const char *polling = "";
    char pool[512] = "";
    if (o->window_ops != 0 || o->window_bytes != 0)
        snprintf(windows, sizeof windows, "window_ops = %u\nwindow_bytes = %llu\n", o->window_ops,
                 (unsigned long long)o->window_bytes);
    if (o->test == PERF_FAIRNESS)
        snprintf(other, sizeof other, "[tenant other]\nuids = %d\n", PERF_OTHER_UID);
    if (o->test == PERF_RENEWAL && which >= 2)
        snprintf(lease, sizeof lease, "mr_lease = %ums\n",
                 which == 2 ? o->lease_ms : LONG_LEASE_MS);
    if (o->test == PERF_POLL && which >= 3)
        polling = which == 3 ? "polling = event\n" : "polling = busy\n";
    if (o->test == PERF_SEND || o->test == PERF_NOTIFY)
        polling = o->by_device ? "messages = yes\nmessages_near = no\n" : "messages = yes\n";
    if (o->test == PERF_LANES && which == 1)
        snprintf(lease, sizeof lease, "lanes = %u\n", o->lanes);
    if (o->test == PERF_MERGE && which >= 3)
        polling = "merge = no\n";
    if (o->transport != NULL)
        snprintf(transport, sizeof transport, "transport = %s\n", o->transport);
    snprintf(path, 96, "%s/%s.conf", l->work, names[which]);
    if (!o->defaults)
        snprintf(pool, sizeof pool,
                 "[pool]\nlane_cpu = %s\nmax_peers = %llu\nmax_vqps = %u\nsq_slots = "
                 "%u\nmax_inflight = %u\ncq_slots = %u\nmax_sessions = %u\n%s%s%s",
                 lane_cpu, peers, workers > 256 ? workers : 256, slots, slots,
                 power_of_two(1024, 2 * slots), workers + 512, windows, lease, polling);
    if (which == 0)
        snprintf(text, sizeof text,
                 "[metaserver]\nlisten = 127.0.0.1:0\ndata_dir = %s/metad\nnode_lease = 1h\n"
                 "admin_socket = %s/metad.sock\naccess = open\nclient_rate = 0\n"
                 "max_endpoints = %llu\n%s",
                 l->work, l->work, unknown + 16384, fabric);
    else
        snprintf(text, sizeof text,
                 "[agent]\nnode = perf-%s\nsocket = %s\nadmin_socket = %s.admin\n"
                 "state_dir = %s/%s\nmetaservers = %s\n"
                 "%s%s%s[tenant perf]\nuids = %u\nsessions = 2048\nmemory = 64GiB\n%s",
                 names[which], l->socket[which - 1], l->socket[which - 1], l->work, names[which],
                 l->server, fabric, transport, pool, (unsigned)geteuid(), other);
    return write_file(path, text, err);
}

/* The last line of a daemon's log, which says why it ended. */
static void last_words(const struct perf_local *l, int which, char *out, size_t size)
{
    char path[96], line[512];
    snprintf(path, sizeof path, "%s/%s.log", l->work, names[which]);
    snprintf(out, size, "no message");
    FILE *f = fopen(path, "re");
    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        if (line[0] != '\n')
            snprintf(out, size, "%.*s", (int)strcspn(line, "\n"), line);
    if (f != NULL)
        fclose(f);
}

static int spawn(struct perf_local *l, const struct perf_options *o, int which,
                 struct base_errbuf *err)
{
    const char *name = which == 0 ? "kedge-metad" : "kedge-agentd";
    char program[PATH_MAX], config[96], log[96];
    int status = find_program(o, name, program, err);
    if (status == 0)
        status = configure(l, o, which, config, err);
    if (status != 0)
        return status;
    snprintf(log, sizeof log, "%s/%s.log", l->work, names[which]);
    pid_t pid = fork();
    if (pid < 0)
        return base_err(err, -errno, "fork: %s", strerror(errno));
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        int fd = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        dup2(fd, STDOUT_FILENO);
        dup2(fd, STDERR_FILENO);
        execl(program, name, "--config", config, (char *)NULL);
        _exit(127);
    }
    l->pid[which] = pid;
    return 0;
}

/* Whether the metaserver has said its port, or the agent is ready. */
static bool is_ready(struct perf_local *l, int which)
{
    static const char says[] = "kedge-metad: ready, port ";
    char path[112], line[256];
    if (which > 0) {
        struct http_result result;
        snprintf(path, sizeof path, "%s.admin", l->socket[which - 1]);
        struct http_call call = {
            .url = "http://localhost/readyz", .unix_path = path, .timeout_ms = 1000};
        if (access(path, F_OK) != 0 || http_call(&call, &result, NULL) != 0)
            return false;
        bool ready = result.status == 200;
        http_result_fini(&result);
        return ready;
    }
    snprintf(path, sizeof path, "%s/metad.log", l->work);
    FILE *f = fopen(path, "re");
    bool ready = false;
    while (f != NULL && !ready && fgets(line, sizeof line, f) != NULL) {
        ready = strncmp(line, says, sizeof says - 1) == 0 && strchr(line, '\n') != NULL;
        if (ready)
            snprintf(l->server, sizeof l->server, "http://127.0.0.1:%.*s",
                     (int)strcspn(line + sizeof says - 1, "\n"), line + sizeof says - 1);
    }
    if (f != NULL)
        fclose(f);
    return ready;
}

static int wait_ready(struct perf_local *l, int which, struct base_errbuf *err)
{
    char why[400];
    for (int waited = 0; waited < START_MS * 1000; waited += STEP_US) {
        if (is_ready(l, which))
            return 0;
        if (waitpid(l->pid[which], NULL, WNOHANG) == l->pid[which]) {
            l->pid[which] = 0;
            last_words(l, which, why, sizeof why);
            return base_err(err, -EIO, "%s did not start: %s",
                            which == 0 ? "the metaserver" : "an agent", why);
        }
        usleep(STEP_US);
    }
    last_words(l, which, why, sizeof why);
    return base_err(err, -ETIMEDOUT, "%s was not ready after %d s: %s",
                    which == 0 ? "the metaserver" : "an agent", START_MS / 1000, why);
}

int perf_first_cpus(int cpu[2])
{
    cpu_set_t may;
    int found = 0;
    if (sched_getaffinity(0, sizeof may, &may) != 0)
        return 0;
    for (int i = 0; i < CPU_SETSIZE && found < 2; i++)
        if (CPU_ISSET(i, &may))
            cpu[found++] = i;
    return found;
}

/* The first two CPUs that we may use: one for the measuring worker, one for the lanes. With the
 * scheduler's choice, both end up on one now and then, and what is measured is its time slice. */
static void choose_cpus(struct perf_local *l, const struct perf_options *o)
{
    int cpu[2];
    if (o->test == PERF_MESH || o->test == PERF_STORM || o->test == PERF_LANES ||
        perf_first_cpus(cpu) != 2)
        return;
    l->pinned = true;
    l->worker_cpu = cpu[0];
    l->lane_cpu = cpu[1];
}

static void pin_worker(const struct perf_local *l)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(l->worker_cpu, &one);
    if (l->pinned)
        (void)sched_setaffinity(0, sizeof one, &one);
}

int perf_local_start(struct perf_local *l, struct perf_options *o, struct base_errbuf *err)
{
    char path[128];
    *l = (struct perf_local){.device = "/dev/shm/kedge-perf-XXXXXX",
                             .work = "/tmp/kedge-perf-XXXXXX"};
    if (mkdtemp(l->device) == NULL || mkdtemp(l->work) == NULL)
        return base_err(err, -errno, "directories in /dev/shm and /tmp: %s", strerror(errno));
    if (o->test == PERF_FAIRNESS && chmod(l->work, 0711) != 0) /* for the other tenant's worker */
        return base_err(err, -errno, "%s: %s", l->work, strerror(errno));
    int status = 0;
    choose_cpus(l, o);
    const int last = 2 + (int)(o->test == PERF_ISOLATION ? o->dead
                               : o->test == PERF_POLL    ? 2
                               : o->test == PERF_MERGE   ? 1
                                                         : o->test == PERF_RENEWAL);
    for (int i = 0; i <= last && status == 0; i++) {
        snprintf(path, sizeof path, "%s/%s", l->work, names[i]);
        if (mkdir(path, 0700) != 0)
            status = base_err(err, -errno, "%s: %s", path, strerror(errno));
        if (i > 0)
            snprintf(l->socket[i - 1], sizeof l->socket[0], "%s/%s.sock", l->work, names[i]);
    }
    for (int i = 0; i <= last && status == 0; i++) {
        status = spawn(l, o, i, err);
        if (status == 0)
            status = wait_ready(l, i, err);
    }
    if (status != 0) {
        perf_local_stop(l);
        return status;
    }
    o->local_device = o->gids == NULL ? l->device : NULL;
    o->socket = l->socket[0];
    o->peer_socket = l->socket[1];
    snprintf(l->admin_socket, sizeof l->admin_socket, "%s.admin", l->socket[0]);
    o->admin_socket = l->admin_socket;
    o->server = l->server;
    o->pinned = l->pinned;
    o->worker_cpu = l->worker_cpu;
    o->lane_cpu = l->lane_cpu;
    o->agent_pid[0] = l->pid[1];
    o->agent_pid[1] = l->pid[2];
    for (int i = 3; i <= last; i++) {
        o->more_socket[i - 3] = l->socket[i - 1];
        o->more_pid[i - 3] = l->pid[i];
    }
    pin_worker(l);
    return 0;
}

static void remove_tree(const char *path)
{
    char inner[PATH_MAX];
    DIR *d = opendir(path);
    if (d == NULL)
        return;
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        snprintf(inner, sizeof inner, "%s/%s", path, e->d_name);
        if (unlink(inner) != 0)
            remove_tree(inner);
    }
    closedir(d);
    (void)rmdir(path);
}

void perf_local_stop(struct perf_local *l)
{
    for (int i = 2 + PERF_MAX_DEAD; i >= 0; i--) {
        if (l->pid[i] == 0)
            continue;
        kill(l->pid[i], SIGTERM);
        int waited = 0;
        while (waitpid(l->pid[i], NULL, WNOHANG) == 0 && (waited += STEP_US) < STOP_MS * 1000)
            usleep(STEP_US);
        if (waited >= STOP_MS * 1000) {
            kill(l->pid[i], SIGKILL);
            waitpid(l->pid[i], NULL, 0);
        }
        l->pid[i] = 0;
    }
    remove_tree(l->work);
    remove_tree(l->device);
}
