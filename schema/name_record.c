/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/name_record.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/printable.h"
#include "base/siphash.h"
#include "schema/table.h"

int schema_name_check(const char *name)
{
    const size_t length = strnlen(name, SCHEMA_NAME_MAX + 1);
    return length >= 1 && length <= SCHEMA_NAME_MAX && base_is_printable(name) ? 0 : -EINVAL;
}

/* The length of a tenant's name; more than SCHEMA_NAME_TENANT_MAX: it is none. */
static size_t measure_tenant(const char *name)
{
    const size_t none = SCHEMA_NAME_TENANT_MAX + 1;
    size_t length = 0;
    for (; length < none && name[length] != '\0'; length++)
        if (name[length] == ',')
            return none;
    return length < none && base_is_printable(name) ? length : none;
}

int schema_name_space(const char *owner, const char *reader, char out[SCHEMA_NAME_SPACE_BYTES])
{
    const size_t first = measure_tenant(owner), second = measure_tenant(reader);
    if (first == 0 || first > SCHEMA_NAME_TENANT_MAX || second > SCHEMA_NAME_TENANT_MAX)
        return -EINVAL;
    memcpy(out, owner, first + 1);
    if (second > 0) {
        out[first] = ',';
        memcpy(out + first + 1, reader, second + 1);
    }
    return 0;
}

int schema_name_space_of(const char *owner, const char *reader, char out[SCHEMA_NAME_SPACE_BYTES])
{
    return owner[0] == '\0' || strcmp(owner, reader) == 0 ? schema_name_space(reader, "", out)
                                                          : schema_name_space(owner, reader, out);
}

const char *schema_name_owner(const char *space, char out[SCHEMA_NAME_SPACE_BYTES])
{
    const size_t length = strcspn(space, ",");
    snprintf(out, SCHEMA_NAME_SPACE_BYTES, "%.*s", (int)length, space);
    return space + length + (space[length] != '\0');
}

/* A space has no NUL, so that no pair is another's. */
void schema_name_key(const struct schema_table_desc *d, const char *space, const char *name,
                     uint8_t out[16])
{
    const uint64_t secrets[2] = {d->seed, d->generation};
    char text[2 * (SCHEMA_NAME_MAX + 1)];
    const size_t first = strlen(space) + 1, second = strlen(name);
    BASE_ASSERT(first <= SCHEMA_NAME_MAX + 1 && second <= SCHEMA_NAME_MAX);
    memcpy(text, space, first);
    memcpy(text + first, name, second);
    base_siphash128(secrets, text, first + second, out);
}

struct schema_name_record schema_name_record_make(const uint8_t key[16], uint32_t incarnation,
                                                  uint32_t tenant, const struct schema_token *grant)
{
    struct schema_name_record r = {.incarnation = incarnation,
                                   .flags = SCHEMA_RECORD_LIVE,
                                   .pool = grant->pool,
                                   .vkey = grant->vkey,
                                   .access = grant->access,
                                   .addr = grant->addr,
                                   .length = grant->length,
                                   .tenant = tenant};
    memcpy(r.key, key, sizeof r.key);
    memcpy(r.gid, grant->gid, sizeof r.gid);
    memcpy(r.secret, grant->secret, sizeof r.secret);
    return r;
}

struct schema_token schema_name_record_grant(const struct schema_name_record *r)
{
    struct schema_token t = {.pool = r->pool,
                             .access = r->access,
                             .vkey = r->vkey,
                             .addr = r->addr,
                             .length = r->length};
    memcpy(t.gid, r->gid, sizeof t.gid);
    memcpy(t.secret, r->secret, sizeof t.secret);
    return t;
}
