/* SPDX-License-Identifier: Apache-2.0 */
/* Which device, which port, which GID. On Ethernet a GID of RoCE v2, the kind that is routed; an
 * address's before a link-local one, which no other host can be told to use.
 *
 * One walk over all that there is serves the choice, which stops at the first that does, and the
 * list for people, which goes on. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "verbs/describe.h"
#include "verbs/verbs.h"

enum { MAX_GIDS = 1024, MAX_REASONS = 400 };

/* What a GID is worth to us. */
enum worth { USELESS, LINK_LOCAL, ROUTED };

struct walk {
    const struct fab_open_attr *attr;
    struct fab_devices *list;   /* or NULL: nobody wants to see it */
    struct verbs_choice choice; /* its context is NULL until something does */
    char chosen[80];            /* "mlx5_0, port 1" */
    char reasons[MAX_REASONS];  /* why the devices that were looked at did not do */
    int status;                 /* of the last reason */
};

static const uint8_t no_gid[16];

static void add_reason(struct walk *w, int status, const char *device, const char *why)
{
    size_t at = strlen(w->reasons);
    snprintf(w->reasons + at, sizeof w->reasons - at, "%s%s: %s", at != 0 ? "; " : "", device, why);
    w->status = status;
}

static void add_candidate(struct walk *w, const struct fab_candidate *c)
{
    struct fab_devices *list = w->list;
    if (list == NULL)
        return;
    struct fab_candidate *more = realloc(list->item, (list->count + 1) * sizeof *more);
    if (more == NULL) {
        list->incomplete = true;
        return;
    }
    list->item = more;
    list->item[list->count++] = *c;
}

/* A device or a port that is of no use as a whole; c is the part of it that is known. */
static void pass_over(struct walk *w, struct fab_candidate *c, int status)
{
    add_reason(w, status, c->device, c->why);
    add_candidate(w, c);
}

/* A device or port that nobody asked for is no reason for a failure. */
static void not_asked_for(struct walk *w, struct fab_candidate *c, const char *instead)
{
    snprintf(c->why, sizeof c->why, "the configuration asks for %.80s", instead);
    add_candidate(w, c);
}

/* ---- GIDs */

static enum worth judge_gid(const struct fab_open_attr *attr, const struct ibv_gid_entry *e,
                            bool ethernet, char *why, size_t size)
{
    bool wanted = memcmp(attr->gid, no_gid, sizeof no_gid) != 0;
    bool is_it = memcmp(e->gid.raw, attr->gid, sizeof no_gid) == 0;
    bool link_local = e->gid.raw[0] == 0xfe && (e->gid.raw[1] & 0xc0) == 0x80;
    if (ethernet && e->gid_type != IBV_GID_TYPE_ROCE_V2)
        snprintf(why, size, "RoCE v1 is not routed: Kedge takes RoCE v2%s",
                 wanted && is_it ? ", and the same address has a GID of that kind too" : "");
    else if (e->gid_index > UINT8_MAX)
        snprintf(why, size, "an index above 255 cannot be addressed");
    else if (wanted && !is_it)
        snprintf(why, size, "the configuration asks for another GID");
    else if (wanted)
        snprintf(why, size, "the configuration asks for it");
    else if (ethernet && link_local)
        snprintf(why, size, "link-local: no host beyond this network segment can reach it");
    else
        snprintf(why, size, "the first %s", ethernet ? "RoCE v2 GID of an address" : "GID");
    if ((ethernet && e->gid_type != IBV_GID_TYPE_ROCE_V2) || e->gid_index > UINT8_MAX ||
        (wanted && !is_it))
        return USELESS;
    return ethernet && link_local && !wanted ? LINK_LOCAL : ROUTED;
}

/* Why this one is not it, though it could be used. */
static void not_the_best(const struct walk *w, const struct verbs_choice *best, bool same_port,
                         char *why, size_t size)
{
    char text[BASE_GID_TEXT];
    if (w->choice.context != NULL && !same_port)
        snprintf(why, size, "%s does, and comes first", w->chosen);
    else
        snprintf(why, size, "%s of the same port comes first", base_gid_format(best->gid, text));
}

