/* SPDX-License-Identifier: Apache-2.0 */
/* Names under which others find a session's regions: asked of the agent. */
#include "internal.h"

#include <errno.h>
#include <string.h>

#include "schema/name_record.h"

static_assert(KEDGE_NAME_MAX == SCHEMA_NAME_MAX, "the same");

/* Of the region, by that name; UNPUBLISH: "": by any. *left: how many it has then. */
static int ask_agent(struct kedge_mr *mr, uint16_t type, const char *name, uint32_t *left)
{
    struct schema_control_publish ask = {.vkey = mr->vkey};
    struct schema_control_published answer;
    memcpy(ask.name, name, strlen(name));
    const int status = client_message(mr->session, &ask.h, sizeof ask, type, &answer, sizeof answer,
                                      SCHEMA_CONTROL_PUBLISHED, NULL);
    if (status == 0)
        *left = answer.names;
    return status;
}

int client_check_name(const struct kedge_session *s, const char *name,
                      enum schema_control_feature feature)
{
    if (schema_name_check(name) != 0)
        return client_fail(-EINVAL,
                           "a region's name has 1 to %d bytes of UTF-8 without control characters",
                           KEDGE_NAME_MAX);
    if ((s->features & (uint32_t)feature) == 0)
        return client_fail_text(-EOPNOTSUPP, "this host's agent is of before names of regions: "
                                             "run a newer kedge-agentd");
    return 0;
}

/* With the name before what the agent says. */
static int explain_refusal(int status, const char *name)
{
    char said[256];
    if (status != -EEXIST)
        return status;
    strncpy(said, kedge_last_error(), sizeof said - 1);
    said[sizeof said - 1] = '\0';
    return client_fail(status, "\"%.100s\" is taken: %s", name, said);
}

int kedge_publish(struct kedge_mr *mr, const char *name)
{
    uint32_t left = 1;
    if (client_is_null(mr) || client_is_null(name))
        return -EINVAL;
    int status = client_usable(mr->session);
    if (status == 0)
        status = client_check_lent(mr);
    if (status == 0)
        status = client_check_name(mr->session, name, SCHEMA_FEATURE_PUBLISH);
    if (status != 0)
        return status;
    mr->named = true; /* also where no answer comes */
    return explain_refusal(ask_agent(mr, SCHEMA_CONTROL_PUBLISH, name, &left), name);
}

int kedge_unpublish(struct kedge_mr *mr, const char *name)
{
    uint32_t left = 1;
    if (client_is_null(mr) || client_is_null(name))
        return -EINVAL;
    int status = client_usable(mr->session);
    if (status == 0)
        status = client_check_name(mr->session, name, SCHEMA_FEATURE_PUBLISH);
    if (status == 0)
        status = ask_agent(mr, SCHEMA_CONTROL_UNPUBLISH, name, &left);
    mr->named &= left > 0;
    return status;
}

bool client_unpublish_all(struct kedge_mr *mr)
{
    uint32_t left;
    if (!mr->named)
        return true;
    mr->named = false;
    return ask_agent(mr, SCHEMA_CONTROL_UNPUBLISH, "", &left) == 0;
}
