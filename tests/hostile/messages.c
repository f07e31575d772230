/* SPDX-License-Identifier: Apache-2.0 */
/* Messages: descriptors of them that make no sense, floods for who hears nothing, and all ports. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hostile.h"
#include "schema/record.h"

enum { ROOM = 8, PORT = 7, EXTRA = 5, PORTS = 128 };

/* Whether the ring takes a descriptor with all that may follow it. */
static bool has_room(const struct raw *r)
{
    return r->tail - atomic_load(&r->ro->sq_head) + ROOM <= r->ro->sq_slots;
}

/* Takes all completions that there are; false: the session is over. */
static bool take_all(struct hostile *h, struct raw *r, uint32_t *failed)
{
    struct schema_cqe c;
    int status;
    while ((status = raw_poll(r, &c, 0)) != -ETIMEDOUT && status != -EPIPE) {
        *failed += status != 0;
        if (c.extra != 0) /* whose the message is */
            (void)raw_poll(r, &c, 0);
    }
    h->errors += *failed;
    return status != -EPIPE;
}

static struct schema_sq_desc make_nonsense(struct hostile *h, struct raw *r)
{
    static const uint8_t ops[] = {SCHEMA_OP_SEND,      SCHEMA_OP_RECV,        SCHEMA_OP_SEND_TO,
                                  SCHEMA_OP_BIND_PORT, SCHEMA_OP_WRITE_IMM,   SCHEMA_OP_SEND,
                                  SCHEMA_OP_WRITE_IMM, SCHEMA_OP_COUNTER_FREE};
    const uint64_t random = hostile_random(h);
    struct schema_sq_desc d = {.op = ops[random % 8],
                               .flags = (uint8_t)(random >> 8 & 63),
                               .num_sge = (uint8_t)((random >> 16) % 6),
                               .slots = (uint8_t)(1 + (random >> 24) % EXTRA),
                               .vqp = (uint16_t)((random >> 32) % 4),
                               .vqp_gen = (uint16_t)((random >> 48) % 2)};
    hostile_fill(h, d.bytes, sizeof d.bytes);
    if (d.op == SCHEMA_OP_BIND_PORT) {
        d.bind_port.tag = ++r->tag;
        d.slots = 1;
    } else if (d.op == SCHEMA_OP_COUNTER_FREE) {
        d.counter.tag = ++r->tag;
        d.slots = 1;
    } else if (d.op == SCHEMA_OP_SEND_TO) {
        d.send_to.kind %= 5;
    } else if ((random >> 40) % 32 != 0) { /* most would do, but for a field or two */
        d.num_sge = 1;
        d.slots = 1;
        d.post.arena = 0;
        d.post.offset %= 2 * r->arena_bytes;
        d.post.length %= 2 * SCHEMA_MESSAGE_MOST;
        d.post.remote_addr = d.post.vkey = 0;
    }
    return d;
}

void attack_messages(struct hostile *h)
{
    uint8_t extra[EXTRA * SCHEMA_LINE];
    hostile_begin(h);
    while (!hostile_over(h)) {
        struct raw r;
        uint32_t failed = 0;
        raw_open(h, &r);
        bool lives = raw_connect(&r) == 0;
        while (lives && !hostile_over(h)) {
            while (lives && !has_room(&r) && !hostile_over(h))
                lives = take_all(h, &r, &failed);
            if (!lives || !has_room(&r))
                break;
            const struct schema_sq_desc d = make_nonsense(h, &r);
            hostile_fill(h, extra, sizeof extra);
            raw_put(&r, &d, extra, d.slots - 1u);
            h->did++;
            lives = take_all(h, &r, &failed);
            failed = 0;
        }
        h->cut_off += raw_ended(&r);
        hostile_look_for_secret(r.arena, r.arena_bytes);
        raw_close(&r);
    }
}

/* ---- floods */

/* VQP 0 sends to the port that VQP 1 hears, here. */
static bool address_port(struct raw *r)
{
    const struct schema_sq_desc to = {
        .op = SCHEMA_OP_SEND_TO, .slots = 1, .send_to = {.kind = SCHEMA_SEND_TO_PORT, .to = PORT}};
    if (raw_connect(r) != 0)
        return false;
    raw_put(r, &to, NULL, 0);
    return true;
}