static ssize_t gids_of_port(struct verbs_choice *c, struct ibv_gid_entry *entries)
{
    ssize_t of_port = 0, n = ibv_query_gid_table(c->context, entries, MAX_GIDS, 0);
    for (ssize_t i = 0; i < n; i++)
        if (entries[i].port_num == c->port && memcmp(entries[i].gid.raw, no_gid, 16) != 0)
            entries[of_port++] = entries[i];
    return n < 0 ? n : of_port;
}

/* A port that is up and has GIDs: its best one is the choice, unless there is one already. */
static void look_at_gids(struct walk *w, struct verbs_choice *c, struct fab_candidate *base,
                         const struct ibv_gid_entry *entry, ssize_t count)
{
    enum worth best = USELESS;
    bool ethernet = c->port_attr.link_layer == IBV_LINK_LAYER_ETHERNET;
    ssize_t best_at = -1;
    char why[sizeof base->why];
    for (ssize_t i = 0; i < count; i++) {
        enum worth it = judge_gid(w->attr, &entry[i], ethernet, why, sizeof why);
        if (it <= best)
            continue;
        best = it;
        best_at = i;
        memcpy(c->gid, entry[i].gid.raw, 16);
        c->sgid_index = (uint8_t)entry[i].gid_index;
    }
    bool chosen = best != USELESS && w->choice.context == NULL;
    if (chosen) {
        w->choice = *c;
        snprintf(w->chosen, sizeof w->chosen, "%.60s, port %u", base->device, base->port);
    }
    for (ssize_t i = 0; i < count && w->list != NULL; i++) {
        struct fab_candidate one = *base;
        verbs_describe_gid(&entry[i], &one);
        enum worth it = judge_gid(w->attr, &entry[i], ethernet, one.why, sizeof one.why);
        one.chosen = chosen && i == best_at;
        if (one.chosen && it == LINK_LOCAL)
            snprintf(one.why, sizeof one.why,
                     "link-local, for want of one of an address: no host beyond this network "
                     "segment can reach it (`ip addr add` makes a better one)");
        if (!one.chosen && it == best && best != USELESS)
            not_the_best(w, c, chosen, one.why, sizeof one.why);
        add_candidate(w, &one);
    }
    if (best != USELESS)
        return;
    char wanted[BASE_GID_TEXT];
    bool asked = memcmp(w->attr->gid, no_gid, sizeof no_gid) != 0;
    if (asked)
        snprintf(why, sizeof why,
                 "port %u has no %sGID %s (set `gid` in [fabric] to one that `rdmactl doctor` "
                 "lists, or to :: for the first that does)",
                 c->port, ethernet ? "RoCE v2 " : "", base_gid_format(w->attr->gid, wanted));
    else
        snprintf(
            why, sizeof why,
            "port %u has no RoCE v2 GID (give its network interface an address: `ip addr add`)",
            c->port);
    add_reason(w, -ENOENT, base->device, why);
}

/* ---- ports */

static const char *port_advice(const struct ibv_port_attr *p)
{
    if (p->link_layer == IBV_LINK_LAYER_ETHERNET)
        return "is its network interface up, and its cable in? `ip link set NIC up`";
    if (p->state == IBV_PORT_INIT)
        return "no subnet manager has configured it: start opensm on one host of the fabric";
    return "is its cable in?";
}

