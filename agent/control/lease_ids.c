/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "control/lease_ids.h"

enum { CURSOR_TEXT = 32 };

const char *agent_worker_id_format(const struct agent_worker_id *id, char out[AGENT_ID_BYTES])
{
    snprintf(out, AGENT_ID_BYTES, "%u-%08x", id->session, id->serial);
    return out;
}

static bool parse_serial(const char *text, uint32_t *out)
{
    uint8_t b[4];
    if (strlen(text) != 8 || base_hex_decode(text, b, 4) != 0)
        return false;
    *out = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
    return true;
}

bool agent_worker_id_parse(const char *text, struct agent_worker_id *out, uint32_t *number)
{
    char copy[AGENT_ID_BYTES];
    struct agent_worker_id id;
    uint64_t session, n = 0;
    if (strlen(text) >= sizeof copy)
        return false;
    memcpy(copy, text, strlen(text) + 1);
    char *serial = strchr(copy, '-');
    if (serial == NULL)
        return false;
    *serial++ = '\0';
    char *last = strchr(serial, '-');
    if ((last != NULL) != (number != NULL))
        return false;
    if (last != NULL)
        *last++ = '\0';
    if (base_parse_u64(copy, 0, UINT32_MAX, &session) != 0 || !parse_serial(serial, &id.serial) ||
        (last != NULL && base_parse_u64(last, 1, UINT32_MAX, &n) != 0))
        return false;
    id.session = (uint32_t)session;
    *out = id;
    if (number != NULL)
        *number = (uint32_t)n;
    return true;
}

const char *agent_cursor_format(const struct agent_cursor *at, char out[AGENT_CURSOR_BYTES])
{
    char text[CURSOR_TEXT];
    int length = snprintf(text, sizeof text, "%u.%u", at->session, at->place);
    (void)base_base64_encode(BASE_BASE64URL, text, (size_t)length, out);
    return out;
}

bool agent_cursor_parse(const char *text, struct agent_cursor *out)
{
    char decoded[CURSOR_TEXT];
    uint64_t session, place;
    size_t length;
    if (base_base64_decode(BASE_BASE64URL, text, strlen(text), decoded, sizeof decoded - 1,
                           &length) != 0)
        return false;
    decoded[length] = '\0';
    char *dot = strchr(decoded, '.');
    if (dot == NULL || strlen(decoded) != length)
        return false;
    *dot++ = '\0';
    if (base_parse_u64(decoded, 0, UINT32_MAX, &session) != 0 ||
        base_parse_u64(dot, 0, UINT32_MAX, &place) != 0)
        return false;
    *out = (struct agent_cursor){.session = (uint32_t)session, .place = (uint32_t)place};
    return true;
}
