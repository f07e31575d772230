/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/checks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fds.h"

#define MIB 1048576ull

enum {
    SHM_NEEDED_MIB = 16,
    SHM_WANTED_MIB = 256,
    MEMLOCK_WANTED_MIB = 1024,
};

static void set_result(struct ctl_check *c, enum ctl_level level, const char *advice,
                       const char *found, ...) __attribute__((format(printf, 4, 5)));

static void set_result(struct ctl_check *c, enum ctl_level level, const char *advice,
                       const char *found, ...)
{
    va_list args;
    va_start(args, found);
    vsnprintf(c->found, sizeof c->found, found, args);
    va_end(args);
    snprintf(c->advice, sizeof c->advice, "%s", advice);
    c->level = level;
}

static void check_kernel(struct ctl_check *c)
{
    struct utsname u;
    if (uname(&u) == 0)
        set_result(c, CTL_OK, "", "%s %s, %s", u.sysname, u.release, u.machine);
}

static void check_cores(struct ctl_check *c)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    if (n >= 2)
        set_result(c, CTL_OK, "", "%ld", n);
    else
        set_result(
            c, CTL_WARN,
            "give it a second one: an agent's lane and a worker that poll on one core take turns, "
            "and latencies become milliseconds",
            "%ld", n);
}

/* Sealed shared memory, and another process that opens it through /proc, as soft does. */
static void shared_memory(struct ctl_check *seals, struct ctl_check *proc)
{
    char path[64];
    int fd, how = 0;
    void *map;
    int status = base_memfd_new("rdmactl-doctor", 4096, BASE_MEMFD_SEALED, &fd, &map);
    if (status != 0) {
        set_result(seals, CTL_FAIL,
                   "run a kernel of 5.1 or newer, outside of a sandbox that forbids memfd", "%s",
                   strerror(-status));
        set_result(proc, CTL_FAIL, "see memfd seals", "not tried");
        return;
    }
    set_result(seals, CTL_OK, "", "sealed memory can be shared");
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getpid(), fd);
    pid_t child = fork();
    if (child == 0)
        _exit(close(fd) == 0 && open(path, O_RDONLY | O_CLOEXEC) >= 0 ? 0 : errno & 0x7f);
    if (child > 0)
        (void)waitpid(child, &how, 0);
    if (child > 0 && WIFEXITED(how) && WEXITSTATUS(how) == 0)
        set_result(proc, CTL_OK, "", "processes of one user reach each other's memory files");
    else
        set_result(
            proc, CTL_FAIL,
            "mount /proc where the agents run, without hidepid for their user; they must share one "
            "uid and one PID namespace",
            "/proc/PID/fd cannot be opened: %s",
            child > 0 && WIFEXITED(how) ? strerror(WEXITSTATUS(how)) : "no child process");
    munmap(map, 4096);
    close(fd);
}

static void check_pidfd(struct ctl_check *c)
{
    int fd = base_pidfd_open(getpid());
    if (fd < 0) {
        set_result(c, CTL_FAIL,
                   "run a kernel of 5.3 or newer, outside of a sandbox that forbids pidfd_open",
                   "%s", strerror(-fd));
        return;
    }
    close(fd);
    set_result(c, CTL_OK, "", "the end of a process is noticed at once");
}

static void check_shm(struct ctl_check *c)
{
    struct statvfs v;
    char dir[] = "/dev/shm/rdmactl-doctor-XXXXXX";
    if (statvfs("/dev/shm", &v) != 0) {
        set_result(c, CTL_FAIL, "mount -t tmpfs tmpfs /dev/shm", "/dev/shm: %s", strerror(errno));
        return;
    }
    if (mkdtemp(dir) == NULL) {
        set_result(c, CTL_FAIL, "give it mode 1777 (chmod 1777 /dev/shm)",
                   "cannot write in /dev/shm: %s", strerror(errno));
        return;
    }
    (void)rmdir(dir);
    unsigned long long free_mib = (unsigned long long)v.f_bavail * v.f_frsize / MIB;
    enum ctl_level level = free_mib < SHM_NEEDED_MIB   ? CTL_FAIL
                           : free_mib < SHM_WANTED_MIB ? CTL_WARN
                                                       : CTL_OK;
    set_result(c, level,
               level == CTL_OK ? ""
                               : "remove what is in /dev/shm, or mount -o remount,size=1G /dev/shm",
               "%llu MiB free", free_mib);
}

