/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/hash.h"
#include "ibta/ibta.h"

/* Who has a GID, and had it last. */
struct sim_place {
    uint8_t gid[16];
    uint32_t node;
    struct sim_device *device; /* NULL: nobody now */
    sim_arrival *on_arrival;
};

/* From one node to another. */
struct sim_way {
    uint64_t last_ns; /* when the last packet that is in order arrives */
    uint64_t busy_ns; /* until then the link carries what was sent before */
};

static uint64_t way_key(uint32_t from, uint32_t to)
{
    return (uint64_t)from << 32 | to;
}

/* ---- links */

int sim_link_set(struct sim_net *net, uint32_t from, uint32_t to, const struct sim_link *link)
{
    const uint64_t key = way_key(from, to);
    struct sim_link *mine = sim_table_get(&net->links, key);
    if (mine == NULL) {
        mine = malloc(sizeof *mine);
        if (mine == NULL)
            return -ENOMEM;
        sim_table_put(&net->links, key, mine);
    }
    *mine = *link;
    return 0;
}

static const struct sim_link *link_between(const struct sim_net *net, uint32_t from, uint32_t to)
{
    const uint64_t keys[] = {way_key(from, to), way_key(from, SIM_ANY_NODE),
                             way_key(SIM_ANY_NODE, to), way_key(SIM_ANY_NODE, SIM_ANY_NODE)};
    for (size_t i = 0; net->links.count > 0 && i < sizeof keys / sizeof keys[0]; i++) {
        const struct sim_link *link = sim_table_get(&net->links, keys[i]);
        if (link != NULL)
            return link;
    }
    return &net->usual;
}

struct sim_link sim_link_get(const struct sim_net *net, uint32_t from, uint32_t to)
{
    return *link_between(net, from, to);
}

/* ---- GIDs */

static uint64_t gid_key(const uint8_t gid[16])
{
    return base_hash_gid(gid, 0, 7);
}

static struct sim_place *place_of(const struct sim_net *net, const uint8_t gid[16])
{
    struct sim_place *place = sim_table_get(&net->gids, gid_key(gid));
    return place != NULL && memcmp(place->gid, gid, 16) == 0 ? place : NULL;
}

int sim_wire_attach(struct sim_device *dev, sim_arrival *on_arrival)
{
    struct sim_net *net = dev->net;
    const uint8_t *gid = dev->base.caps.gid;
    struct sim_place *place = sim_table_get(&net->gids, gid_key(gid));
    if (place != NULL && (place->device != NULL || memcmp(place->gid, gid, 16) != 0))
        return -EADDRINUSE;
    if (place == NULL) {
        place = calloc(1, sizeof *place);
        if (place == NULL)
            return -ENOMEM;
        memcpy(place->gid, gid, 16);
        sim_table_put(&net->gids, gid_key(gid), place);
    }
    place->node = dev->attr.node;
    place->device = dev;
    place->on_arrival = on_arrival;
    dev->place = place;
    return 0;
}

void sim_wire_detach(struct sim_device *dev)
{
    dev->place->device = NULL;
    dev->place = NULL;
}

/* ---- packets */

struct sim_packet *sim_packet_new(struct sim_device *dev, enum sim_packet_kind kind,
                                  const uint8_t to_gid[16], uint32_t to_qpn, uint32_t bytes)
{
    struct sim_packet *p = malloc(sizeof *p + bytes);
    BASE_ASSERT(p != NULL);
    memset(p, 0, sizeof *p);
    p->net = dev->net;
    p->kind = kind;
    p->to_qpn = to_qpn;
    p->from_node = dev->attr.node;
    p->bytes = bytes;
    memcpy(p->from_gid, dev->base.caps.gid, 16);
    memcpy(p->to_gid, to_gid, 16);
    return p;
}

static void deliver_packet(struct sim_event *e)
{
    struct sim_packet *p = (struct sim_packet *)(void *)e;
    const struct sim_place *place = place_of(p->net, p->to_gid);
    struct sim_device *to = place != NULL ? place->device : NULL;
    if (to == NULL || to->down || to->frozen.suspended) {
        sim_tell(p->net, place != NULL ? place->node : p->from_node, "a packet finds nobody");
        free(p);
        return;
    }
    place->on_arrival(to, p);
}

/* Behind which of its packets it is cut off: 0: it is lost. */
static uint32_t left_of(struct sim_device *dev, const struct sim_link *link,
                        const struct sim_packet *p)
{
    const uint32_t packets = p->packets != 0 ? p->packets : 1;
    const uint64_t ppm = (uint64_t)link->loss_ppm * packets;
    if (!sim_chance(&dev->prng, ppm < 1000000 ? (uint32_t)ppm : 1000000))
        return packets;
    return (uint32_t)base_prng_below(&dev->prng, packets);
}

static struct sim_way *way_between(struct sim_net *net, uint32_t from, uint32_t to)
{
    struct sim_way *way = sim_table_get(&net->ways, way_key(from, to));
    if (way == NULL) {
        way = calloc(1, sizeof *way);
        BASE_ASSERT(way != NULL);
        sim_table_put(&net->ways, way_key(from, to), way);
    }
    return way;
}

