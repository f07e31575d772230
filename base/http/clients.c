/* SPDX-License-Identifier: Apache-2.0 */
#include "clients.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/random.h"

int http_clients_init(struct http_clients *c, uint32_t room)
{
    TAILQ_INIT(&c->idle);
    TAILQ_INIT(&c->busy);
    c->room = room;
    c->used = 0;
    c->log2_buckets = 1;
    while (((uint32_t)1 << c->log2_buckets) < room)
        c->log2_buckets++;
    /* Without it who chooses addresses could choose one bucket. */
    if (base_random_bytes(&c->seed, sizeof c->seed) != 0)
        c->seed = (uint64_t)(uintptr_t)c;
    c->entry = calloc(room, sizeof *c->entry);
    c->buckets = calloc((size_t)1 << c->log2_buckets, sizeof *c->buckets);
    if (c->entry != NULL && c->buckets != NULL)
        return 0;
    http_clients_fini(c);
    return -ENOMEM;
}

void http_clients_fini(struct http_clients *c)
{
    free(c->entry);
    free(c->buckets);
    c->entry = NULL;
    c->buckets = NULL;
}

bool http_client_key(const struct sockaddr_storage *from, uint8_t key[16])
{
    static const uint8_t mapped[12] = {[10] = 0xff, 0xff};
    memset(key, 0, 16);
    if (from->ss_family == AF_INET6) {
        const uint8_t *address = ((const struct sockaddr_in6 *)from)->sin6_addr.s6_addr;
        memcpy(key, address, memcmp(address, mapped, sizeof mapped) == 0 ? 16 : 8);
        return true;
    }
    if (from->ss_family != AF_INET)
        return false;
    memcpy(key, mapped, sizeof mapped);
    memcpy(key + 12, &((const struct sockaddr_in *)from)->sin_addr, 4);
    return true;
}

static struct http_client_bucket *bucket_of(const struct http_clients *c, const uint8_t key[16])
{
    return &c->buckets[base_hash_gid(key, 0, c->seed) >> (64 - c->log2_buckets)];
}

struct http_client_entry *http_clients_find(const struct http_clients *c, const uint8_t key[16])
{
    struct http_client_entry *e;
    LIST_FOREACH(e, bucket_of(c, key), bucket) {
        if (memcmp(e->key, key, sizeof e->key) == 0)
            return e;
    }
    return NULL;
}

bool http_clients_has_room(const struct http_clients *c, const struct http_client_entry *client)
{
    return c->max_connections == 0 || client == NULL || client->connections < c->max_connections;
}

/* One that is not used, or whose client has been silent for longest. */
static struct http_client_entry *take_entry(struct http_clients *c)
{
    if (c->used < c->room)
        return &c->entry[c->used++];
    struct http_client_entry *e = TAILQ_FIRST(&c->idle);
    BASE_ASSERT(e != NULL); /* there is more room than there are connections */
    TAILQ_REMOVE(&c->idle, e, age);
    LIST_REMOVE(e, bucket);
    return e;
}

struct http_client_entry *http_clients_connect(struct http_clients *c, const uint8_t key[16])
{
    struct http_client_entry *e = http_clients_find(c, key);
    if (e == NULL) {
        e = take_entry(c);
        *e = (struct http_client_entry){.connections = 0};
        memcpy(e->key, key, sizeof e->key);
        TAILQ_INIT(&e->own);
        LIST_INSERT_HEAD(bucket_of(c, key), e, bucket);
    } else if (e->connections == 0) {
        TAILQ_REMOVE(&c->idle, e, age);
    }
    if (e->connections++ == 0)
        TAILQ_INSERT_TAIL(&c->busy, e, age);
    return e;
}

void http_clients_disconnect(struct http_clients *c, struct http_client_entry *client)
{
    if (client == NULL || --client->connections > 0)
        return;
    TAILQ_REMOVE(&c->busy, client, age);
    TAILQ_INSERT_TAIL(&c->idle, client, age);
}

unsigned http_allow(uint64_t *whole_ns, unsigned per_second, unsigned burst, uint64_t now_ns)
{
    if (per_second == 0)
        return 0;
    uint64_t share = BASE_NS_PER_S / per_second, ahead = share * burst;
    uint64_t whole = *whole_ns > now_ns ? *whole_ns : now_ns;
    if (whole + share > now_ns + ahead)
        return 1 + (unsigned)((whole + share - now_ns - ahead) / BASE_NS_PER_S);
    *whole_ns = whole + share;
    return 0;
}

void http_spend(uint64_t *whole_ns, unsigned percent, uint64_t spent_ns, uint64_t now_ns)
{
    if (percent == 0)
        return;
    *whole_ns = (*whole_ns > now_ns ? *whole_ns : now_ns) + spent_ns * 100 / percent;
}

unsigned http_time_left(uint64_t whole_ns, uint64_t now_ns)
{
    const uint64_t ahead = now_ns + HTTP_TIME_AHEAD_S * BASE_NS_PER_S;
    return whole_ns <= ahead ? 0 : 1 + (unsigned)((whole_ns - ahead) / BASE_NS_PER_S);
}

unsigned http_clients_request(struct http_clients *c, struct http_client_entry *client,
                              uint64_t now_ns)
{
    return client == NULL ? 0 : http_allow(&client->whole_ns, c->per_second, c->burst, now_ns);
}