static void soft_device(struct ctl_check *c)
{
    struct stat st;
    char dir[64], advice[256];
    snprintf(dir, sizeof dir, "/dev/shm/kedge-soft-%u", (unsigned)geteuid());
    if (lstat(dir, &st) != 0) {
        set_result(c, CTL_OK, "", "%s will be made by the first agent", dir);
        return;
    }
    if (S_ISDIR(st.st_mode) && st.st_uid == geteuid() && (st.st_mode & 077) == 0) {
        set_result(c, CTL_OK, "", "%s", dir);
        return;
    }
    snprintf(
        advice, sizeof advice,
        "rm -r %s, or name another `device` in [fabric]; it must be a directory of the agents' "
        "user with mode 0700",
        dir);
    set_result(c, CTL_FAIL, advice, "%s: uid %u, mode %04o", dir, (unsigned)st.st_uid,
               (unsigned)st.st_mode & 07777);
}

static void check_files(struct ctl_check *c)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    bool enough = limit.rlim_max == RLIM_INFINITY || limit.rlim_max >= CTL_FILES_WANTED;
    set_result(c, enough ? CTL_OK : CTL_WARN,
               enough ? ""
                      : "raise LimitNOFILE of the agent, or lower its max_sessions, which it needs "
                        "most of them for (kedge-agent.conf(5))",
               "at most %llu open files, of which an agent with default settings needs %d",
               (unsigned long long)limit.rlim_max, CTL_FILES_WANTED);
}

/* Whether there is a device file of verbs; how many. */
static int verbs_devices(void)
{
    int n = 0;
    DIR *d = opendir("/dev/infiniband");
    if (d == NULL)
        return 0;
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        n += strncmp(e->d_name, "uverbs", 6) == 0;
    closedir(d);
    return n;
}

static void check_rdma(struct ctl_check *device, struct ctl_check *memlock)
{
    struct rlimit limit;
    int devices = verbs_devices();
    if (devices > 0)
        set_result(device, CTL_OK, "", "%d in /dev/infiniband", devices);
    else
        set_result(
            device, CTL_WARN,
            "nothing for one host: provider = soft needs none. For several: an RDMA NIC and its "
            "driver, or SoftRoCE (modprobe rdma_rxe; rdma link add rxe0 type rxe netdev eth0)",
            "no /dev/infiniband/uverbs*");
    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0)
        return;
    if (limit.rlim_cur == RLIM_INFINITY) {
        set_result(memlock, CTL_OK, "", "unlimited");
        return;
    }
    bool enough = devices == 0 || limit.rlim_cur / MIB >= MEMLOCK_WANTED_MIB;
    set_result(memlock, enough ? CTL_OK : CTL_WARN,
               enough ? "" : "raise LimitMEMLOCK of the agent: a NIC pins what is registered",
               "%llu MiB may be locked%s", (unsigned long long)limit.rlim_cur / MIB,
               devices == 0 ? " (soft locks none)" : "");
}

size_t ctl_checks_host(struct ctl_check *out, size_t max)
{
    static const char *const names[] = {"kernel",       "cores",        "memfd seals", "/proc",
                                        "pidfd",        "/dev/shm",     "soft device", "open files",
                                        "RDMA devices", "locked memory"};
    const size_t count = sizeof names / sizeof names[0];
    if (max < count)
        return 0;
    for (size_t i = 0; i < count; i++) {
        out[i] = (struct ctl_check){.level = CTL_WARN};
        snprintf(out[i].name, sizeof out[i].name, "%s", names[i]);
        set_result(&out[i], CTL_WARN, "", "unknown");
    }
    check_kernel(&out[0]);
    check_cores(&out[1]);
    shared_memory(&out[2], &out[3]);
    check_pidfd(&out[4]);
    check_shm(&out[5]);
    soft_device(&out[6]);
    check_files(&out[7]);
    check_rdma(&out[8], &out[9]);
    return count;
}

size_t ctl_checks_leave(struct ctl_check *check, size_t count, bool by_proc)
{
    static const char *const known[] = {"RDMA devices", "locked memory", "open files", "/dev/shm",
                                        "soft device"};
    size_t left = 0;
    for (size_t i = 0; i < count; i++) {
        bool out = !by_proc && strcmp(check[i].name, "/proc") == 0;
        for (size_t k = 0; k < sizeof known / sizeof known[0]; k++)
            out = out || strcmp(check[i].name, known[k]) == 0;
        if (!out)
            check[left++] = check[i];
    }
    return left;
}
