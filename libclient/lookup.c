/* SPDX-License-Identifier: Apache-2.0 */
/* Regions that others have published, found by their names. */
#include "lent.h"
#include "request.h"

#include <errno.h>
#include <string.h>

#include "schema/name_record.h"

/* What the lane answers with a number alone, in words. */
static int refuse_name(const char *owner, const char *name, int status)
{
    switch (status) {
    case -ENOENT:
        if (owner[0] != '\0')
            return client_fail(status,
                               "tenant %s has published no region as \"%s\" for this session's "
                               "tenant: not yet, or no longer, or for others",
                               owner, name);
        return client_fail(status,
                           "no region of this session's tenant is published as \"%s\": not yet, or "
                           "no longer (rdmactl region list)",
                           name);
    case -EXDEV:
        return client_fail(status,
                           "the region \"%s\" is in another pool than this session, and pools are "
                           "kept apart: both workers must be of one pool",
                           name);
    case -EAGAIN:
        return client_fail(
            status,
            "the agent looks up as much as it can already, and not \"%s\": try again "
            "in a moment",
            name);
    case -EOPNOTSUPP:
        return client_fail_text(status, "the metaservers are older than this library and have no "
                                        "names of regions");
    default:
        return status;
    }
}

/* owner: "": the session's own tenant. Both are sound. */
static int look_up(struct kedge_session *s, const char *owner, const char *name,
                   struct kedge_remote *out)
{
    char text[SCHEMA_NAME_TENANT_MAX + SCHEMA_NAME_MAX];
    const size_t first = strlen(owner), second = strlen(name);
    struct client_reply reply;
    struct schema_sq_desc d = {.op = SCHEMA_OP_LOOKUP,
                               .lookup = {.length = (uint32_t)second, .owner = (uint32_t)first}};
    memcpy(text, owner, first);
    memcpy(text + first, name, second);
    const int status = client_request_with(s, &d, text, first + second, &reply);
    if (status != 0)
        return refuse_name(owner, name, status);
    s->imports += first > 0; /* of another tenant: it counts as an import, if it was not there */
    const struct schema_found *found = &reply.found;
    *out = (struct kedge_remote){.addr = found->addr,
                                 .length = found->length,
                                 .rkey = found->vkey,
                                 .access = client_access_of(found->access)};
    memcpy(out->gid, found->gid, sizeof out->gid);
    return 0;
}

int kedge_lookup(struct kedge_session *s, const char *name, struct kedge_remote *out)
{
    if (client_is_null(s) || client_is_null(name) || client_is_null(out))
        return -EINVAL;
    int status = client_usable(s);
    if (status == 0)
        status = client_check_name(s, name, SCHEMA_FEATURE_LOOKUP);
    return status != 0 ? status : look_up(s, "", name, out);
}

int kedge_lookup_of(struct kedge_session *s, const char *tenant, const char *name,
                    struct kedge_remote *out)
{
    if (client_is_null(s) || client_is_null(tenant) || client_is_null(name) || client_is_null(out))
        return -EINVAL;
    int status = client_usable(s);
    if (status == 0)
        status = client_check_name(s, name, SCHEMA_FEATURE_TENANTS);
    if (status == 0)
        status = client_check_tenant(tenant);
    return status != 0 ? status : look_up(s, tenant, name, out);
}
