/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the device that the configuration names, and runs all checks in order. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/error.h"
#include "bed.h"
#include "fabric/fault.h"
#include "fabric/model.h"
#include "fabric/limits.h"
#include "fabric/providers.h"
#include "peer.h"

enum { DIRECTORY_NEEDED_MIB = 16, DIRECTORY_WANTED_MIB = 256 };

static void check_configuration(struct probe_report *r, const struct probe_settings *s)
{
    struct probe_check *c = probe_begin(r, "configuration", PROBE_FOR_NOTHING);
    if (s->wrong[0] != '\0')
        probe_warn(c, "the agent does not start with that", "%s; %s", s->source, s->wrong);
    else
        probe_ok(c, "%s", s->source);
}

/* ---- candidates */

static const struct fab_candidate *chosen_candidate(const struct fab_devices *d)
{
    for (uint32_t i = 0; i < d->count; i++)
        if (d->item[i].chosen)
            return &d->item[i];
    return NULL;
}

/* False: there is nothing that could be opened. */
static bool check_candidates(struct probe_report *r, const struct probe_settings *s,
                             const struct fab_provider *provider)
{
    struct base_errbuf err = {.text = ""};
    char gid[BASE_GID_TEXT];
    const bool wanted = provider->rdma_devices;
    /* A directory is no device's name. */
    struct fab_open_attr attr = wanted ? s->attr : (struct fab_open_attr){.port = 0};
    int status = fab_devices_list(&attr, &r->devices, &err);
    struct probe_check *c = probe_begin(r, "devices", wanted ? PROBE_FOR_RC : PROBE_FOR_NOTHING);
    const struct fab_candidate *it = chosen_candidate(&r->devices);
    probe_number(c, "candidates", r->devices.count);
    if (status != 0 || it == NULL) {
        if (wanted)
            probe_fail(c,
                       "see the list of devices for what there is, and [fabric] in "
                       "kedge-agent.conf(5) for how to name one",
                       "%s", err.text);
        else
            probe_skip(c, "%s; the %s provider needs none", err.text, provider->name);
        return !wanted;
    }
    probe_number(c, "gid_index", (uint64_t)it->gid_index);
    probe_number(c, "vendor_id", it->vendor_id);
    probe_number(c, "part_id", it->part_id);
    base_gid_format(it->gid, gid);
    if (!wanted) {
        probe_ok(c, "the configuration asks for %s, though %s port %u could be used (GID %s)",
                 provider->name, it->device, it->port, gid);
        probe_advise(c, "to use it: `provider = %s` and `device = %s` in [fabric]",
                     fab_provider_usual(true)->name, it->device);
        return true;
    }
    snprintf(r->device, sizeof r->device, "%s", it->device);
    probe_ok(c, "%s (driver %s, firmware %s), port %u, GID %s: %s", it->device,
             it->driver[0] != '\0' ? it->driver : "unknown",
             it->firmware[0] != '\0' ? it->firmware : "unknown", it->port, gid, it->why);
    return true;
}

/* Where a device that is a directory is, and whether an agent can use it: on a disk it works, and
 * its pages are written there without end. */
