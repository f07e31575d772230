/* SPDX-License-Identifier: Apache-2.0 */
/* --tenant, --number, --mr-lease and --grace of pools, as the words KEY=VALUE that they stand for.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ctl/options.h"

bool ctl_pool_edited(const struct ctl_options *o)
{
    return (o->command == CTL_RESOURCE_CREATE || o->command == CTL_RESOURCE_SET) &&
           strcmp(o->kind, "pool") == 0;
}

bool ctl_pool_said(const struct ctl_options *o)
{
    return o->pool.tenants > 0 || o->pool.number != NULL || o->pool.lease_ms != 0 || o->grace_said;
}

/* The next word's place. */
static char *add_word(struct ctl_pool_words *out)
{
    char *text = out->text[out->count];
    out->word[out->count++] = text;
    return text;
}

static int add_tenants(const struct ctl_pool_options *p, struct ctl_pool_words *out,
                       struct base_errbuf *err)
{
    char *text = add_word(out);
    size_t used = 0;
    if (p->tenants > CTL_POOL_TENANTS)
        return base_err(err, -EINVAL, "--tenant is there %zu times: a pool has at most %d tenants",
                        p->tenants, CTL_POOL_TENANTS);
    for (size_t i = 0; i < p->tenants && used < CTL_POOL_WORD_BYTES; i++) {
        if (p->tenant[i][0] == '\0' || strchr(p->tenant[i], ',') != NULL)
            return base_err(err, -EINVAL, "--tenant is one name, not \"%.60s\": repeat it",
                            p->tenant[i]);
        used += (size_t)snprintf(text + used, CTL_POOL_WORD_BYTES - used, "%s%s",
                                 i == 0 ? "tenants=" : ",", p->tenant[i]);
    }
    return used < CTL_POOL_WORD_BYTES
               ? 0
               : base_err(err, -EINVAL, "--tenant: a tenant's name has at most 31 characters");
}

int ctl_pool_words(const struct ctl_options *o, struct ctl_pool_words *out, struct base_errbuf *err)
{
    const struct ctl_pool_options *p = &o->pool;
    out->count = 0;
    if (p->tenants > 0 && add_tenants(p, out, err) != 0)
        return -EINVAL;
    if (p->number != NULL)
        snprintf(add_word(out), CTL_POOL_WORD_BYTES, "number=%s", p->number);
    if (p->lease_ms != 0)
        snprintf(add_word(out), CTL_POOL_WORD_BYTES, "mr_lease_ms=%" PRIu64, p->lease_ms);
    if (o->grace_said)
        snprintf(add_word(out), CTL_POOL_WORD_BYTES, "grace_ms=%" PRIu64, o->grace_ms);
    return 0;
}