static void look_at_port(struct walk *w, struct verbs_choice *c, const struct fab_candidate *base,
                         struct ibv_gid_entry *entries)
{
    struct fab_candidate port = *base;
    char instead[32];
    port.port = c->port;
    if (ibv_query_port(c->context, c->port, &c->port_attr) != 0) {
        snprintf(port.why, sizeof port.why, "port %u does not answer", c->port);
        pass_over(w, &port, -EIO);
        return;
    }
    verbs_describe_port(&c->port_attr, &port);
    if (w->attr->port != 0 && w->attr->port != c->port) {
        snprintf(instead, sizeof instead, "port %u", w->attr->port);
        not_asked_for(w, &port, instead);
    } else if (c->port_attr.state != IBV_PORT_ACTIVE) {
        snprintf(port.why, sizeof port.why, "port %u is %s (%s)", c->port, port.state,
                 port_advice(&c->port_attr));
        pass_over(w, &port, -ENETDOWN);
    } else {
        ssize_t count = gids_of_port(c, entries);
        if (count > 0) {
            look_at_gids(w, c, &port, entries, count);
            return;
        }
        snprintf(port.why, sizeof port.why,
                 "port %u has no GID%s (give its network interface an address: `ip addr add`)",
                 c->port, count < 0 ? " that the kernel would tell of" : "");
        pass_over(w, &port, -ENOENT);
    }
}

/* Keeps the context in the choice, or closes it. */
static void look_at_open_device(struct walk *w, struct ibv_context *context,
                                struct fab_candidate *base)
{
    struct ibv_device_attr device;
    struct ibv_gid_entry *entries = calloc(MAX_GIDS, sizeof *entries);
    int status = ibv_query_device(context, &device);
    if (entries == NULL || status != 0) {
        snprintf(base->why, sizeof base->why, "the device does not say what it is: %s",
                 entries == NULL ? "out of memory" : strerror(status));
        pass_over(w, base, entries == NULL ? -ENOMEM : -status);
    } else {
        verbs_describe_device(&device, base);
        for (int port = 1; port <= device.phys_port_cnt; port++) {
            struct verbs_choice c = {.context = context, .port = (uint8_t)port};
            look_at_port(w, &c, base, entries);
            if (w->choice.context != NULL && w->list == NULL)
                break;
        }
        if (w->attr->port > device.phys_port_cnt) {
            snprintf(base->why, sizeof base->why,
                     "it has no port %u, but %u (set `port` in [fabric])", w->attr->port,
                     device.phys_port_cnt);
            pass_over(w, base, -ENOENT);
        }
    }
    free(entries);
    if (w->choice.context != context)
        (void)ibv_close_device(context);
}

/* ---- devices */

static void look_at_device(struct walk *w, struct ibv_device *device)
{
    struct fab_candidate base = {.gid_index = -1};
    snprintf(base.device, sizeof base.device, "%s", ibv_get_device_name(device));
    verbs_describe_driver(device->ibdev_path, &base);
    if (w->attr->device != NULL && strcmp(w->attr->device, base.device) != 0) {
        not_asked_for(w, &base, w->attr->device);
        return;
    }
    if (device->transport_type != IBV_TRANSPORT_IB) {
        snprintf(base.why, sizeof base.why, "it is neither InfiniBand nor RoCE");
        pass_over(w, &base, -ENOTSUP);
        return;
    }
    if (verbs_describe_refusal(&base, base.why, sizeof base.why)) {
        pass_over(w, &base, -ENOTSUP);
        return;
    }
    errno = 0;
    struct ibv_context *context = ibv_open_device(device);
    if (context != NULL) {
        look_at_open_device(w, context, &base);
        return;
    }
    int status = errno != 0 ? -errno : -EIO;
    char path[80];
    snprintf(path, sizeof path, "/dev/infiniband/%.60s", device->dev_name);
    if (access(path, R_OK | W_OK) != 0 && errno == EACCES) { /* which libibverbs does not say */
        status = -EACCES;
        snprintf(
            base.why, sizeof base.why,
            "this user may not read and write %s (chmod, or its group; or run as another user)",
            path);
    } else if (status == -EAGAIN) {
        snprintf(base.why, sizeof base.why,
                 "it cannot be opened: %s (raise hca_handle and hca_object in rdma.max of this "
                 "process's cgroup)",
                 strerror(-status));
    } else {
        snprintf(base.why, sizeof base.why, "it cannot be opened: %s (is %s there?)",
                 strerror(-status), path);
    }
    pass_over(w, &base, status);
}

/* The names of all devices, for the sentence. */
static void list_names(struct ibv_device **devices, char *text, size_t size)
{
    size_t at = 0;
    text[0] = '\0';
    for (int i = 0; devices[i] != NULL && at < size; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%s", i != 0 ? ", " : "",
                               ibv_get_device_name(devices[i]));
}

