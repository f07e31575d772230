/* SPDX-License-Identifier: Apache-2.0 */
/* A report as text, and as JSON. */
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/json_writer.h"
#include "probe/report.h"

static const char *const results[] = {"ok", "warning", "failed", "skipped"};

/* What is known of the machine, for whoever reads the report elsewhere. */
struct machine {
    struct utsname kernel;
    char system[96]; /* of /etc/os-release */
    char cpu[96];
    long cpus;
    char when[32]; /* UTC */
};

/* The value of the first line that begins with key, without quotes. */
static void find_line(const char *path, const char *key, const char *separator, char *out,
                      size_t size)
{
    char line[512];
    out[0] = '\0';
    FILE *f = fopen(path, "re");
    if (f == NULL)
        return;
    while (out[0] == '\0' && fgets(line, sizeof line, f) != NULL) {
        char *at = strstr(line, separator);
        if (strncmp(line, key, strlen(key)) != 0 || at == NULL)
            continue;
        at += strlen(separator);
        at += strspn(at, " \"");
        at[strcspn(at, "\"\n")] = '\0';
        snprintf(out, size, "%s", at);
    }
    fclose(f);
}

static void machine_read(struct machine *m)
{
    time_t now = time(NULL);
    struct tm utc;
    memset(m, 0, sizeof *m);
    (void)uname(&m->kernel);
    find_line("/etc/os-release", "PRETTY_NAME", "=", m->system, sizeof m->system);
    find_line("/proc/cpuinfo", "model name", ":", m->cpu, sizeof m->cpu);
    m->cpus = sysconf(_SC_NPROCESSORS_ONLN);
    if (gmtime_r(&now, &utc) != NULL)
        (void)strftime(m->when, sizeof m->when, "%Y-%m-%dT%H:%M:%SZ", &utc);
}

/* ---- text */

static void print_devices(const struct fab_devices *d, FILE *out)
{
    char gid[BASE_GID_TEXT];
    if (d->count == 0)
        return;
    fprintf(out, "\nRDMA devices, ports and GIDs of this host:\n");
    for (uint32_t i = 0; i < d->count; i++) {
        const struct fab_candidate *c = &d->item[i];
        fprintf(out, "  %s %s", c->chosen ? "->" : "  ", c->device);
        if (c->driver[0] != '\0')
            fprintf(out, " (%s%s%s)", c->driver, c->firmware[0] != '\0' ? ", firmware " : "",
                    c->firmware);
        if (c->port != 0)
            fprintf(out, " port %u, %s, %s", c->port, c->link_layer, c->state);
        if (c->rate[0] != '\0')
            fprintf(out, ", %s", c->rate);
        if (c->gid_index >= 0)
            fprintf(out, ", GID %d %s, %s%s%s", c->gid_index, base_gid_format(c->gid, gid),
                    c->gid_kind, c->netdev[0] != '\0' ? ", " : "", c->netdev);
        fprintf(out, ": %s%s\n", c->chosen ? "chosen: " : "", c->why);
    }
}

void probe_print_text(const struct probe_report *r, FILE *out)
{
    struct machine m;
    struct probe_verdict v;
    char gid[BASE_GID_TEXT];
    machine_read(&m);
    probe_judge(r, &v);
    fprintf(out, "Kedge %s, %s: %s %s %s, %s, %ld x %s, uid %u\n", KEDGE_VERSION, m.when,
            m.kernel.sysname, m.kernel.release, m.kernel.machine, m.system, m.cpus, m.cpu,
            (unsigned)geteuid());
    fprintf(out, "provider %s, device %s", r->provider, r->device);
    if (r->transports != 0)
        fprintf(out, ", port %u, GID %s", r->port, base_gid_format(r->gid, gid));
    fprintf(out, "\n");
    print_devices(&r->devices, out);
    fprintf(out, "\n");
    for (unsigned i = 0; i < r->checks; i++) {
        const struct probe_check *c = &r->check[i];
        fprintf(out, "%-8s %-18s %s\n", results[c->result], c->name, c->found);
        if (c->advice[0] != '\0')
            fprintf(out, "%-27s   what to do: %s\n", "", c->advice);
    }
    fprintf(out,
            "\n%s.\nTo send this report to whoever can help: rdmactl doctor -o json >report.json\n",
            v.sentence);
}

