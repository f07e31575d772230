/* SPDX-License-Identifier: Apache-2.0 */
#include "clients.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "calls.h"
#include "history.h"
#include "inbox.h"
#include "ledger.h"
#include "os_calls.h"
#include "random.h"
#include "trace.h"

enum {
    WRITERS = 3,
    FOLLOWERS = 2,
    CLIENTS = WRITERS + FOLLOWERS,
    TENANTS = 3,
    FIRST_UID = 500000,
    MOST_AT_ONCE = 8,
    BURST_S = 4,      /* from one burst to the next, on average */
    APART_US = 4000,  /* of a burst's requests, at most */
    FOLLOW_S = 30,    /* at one metaserver, at most */
    SILENCE_MS = 8000 /* then a follower goes elsewhere */
};

struct client {
    struct play_clients *all;
    uint32_t number;
    struct play_process *process;
    struct play_inbox inbox;
    struct base_prng random;
    bool over; /* the call that is under way */
    int status;
    uint32_t asks;  /* the metaserver that it has asked last */
    uint64_t known; /* of a follower: the revision that it was told last, and when */
    uint64_t known_ns;
};

struct play_clients {
    struct play_host host;
    struct play_clients_settings settings;
    struct client client[CLIENTS];
};

static void on_over(void *user, const struct http_answer *answer)
{
    struct client *c = user;
    c->over = true;
    c->status = answer->status;
}

static void choose_metaserver(struct client *c)
{
    c->asks = (uint32_t)base_prng_below(&c->random, c->all->settings.metaservers);
}

static void name_url(const struct client *c, char *url, size_t size, const char *path)
{
    (void)snprintf(url, size, "http://%s:7480%s", c->all->settings.metaserver[c->asks], path);
}

/* Until it is over, or (of a stream) that time. */
static int call(struct client *c, const struct http_call *call, uint64_t until_ns)
{
    uint64_t id = 0;
    c->over = false;
    const int status = play_call_begin(&c->inbox, call, on_over, c, &id);
    BASE_ASSERT(status == 0);
    while (!c->over && play_inbox_step(&c->inbox, until_ns)) {
    }
    if (!c->over)
        (void)play_call_cancel(&c->inbox, id);
    return c->over ? c->status : -ETIMEDOUT;
}

/* ---- writers */

static void ask(struct client *c, const char *method, uint32_t tenant)
{
    char url[128], path[64], body[64];
    const bool puts = strcmp(method, "PUT") == 0;
    (void)snprintf(path, sizeof path, "/v1/tenants/shared-%u", tenant);
    (void)snprintf(body, sizeof body, "{\"uids\":[%u]}",
                   FIRST_UID + tenant * 1000 + (uint32_t)base_prng_below(&c->random, 4));
    name_url(c, url, sizeof url, path);
    const struct http_call call_of = {.method = method,
                                      .url = url,
                                      .body = puts ? body : NULL,
                                      .body_length = puts ? strlen(body) : 0};
    const int status = call(c, &call_of, PLAY_NEVER);
    play_trace(c->process->name, "%s %s%s%s: %d", method, url, puts ? " " : "", puts ? body : "",
               status);
}

/* Who has changed something often looks at it there at once. */
static void ask_anything(struct client *c)
{
    static const char *const METHODS[] = {"PUT", "PUT", "PUT", "DELETE", "GET", "GET"};
    const uint32_t tenant = (uint32_t)base_prng_below(&c->random, TENANTS);
    choose_metaserver(c);
    ask(c, METHODS[base_prng_below(&c->random, 6)], tenant);
    if (c->status / 100 == 2 && base_prng_below(&c->random, 2) == 0)
        ask(c, "GET", tenant);
}

static void take_back(struct client *c)
{
    for (uint32_t i = c->number; i < TENANTS; i += WRITERS)
        do {
            choose_metaserver(c);
            ask(c, "DELETE", i);
        } while (c->status / 100 != 2 && c->status != 404);
}

/* All begin at the same time, more or less, since what is asked for at once is what matters. */
static void write_all(struct client *c)
{
    struct base_prng bursts = play_random_of(c->all->settings.seed, "bursts", 0);
    uint64_t next_ns = play_now_ns();
    while (next_ns < c->all->settings.until_ns) {
        next_ns += play_random_wait(&bursts, BURST_S * BASE_NS_PER_S);
        if (next_ns > play_now_ns())
            play_process_sleep(next_ns - play_now_ns());
        for (uint64_t n = 1 + base_prng_below(&c->random, MOST_AT_ONCE); n > 0; n--) {
            ask_anything(c);
            play_process_sleep(base_prng_below(&c->random, APART_US * BASE_NS_PER_US));
        }
    }
    play_process_sleep(BURST_S * BASE_NS_PER_S);
    take_back(c);
}

