/* SPDX-License-Identifier: Apache-2.0 */
/* What metaservers say that operators have set for this node: the document of
 * GET /v1/nodes/{id}/configuration (schema/openapi.yaml), decoded. No I/O. Any thread. */
#ifndef AGENTD_SETTINGS_H
#define AGENTD_SETTINGS_H

#include <stddef.h>
#include <stdint.h>

#include "agentd/config.h"

enum {
    AGENTD_WINDOWS = 256,
    AGENTD_SETTINGS_BYTES = 1 << 20 /* of a document */
};

struct agentd_window {
    enum agentd_window_scope { AGENTD_DEVICE, AGENTD_DESTINATION, AGENTD_TENANT } scope;
    char tenant[AGENTD_NAME]; /* "" unless that is the scope */
    struct agentd_limits most;
};

struct agentd_settings {
    uint64_t revision; /* 0: none */
    uint32_t tenants, windows;
    struct agentd_tenant_config tenant[AGENTD_TENANTS]; /* with the narrowest of their windows */
    struct agentd_window window[AGENTD_WINDOWS];        /* of tenants too: their own first */
};

/* 0 and *out; -EINVAL and a sentence that names the field. Fields that are not known are passed
 * over: a newer metaserver may say more. A bound of 0 becomes the largest number. */
int agentd_settings_decode(const char *text, size_t length, struct agentd_settings *out,
                           struct kedge_errbuf *why);

/* The narrowest of all windows of a scope (and tenant). */
struct agentd_limits agentd_settings_window(const struct agentd_settings *s,
                                            enum agentd_window_scope scope, const char *tenant);

#endif