static uint64_t arrival_ns(struct sim_device *dev, const struct sim_link *link, struct sim_way *way,
                           const struct sim_packet *p, uint64_t leaves_ns)
{
    struct sim_net *net = dev->net;
    uint64_t start = leaves_ns;
    if (link->bytes_per_us != 0) {
        start = way->busy_ns > start ? way->busy_ns : start;
        way->busy_ns = start + p->bytes * 1000ull / link->bytes_per_us;
        start = way->busy_ns;
    }
    const uint64_t last = leaves_ns + net->packet_life_ns;
    uint64_t due = start + link->delay_ns + sim_upto(&dev->prng, link->jitter_ns);
    const bool late = sim_chance(&dev->prng, link->late_ppm);
    if (late)
        due += sim_upto(&dev->prng, link->late_ns);
    else if (due <= way->last_ns)
        due = way->last_ns + 1;
    if (!late)
        way->last_ns = due;
    if (due > last)
        due = last;
    return due;
}

static struct sim_packet *copy_of(const struct sim_packet *p)
{
    struct sim_packet *copy = malloc(sizeof *copy + p->bytes);
    BASE_ASSERT(copy != NULL);
    memcpy(copy, p, sizeof *copy + p->bytes);
    copy->event = (struct sim_event){.happen = deliver_packet};
    return copy;
}

/* Whoever plays the node has a look at what it has posted, and may alter it. */
static uint32_t show_sent(struct sim_packet *p, uint32_t copies)
{
    const struct sim_hooks *hooks = &p->net->hooks;
    const bool has_data =
        p->kind == SIM_DATAGRAM || (fab_opcode_is_send(p->opcode) && p->at == 0 && p->bytes > 0);
    const struct sim_sent sent = {.node = p->from_node,
                                  .datagram = p->kind == SIM_DATAGRAM,
                                  .opcode = p->opcode,
                                  .copies = copies,
                                  .rkey = &p->rkey,
                                  .data = has_data ? p->data : NULL,
                                  .bytes = has_data ? p->bytes : 0};
    return hooks->sends(hooks->user, &sent);
}

static void send_copies(struct sim_device *dev, struct sim_packet *p)
{
    const uint32_t copies = show_sent(p, 0);
    for (uint32_t i = 1; p->kind == SIM_DATAGRAM && i <= copies; i++) {
        struct sim_packet *more = copy_of(p);
        (void)show_sent(more, i);
        sim_event_set(dev->net, &more->event, dev->net->now_ns + dev->net->usual.delay_ns + i);
    }
}

void sim_wire_send(struct sim_device *dev, struct sim_packet *p, uint64_t leaves_ns)
{
    struct sim_net *net = dev->net;
    if (net->hooks.sends != NULL && (p->kind == SIM_DATAGRAM || p->kind == SIM_REQUEST))
        send_copies(dev, p);
    const struct sim_place *place = place_of(net, p->to_gid);
    const uint32_t to = place != NULL ? place->node : SIM_ANY_NODE;
    const struct sim_link *link = link_between(net, dev->attr.node, to);
    const uint32_t left = left_of(dev, link, p);
    p->sent_ns = net->now_ns;
    if (link->cut || dev->down || left == 0) {
        sim_tell(net, dev->attr.node, "a packet is lost on its way to node %u", to);
        free(p);
        return;
    }
    if (left < p->packets) {
        p->cut = left + 1 < p->packets;
        p->packets = left;
        if (p->bytes > left * p->mtu)
            p->bytes = left * p->mtu;
    }
    struct sim_way *way = way_between(net, dev->attr.node, to);
    p->event = (struct sim_event){.happen = deliver_packet};
    sim_event_set(net, &p->event, arrival_ns(dev, link, way, p, leaves_ns));
    if (sim_chance(&dev->prng, link->repeat_ppm)) {
        struct sim_packet *again = copy_of(p);
        sim_event_set(net, &again->event, net->now_ns + sim_upto(&dev->prng, net->packet_life_ns));
    }
}

/* Its device may be another one by now, or none. */
static void leave_device(struct sim_event *e)
{
    struct sim_packet *p = (struct sim_packet *)(void *)e;
    const struct sim_place *place = place_of(p->net, p->from_gid);
    struct sim_device *dev = place != NULL ? place->device : NULL;
    if (dev == NULL || dev->nic == NULL) {
        free(p);
        return;
    }
    sim_wire_send(dev, p, model_send(dev->nic, p->net->now_ns, p->net->now_ns, &p->model));
}

void sim_wire_send_from(struct sim_device *dev, struct sim_packet *p, uint64_t from_ns)
{
    p->event = (struct sim_event){.happen = leave_device};
    sim_event_set(dev->net, &p->event, from_ns);
}

void sim_net_free(struct sim_net *net)
{
    if (net == NULL)
        return;
    for (struct sim_event *e; (e = sim_event_take(net)) != NULL; free(e))
        /* All devices are gone. */
        BASE_ASSERT(e->happen == deliver_packet || e->happen == leave_device);
    sim_table_each(&net->links, free);
    sim_table_each(&net->ways, free);
    sim_table_each(&net->gids, free);
    sim_table_fini(&net->links);
    sim_table_fini(&net->ways);
    sim_table_fini(&net->gids);
    sim_table_fini(&net->fds);
    free(net);
}