/* Four buffers, and as many messages as the ring takes: when the first fails it begins again. */
void attack_message_flood(struct hostile *h)
{
    struct raw r;
    struct schema_sq_desc bind = {.op = SCHEMA_OP_BIND_PORT, .vqp = 1, .bind_port = {.port = PORT}};
    uint32_t failed = 0;
    raw_open(h, &r);
    if (raw_ask(&r, &bind, NULL) != 0 || !address_port(&r))
        hostile_fail("message-flood: there is nobody to be flooded");
    for (uint32_t i = 0; i < 4; i++) {
        const struct schema_sq_desc receive = {.op = SCHEMA_OP_RECV,
                                               .slots = 1,
                                               .num_sge = 1,
                                               .vqp = 1,
                                               .post = {.wr_id = i, .length = SCHEMA_MESSAGE_MOST}};
        raw_put(&r, &receive, NULL, 0);
    }
    hostile_begin(h);
    while (!hostile_over(h) || h->errors == 0) { /* the first comes when its agent gives it up */
        const struct schema_sq_desc send = {.op = SCHEMA_OP_SEND,
                                            .slots = 1,
                                            .num_sge = 1,
                                            .post = {.length = SCHEMA_MESSAGE_MOST}};
        if (has_room(&r)) {
            raw_put(&r, &send, NULL, 0);
            h->did++;
        }
        failed = 0;
        if (!take_all(h, &r, &failed) || (failed > 0 && !address_port(&r)))
            break;
    }
    h->cut_off += raw_ended(&r);
    raw_close(&r);
}

/* ---- ports */

/* With each queue pair that its session may have, as many as it gets; and each twice. */
void attack_ports(struct hostile *h)
{
    hostile_begin(h);
    while (!hostile_over(h)) {
        struct raw r;
        raw_open(h, &r);
        for (uint32_t port = 0; !hostile_over(h) && !raw_ended(&r); port++) {
            for (uint16_t other = 0; other < 2; other++) {
                struct schema_sq_desc d = {.op = SCHEMA_OP_BIND_PORT,
                                           .vqp = (uint16_t)((port + other) % r.ro->max_vqps),
                                           .bind_port = {.port = port}};
                h->errors += raw_ask(&r, &d, NULL) != 0;
                h->did++;
            }
        }
        h->cut_off += raw_ended(&r);
        raw_close(&r);
    }
}

/* ---- others' ports */

/* Of a port of its own it lets in, and shuts out, whoever there may be. */
static void ask_for_guests(struct hostile *h, struct raw *r)
{
    for (int i = 0; i < ROOM && !raw_ended(r); i++) {
        struct schema_sq_desc d = {.op = i % 2 == 0 ? SCHEMA_OP_PORT_GRANT : SCHEMA_OP_PORT_REVOKE,
                                   .vqp = 1,
                                   .bind_port = {.tenant = (uint32_t)hostile_random(h)}};
        h->errors += raw_ask(r, &d, NULL) != 0;
        h->did++;
    }
}

/* Completions of SENDs that there are; how many went well. False: one failed, or it is over. */
static bool take_sends(struct hostile *h, struct raw *r, uint32_t *well)
{
    struct schema_cqe c;
    bool goes = true;
    int status;
    while ((status = raw_poll(r, &c, 0)) != -ETIMEDOUT) {
        *well += status == 0;
        h->errors += status > 0;
        goes &= status == 0;
        if (status == -EPIPE)
            break;
    }
    return goes;
}

/* Fills the ring with messages for ports of another tenant's worker, $HOSTILE_OWNER's (workers):
 * whichever, where it was let in to none, or the one that $HOSTILE_PORT says, where it was. */
void attack_foreign_port(struct hostile *h)
{
    const char *owner = getenv("HOSTILE_OWNER"), *port = getenv("HOSTILE_PORT");
    struct schema_sq_desc bind = {.op = SCHEMA_OP_BIND_PORT, .vqp = 1, .bind_port = {.port = PORT}};
    struct schema_sq_desc to = {
        .op = SCHEMA_OP_SEND_TO,
        .slots = 1,
        .send_to = {.kind = SCHEMA_SEND_TO_PORT,
                    .tenant = schema_tenant_number(owner != NULL ? owner : "workers")}};
    const struct schema_sq_desc send = {.op = SCHEMA_OP_SEND,
                                        .flags = SCHEMA_OP_SIGNALED,
                                        .slots = 1,
                                        .num_sge = 1,
                                        .post = {.length = SCHEMA_MESSAGE_MOST}};
    struct raw r;
    uint32_t well = 0;
    port = port != NULL && port[0] != '\0' ? port : NULL;
    raw_open(h, &r);
    (void)raw_ask(&r, &bind, NULL); /* another one may have it */
    hostile_begin(h);
    for (bool goes = false; !hostile_over(h) && !raw_ended(&r);) {
        if (!goes && port == NULL)
            ask_for_guests(h, &r);
        to.send_to.to = port != NULL ? strtoul(port, NULL, 10) : hostile_random(h) % PORTS;
        if (!goes && raw_connect(&r) == 0)
            raw_put(&r, &to, NULL, 0);
        for (; has_room(&r); h->did++)
            raw_put(&r, &send, NULL, 0);
        goes = take_sends(h, &r, &well);
    }
    if (well > 0 && port == NULL)
        hostile_fail("foreign-port: %u messages reached who had not let it in", well);
    if (well == 0 && port != NULL)
        hostile_fail("foreign-port: no message reached who had let it in");
    h->errors += well; /* it is refused, or let in */
    h->cut_off += raw_ended(&r);
    raw_close(&r);
}