static bool is_among(struct ibv_device **devices, const char *name)
{
    for (int i = 0; devices[i] != NULL; i++)
        if (strcmp(ibv_get_device_name(devices[i]), name) == 0)
            return true;
    return false;
}

/* 0, and the choice is made. */
static int walk_devices(struct walk *w, struct base_errbuf *err)
{
    char names[200];
    int count = 0;
    w->status = -ENODEV;
    struct ibv_device **devices = ibv_get_device_list(&count);
    if (devices == NULL || count == 0) {
        if (devices != NULL)
            ibv_free_device_list(devices);
        return base_err(err, -ENODEV,
                        "there is no RDMA device on this host (load its driver; without an RNIC, "
                        "SoftRoCE: `modprobe rdma_rxe; rdma link add rxe0 type rxe netdev NIC`)");
    }
    list_names(devices, names, sizeof names);
    for (int i = 0; i < count && (w->list != NULL || w->choice.context == NULL); i++)
        look_at_device(w, devices[i]);
    bool found = w->attr->device == NULL || is_among(devices, w->attr->device);
    ibv_free_device_list(devices);
    if (!found)
        return base_err(err, -ENODEV,
                        "there is no RDMA device called %.60s (set `device` in [fabric]); there "
                        "are: %s",
                        w->attr->device, names);
    if (w->choice.context == NULL)
        return base_err(err, w->status, "no RDMA port can be used: %s", w->reasons);
    return 0;
}

int verbs_select(const struct fab_open_attr *attr, struct verbs_choice *out,
                 struct base_errbuf *err)
{
    struct walk w = {.attr = attr};
    int status = walk_devices(&w, err);
    if (status == 0)
        *out = w.choice;
    return status;
}

int fab_devices_list(const struct fab_open_attr *attr, struct fab_devices *out,
                     struct base_errbuf *err)
{
    *out = (struct fab_devices){0};
    struct walk w = {.attr = attr, .list = out};
    int status = walk_devices(&w, err);
    if (status == 0)
        (void)ibv_close_device(w.choice.context);
    return status;
}

/* ---- later */

int verbs_address_query(struct verbs_fab *f, struct fab_ctl *ctl)
{
    const struct fab_open_attr attr = {0};
    struct verbs_choice c = {.context = f->context, .port = f->base.caps.port_num};
    struct fab_own_address *now = &ctl->address.now;
    const bool may_choose = memcmp(f->wanted_gid, no_gid, sizeof no_gid) == 0;
    enum worth best = USELESS;
    char why[8];
    int status = ibv_query_port(f->context, c.port, &c.port_attr);
    if (status != 0)
        return -status;
    const bool ethernet = c.port_attr.link_layer == IBV_LINK_LAYER_ETHERNET;
    *now = (struct fab_own_address){.active = c.port_attr.state == IBV_PORT_ACTIVE,
                                    .lid = ethernet ? 0 : c.port_attr.lid};
    struct ibv_gid_entry *entry = calloc(MAX_GIDS, sizeof *entry);
    const ssize_t count = entry != NULL ? gids_of_port(&c, entry) : -ENOMEM;
    for (ssize_t i = 0; i < count; i++) {
        const enum worth it = judge_gid(&attr, &entry[i], ethernet, why, sizeof why);
        if (it != USELESS && !now->has_gid && memcmp(entry[i].gid.raw, ctl->address.gid, 16) == 0) {
            now->has_gid = true;
            now->sgid_index = (uint8_t)entry[i].gid_index;
        }
        if (it <= best || !may_choose)
            continue;
        best = it;
        now->has_other = true;
        now->other_index = (uint8_t)entry[i].gid_index;
        memcpy(now->other, entry[i].gid.raw, sizeof now->other);
    }
    free(entry);
    return count < 0 ? (int)count : 0;
}

void fab_devices_fini(struct fab_devices *devices)
{
    free(devices->item);
    *devices = (struct fab_devices){0};
}
