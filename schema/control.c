/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/control.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

static const uint16_t sizes[] = {
    [SCHEMA_CONTROL_ATTACH] = sizeof(struct schema_control_attach),
    [SCHEMA_CONTROL_ATTACHED] = sizeof(struct schema_control_attached),
    [SCHEMA_CONTROL_ARENA] = sizeof(struct schema_control_arena),
    [SCHEMA_CONTROL_ARENA_OK] = sizeof(struct schema_control_arena_ok),
    [SCHEMA_CONTROL_RESOLVE] = sizeof(struct schema_control_resolve),
    [SCHEMA_CONTROL_RESOLVED] = sizeof(struct schema_control_resolved),
    [SCHEMA_CONTROL_ERROR] = sizeof(struct schema_control_error),
    [SCHEMA_CONTROL_PUBLISH] = sizeof(struct schema_control_publish),
    [SCHEMA_CONTROL_UNPUBLISH] = sizeof(struct schema_control_publish),
    [SCHEMA_CONTROL_PUBLISHED] = sizeof(struct schema_control_published),
    [SCHEMA_CONTROL_PUBLISH_FOR] = sizeof(struct schema_control_publish_for),
    [SCHEMA_CONTROL_CHANNEL] = sizeof(struct schema_control_channel),
    [SCHEMA_CONTROL_CHANNEL_OK] = sizeof(struct schema_control_channel),
};

/* The last byte of an array in a packet whose size was checked. */
#define ENDS_IN_NUL(packet, type, member)                                                          \
    (((const char *)(packet))[offsetof(struct type, member) + sizeof(((struct type *)0)->member) - \
                              1] == '\0')

static int check_body(const void *packet, uint16_t type)
{
    int ok = 1;
    int32_t status;
    switch (type) {
    case SCHEMA_CONTROL_ATTACH:
        ok = ENDS_IN_NUL(packet, schema_control_attach, pool) &&
             ENDS_IN_NUL(packet, schema_control_attach, token);
        break;
    case SCHEMA_CONTROL_RESOLVE:
        ok = ENDS_IN_NUL(packet, schema_control_resolve, name);
        break;
    case SCHEMA_CONTROL_PUBLISH:
    case SCHEMA_CONTROL_UNPUBLISH:
        ok = ENDS_IN_NUL(packet, schema_control_publish, name);
        break;
    case SCHEMA_CONTROL_PUBLISH_FOR:
        ok = ENDS_IN_NUL(packet, schema_control_publish_for, what.name) &&
             ENDS_IN_NUL(packet, schema_control_publish_for, reader);
        break;
    case SCHEMA_CONTROL_ERROR:
        memcpy(&status, (const char *)packet + offsetof(struct schema_control_error, status),
               sizeof status);
        /* Whoever returns it must not mistake it for success or for a pointer. */
        ok = ENDS_IN_NUL(packet, schema_control_error, text) && status < 0 && status >= -4095;
        break;
    default:
        break;
    }
    return ok ? 0 : -EPROTO;
}

int schema_control_check(const void *packet, uint64_t bytes)
{
    struct schema_control_header h;
    if (bytes < sizeof h)
        return -EPROTO;
    memcpy(&h, packet, sizeof h);
    if (h.magic != SCHEMA_CONTROL_MAGIC)
        return -EPROTO;
    if (h.version != SCHEMA_CONTROL_VERSION)
        return -EPROTONOSUPPORT;
    if (h.type >= sizeof sizes / sizeof *sizes || sizes[h.type] == 0)
        return -EPROTO;
    if (bytes != sizes[h.type] || h.size != bytes)
        return -EPROTO;
    return check_body(packet, h.type);
}
