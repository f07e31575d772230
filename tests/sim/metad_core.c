/* SPDX-License-Identifier: Apache-2.0 */
/* What a simulated metaserver is made of, as metaserver/daemon/main.c makes it. */
#include "base/assert.h"
#include "base/clock.h"
#include "metad_process.h"
#include "random.h"
#include "schema/table.h"

size_t play_metad_names_offset(const struct play_metad *m)
{
    return schema_table_bytes(schema_table_log2_slots((uint32_t)m->config.max_endpoints));
}

size_t play_metad_names_bytes(const struct play_metad *m)
{
    return m->settings.shared
               ? schema_name_table_bytes(schema_table_log2_slots((uint32_t)m->config.max_names))
               : 0;
}

static void make_names(struct play_metad *m, const uint64_t random[2])
{
    struct meta_service *s = &m->service;
    if (!m->settings.shared)
        return;
    s->names = meta_names_new((uint32_t)m->config.max_names,
                              (uint8_t *)m->endpoint.mem.addr + play_metad_names_offset(m),
                              random[0], random[1]);
    BASE_ASSERT(s->names != NULL);
}

int play_metad_make_core(struct play_metad *m, struct base_errbuf *err)
{
    const struct meta_directory_limits limits = {
        .max_nodes = (uint32_t)m->config.max_nodes,
        .max_endpoints = (uint32_t)m->config.max_endpoints,
        .node_lease_ns = m->config.node_lease_ns,
        .forget_ns = m->config.forget_after_ns,
    };
    uint64_t random[2]; /* seed, generation */
    struct meta_service *s = &m->service;
    play_random_fill(&m->process->random, random, sizeof random);
    s->directory = meta_directory_new(&limits, m->endpoint.mem.addr, random[0], random[1]);
    s->resources = meta_resources_new((uint32_t)m->config.events);
    s->liveness = meta_liveness_new((uint32_t)m->config.max_nodes + 64, random[1]);
    BASE_ASSERT(s->directory != NULL && s->resources != NULL && s->liveness != NULL);
    make_names(m, random);
    s->hearing.shared = m->settings.shared;
    (void)snprintf(s->hearing.self.name, sizeof s->hearing.self.name, "%s", m->host->name);
    if (m->settings.shared)
        meta_directory_share(s->directory);
    s->max_watches = (uint32_t)m->config.max_watches;
    s->reader_watches = (uint32_t)m->config.reader_watches;
    s->tokens_needed = false;
    s->admin_socket = "";
    s->endpoint = meta_table_endpoint_describe(&m->endpoint);
    s->node_lease_ns = m->config.node_lease_ns;
    if (!(m->endpoint.fab->caps.transports & FAB_RC))
        return 0;
    return meta_responders_new(&m->world, m->endpoint.pd, m->endpoint.cq,
                               (uint32_t)m->config.max_endpoints, m->endpoint.dct == NULL,
                               play_host_now_ns(m->host), &s->responders, err);
}