/* ---- followers */

static void judge_event(struct client *c, uint64_t revision, const char *kind, const json_t *event)
{
    const json_t *to = json_object_get(event, "to");
    char *text = json_is_object(to) ? json_dumps(to, 0) : NULL;
    const char *name = json_string_value(json_object_get(event, "name"));
    const struct play_history_told told = {
        .revision = revision, .kind = kind, .name = name != NULL ? name : "", .to = text};
    play_history_told(c->process->name, c->known, &told);
    os_free(text);
}

/* What becomes of nodes has none of its own. */
static int on_line(void *user, const char *line, size_t length)
{
    struct client *c = user;
    json_t *event = json_loadb(line, length, 0, NULL);
    const json_t *revision = json_object_get(event, "revision");
    const char *kind = json_string_value(json_object_get(event, "kind"));
    if (json_is_integer(revision) && kind != NULL && strcmp(kind, "liveness") != 0) {
        const uint64_t told = (uint64_t)json_integer_value(revision);
        if (play_history_is_uncertain(c->known_ns, play_now_ns()))
            ; /* it may be one that there is no more */
        else if (c->known != 0 && told != c->known)
            judge_event(c, told, kind, event);
        else if (told == c->known)
            play_violation(c->process->name, "it is told of revision %llu twice",
                           (unsigned long long)told);
        play_trace(c->process->name, "is told of revision %llu", (unsigned long long)told);
        c->known = told;
        c->known_ns = play_now_ns();
    }
    json_decref(event);
    return 0;
}

/* Until somebody has the next one not any more: then it begins anew. */
static void follow(struct client *c)
{
    char url[128], path[96];
    (void)snprintf(path, sizeof path,
                   c->known != 0 ? "/v1/events?watch=1&revision=%llu" : "/v1/events?watch=1",
                   (unsigned long long)c->known);
    choose_metaserver(c);
    name_url(c, url, sizeof url, path);
    const struct http_call call_of = {.method = "GET",
                                      .url = url,
                                      .timeout_ms = UINT32_MAX,
                                      .silence_timeout_ms = SILENCE_MS,
                                      .on_line = on_line};
    const uint64_t for_ns = base_prng_below(&c->random, FOLLOW_S * BASE_NS_PER_S);
    const int status = call(c, &call_of, play_now_ns() + for_ns);
    play_trace(c->process->name, "followed %s: %d", url, status);
    if (status == 410)
        c->known = 0;
    play_process_sleep(base_prng_below(&c->random, BASE_NS_PER_S));
}

/* ---- their life */

static void run_client(void *user)
{
    struct client *c = user;
    play_process_sleep(BASE_NS_PER_S);
    if (c->number < WRITERS)
        write_all(c);
    else
        for (;;)
            follow(c);
}

static void on_killed(struct play_process *process, void *user)
{
    struct client *c = user;
    (void)process;
    play_calls_end(&c->inbox, false);
}

struct play_clients *play_clients_start(const struct play_clients_settings *settings)
{
    struct play_clients *all = calloc(1, sizeof *all);
    BASE_ASSERT(all != NULL);
    (void)snprintf(all->host.name, sizeof all->host.name, "desk");
    all->host.number = UINT32_MAX; /* it has no device */
    all->settings = *settings;
    for (uint32_t i = 0; i < CLIENTS; i++) {
        struct client *c = &all->client[i];
        char name[PLAY_NAME];
        c->all = all;
        c->number = i;
        c->random = play_random_of(settings->seed, "client", i);
        (void)snprintf(name, sizeof name, i < WRITERS ? "writer-%u" : "follower-%u", i);
        c->process = play_process_new(&all->host, name, settings->seed, run_client, c);
        BASE_ASSERT(c->process != NULL);
        c->process->killed = on_killed;
        play_inbox_init(&c->inbox, c->process);
    }
    return all;
}

void play_clients_kill(struct play_clients *all)
{
    for (uint32_t i = 0; all != NULL && i < CLIENTS; i++)
        play_process_kill(all->client[i].process);
    free(all);
}
