/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of others. */
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "hostile.h"
#include "schema/record.h"
#include "schema/token.h"

enum { CUT_OFF_MS = 20000, BYTES = 4096 };

/* One READ into the beginning of the arena; its status. */
static int read_with(struct raw *r, uint32_t vkey, uint64_t address, uint32_t bytes)
{
    struct schema_cqe e;
    struct schema_sq_desc d = {.op = SCHEMA_OP_READ,
                               .slots = 1,
                               .num_sge = 1,
                               .flags = SCHEMA_OP_SIGNALED,
                               .post = {.length = bytes, .remote_addr = address, .vkey = vkey}};
    raw_put(r, &d, NULL, 0);
    int status = raw_poll(r, &e, CUT_OFF_MS);
    if (status == 0 || memcmp(r->arena, HOSTILE_SECRET, 16) == 0)
        hostile_fail("a READ with the key %08x of others succeeded", vkey);
    return status;
}

/* A VQP with an error takes nothing more until it is bound again. */
static int guess(struct hostile *h, struct raw *r, uint32_t vkey, uint64_t address, uint32_t bytes)
{
    int status = raw_connect(r);
    if (status == 0)
        status = read_with(r, vkey, address, bytes);
    h->did++;
    h->errors += status > 0;
    return status;
}

/* Until it was cut off once, however slow everything is. */
static bool goes_on(const struct hostile *h)
{
    return h->cut_off == 0 || !hostile_over(h);
}

/* Wrong keys right behind requests that are all right, on the same VQP, until one ends the session
 * while those are out. */
static void guess_behind(struct hostile *h, struct raw *r)
{
    uint64_t value[2];
    struct schema_cqe e;
    struct schema_sq_desc reg = {.op = SCHEMA_OP_REG_MR,
                                 .reg_mr = {.length = BYTES, .access = SCHEMA_RECORD_READ}};
    struct schema_sq_desc d = {.op = SCHEMA_OP_READ, .slots = 1, .num_sge = 1};
    if (raw_ask(r, &reg, value) != 0)
        return;
    d.post.length = BYTES;
    d.post.offset = r->arena_bytes / 2;
    while (!raw_ended(r) && raw_connect(r) == 0) {
        for (int i = 0; i < 8; i++) {
            d.flags = 0;
            d.post.vkey = (uint32_t)value[0];
            raw_put(r, &d, NULL, 0);
        }
        d.flags = SCHEMA_OP_SIGNALED;
        d.post.vkey = (uint32_t)hostile_random(h); /* one that is known costs nothing */
        raw_put(r, &d, NULL, 0);
        h->errors += raw_poll(r, &e, CUT_OFF_MS) > 0;
        h->did++;
    }
}

void attack_keys(struct hostile *h)
{
    while (!hostile_over(h)) {
        struct raw r;
        raw_open(h, &r);
        if (hostile_random(h) % 2 == 0)
            guess_behind(h, &r);
        while (!raw_ended(&r) && goes_on(h))
            (void)guess(h, &r, (uint32_t)hostile_random(h), hostile_random(h) % (1 << 20), BYTES);
        h->cut_off += raw_ended(&r);
        raw_close(&r);
    }
}

/* It knows which key is right, and not the secret that goes with it. From another pool not even the
 * secret is of use: neither in the victim's pool, which it cannot reach, nor in its own. */
void attack_secrets(struct hostile *h)
{
    struct schema_token t;
    if (h->token == NULL || schema_token_parse(h->token, &t) != 0)
        hostile_fail("secrets needs the victim's --token");
    while (!hostile_over(h)) {
        struct raw r;
        raw_open(h, &r);
        const bool apart = r.ro->pool != t.pool;
        struct schema_sq_desc c = {.op = SCHEMA_OP_CONNECT, .connect = {.pool = t.pool}};
        memcpy(c.connect.gid, t.gid, sizeof t.gid);
        if (apart && raw_ask(&r, &c, NULL) == 0)
            hostile_fail("an endpoint of another pool can be connected to");
        c.connect.pool = r.ro->pool;
        for (int i = 0; !raw_ended(&r) && goes_on(h); i++) {
            uint64_t value[2];
            struct schema_sq_desc import = {.op = SCHEMA_OP_IMPORT, .import = {.vkey = t.vkey}};
            hostile_fill(h, import.import.secret, sizeof import.import.secret);
            if (i % 2 == 0) {
                memcpy(import.import.secret, t.secret, sizeof t.secret);
                import.import.secret[hostile_random(h) % 16] ^= !apart;
            }
            (void)raw_ask(&r, &import, NULL);
            if (raw_ask(&r, &c, value) != 0)
                break;
            struct schema_sq_desc bind = {
                .op = SCHEMA_OP_BIND,
                .slots = 1,
                .bind = {.peer_slot = (uint32_t)value[0], .peer_gen = (uint32_t)value[1]}};
            raw_put(&r, &bind, NULL, 0);
            h->errors += read_with(&r, t.vkey, t.addr, (uint32_t)strlen(HOSTILE_SECRET)) > 0;
            h->did++;
        }
        h->cut_off += raw_ended(&r);
        raw_close(&r);
    }
}

/* Regions of its own that are withdrawn, and those of a session that ended. */
void attack_stale_keys(struct hostile *h)
{
    while (!hostile_over(h)) {
        struct raw owner, r;
        uint64_t value[2];
        struct schema_sq_desc reg = {
            .op = SCHEMA_OP_REG_MR,
            .reg_mr = {.length = BYTES,
                       .access = SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE | SCHEMA_RECORD_ATOMIC}};
        raw_open(h, &owner);
        raw_open(h, &r);
        memset(owner.arena, HOSTILE_STAIN, owner.arena_bytes);
        int status = raw_ask(&owner, &reg, value);
        if (status != 0)
            hostile_fail("registering own memory: %d", status);
        uint32_t vkey = (uint32_t)value[0];
        if (hostile_random(h) % 2 == 0) {
            struct schema_sq_desc dereg = {.op = SCHEMA_OP_DEREG_MR, .dereg_mr = {.vkey = vkey}};
            status = raw_ask(&owner, &dereg, NULL);
            if (status != 0)
                hostile_fail("withdrawing a region: %d", status);
            (void)guess(h, &r, vkey, 0, BYTES);
            raw_close(&owner);
        } else {
            raw_close(&owner);
            usleep(300000); /* its end has no answer to wait for: longer than the lease */
            (void)guess(h, &r, vkey, 0, BYTES);
        }
        raw_close(&r);
    }
}
