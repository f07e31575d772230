/* SPDX-License-Identifier: Apache-2.0 */
/* Names under which others find a session's regions: asked of the agent. */
#include "lent.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
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

int client_check_tenant(const char *tenant)
{
    if (base_parse_name(tenant, SCHEMA_NAME_TENANT_MAX) != 0)
        return client_fail(-EINVAL,
                           "a tenant's name has 1 to %d of a-z, 0-9, '.' and '-', and begins with "
                           "a letter or a digit",
                           SCHEMA_NAME_TENANT_MAX);
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

/* ---- for workers of another tenant */

/* The lease that the region has under that name for that tenant. NULL: there is none. */
static struct kedge_mr *find_lent(const struct kedge_mr *of, const char *name, const char *tenant,
                                  bool withdrawing)
{
    for (struct kedge_mr *mr = of->session->mrs; mr != NULL; mr = mr->next)
        if (mr->lent != NULL && mr->lent->of == of && mr->withdrawing == withdrawing &&
            strcmp(mr->lent->name, name) == 0 && strcmp(mr->lent->tenant, tenant) == 0)
            return mr;
    return NULL;
}

static int check_names(const struct kedge_session *s, const char *name, const char *tenant)
{
    const int status = client_check_name(s, name, SCHEMA_FEATURE_TENANTS);
    return status != 0 ? status : client_check_tenant(tenant);
}

static int add_lease(struct kedge_mr *mr, const char *name, const char *tenant,
                     struct kedge_mr **out)
{
    struct client_lent *lent = calloc(1, sizeof *lent);
    if (lent == NULL)
        return client_fail_text(-ENOMEM, "no memory for a region");
    memcpy(lent->name, name, strlen(name));
    memcpy(lent->tenant, tenant, strlen(tenant));
    const int status = client_lend(mr, lent, out);
    if (status != 0)
        free(lent);
    return status;
}

static int ask_for(struct kedge_mr *lent)
{
    struct schema_control_publish_for ask = {.what.vkey = lent->vkey};
    struct schema_control_published answer;
    memcpy(ask.what.name, lent->lent->name, sizeof ask.what.name);
    memcpy(ask.reader, lent->lent->tenant, sizeof ask.reader);
    lent->named = true; /* also where no answer comes */
    return explain_refusal(client_message(lent->session, &ask.what.h, sizeof ask,
                                          SCHEMA_CONTROL_PUBLISH_FOR, &answer, sizeof answer,
                                          SCHEMA_CONTROL_PUBLISHED, NULL),
                           lent->lent->name);
}

/* The sentence is kept. What is not over in time goes with the region. */
static int give_up(struct kedge_mr *lent, int status)
{
    char said[256];
    strncpy(said, kedge_last_error(), sizeof said - 1);
    said[sizeof said - 1] = '\0';
    (void)kedge_dereg_mr(lent);
    return client_fail(status, "%s", said);
}

int kedge_publish_for(struct kedge_mr *mr, const char *name, const char *tenant)
{
    if (client_is_null(mr) || client_is_null(name) || client_is_null(tenant))
        return -EINVAL;
    int status = client_usable(mr->session);
    if (status == 0)
        status = client_check_lent(mr);
    if (status == 0)
        status = check_names(mr->session, name, tenant);
    if (status != 0)
        return status;
    struct kedge_mr *lent = find_lent(mr, name, tenant, false);
    const bool is_new = lent == NULL;
    if (is_new)
        status = add_lease(mr, name, tenant, &lent);
    if (status != 0)
        return status;
    status = ask_for(lent);
    return status != 0 && is_new ? give_up(lent, status) : status;
}

int kedge_unpublish_for(struct kedge_mr *mr, const char *name, const char *tenant)
{
    if (client_is_null(mr) || client_is_null(name) || client_is_null(tenant))
        return -EINVAL;
    int status = client_usable(mr->session);
    if (status == 0)
        status = check_names(mr->session, name, tenant);
    if (status != 0)
        return status;
    struct kedge_mr *lent = find_lent(mr, name, tenant, false);
    if (lent == NULL)
        lent = find_lent(mr, name, tenant, true); /* it was not over in time before */
    if (lent == NULL)
        return client_fail(-ENOENT, "the region is not published as \"%.100s\" for %s", name,
                           tenant);
    return kedge_dereg_mr(lent);
}

bool client_unpublish_all(struct kedge_mr *mr)
{
    uint32_t left;
    if (!mr->named)
        return true;
    mr->named = false;
    return ask_agent(mr, SCHEMA_CONTROL_UNPUBLISH, "", &left) == 0;
}
