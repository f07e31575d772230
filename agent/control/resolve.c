/* SPDX-License-Identifier: Apache-2.0 */
/* Names of nodes, which workers ask for: answered by the metaservers. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "agent.h"

struct question {
    struct agent *agent;
    uint16_t pool; /* of the endpoint */
    void (*done)(void *user, int status, const uint8_t gid[16], uint16_t pool);
    void *user;
    uint32_t next;   /* of the metaservers */
    uint64_t end_ns; /* by then there is an answer: the worker waits no longer */
    int status;      /* so far */
    char name[64];
};

static void ask_next(struct question *q);

static void answer_question(struct question *q, int status, const uint8_t gid[16])
{
    q->agent->questions--;
    q->done(q->user, status, gid, q->pool);
    free(q);
}

/* The endpoint of that pool, of a node that has not expired: 0 and gid, or -ENOENT. */
static int read_endpoint(uint16_t pool, const char *body, uint8_t gid[16])
{
    int status = -ENOENT;
    size_t i;
    json_t *root = json_loads(body, 0, NULL), *endpoint;
    const char *state = json_string_value(json_object_get(root, "state"));
    bool expired = state != NULL && strcmp(state, "expired") == 0;
    json_array_foreach(json_object_get(root, "endpoints"), i, endpoint)
    {
        const char *text = json_string_value(json_object_get(endpoint, "gid"));
        if (!expired && status != 0 && text != NULL && base_gid_parse(text, gid) == 0 &&
            json_integer_value(json_object_get(endpoint, "pool")) == pool)
            status = 0;
    }
    json_decref(root);
    return status;
}

static void on_named(void *user, const struct http_answer *answer)
{
    struct question *q = user;
    uint8_t gid[16] = {0};
    if (answer->status == 404)
        q->status = -ENOENT;
    else if (answer->status == 200)
        q->status = read_endpoint(q->pool, answer->body, gid);
    if (answer->status == 200 && q->status == 0)
        answer_question(q, 0, gid);
    else
        ask_next(q);
}

/* What one metaserver may take, so that those after it can be asked too. */
static uint32_t share_ms(const struct question *q)
{
    uint64_t now = world_now_ns(q->agent->world), left = q->end_ns > now ? q->end_ns - now : 0;
    uint32_t others = 0;
    for (uint32_t i = q->next; i < q->agent->config.metaservers; i++)
        others += q->agent->pools[0]->registration[i].state == REGISTRATION_DONE;
    return (uint32_t)(left / (others + 1) / BASE_NS_PER_MS) + 1;
}

/* One metaserver after another, until one knows a live node of that name. */
static void ask_next(struct question *q)
{
    static const uint8_t none[16];
    struct agent *a = q->agent;
    char url[METASERVER_URL_BYTES];
    while (!a->stopping && q->next < a->config.metaservers) {
        const struct registration *r = &a->pools[0]->registration[q->next++];
        snprintf(url, sizeof url, "%s/v1/nodes/%s", r->url, q->name);
        const struct http_call c = metaserver_call(a, NULL, url, share_ms(q));
        if (r->state == REGISTRATION_DONE && world_call(a->world, &c, on_named, q, NULL) == 0)
            return;
    }
    answer_question(q, q->status, none);
}

static bool is_name(const char *name)
{
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789.-");
    return n > 0 && n < 64 && name[n] == '\0' && name[0] != '.' && name[0] != '-';
}

void registrations_resolve(struct agent *a, uint16_t pool, const char *name,
                           void (*done)(void *user, int status, const uint8_t gid[16],
                                        uint16_t pool),
                           void *user)
{
    static const uint8_t none[16];
    struct question *q = NULL;
    if (!is_name(name) || a->questions >= QUESTIONS || (q = calloc(1, sizeof *q)) == NULL) {
        done(user, is_name(name) ? -EAGAIN : -ENOENT, none, 0);
        return;
    }
    a->questions++;
    *q = (struct question){.agent = a,
                           .pool = pool,
                           .done = done,
                           .user = user,
                           .end_ns = world_now_ns(a->world) + RESOLVE_MS * BASE_NS_PER_MS,
                           .status = -EHOSTUNREACH};
    snprintf(q->name, sizeof q->name, "%s", name);
    ask_next(q);
}
