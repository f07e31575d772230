/* SPDX-License-Identifier: Apache-2.0 */
/* Who has connections, memory and a rate of requests, and who makes room. */
#include <string.h>

#include "base/clock.h"
#include "server_private.h"

enum {
    LIMITED_MAX =
        3, /* after so many 429 a connection is closed: to answer costs more than to ask */
};

/* ---- owners */

static struct http_clients *table_of(struct http_server *s, enum http_rank rank)
{
    return rank == HTTP_ANONYMOUS ? &s->clients : &s->known;
}

static void take_from_owner(struct http_connection *c)
{
    struct http_server *s = c->server;
    s->ranked[c->rank]--;
    if (c->rank == HTTP_ANONYMOUS)
        TAILQ_REMOVE(&s->anonymous, c, of_rank);
    if (c->owner == NULL)
        return;
    if (c->request != NULL)
        c->owner->bodies_bytes -= c->request->capacity;
    TAILQ_REMOVE(&c->owner->own, c, of_owner);
    http_clients_disconnect(table_of(s, c->rank), c->owner);
    c->owner = NULL;
}

/* key: NULL: it has no bound of its own. */
static void give_to_owner(struct http_connection *c, enum http_rank rank, const uint8_t *key)
{
    struct http_server *s = c->server;
    c->rank = rank;
    s->ranked[rank]++;
    if (rank == HTTP_ANONYMOUS)
        TAILQ_INSERT_TAIL(&s->anonymous, c, of_rank);
    if (key == NULL)
        return;
    c->owner = http_clients_connect(table_of(s, rank), key);
    TAILQ_INSERT_TAIL(&c->owner->own, c, of_owner);
}

void http_admission_join(struct http_connection *c)
{
    give_to_owner(c, HTTP_ANONYMOUS, c->has_key ? c->key : NULL);
}

void http_admission_leave(struct http_connection *c)
{
    if (!c->ending)
        take_from_owner(c);
    c->ending = true;
}

/* ---- room for connections */

/* Nothing is lost with it but what its client has not sent whole. Who comes by the Unix socket
 * makes room for nobody: the socket's mode says who that is, before he has said anything. */
static bool can_go(const struct http_connection *c)
{
    return !c->local &&
           (c->wait == HTTP_WAIT_IDLE || c->wait == HTTP_WAIT_REQUEST || c->wait == HTTP_WAIT_TLS);
}

static bool drop_connection(struct http_connection *c)
{
    if (c == NULL)
        return false;
    c->server->stats.dropped++;
    http_connection_hang_up(c);
    return true;
}

static bool drop_anonymous(struct http_server *s)
{
    struct http_connection *c = TAILQ_FIRST(&s->anonymous);
    while (c != NULL && !can_go(c))
        c = TAILQ_NEXT(c, of_rank);
    return drop_connection(c);
}

static bool drop_one_of(struct http_client_entry *client)
{
    struct http_connection *c = TAILQ_FIRST(&client->own);
    while (c != NULL && !can_go(c))
        c = TAILQ_NEXT(c, of_owner);
    return drop_connection(c);
}

static unsigned count_connections(const struct http_server *s)
{
    unsigned n = 0;
    for (int rank = 0; rank < HTTP_RANKS; rank++)
        n += s->ranked[rank];
    return n;
}

int http_admit(struct http_server *s, const struct sockaddr_storage *from, const char **why)
{
    const bool drops = s->config.identify != NULL;
    uint8_t key[16];
    struct http_client_entry *client =
        http_client_key(from, key) ? http_clients_find(&s->clients, key) : NULL;
    *why = "too many connections; try again soon";
    if (!drops && count_connections(s) >= s->config.connections)
        return 503;
    if (!http_clients_has_room(&s->clients, client) && !(drops && drop_one_of(client))) {
        *why = "too many connections from this address; close some";
        return 429;
    }
    if (s->ranked[HTTP_ANONYMOUS] >= s->config.anonymous && !(drops && drop_anonymous(s)))
        return 503;
    if (count_connections(s) >= s->config.connections && !(drops && drop_anonymous(s)))
        return 503;
    return 0;
}

/* ---- requests */

static void reject_request(struct http_exchange *r, int status, const char *why, unsigned retry_s)
{
    struct http_connection *c = r->connection;
    r->reject = status;
    r->why = why;
    r->retry_s = retry_s;
    r->closes = ++c->limited >= LIMITED_MAX;
    c->server->stats.limited += status == 429;
}

/* Of one who is known. */
static void look_at_room(struct http_exchange *r)
{
    struct http_connection *c = r->connection;
    const struct http_server *s = c->server;
    if (c->owner != NULL && c->owner->connections > s->config.connections_per_id)
        reject_request(r, 429, "too many connections with this token; close some", 1);
    else if (c->rank == HTTP_KNOWN && s->ranked[HTTP_KNOWN] > (s->config.connections + 1) / 2)
        reject_request(r, 503, "too many connections with tokens of this scope; try again soon", 1);
    r->closes |= r->reject != 0;
}