static void check_directory(struct probe_report *r, const struct fab_open_attr *attr,
                            const struct fab_provider *provider)
{
    struct base_errbuf err = {.text = ""};
    char dir[PATH_MAX], parent[PATH_MAX];
    struct statfs fs;
    struct stat st;
    struct probe_check *c = probe_begin(r, "soft.directory", PROBE_FOR_RC);
    (void)provider->directory(attr->device, dir, sizeof dir); /* too long: check() says so */
    snprintf(parent, sizeof parent, "%s", dir);
    if (provider->check != NULL && provider->check(attr->device, &err) != 0) {
        probe_fail(c, "", "%s", err.text);
        return;
    }
    const bool there = lstat(dir, &st) == 0;
    if (statfs(there ? dir : dirname(parent), &fs) != 0) {
        probe_fail(c, "name another `device` in [fabric]", "%s: %s", dir, strerror(errno));
        return;
    }
    const uint64_t free_mib = fs.f_bavail * (uint64_t)fs.f_bsize >> 20;
    probe_number(c, "free_mib", free_mib);
    if (free_mib < DIRECTORY_NEEDED_MIB)
        probe_fail(c, "make room there, or name another `device` in [fabric]",
                   "%s: %" PRIu64 " MiB free", dir, free_mib);
    else if (fs.f_type != TMPFS_MAGIC)
        probe_warn(c, "name a directory on tmpfs as `device` in [fabric], such as /dev/shm/kedge",
                   "%s is not on tmpfs: what workers transfer is written to its disk", dir);
    else if (free_mib < DIRECTORY_WANTED_MIB)
        probe_warn(c, "remove what else is there, or mount it anew with more (-o remount,size=1G)",
                   "%s: %" PRIu64 " MiB free", dir, free_mib);
    else
        probe_ok(c, "%s %s; %" PRIu64 " MiB free", dir,
                 there ? "is the agents'" : "will be made by the first agent", free_mib);
}

/* ---- opening */

/* Opening makes the directory when it is not there, and then an agent of another user could not use
 * it: the probe tries elsewhere in that case. */
struct scratch {
    char dir[64]; /* "" if none was made */
};

static void try_elsewhere(struct scratch *x, const struct fab_provider *provider,
                          struct fab_open_attr *attr)
{
    char dir[PATH_MAX];
    struct stat st;
    x->dir[0] = '\0';
    if (provider->directory(attr->device, dir, sizeof dir) != 0 || lstat(dir, &st) == 0)
        return;
    snprintf(x->dir, sizeof x->dir, "/dev/shm/kedge-probe-XXXXXX");
    if (mkdtemp(x->dir) == NULL)
        x->dir[0] = '\0'; /* then opening says what is wrong */
    else
        attr->device = x->dir;
}

/* Nothing but what this opened is in there. */
static void remove_scratch(const struct scratch *x)
{
    DIR *dir = x->dir[0] != '\0' ? opendir(x->dir) : NULL;
    if (dir == NULL)
        return;
    for (struct dirent *e; (e = readdir(dir)) != NULL;)
        (void)unlinkat(dirfd(dir), e->d_name, 0);
    (void)closedir(dir);
    (void)rmdir(x->dir);
}

static struct fab *open_device(struct probe_report *r, const struct fab_provider *provider,
                               struct fab_open_attr *attr)
{
    static const uint8_t any[16];
    struct base_errbuf err = {.text = ""};
    struct fab *fab = NULL;
    struct probe_check *c = probe_begin(r, "opening", PROBE_FOR_RC);
    int status = provider->open(attr, &fab, &err);
    bool taken = status == -EADDRINUSE && memcmp(attr->gid, any, sizeof any) != 0;
    if (taken) { /* the agent's own, beside which this runs */
        memset(attr->gid, 0, sizeof attr->gid);
        status = provider->open(attr, &fab, &err);
    }
    if (status == 0)
        probe_ok(c, "the device can be opened%s",
                 taken ? ", with another GID: the configured one is in use by the agent" : "");
    else
        probe_fail(
            c,
            status == -ENOMEM
                ? "raise LimitMEMLOCK, or free memory; or raise hca_handle and hca_object in "
                  "rdma.max of this process's cgroup"
            : status == -EAGAIN ? fab_limit_advice(status)
                                : "",
            "%s", err.text[0] != '\0' ? err.text : strerror(-status));
    if (status == 0 && provider->usual != NULL)
        snprintf(r->device, sizeof r->device, "%s",
                 attr->device != NULL ? attr->device : provider->usual);
    return status == 0 ? fab : NULL;
}

/* With a peer, the agent's own: two nodes as they are. What is on the way between them is no part
 * of what this one does with itself. */
static struct fault_plan faults;

static struct fab *add_faults(const struct probe_settings *s, struct fab *fab)
{
    struct base_errbuf err;
    struct fab *layer = fab;
    if (s->fault == NULL || s->fault[0] == '\0' || fault_plan_parse(s->fault, &faults, &err) != 0)
        return fab;
    struct fault_plan here = faults;
    here.hop = 0;
    (void)fault_open(fab, &here, &layer);
    return layer;
}

