/* SPDX-License-Identifier: Apache-2.0 */
/* What the port says of itself now. */
#include "verbs/verbs.h"

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
