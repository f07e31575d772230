/* SPDX-License-Identifier: Apache-2.0 */
/* A sender's agent that lies about where its worker's large message is: what it says names memory
 * that is not there, or that nobody may READ. Its own message is what fails; who uses the same
 * queue pairs hears nothing of it. */
#include <string.h>

#include "../../check_main.h"
#include "base/random.h"
#include "lane_state.h"
#include "message_state.h" /* before a w that they would hide */

#include "message_pair.h"
#include "world_rc.h"

enum { LARGE = SCHEMA_MESSAGE_MOST + 1, LIES = 8, SENDS = 40, OTHERS = 2 };

static struct base_prng prng;
static uint32_t lies, unwritable_vkey;
static bool is_liar;

void __real_schema_parts_write(const struct schema_part *parts, uint32_t count, void *out);
void __wrap_schema_parts_write(const struct schema_part *parts, uint32_t count, void *out);

static void spoil(struct schema_part *p)
{
    const uint64_t random = base_prng_next(&prng);
    switch (random % LIES) {
    case 0:
        p->vkey = (uint32_t)(random >> 32);
        break;
    case 1:
        p->vkey = unwritable_vkey; /* which nobody may READ */
        p->addr = 0x10000;
        break;
    case 2:
        p->addr = UINT64_MAX - p->length;
        break;
    case 3:
        p->addr = WORLD_ARENA - p->length + 1;
        break;
    case 4:
        p->addr = random;
        break;
    case 5:
        p->length = 0;
        break;
    case 6:
        p->length = UINT32_MAX;
        break;
    case 7:
        p->length--;
        break;
    }
}

void __wrap_schema_parts_write(const struct schema_part *parts, uint32_t count, void *out)
{
    struct schema_part said[SCHEMA_PARTS_MOST];
    memcpy(said, parts, count * sizeof parts[0]);
    if (is_liar && base_prng_next(&prng) % 4 != 0) {
        spoil(&said[base_prng_next(&prng) % count]);
        lies++;
    }
    __real_schema_parts_write(said, count, out);
}

/* Its raises say that they are the next of this stream. */
static const struct stream_receiver *intruded;

void __real_schema_message_write(const struct schema_message *m, void *out);
void __wrap_schema_message_write(const struct schema_message *m, void *out);

void __wrap_schema_message_write(const struct schema_message *m, void *out)
{
    struct schema_message said = *m;
    if (intruded != NULL && m->kind == SCHEMA_MESSAGE_TO_COUNTER) {
        said.stream = intruded->name;
        said.number = intruded->in.next + intruded->reads;
        lies++;
    }
    __real_schema_message_write(&said, out);
}

static struct world_worker owner, honest;
static uint32_t vkey;

/* Of another tenant, by the queue pairs of the same two lanes. */
static void begin_honest(void)
{
    world_attach(&w, &owner, 0, 1, OTHERS);
    world_attach(&w, &honest, 1, 1, OTHERS);
    ck_assert_int_eq(world_connect(&w, &honest, 0, 0), 0);
    vkey = world_register(&w, &owner, 0, 4096, SCHEMA_RECORD_READ);
    ck_assert_uint_ne(vkey, 0);
    memset(owner.arena.addr, 0x5a, 4096);
}

static void read_honestly(uint64_t wr_id)
{
    *memory_of(&honest, 100) = 0;
    const struct schema_cqe e =
        world_do(&w, &honest, world_rw(SCHEMA_OP_READ, wr_id, 100, 64, vkey, 0), PATIENCE);
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(e.wr_id, wr_id);
    ck_assert_uint_eq(*memory_of(&honest, 100), 0x5a);
}

static uint32_t count_streams_that_are_read(void)
{
    const struct exchange *x = &w.node[1].lane->messages->exchange;
    uint32_t n = 0;
    for (uint32_t i = 0; i < x->config.receivers; i++)
        n += x->receiver[i].reads;
    return n;
}

/* True: it arrived, as its worker has sent it. */
static bool send_one(uint64_t wr_id)
{
    struct schema_cqe e;
    struct schema_cqe_sender from;
    memset(memory_of(&receiver, 0), 0, LARGE);
    post(&sender, world_message(SCHEMA_OP_SEND, wr_id, 7, LARGE));
    bool ended = false;
    for (int i = 0; i < 100 && !ended; i++) {
        read_honestly(i);
        ended = world_poll(&w, &sender, &e, 1000);
    }
    ck_assert(ended);
    ck_assert_uint_eq(e.wr_id, wr_id);
    if (e.status != IBV_WC_SUCCESS) { /* the receive is the next one's */
        ck_assert(!world_poll(&w, &receiver, &e, 10));
        ck_assert_int_eq(world_connect(&w, &sender, 0, 1), 0);
        world_send_to(&sender, 0, SCHEMA_SEND_TO_PORT, PORT);
        return false;
    }
    ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(e.byte_len, LARGE);
    ck_assert_mem_eq(memory_of(&receiver, 0), memory_of(&sender, 7), LARGE);
    post_receive(wr_id, 0, LARGE);
    return true;
}

