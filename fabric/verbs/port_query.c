/* SPDX-License-Identifier: Apache-2.0 */
/* What the port says of itself now. */
#include <endian.h>
#include <errno.h>

#include "verbs/verbs.h"

enum { PKEY_NUMBER = 0x7fff, PKEY_FULL = 0x8000 };

enum ibv_mtu verbs_port_mtu(const struct ibv_port_attr *p, const struct fab_service *s)
{
    return s->mtu != 0 && s->mtu < p->active_mtu ? s->mtu : p->active_mtu;
}

int verbs_port_query(struct verbs_fab *f, struct fab_ctl *ctl)
{
    struct ibv_port_attr port;
    int status = -ibv_query_port(f->context, f->base.caps.port_num, &port);
    if (status != 0)
        return status;
    ctl->port.active = port.active_mtu;
    ctl->port.mtu = verbs_port_mtu(&port, &f->base.caps.service);
    return 0;
}

/* 0: there is none at that place, or nobody says. */
static uint16_t read_pkey(const struct verbs_fab *f, uint16_t index)
{
    __be16 pkey = 0;
    const int status = f->dc.calls.query_pkey(f->context, f->base.caps.port_num, (int)index, &pkey);
    return status == 0 ? be16toh(pkey) : 0;
}

uint16_t verbs_pkey_of(const struct verbs_fab *f, uint16_t index)
{
    return f->base.caps.is_ethernet ? 0 : read_pkey(f, index);
}

/* It may be twice in a table, as a full member's and as a limited one's: the full one does more. */
int verbs_pkey_query(struct verbs_fab *f, struct fab_ctl *ctl)
{
    const uint16_t number = ctl->pkey.pkey & PKEY_NUMBER;
    struct ibv_port_attr port;
    int status = -f->dc.calls.query_port(f->context, f->base.caps.port_num, &port);
    if (status != 0)
        return status;
    ctl->pkey.there = false;
    for (uint16_t i = 0; i < port.pkey_tbl_len; i++) {
        const uint16_t at = read_pkey(f, i);
        if (at == 0 || (at & PKEY_NUMBER) != number)
            continue;
        if (!ctl->pkey.there)
            ctl->pkey.index = i;
        ctl->pkey.there = true;
        if (!(at & PKEY_FULL))
            continue;
        ctl->pkey.index = i;
        break;
    }
    return 0;
}