/* ---- JSON */

static void json_devices(const struct fab_devices *d, struct base_text *t)
{
    char gid[BASE_GID_TEXT];
    base_json_array(t, "candidates");
    for (uint32_t i = 0; i < d->count; i++) {
        const struct fab_candidate *c = &d->item[i];
        base_json_object(t, NULL);
        base_json_bool(t, "chosen", c->chosen);
        base_json_string(t, "device", c->device);
        base_json_string(t, "driver", c->driver);
        base_json_string(t, "firmware", c->firmware);
        base_json_u64(t, "vendor_id", c->vendor_id);
        base_json_u64(t, "part_id", c->part_id);
        base_json_u64(t, "port", c->port);
        base_json_string(t, "link_layer", c->link_layer);
        base_json_string(t, "state", c->state);
        base_json_string(t, "rate", c->rate);
        base_json_i64(t, "gid_index", c->gid_index);
        base_json_string(t, "gid", c->gid_index >= 0 ? base_gid_format(c->gid, gid) : "");
        base_json_string(t, "gid_kind", c->gid_kind);
        base_json_string(t, "netdev", c->netdev);
        base_json_string(t, "why", c->why);
        base_json_object_end(t);
    }
    base_json_array_end(t);
    base_json_bool(t, "candidates_complete", !d->incomplete);
}

static void json_check(const struct probe_check *c, struct base_text *t)
{
    base_json_object(t, NULL);
    base_json_string(t, "check", c->name);
    base_json_string(t, "result", results[c->result]);
    base_json_string(t, "found", c->found);
    base_json_string(t, "advice", c->advice);
    base_json_object(t, "numbers");
    for (unsigned i = 0; i < c->numbers; i++)
        base_json_u64(t, c->number[i].name, c->number[i].value);
    base_json_object_end(t);
    base_json_object_end(t);
}

void probe_print_json(const struct probe_report *r, struct base_text *t)
{
    struct machine m;
    struct probe_verdict v;
    char gid[BASE_GID_TEXT];
    machine_read(&m);
    probe_judge(r, &v);
    base_json_object(t, NULL);
    base_json_string(t, "report", "kedge-probe");
    base_json_i64(t, "version", PROBE_FORMAT);
    base_json_string(t, "kedge", KEDGE_VERSION);
    base_json_string(t, "when", m.when);
    base_json_object(t, "host");
    base_json_i64(t, "cpus", m.cpus);
    base_json_u64(t, "uid", geteuid());
    base_json_string(t, "kernel", m.kernel.release);
    base_json_string(t, "machine", m.kernel.machine);
    base_json_string(t, "system", m.system);
    base_json_string(t, "cpu", m.cpu);
    base_json_object_end(t);
    base_json_string(t, "provider", r->provider);
    base_json_bool(t, "by_proc", r->by_proc);
    base_json_string(t, "device", r->device);
    base_json_u64(t, "port", r->port);
    base_json_string(t, "gid", r->transports != 0 ? base_gid_format(r->gid, gid) : "");
    json_devices(&r->devices, t);
    base_json_array(t, "checks");
    for (unsigned i = 0; i < r->checks; i++)
        json_check(&r->check[i], t);
    base_json_array_end(t);
    base_json_object(t, "verdict");
    base_json_bool(t, "usable", v.usable);
    base_json_bool(t, "rc", v.usable);
    base_json_bool(t, "dc", v.dc);
    base_json_string(t, "sentence", v.sentence);
    base_json_object_end(t);
    base_json_object_end(t);
}