START_TEST(who_says_where_no_message_is_harms_nobody_else)
{
    uint32_t arrived = 0;
    begin();
    begin_honest();
    base_prng_seed(&prng, 1);
    for (uint32_t i = 0; i < LARGE + 7; i++)
        *memory_of(&sender, i) = (uint8_t)(i * 7 + i / 256 + 1);
    unwritable_vkey = world_register(&w, &sender, 0, LARGE, SCHEMA_RECORD_WRITE);
    post_receive(0, 0, LARGE);
    is_liar = true;
    for (uint32_t i = 1; i <= SENDS; i++)
        arrived += send_one(i);
    is_liar = false;
    ck_assert_uint_gt(lies, SENDS);
    ck_assert_uint_gt(arrived, 0);
    ck_assert_uint_lt(arrived, SENDS);
    ck_assert(send_one(SENDS + 1));
    ck_assert_uint_eq(world_stats(&w, 1).qp_broken, 0);
    ck_assert_uint_eq(world_stats(&w, 1).wrong_keys, 0);
    ck_assert_uint_eq(count_streams_that_are_read(), 0);
    ck_assert_ptr_null(TAILQ_FIRST(&w.node[1].lane->messages->large_used));
    world_detach(&w, &honest);
    world_detach(&w, &owner);
    end();
}
END_TEST

static const struct stream_receiver *find_read(void)
{
    const struct exchange *x = &w.node[1].lane->messages->exchange;
    for (uint32_t i = 0; i < x->config.receivers; i++)
        if (x->receiver[i].reads > 0)
            return &x->receiver[i];
    return NULL;
}

/* It would be taken in the place of the large one, which then never came. */
START_TEST(a_raise_in_the_stream_of_a_large_message_that_is_read_raises_nothing)
{
    const uint32_t cut = world_cut_bytes;
    struct schema_reply counter;
    struct schema_cqe e;
    struct schema_cqe_sender from;
    world_cut_bytes = 8192;
    begin();
    ck_assert_int_eq(
        world_ask(&w, &receiver, (struct schema_sq_desc){.op = SCHEMA_OP_COUNTER_NEW}, &counter),
        0);
    ck_assert_int_eq(world_connect(&w, &sender, 1, 1), 0);
    struct schema_sq_desc to = {.op = SCHEMA_OP_SEND_TO,
                                .slots = 1,
                                .vqp = 1,
                                .send_to = {.kind = SCHEMA_SEND_TO_COUNTER,
                                            .to = counter.value[0],
                                            .secret = counter.value[1]}};
    world_post(&sender, &to);
    for (uint32_t i = 0; i < LARGE; i++)
        *memory_of(&sender, i) = (uint8_t)(i * 7 + i / 256 + 1);
    post_receive(1, 0, LARGE);
    post(&sender, world_message(SCHEMA_OP_SEND, 1, 0, LARGE));
    lies = 0;
    for (int i = 0; find_read() == NULL && i < PATIENCE; i++)
        world_run(&w, 1);
    intruded = find_read();
    ck_assert_ptr_nonnull(intruded);
    const uint64_t strays = world_stats(&w, 1).messages_received;
    struct schema_sq_desc raise = world_message(SCHEMA_OP_SEND, 2, 0, 0);
    raise.vqp = 1;
    post(&sender, raise);
    for (int i = 0; lies == 0 && i < PATIENCE; i++)
        world_run(&w, 1);
    ck_assert_uint_gt(lies, 0);
    ck_assert_uint_gt(intruded->reads, 0);
    ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(e.byte_len, LARGE);
    ck_assert_mem_eq(memory_of(&receiver, 0), memory_of(&sender, 0), LARGE);
    intruded = NULL;
    ck_assert_uint_eq(world_stats(&w, 1).messages_received - strays, 1);
    end();
    world_cut_bytes = cut;
}
END_TEST

#define TESTS(T)                                                                                   \
    T(who_says_where_no_message_is_harms_nobody_else)                                              \
    T(a_raise_in_the_stream_of_a_large_message_that_is_read_raises_nothing)
KEDGE_CHECK_MAIN("agent.lane.large_liars", TESTS)
