/* SPDX-License-Identifier: Apache-2.0 */
/* What a program without Kedge pays until its first READ of a new peer: repetitions in fresh
 * processes, then in this one with its device kept open, against a peer that waits prepared. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fresh.h"
#include "perf.h"

/* The peer's process. */
struct peer {
    pid_t pid;
    FILE *says; /* a line each time that it is prepared; else why it is not */
    uint16_t port;
};

static int listen_here(uint16_t *port, struct base_errbuf *err)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) != 0 || listen(fd, 1) != 0 ||
        getsockname(fd, (struct sockaddr *)&at, &length) != 0) {
        int status = -errno;
        if (fd >= 0)
            close(fd);
        return base_err(err, status, "no TCP port on 127.0.0.1: %s", strerror(-status));
    }
    *port = ntohs(at.sin_port);
    return fd;
}

_Noreturn static void be_peer(const struct perf_options *o, int listen_fd, int told_fd)
{
    struct bench_program *p;
    struct base_errbuf err = {.text = ""};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_IGN);
    int status = bench_program_open(&o->verbs, true, NULL, &p, &err);
    if (status == 0)
        status = bench_program_serve(p, listen_fd, told_fd, &err);
    dprintf(told_fd, "%d %s\n", status, err.text);
    _exit(1);
}

static void peer_end(struct peer *peer)
{
    if (peer->pid > 0) {
        kill(peer->pid, SIGKILL);
        waitpid(peer->pid, NULL, 0);
    }
    if (peer->says != NULL)
        fclose(peer->says);
}

static int peer_start(const struct perf_options *o, struct peer *peer, struct base_errbuf *err)
{
    int told[2], status, fd = listen_here(&peer->port, err);
    if (fd < 0)
        return fd;
    if (pipe2(told, O_CLOEXEC) != 0) {
        status = -errno;
        close(fd);
        return base_err(err, status, "pipe: %s", strerror(-status));
    }
    peer->pid = fork();
    status = -errno;
    if (peer->pid == 0)
        be_peer(o, fd, told[1]);
    close(fd);
    close(told[1]);
    peer->says = fdopen(told[0], "r");
    if (peer->pid < 0)
        return base_err(err, status, "fork: %s", strerror(-status));
    return peer->says != NULL ? 0 : base_err(err, -ENOMEM, "out of memory");
}

/* Until the peer has its next queue pair, so that no program waits for that. */
static int peer_wait(struct peer *peer, struct base_errbuf *err)
{
    char line[600] = "";
    if (fgets(line, sizeof line, peer->says) == NULL)
        return base_err(err, -EPIPE, "the peer ended");
    if (strcmp(line, "prepared\n") == 0)
        return 0;
    char *text;
    long status = strtol(line, &text, 10);
    text[strcspn(text, "\n")] = '\0';
    return base_err(err, status < 0 ? (int)status : -EIO, "%s", text + strspn(text, " "));
}

/* In the process that was started for one repetition: prints its times. */
static int be_program(const struct perf_options *o, struct base_errbuf *err)
{
    uint64_t ns[BENCH_STEPS];
    uint8_t peer_gid[16];
    struct bench_program *p;
    int status = bench_program_open(&o->verbs, false, ns, &p, err);
    if (status != 0)
        return status;
    status = bench_program_connect(p, o->child_port, ns, peer_gid, err);
    bench_program_close(p);
    if (status == 0)
        perf_fresh_print(ns, BENCH_STEPS);
    return status;
}

/* One repetition in a process of its own. */
static int run_fresh(const struct perf_options *o, uint16_t port, uint64_t ns[BENCH_STEPS],
                     struct base_errbuf *err)
{
    char number[8], gid[BASE_GID_TEXT];
    static const uint8_t zero[16];
    const char *argv[9] = {"kedge-perf", "verbs-connect", "--child", number};
    int n = 4;
    snprintf(number, sizeof number, "%u", port);
    if (o->verbs.device != NULL) {
        argv[n++] = "--device";
        argv[n++] = o->verbs.device;
    }
    if (memcmp(o->verbs.gid, zero, sizeof zero) != 0) {
        argv[n++] = "--gid";
        argv[n++] = base_gid_format(o->verbs.gid, gid);
    }
    return perf_fresh_run(argv, ns, BENCH_STEPS, err);
}

