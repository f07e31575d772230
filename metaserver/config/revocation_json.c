/* SPDX-License-Identifier: Apache-2.0 */
#include "revocation_json.h"

#include <stdio.h>
#include <string.h>

#include "base/json_writer.h"

static bool is_problem(const char *name)
{
    const size_t length = name != NULL ? strlen(name) : 0;
    return length > 0 && length < META_REVOCATION_FAILED_BYTES &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz-") == length;
}

int meta_revocation_json_decode(const struct json_at *at, json_t *root, struct meta_revocation *out)
{
    static const char *const names[] = {"lease", "worker", "force", "failed", NULL};
    const json_t *failed = json_object_get(root, "failed");
    const char *lease = json_string_value(json_object_get(root, "lease"));
    const char *worker = json_string_value(json_object_get(root, "worker"));
    const char *id = lease != NULL ? lease : worker;
    int status = meta_json_only(at, root, names);
    if (status != 0)
        return status;
    if ((lease != NULL) == (worker != NULL))
        return meta_json_bad(at, "", "names either a lease or a worker");
    if (!json_is_boolean(json_object_get(root, "force")))
        return meta_json_bad(at, "force", "must be true or false");
    if (strlen(id) >= sizeof out->id)
        return meta_json_bad(at, "", "its id is too long");
    if (failed != NULL && !is_problem(json_string_value(failed)))
        return meta_json_bad(at, "failed", "must be a problem's name");
    *out = (struct meta_revocation){.worker = worker != NULL,
                                    .force = json_is_true(json_object_get(root, "force"))};
    memcpy(out->id, id, strlen(id) + 1);
    if (failed != NULL)
        snprintf(out->failed, sizeof out->failed, "%s", json_string_value(failed));
    return 0;
}

void meta_revocation_json_write(struct base_text *out, const struct meta_revocation *r)
{
    base_json_string(out, r->worker ? "worker" : "lease", r->id);
    base_json_bool(out, "force", r->force);
    if (r->failed[0] != '\0')
        base_json_string(out, "failed", r->failed);
}