static void assign_owner(struct http_connection *c, struct http_who who)
{
    uint8_t key[16] = {0};
    const bool anonymous = who.rank == HTTP_ANONYMOUS;
    const uint8_t *wanted = anonymous ? (c->has_key ? c->key : NULL) : who.id != 0 ? key : NULL;
    memcpy(key, &who.id, sizeof who.id);
    if (c->ending || (c->rank == who.rank && (wanted == NULL) == (c->owner == NULL) &&
                      (wanted == NULL || memcmp(wanted, c->owner->key, sizeof key) == 0)))
        return;
    take_from_owner(c);
    give_to_owner(c, who.rank, wanted);
}

bool http_admission_has_price(const struct http_connection *c)
{
    return c->rank == HTTP_KNOWN &&
           c->server->config.percent_per_id + c->server->config.percent_known > 0;
}

void http_admission_spend(struct http_connection *c, uint64_t spent_ns)
{
    const struct http_server_config *config = &c->server->config;
    const uint64_t now = base_clock_ns();
    if (c->owner != NULL)
        http_spend(&c->owner->time_whole_ns, config->percent_per_id, spent_ns, now);
    http_spend(&c->server->known_time_whole_ns, config->percent_known, spent_ns, now);
}

/* Of one who is known and not trusted: those come first. */
static void look_at_time(struct http_exchange *r, uint64_t now)
{
    const struct http_connection *c = r->connection;
    struct http_server *s = c->server;
    const unsigned own = c->owner != NULL ? http_time_left(c->owner->time_whole_ns, now) : 0;
    const unsigned all = http_time_left(s->known_time_whole_ns, now);
    if (own == 0 && all == 0)
        return;
    reject_request(r, 429,
                   own > 0 ? "requests with this token have taken too much of the server's time; "
                             "try again later"
                           : "requests with tokens of this scope have taken too much of the "
                             "server's time; try again later",
                   own > all ? own : all);
    s->stats.over_time++;
}

void http_admission_look(struct http_exchange *r)
{
    struct http_connection *c = r->connection;
    struct http_server *s = c->server;
    struct http_who who = {.rank = HTTP_ANONYMOUS};
    const uint64_t now = base_clock_ns();
    if (s->config.identify != NULL)
        who = s->config.identify(s->config.user, &r->public);
    assign_owner(c, who);
    unsigned retry_s = http_clients_request(table_of(s, c->rank), c->owner, now);
    if (retry_s == 0 && c->rank == HTTP_ANONYMOUS && c->has_key)
        retry_s = http_allow(&s->anonymous_whole_ns, s->config.anonymous_per_second,
                             s->config.anonymous_per_second, now);
    if (r->reject != 0)
        return;
    if (retry_s > 0) {
        reject_request(r, 429, NULL, retry_s);
        return;
    }
    if (http_admission_has_price(c))
        look_at_time(r, now);
    if (r->reject != 0)
        return;
    c->limited = 0;
    if (c->rank != HTTP_ANONYMOUS)
        look_at_room(r);
}

/* ---- memory for bodies */

void http_admission_count_body(struct http_exchange *r, size_t capacity)
{
    struct http_connection *c = r->connection;
    c->server->bodies_bytes[c->rank] += capacity - r->capacity;
    if (c->owner != NULL)
        c->owner->bodies_bytes += capacity - r->capacity;
    r->capacity = capacity;
}

/* One client has a quarter, or one body, so that it cannot keep all others' requests out; where
 * some are known anonymous clients have a quarter together, and leave half with those who are not
 * trusted.
 */
bool http_admission_has_room(const struct http_exchange *r, size_t more)
{
    const struct http_connection *c = r->connection;
    const struct http_server *s = c->server;
    const size_t whole = s->config.body_bytes + 1, all = s->config.bodies_bytes;
    const size_t quarter = all / 4 > whole ? all / 4 : whole;
    const size_t part[HTTP_RANKS] = {
        [HTTP_ANONYMOUS] = s->config.anonymous < s->config.connections ? quarter : all,
        [HTTP_KNOWN] = all / 2 > whole ? all / 2 : whole,
        [HTTP_TRUSTED] = all};
    size_t below = more, used = more;
    for (int rank = 0; rank < HTTP_RANKS; rank++) {
        below += rank <= (int)c->rank ? s->bodies_bytes[rank] : 0;
        used += s->bodies_bytes[rank];
    }
    return below <= part[c->rank] && used <= all &&
           (c->owner == NULL || c->owner->bodies_bytes + more <= quarter);
}