static int measure_cold(const struct perf_options *o, struct peer *peer, struct perf_verbs *v,
                        struct base_errbuf *err)
{
    static struct perf_samples s;
    uint64_t ns[BENCH_STEPS];
    for (uint64_t i = 0; i < o->count; i++) {
        int status = peer_wait(peer, err);
        if (status == 0)
            status = run_fresh(o, peer->port, ns, err);
        if (status != 0)
            return status;
        perf_samples_add(&s, ns, BENCH_DEVICE, BENCH_STEPS);
    }
    v->cold_least_ns = perf_samples_medians(&s, BENCH_STEPS, v->cold_ns);
    return 0;
}

/* The first time is not counted: it touches what a process touches once. */
static int measure_warm(const struct perf_options *o, struct peer *peer, struct perf_verbs *v,
                        struct base_errbuf *err)
{
    static struct perf_samples s;
    uint64_t ns[BENCH_STEPS];
    struct bench_program *p;
    int status = bench_program_open(&o->verbs, false, NULL, &p, err);
    if (status != 0)
        return status;
    snprintf(v->device, sizeof v->device, "%s", bench_program_device(p));
    memcpy(v->gid, bench_program_gid(p), 16);
    for (uint64_t i = 0; status == 0 && i <= o->count; i++) {
        status = peer_wait(peer, err);
        if (status == 0)
            status = bench_program_connect(p, peer->port, ns, v->peer_gid, err);
        if (status == 0 && i > 0)
            perf_samples_add(&s, ns, BENCH_CQ, BENCH_STEPS);
    }
    bench_program_close(p);
    if (status == 0)
        v->warm_least_ns = perf_samples_medians(&s, BENCH_STEPS, v->warm_ns);
    return status;
}

int perf_verbs_connect(const struct perf_options *o, struct perf_result *r, struct base_errbuf *err)
{
    struct peer peer = {.pid = 0};
    if (o->child_port != 0)
        return be_program(o, err);
    int status = peer_start(o, &peer, err);
    if (status == 0)
        status = measure_cold(o, &peer, &r->verbs, err);
    if (status == 0)
        status = measure_warm(o, &peer, &r->verbs, err);
    peer_end(&peer);
    return status;
}

static void json_steps(struct base_text *t, const char *name, const uint64_t *ns, int first,
                       uint64_t least_ns)
{
    base_text_printf(t, "\"%s\":{", name);
    for (int i = first; i < BENCH_STEPS; i++)
        base_text_printf(t, "\"%s_ns\":%llu,", bench_step_key((enum bench_step)i),
                         (unsigned long long)ns[i]);
    base_text_printf(t, "\"total_ns\":%llu,\"least_total_ns\":%llu},",
                     (unsigned long long)ns[BENCH_STEPS], (unsigned long long)least_ns);
}

void perf_verbs_report(const struct perf_options *o, const struct perf_result *r)
{
    const struct perf_verbs *v = &r->verbs;
    char gid[BASE_GID_TEXT], peer_gid[BASE_GID_TEXT];
    struct base_text t;
    base_gid_format(v->gid, gid);
    base_gid_format(v->peer_gid, peer_gid);
    if (o->json) {
        base_text_init(&t, 4096);
        base_text_printf(&t, "{\"test\":\"%s\",\"provider\":\"verbs\",\"device\":", o->name);
        base_text_json(&t, v->device);
        base_text_printf(&t, ",\"gid\":\"%s\",\"peer_gid\":\"%s\",\"buffer_bytes\":%d,", gid,
                         peer_gid, BENCH_BUFFER_BYTES);
        base_text_printf(&t, "\"verified\":true,\"count\":%llu,", (unsigned long long)o->count);
        json_steps(&t, "cold", v->cold_ns, BENCH_DEVICE, v->cold_least_ns);
        json_steps(&t, "warm", v->warm_ns, BENCH_CQ, v->warm_least_ns);
        perf_report_machine(&t);
        base_text_printf(&t, "}");
        puts(base_text_str(&t));
        base_text_fini(&t);
        return;
    }
    printf("verbs-connect, without Kedge: %s, from %s to %s; medians of %llu, in us\n", v->device,
           gid, peer_gid, (unsigned long long)o->count);
    printf("%-32s %16s %20s\n", "", "fresh process", "device kept open");
    for (int i = 0; i < BENCH_STEPS; i++) {
        printf("%-32s %16.1f", bench_step_name((enum bench_step)i), (double)v->cold_ns[i] / 1e3);
        if (i < BENCH_CQ)
            printf(" %20s\n", "-");
        else
            printf(" %20.1f\n", (double)v->warm_ns[i] / 1e3);
    }
    printf("%-32s %16.1f %20.1f\n", "all of it", (double)v->cold_ns[BENCH_STEPS] / 1e3,
           (double)v->warm_ns[BENCH_STEPS] / 1e3);
}
