/* SPDX-License-Identifier: Apache-2.0 */
#include "message/ports.h"

#include <errno.h>
#include <stdlib.h>

#include "base/assert.h"

enum { MOST = 1 << 20 };

/* As SplitMix64 mixes (Steele, Lea and Flood, 2014). */
static uint32_t *bucket_of(const struct ports *p, uint32_t tenant, uint32_t number)
{
    uint64_t x = ((uint64_t)tenant << 32 | number) + p->seed;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return &p->bucket[(x ^ x >> 31) & p->mask];
}

int lane_ports_init(struct ports *p, uint32_t most, uint64_t seed)
{
    uint32_t buckets = 1;
    BASE_ASSERT(most > 0 && most <= MOST);
    while (buckets < most)
        buckets *= 2;
    *p = (struct ports){.most = most, .mask = buckets - 1, .free = 1, .seed = seed};
    p->port = calloc(most, sizeof p->port[0]);
    p->bucket = calloc(buckets, sizeof p->bucket[0]);
    if (p->port == NULL || p->bucket == NULL) {
        lane_ports_free(p);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < most; i++)
        p->port[i].next = i + 1 < most ? i + 2 : 0;
    return 0;
}

void lane_ports_free(struct ports *p)
{
    free(p->port);
    free(p->bucket);
    *p = (struct ports){.most = 0};
}

/* Where it is named: its bucket, or the one before it there. 0 is there if it is not. */
static uint32_t *find_link(const struct ports *p, uint32_t tenant, uint32_t number)
{
    uint32_t *at = bucket_of(p, tenant, number);
    while (*at != 0) {
        struct port *port = &p->port[*at - 1];
        if (port->tenant == tenant && port->number == number)
            break;
        at = &port->next;
    }
    return at;
}

const struct port *lane_port_find(const struct ports *p, uint32_t tenant, uint32_t number)
{
    const uint32_t place = p->most > 0 ? *find_link(p, tenant, number) : 0;
    return place != 0 ? &p->port[place - 1] : NULL;
}

int lane_port_bind(struct ports *p, uint32_t tenant, uint32_t number, uint32_t session,
                   uint16_t vqp)
{
    const struct port *there = lane_port_find(p, tenant, number);
    if (there != NULL)
        return there->session == session && there->vqp == vqp ? -EALREADY : -EADDRINUSE;
    if (p->free == 0)
        return -EDQUOT;
    const uint32_t place = p->free;
    struct port *port = &p->port[place - 1];
    uint32_t *bucket = bucket_of(p, tenant, number);
    p->free = port->next;
    p->used++;
    *port = (struct port){
        .tenant = tenant, .number = number, .session = session, .vqp = vqp, .next = *bucket};
    *bucket = place;
    return 0;
}

void lane_port_unbind(struct ports *p, uint32_t tenant, uint32_t number)
{
    uint32_t *link = find_link(p, tenant, number);
    const uint32_t place = *link;
    if (place == 0)
        return;
    struct port *port = &p->port[place - 1];
    *link = port->next;
    *port = (struct port){.next = p->free};
    p->free = place;
    p->used--;
    p->unbound++;
}

void lane_port_join(struct ports *p, uint32_t tenant, uint32_t number, uint32_t *list)
{
    const uint32_t place = *find_link(p, tenant, number);
    BASE_ASSERT(place != 0);
    p->port[place - 1].next_of_vqp = *list;
    *list = place;
}

uint32_t lane_ports_unbind_all(struct ports *p, uint32_t *list)
{
    uint32_t count = 0;
    for (; *list != 0; count++) {
        const struct port port = p->port[*list - 1];
        lane_port_unbind(p, port.tenant, port.number);
        *list = port.next_of_vqp;
    }
    return count;
}
