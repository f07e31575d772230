/* SPDX-License-Identifier: Apache-2.0 */
#include "fabric/network_service.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/text.h"

enum {
    MOST_LEVEL = 15,
    MOST_CLASS = 255,
    MOST_LABEL = 0xfffff,
    LEAST_PORT = 0xc000,
    MOST_PORT = 0xffff,
    MOST_PKEY = 0xffff,
};

static int set_mtu(struct fab_service *s, const char *value, struct base_errbuf *must)
{
    if (strcmp(value, "auto") == 0)
        return 0;
    for (int mtu = IBV_MTU_256; mtu <= IBV_MTU_4096; mtu++) {
        char text[8];
        snprintf(text, sizeof text, "%d", 128 << mtu);
        if (strcmp(value, text) == 0) {
            s->mtu = (enum ibv_mtu)mtu;
            return 0;
        }
    }
    return base_err(must, -EINVAL, "must be auto, 256, 512, 1024, 2048 or 4096");
}

/* A number within its bounds; 0 is `auto` where 0 is not one of them. */
static int read_number(const char *value, uint64_t min, uint64_t max, uint64_t *out,
                       struct base_errbuf *must)
{
    *out = 0;
    if ((min > 0 && strcmp(value, "auto") == 0) || base_parse_u64(value, min, max, out) == 0)
        return 0;
    return base_err(must, -EINVAL, "must be %sa number from %llu to %llu",
                    min > 0 ? "auto or " : "", (unsigned long long)min, (unsigned long long)max);
}

/* Both say where packets go among equal paths, and there is one field for it. */
static int set_label(struct fab_service *s, uint32_t label, const char *other,
                     struct base_errbuf *must)
{
    if (label != 0 && s->flow_label != 0)
        return base_err(must, -EINVAL, "must be auto beside %s, which says the same", other);
    s->flow_label |= label;
    return 0;
}

int fab_service_set(struct fab_service *s, const char *key, const char *value,
                    struct base_errbuf *must)
{
    uint64_t n = 0;
    int status = 0;
    if (strcmp(key, "service_level") == 0) {
        status = read_number(value, 0, MOST_LEVEL, &n, must);
        s->service_level = (uint8_t)n;
    } else if (strcmp(key, "traffic_class") == 0) {
        status = read_number(value, 0, MOST_CLASS, &n, must);
        s->traffic_class = (uint8_t)n;
    } else if (strcmp(key, "flow_label") == 0) {
        status = read_number(value, 1, MOST_LABEL, &n, must);
        status = status == 0 ? set_label(s, (uint32_t)n, "udp_source_port", must) : status;
    } else if (strcmp(key, "udp_source_port") == 0) {
        status = read_number(value, LEAST_PORT, MOST_PORT, &n, must);
        if (status == 0)
            status = set_label(s, n != 0 ? fab_flow_label((uint16_t)n) : 0, "flow_label", must);
    } else if (strcmp(key, "pkey_index") == 0) {
        status = read_number(value, 0, MOST_PKEY, &n, must);
        s->pkey_index = (uint16_t)n;
    } else {
        BASE_ASSERT(strcmp(key, "mtu") == 0);
        status = set_mtu(s, value, must);
    }
    return status;
}

const char *fab_service_format(const struct fab_service *s, char out[FAB_SERVICE_TEXT])
{
    char label[16] = "auto", mtu[16] = "auto";
    if (s->flow_label != 0)
        snprintf(label, sizeof label, "%u", s->flow_label);
    if (s->mtu != 0)
        snprintf(mtu, sizeof mtu, "%u", 128u << s->mtu);
    snprintf(out, FAB_SERVICE_TEXT,
             "service level %u, traffic class %u, flow label %s, P_Key index %u, MTU %s",
             s->service_level, s->traffic_class, label, s->pkey_index, mtu);
    return out;
}
