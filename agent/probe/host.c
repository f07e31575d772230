/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that may be locked, and large pages: the host's, before a device is touched. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bed.h"

enum { CAP_IPC_LOCK_BIT = 14 };

/* The value of a line "Name: 123 kB" of a file of the kernel; base 10 or 16. */
static bool read_field(const char *path, const char *name, int base, uint64_t *out)
{
    char line[256];
    bool found = false;
    FILE *f = fopen(path, "re");
    if (f == NULL)
        return false;
    while (!found && fgets(line, sizeof line, f) != NULL) {
        size_t n = strlen(name);
        if (strncmp(line, name, n) != 0 || line[n] != ':')
            continue;
        *out = strtoull(line + n + 1, NULL, base);
        found = true;
    }
    fclose(f);
    return found;
}

void probe_memlock(struct probe_report *r, const struct probe_settings *s, bool locks,
                   uint64_t limit, bool exempt)
{
    struct probe_check *c = probe_begin(r, PROBE_MEMLOCK, PROBE_FOR_NOTHING);
    char start[PROBE_DURATION], most[PROBE_DURATION], allowed[PROBE_DURATION];
    static const char advice[] =
        "raise LimitMEMLOCK: LimitMEMLOCK=infinity in the agent's unit; for a shell, `* - memlock "
        "unlimited` in /etc/security/limits.conf and a new login";
    bool unlimited = limit == RLIM_INFINITY;
    probe_size(s->start_bytes, start);
    probe_size(s->most_bytes, most);
    snprintf(allowed, sizeof allowed, "no limit");
    if (!unlimited)
        probe_size(limit, allowed);
    probe_number(c, "start_bytes", s->start_bytes);
    probe_number(c, "most_bytes", s->most_bytes);
    if (!unlimited)
        probe_number(c, "limit_bytes", limit);
    probe_number(c, "exempt", exempt);
    if (!locks)
        probe_ok(c,
                 "this provider locks no memory; on a device the agent would lock %s when it "
                 "starts and up to %s when tenants use all they may (allowed here: %s)",
                 start, most, allowed);
    else if (unlimited || exempt)
        probe_ok(c,
                 "the agent locks %s when it starts and up to %s when tenants use all they may; "
                 "allowed here: "
                 "%s%s",
                 start, most, allowed,
                 exempt && !unlimited ? ", but this user has CAP_IPC_LOCK and is not held to it"
                                      : "");
    else if (limit < s->start_bytes)
        probe_warn(c, advice,
                   "the agent locks %s when it starts, but only %s may be locked here: with this "
                   "limit it would not start",
                   start, allowed);
    else if (limit < s->most_bytes)
        probe_warn(c, advice,
                   "the agent locks %s when it starts and up to %s when tenants use all they may, "
                   "but only %s "
                   "may be locked here: with this limit workers would be refused",
                   start, most, allowed);
    else
        probe_ok(c,
                 "the agent locks %s when it starts and up to %s when tenants use all they may; "
                 "allowed here: "
                 "%s",
                 start, most, allowed);
}

static void open_files(struct probe_report *r, const struct probe_settings *s)
{
    struct probe_check *c = probe_begin(r, "open files", PROBE_FOR_NOTHING);
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    probe_number(c, "limit", limit.rlim_max);
    probe_number(c, "needs", s->open_files);
    if (limit.rlim_max == RLIM_INFINITY || limit.rlim_max >= s->open_files)
        probe_ok(c, "these settings need %llu, and %llu are allowed here",
                 (unsigned long long)s->open_files, (unsigned long long)limit.rlim_max);
    else
        probe_warn(c, "raise LimitNOFILE in the agent's unit, or lower max_sessions in [pool]",
                   "these settings need %llu, but only %llu are allowed here: with this limit the "
                   "agent would not start",
                   (unsigned long long)s->open_files, (unsigned long long)limit.rlim_max);
}

static void huge_pages(struct probe_report *r)
{
    struct probe_check *c = probe_begin(r, "huge pages", PROBE_FOR_NOTHING);
    uint64_t total = 0, free_pages = 0, kib = 0, available = 0;
    if (!read_field("/proc/meminfo", "HugePages_Total", 10, &total) ||
        !read_field("/proc/meminfo", "HugePages_Free", 10, &free_pages) ||
        !read_field("/proc/meminfo", "Hugepagesize", 10, &kib)) {
        probe_skip(c, "this kernel has none");
        return;
    }
    (void)read_field("/proc/meminfo", "MemAvailable", 10, &available);
    probe_number(c, "total", total);
    probe_number(c, "free", free_pages);
    probe_number(c, "bytes_each", kib * 1024);
    probe_number(c, "memory_available_bytes", available * 1024);
    probe_ok(c, "%llu of %llu are free, of %llu KiB each (for information: Kedge uses none)",
             (unsigned long long)free_pages, (unsigned long long)total, (unsigned long long)kib);
}

void probe_memory_limits(struct probe_report *r, const struct probe_settings *s, bool locks)
{
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY};
    uint64_t capabilities = 0;
    (void)getrlimit(RLIMIT_MEMLOCK, &limit);
    (void)read_field("/proc/self/status", "CapEff", 16, &capabilities);
    probe_memlock(r, s, locks, limit.rlim_cur, (capabilities >> CAP_IPC_LOCK_BIT & 1) != 0);
    open_files(r, s);
    huge_pages(r);
}