static void try_peer(struct bed *b)
{
    if (faults.hop != 0)
        fault_set_plan(b->fab, &faults);
    probe_peer(b);
}

void probe_device(struct fab *fab, const struct probe_settings *s, struct probe_report *r)
{
    static struct bed bed;
    memcpy(r->gid, fab->caps.gid, 16);
    r->port = fab->caps.port_num;
    r->transports = fab->caps.transports;
    if (!(fab->caps.transports & FAB_DC))
        snprintf(r->no_dc, sizeof r->no_dc, "%s",
                 fab->caps.dc_why[0] != '\0' ? fab->caps.dc_why : "this device has none");
    bool made = probe_bed_open(&bed, fab, s, r);
    probe_transport(&bed);
    probe_limits(&bed);
    probe_placement(&bed);
    if (made) {
        probe_rc(&bed);
        probe_ud(&bed);
        probe_dc(&bed);
        probe_shapes(&bed);
        probe_lease(&bed);
        probe_clocks(&bed);
        probe_registration(&bed);
        probe_holes(&bed);
        if (s->peer != NULL)
            try_peer(&bed);
        probe_coverage(&bed);
    }
    probe_bed_close(&bed);
}

void probe_run(const struct probe_settings *s, struct probe_report *r)
{
    struct base_errbuf err = {.text = ""};
    struct fab_open_attr attr = s->attr;
    struct scratch scratch = {.dir = ""};
    const struct fab_provider *provider = fab_provider_find(s->provider, &err);
    *r = (struct probe_report){.port = 0};
    snprintf(r->provider, sizeof r->provider, "%.31s", s->provider);
    snprintf(r->device, sizeof r->device, "%s", attr.device != NULL ? attr.device : "(any)");
    if (provider == NULL) {
        probe_fail(probe_begin(r, "provider", PROBE_FOR_RC), "", "%s", err.text);
        return;
    }
    check_configuration(r, s);
    bool there = check_candidates(r, s, provider);
    probe_memory_limits(r, s, provider->locks_memory);
    if (!there)
        return;
    r->by_proc = provider->by_proc;
    if (provider->directory != NULL)
        check_directory(r, &s->attr, provider);
    if (provider->directory != NULL && s->peer == NULL)
        try_elsewhere(&scratch, provider, &attr);
    struct fab *fab = open_device(r, provider, &attr);
    if (fab != NULL && s->peer != NULL)
        fab = add_faults(s, fab);
    if (fab != NULL && fab->model != NULL)
        probe_warn(probe_begin(r, "model", PROBE_FOR_NOTHING),
                   "leave out `model` in [fabric] where its own times are wanted",
                   "modelled: %s: what requests take is a cost model's, and no device's",
                   fab->model->preset);
    if (fab != NULL) {
        probe_device(fab, s, r);
        if (!r->stuck && fab_close(fab) != 0)
            probe_fail(probe_begin(r, "closing", PROBE_FOR_NOTHING), "send this report",
                       "the device could not be closed: something is left on it");
    }
    remove_scratch(&scratch);
}

int probe_serve(const struct probe_settings *s, const char *address, FILE *out,
                struct base_errbuf *err)
{
    static struct probe_report report;
    static struct bed bed;
    struct fab_open_attr attr = s->attr;
    const struct fab_provider *provider = fab_provider_find(s->provider, err);
    report = (struct probe_report){.port = 0};
    if (provider == NULL)
        return -EINVAL;
    struct fab *fab = open_device(&report, provider, &attr);
    if (fab == NULL)
        return base_err(err, -ENODEV, "%.400s", report.check[0].found);
    fab = add_faults(s, fab);
    int status;
    if (probe_bed_open(&bed, fab, s, &report))
        status = probe_peer_serve(&bed, address, out, err);
    else
        status = base_err(err, -EIO, "%.400s", report.check[report.checks - 1].found);
    probe_bed_close(&bed);
    if (!report.stuck)
        (void)fab_close(fab);
    return status;
}
