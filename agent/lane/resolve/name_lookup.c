/* SPDX-License-Identifier: Apache-2.0 */
/* A tenant's workers find what was published for it and nothing else: in each table its key is a
 * hash of the name and its space, in which the tenant is named, under that table's secrets, and
 * what is under way is shared by sessions of one tenant alone. A name that nobody has and one that
 * another tenant has cost the same READ and the same time. */
#include "resolve/name_lookup.h"

#include <errno.h>
#include <string.h>

#include "lane_state.h"
#include "resolve/endpoint.h"
#include "resolve/grants.h"
#include "schema/peers.h"
#include "schema/table.h"
#include "session_state.h"

bool lane_metaserver_has_names(const struct lane_metaserver *m)
{
    return m->names.log2_slots != 0;
}

/* Its key in that table, which is computed again where the one before was another table's. */
static const uint8_t *key_in(const struct schema_table_desc *names, struct lookup_name *name)
{
    if (!name->keyed || name->seed != names->seed || name->generation != names->generation) {
        schema_name_key(names, name->space, name->name, name->key);
        name->seed = names->seed;
        name->generation = names->generation;
        name->keyed = true;
    }
    return name->key;
}

/* The first table of names. NULL: there is none. */
static const struct schema_table_desc *first_table(const struct lane *l)
{
    for (uint32_t i = 0; i < l->metaservers; i++)
        if (lane_metaserver_has_names(&l->metaserver[i]))
            return &l->metaserver[i].names;
    return NULL;
}

int lane_name_lookup(struct lane *l, struct session *s, const void *bytes, uint32_t owner,
                     uint32_t length)
{
    char tenant[SCHEMA_NAME_TENANT_MAX + 1] = "";
    const struct schema_table_desc *table = first_table(l);
    struct lookup_name wanted;
    memcpy(tenant, bytes, owner);
    memcpy(wanted.name, (const char *)bytes + owner, length);
    wanted.name[length] = '\0';
    wanted.length = length;
    wanted.keyed = false;
    if (memchr(bytes, '\0', owner + length) != NULL || schema_name_check(wanted.name) != 0 ||
        schema_name_space_of(tenant, s->memory->tenant, wanted.space) != 0)
        return -EINVAL;
    if (table == NULL) /* who is not there yet may have one */
        return l->metaservers == 0 ? -EHOSTUNREACH : -EOPNOTSUPP;
    return lane_lookup_start(l, s, key_in(table, &wanted), &wanted, s->tenant_slot + 1);
}

struct lookup_span lane_name_span(const struct lane_metaserver *m, struct lookup_name *name)
{
    const uint64_t home = schema_name_home(&m->names, key_in(&m->names, name));
    return (struct lookup_span){.addr = m->names.addr + home * SCHEMA_NAME_RECORD_BYTES,
                                .rkey = m->names.rkey,
                                .bytes = SCHEMA_NAME_SPAN_BYTES};
}

/* Of a later life than the endpoint's record that is here, that one is READ again before anything
 * is posted under it; and of none before that one is anything taken from then on, whoever says it:
 * a metaserver that has lost its store goes on with what it knows. */
static int compare_lives(struct lane *l, const struct schema_name_record *r)
{
    uint32_t slot, gen;
    if (memcmp(r->gid, l->config.gid, sizeof r->gid) == 0 && r->incarnation < l->config.incarnation)
        return -ESTALE;
    if (schema_peers_find(l->res.peers, r->gid, r->pool, &slot, &gen) != 0)
        return 0;
    struct peer *p = &l->peers[slot];
    const uint32_t known = lane_peer_shared(l, slot)->incarnation;
    if (r->incarnation > known) {
        p->expires_ns = l->now_ns;
        p->outlived = 1;
    }
    return r->incarnation < known + p->outlived ? -ESTALE : 0;
}

int lane_name_look_into(struct lane *l, const struct lane_metaserver *m, struct lookup_name *name,
                        const void *span, struct schema_name_record *out)
{
    const int status = schema_name_find(&m->names, span, key_in(&m->names, name), out);
    if (status != 0)
        return status;
    return out->pool != l->config.pool ? -EXDEV : compare_lives(l, out);
}

int lane_name_grant(struct lane *l, struct session *s, const struct schema_name_record *r,
                    struct schema_found *out)
{
    if (r->tenant != s->tenant && !lane_grant_add(l, s, r->vkey, r->secret))
        return -EDQUOT;
    *out = (struct schema_found){.addr = r->addr,
                                 .length = r->length,
                                 .incarnation = r->incarnation,
                                 .vkey = r->vkey,
                                 .access = r->access};
    memcpy(out->gid, r->gid, sizeof out->gid);
    return 0;
}
