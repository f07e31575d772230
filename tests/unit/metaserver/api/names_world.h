/* SPDX-License-Identifier: Apache-2.0 */
/* The names of regions of a metaserver without sockets. One for each test program. */
#ifndef TESTS_UNIT_METASERVER_NAMES_WORLD_H
#define TESTS_UNIT_METASERVER_NAMES_WORLD_H

#include <stdlib.h>

#include "resources_world.h"
#include "service_private.h"

enum { NAMES = 512 };

static void *names_memory;

/* The names of a service that was opened: as it begins, and as the store has them. */
static inline void open_names(uint32_t max)
{
    struct base_errbuf err;
    const size_t bytes = schema_name_table_bytes(schema_table_log2_slots(max));
    names_memory = aligned_alloc(64, bytes);
    memset(names_memory, 0, bytes);
    s.names = meta_names_new(max, names_memory, 0x5eed, 0x77);
    ck_assert_int_eq(meta_service_load_names(&s, s.store, now, &err), 0);
}

static inline void close_names(void)
{
    meta_names_free(s.names);
    s.names = NULL;
    free(names_memory);
}

/* Its path and body. */
static inline void write_publication(const char *tenant, const char *node, int incarnation, int gid,
                                     const char *name, char path[96], char json[640])
{
    struct schema_token grant = {
        .pool = 1, .access = SCHEMA_RECORD_READ, .vkey = (uint32_t)incarnation, .length = 4096};
    char text[SCHEMA_TOKEN_TEXT];
    grant.gid[0] = 0xfd;
    grant.gid[15] = (uint8_t)gid;
    schema_token_format(&grant, text);
    snprintf(path, 96, "/v1/nodes/%s/regions", node);
    snprintf(json, 640, "{\"incarnation\":%d,\"tenant\":\"%s\",\"name\":\"%s\",\"grant\":\"%s\"}",
             incarnation, tenant, name, text);
}

static inline int put_node(const char *node, int incarnation, int gid)
{
    char path[96], json[320];
    snprintf(path, sizeof path, "/v1/nodes/%s", node);
    snprintf(json, sizeof json,
             "{\"incarnation\":%d,\"endpoints\":[{\"gid\":\"fd00::%d\",\"pool\":1,\"transports\":["
             "\"dc\"],\"dct_number\":7,\"dc_key\":\"%016x\",\"mtu\":4096}]}",
             incarnation, gid, (unsigned)(gid * 1000 + incarnation));
    return ask("PUT", path, json);
}

static inline int publish_of(const char *tenant, const char *node, int incarnation, int gid,
                             const char *name)
{
    char path[96], json[640];
    write_publication(tenant, node, incarnation, gid, name, path, json);
    return ask("PUT", path, json);
}

static inline int publish(const char *node, int incarnation, int gid, const char *name)
{
    return publish_of("web", node, incarnation, gid, name);
}

static inline int take_back(const char *node, const char *incarnation, const char *name)
{
    char path[96];
    snprintf(path, sizeof path, "/v1/nodes/%s/regions", node);
    query(META_PARAMETER_INCARNATION, incarnation);
    query(META_PARAMETER_TENANT, "web");
    query(META_PARAMETER_NAME, name);
    return ask("DELETE", path, "");
}

#endif
