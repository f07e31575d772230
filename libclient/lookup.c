/* SPDX-License-Identifier: Apache-2.0 */
/* Regions that others have published, found by their names. */
#include "request.h"

#include <errno.h>
#include <string.h>

#include "schema/name_record.h"

/* What the lane answers with a number alone, in words. */
static int refuse_name(const char *name, int status)
{
    switch (status) {
    case -ENOENT:
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

int kedge_lookup(struct kedge_session *s, const char *name, struct kedge_remote *out)
{
    struct client_reply reply;
    if (client_is_null(s) || client_is_null(name) || client_is_null(out))
        return -EINVAL;
    int status = client_usable(s);
    if (status != 0)
        return status;
    status = client_check_name(s, name, SCHEMA_FEATURE_LOOKUP);
    if (status != 0)
        return status;
    const size_t length = strlen(name);
    struct schema_sq_desc d = {.op = SCHEMA_OP_LOOKUP, .lookup = {.length = (uint32_t)length}};
    status = client_request_with(s, &d, name, length, &reply);
    if (status != 0)
        return refuse_name(name, status);
    const struct schema_found *found = &reply.found;
    *out = (struct kedge_remote){.addr = found->addr,
                                 .length = found->length,
                                 .rkey = found->vkey,
                                 .access = client_access_of(found->access)};
    memcpy(out->gid, found->gid, sizeof out->gid);
    return 0;
}
