/* SPDX-License-Identifier: Apache-2.0 */
/* What an agent takes for each peer that it knows: an agent with tables for so many, which has met
 * them all, beside one that has asked as often and met none. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <kedge.h>

#include "perf.h"

enum { FILES = 4096 };

/* The pages of memory files that a process holds open, each file once: also those that it has
 * allocated and not touched. */
static uint64_t memory_files(int pid)
{
    static ino_t seen[FILES];
    char path[PATH_MAX], target[64];
    uint64_t bytes = 0;
    size_t count = 0;
    struct stat st;
    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    DIR *d = opendir(path);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        snprintf(path, sizeof path, "/proc/%d/fd/%s", pid, e->d_name);
        ssize_t n = readlink(path, target, sizeof target - 1);
        if (n < 7 || memcmp(target, "/memfd:", 7) != 0 || stat(path, &st) != 0)
            continue;
        size_t i = 0;
        while (i < count && seen[i] != st.st_ino)
            i++;
        if (i < count || count == FILES)
            continue;
        seen[count++] = st.st_ino;
        bytes += (uint64_t)st.st_blocks * 512;
    }
    if (d != NULL)
        closedir(d);
    return bytes;
}

static int memory_of(int pid, uint64_t *out, struct base_errbuf *err)
{
    char path[64], line[256];
    unsigned long long kib = 0;
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    FILE *f = fopen(path, "re");
    while (f != NULL && kib == 0 && fgets(line, sizeof line, f) != NULL)
        (void)sscanf(line, "RssAnon: %llu", &kib);
    if (f != NULL)
        fclose(f);
    if (kib == 0)
        return base_err(err, -EIO, "%s does not say what the agent takes", path);
    *out = kib * 1024 + memory_files(pid);
    return 0;
}

/* Connects to each of them, so that the agent knows them all. */
static int meet(struct kedge_session *s, const struct perf_options *o,
                const struct perf_unknown_nodes *unknown, struct perf_result *r,
                struct base_errbuf *err)
{
    struct base_clock_fast clock;
    struct kedge_vqp *q;
    uint8_t gid[16];
    base_clock_fast_init(&clock);
    int status = kedge_vqp_create(s, NULL, &q);
    uint64_t first = base_clock_fast_ns(&clock);
    for (int pass = 0; pass < 2; pass++)
        for (uint64_t i = 0; i < o->count && status == 0; i++) {
            perf_unknown_gid(unknown, i, gid);
            uint64_t begin = base_clock_fast_ns(&clock);
            status = kedge_connect(q, gid);
            if (pass == 1) /* known now: the second time must be a look into the table */
                base_hist_record(&r->hist, base_clock_fast_ns(&clock) - begin);
        }
    r->elapsed_ns = base_clock_fast_ns(&clock) - first;
    return status == 0 ? 0 : perf_failed(status, "connecting", err);
}

/* Asks as often, for endpoints that nobody has: what READs themselves have touched is no peer's. */
static int ask_in_vain(struct kedge_session *s, const struct perf_options *o,
                       const struct perf_unknown_nodes *unknown, struct base_errbuf *err)
{
    struct kedge_vqp *q;
    uint8_t gid[16];
    int status = kedge_vqp_create(s, NULL, &q);
    for (uint64_t i = 0; i < o->count && status == 0; i++) {
        perf_unknown_gid(unknown, o->count + i, gid);
        status = kedge_connect(q, gid);
        if (status == -ENOENT)
            status = 0;
        else if (status == 0)
            status = -EEXIST;
    }
    return status == 0 ? 0 : perf_failed(status, "asking for endpoints that nobody has", err);
}

int perf_memory(const struct perf_options *o, struct perf_result *r, struct base_errbuf *err)
{
    struct kedge_session *with = NULL, *without = NULL;
    struct perf_unknown_nodes unknown = {.registered = 0};
    base_hist_reset(&r->hist);
    int status = perf_open(o->socket, &with, &r->retries, err);
    if (status == 0)
        status = perf_open(o->peer_socket, &without, &r->retries, err);
    if (status == 0)
        status = perf_unknown_nodes_add(o, NULL, &unknown, err);
    if (status == 0)
        status = meet(with, o, &unknown, r, err);
    if (status == 0)
        status = ask_in_vain(without, o, &unknown, err);
    usleep(200000); /* what they make ahead is made */
    if (status == 0)
        status = memory_of(o->agent_pid[0], &r->large, err);
    if (status == 0)
        status = memory_of(o->agent_pid[1], &r->small, err);
    r->verified = status == 0;
    kedge_close(without);
    kedge_close(with);
    return status;
}
