/* SPDX-License-Identifier: Apache-2.0 */
/* Names of nodes, which an agent asks of its metaservers under its own token, and names of regions,
 * which it has them keep. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fds.h"
#include "hostile.h"

enum {
    SESSIONS = 32,
    ROUND_NS = 5200000 /* a worker that sends more is cut off, and one may ask for 200 a second */
};

static int ask_name(struct hostile *h, struct raw *r)
{
    struct schema_control_resolve ask = {.name = "node-"};
    for (int i = 5; i < 20; i++)
        ask.name[i] = (char)('a' + hostile_random(h) % 26);
    return raw_send(r->socket, &ask, SCHEMA_CONTROL_RESOLVE, sizeof ask, 1);
}

static int take_answer(struct raw *r)
{
    union {
        struct schema_control_header h;
        struct schema_control_error error;
        uint8_t bytes[SCHEMA_CONTROL_MAX_BYTES];
    } got;
    size_t came;
    unsigned count = 0;
    int fd, status = base_fds_recv(r->socket, &got, sizeof got, &came, &fd, 1, &count);
    if (status != 0)
        return status;
    return got.h.type == SCHEMA_CONTROL_ERROR ? got.error.status : 0;
}

int raw_find_node(struct raw *r, const char *name)
{
    struct schema_control_resolve ask = {0};
    memcpy(ask.name, name, strlen(name));
    const int status = raw_send(r->socket, &ask, SCHEMA_CONTROL_RESOLVE, sizeof ask, 1);
    return status != 0 ? status : take_answer(r);
}

/* Each of its sessions asks for a name that there is not, as often as it may. */
void attack_names(struct hostile *h)
{
    static struct raw r[SESSIONS];
    for (int i = 0; i < SESSIONS; i++)
        raw_open(h, &r[i]);
    while (!hostile_over(h)) {
        const uint64_t begin = base_clock_ns();
        for (int i = 0; i < SESSIONS; i++, h->did++)
            if (ask_name(h, &r[i]) != 0)
                hostile_fail("asking for names ended the session");
        for (int i = 0; i < SESSIONS; i++) {
            const int status = take_answer(&r[i]);
            if (status != -ENOENT && status != -EAGAIN)
                hostile_fail("a name that there is not: %s", strerror(-status));
            h->errors += status == -EAGAIN;
        }
        const uint64_t took = base_clock_ns() - begin;
        if (took < ROUND_NS)
            usleep((useconds_t)((ROUND_NS - took) / 1000));
    }
    for (int i = 0; i < SESSIONS; i++)
        raw_close(&r[i]);
}

/* ---- names of regions */

static uint32_t register_region(struct raw *r)
{
    uint64_t value[2];
    struct schema_sq_desc d = {.op = SCHEMA_OP_REG_MR,
                               .reg_mr = {.length = 4096, .access = SCHEMA_RECORD_READ}};
    const int status = raw_ask(r, &d, value);
    if (status != 0)
        hostile_fail("a region: %s", strerror(-status));
    return (uint32_t)value[0];
}

/* A name of few, so that its sessions are in each other's way, or of many, or what is none; for
 * its region, or for another's. */
static int ask_to_publish(struct hostile *h, struct raw *r, uint32_t vkey)
{
    struct schema_control_publish m = {.vkey =
                                           hostile_random(h) % 8 != 0 ? vkey : (uint32_t)h->random};
    const uint64_t kind = hostile_random(h) % 4;
    for (uint64_t i = 0, n = hostile_random(h) % 4; i < n; i++)
        m.name[i] = (char)('a' + hostile_random(h) % 2);
    if (kind == 0)
        for (size_t i = 0; i < sizeof m.name - 1; i++)
            m.name[i] = (char)('a' + hostile_random(h) % 26);
    else if (kind == 1)
        hostile_fill(h, m.name, sizeof m.name - 1);
    return raw_send(r->socket, &m,
                    hostile_random(h) % 3 != 0 ? SCHEMA_CONTROL_PUBLISH : SCHEMA_CONTROL_UNPUBLISH,
                    sizeof m, 1);
}

static bool is_fair(int status)
{
    static const int SAID[] = {0,       -EAGAIN, -EDQUOT,       -EEXIST,   -EINVAL,
                               -ENOENT, -ENOSPC, -EHOSTUNREACH, -ETIMEDOUT};
    for (size_t i = 0; i < sizeof SAID / sizeof SAID[0]; i++)
        if (status == SAID[i])
            return true;
    return false;
}

/* Each of its sessions publishes, and takes back, as fast as it is answered. */
void attack_publishes(struct hostile *h)
{
    static struct raw r[SESSIONS];
    uint32_t vkey[SESSIONS];
    for (int i = 0; i < SESSIONS; i++) {
        raw_open(h, &r[i]);
        vkey[i] = register_region(&r[i]);
    }
    while (!hostile_over(h)) {
        const uint64_t begin = base_clock_ns();
        for (int i = 0; i < SESSIONS; i++, h->did++)
            if (ask_to_publish(h, &r[i], vkey[i]) != 0)
                hostile_fail("publishing ended the session");
        for (int i = 0; i < SESSIONS; i++) {
            const int status = take_answer(&r[i]);
            if (!is_fair(status))
                hostile_fail("publishing: %s", strerror(-status));
            h->errors += status != 0;
        }
        const uint64_t took = base_clock_ns() - begin;
        if (took < ROUND_NS)
            usleep((useconds_t)((ROUND_NS - took) / 1000));
    }
    for (int i = 0; i < SESSIONS; i++)
        raw_close(&r[i]);
}
