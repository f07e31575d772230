/* SPDX-License-Identifier: Apache-2.0 */
/* An agent that says of receives what cannot be: its session ends, and nothing else happens. */
#include "base/random.h"
#include "message_fixture.h"

struct nonsense {
    struct schema_cqe c;
    bool sender;
};

/* A receive that is posted, one that was popped, and one of another queue pair. */
struct posted {
    struct kedge_vqp *other;
    uint64_t cookie, over, others;
};

static struct posted post_some(struct fixture *f)
{
    struct posted p;
    setup(f);
    bind_port(f);
    ck_assert_int_eq(kedge_vqp_create(f->s, NULL, &p.other), 0);
    p.over = receive(f, f->q, 1, 64);
    message(f, f->q, p.over, 77);
    (void)pop_one(f);
    p.cookie = receive(f, f->q, 2, 64);
    p.others = receive(f, p.other, 3, 64);
    return p;
}

static struct nonsense nonsense_of(const struct fixture *f, const struct posted *p, int which)
{
    struct nonsense n = {.c = received(f->q, p->cookie, 64), .sender = true};
    switch (which) {
    case 0:
        n.c.byte_len = 65; /* more than was posted */
        break;
    case 1:
        n.c.byte_len = UINT32_MAX;
        break;
    case 2:
        n.c.wr_id = p->cookie + 2; /* a place that was never used */
        break;
    case 3:
        n.c.wr_id = UINT64_MAX;
        break;
    case 4:
        n.c.wr_id = p->over; /* the same place, which is another receive's by now */
        break;
    case 5:
        n.c.wr_id = p->others;
        break;
    case 6:
        n.c.extra = 0; /* a message from nobody */
        n.sender = false;
        break;
    case 7:
        n.sender = false; /* the next place is not there */
        break;
    case 8:
        n.c.opcode = IBV_WC_RDMA_READ; /* a request's, with a sender */
        n.c.wr_id = 5;
        break;
    default:
        n.c.opcode = 255;
        n.c.wr_id = 5;
        n.c.status = IBV_WC_WR_FLUSH_ERR;
        n.c.extra = 0;
        n.sender = false;
        break;
    }
    return n;
}
enum { NONSENSES = 10 };

static int ask(struct fixture *f, int how)
{
    struct kedge_msg msg[4];
    struct ibv_wc wc[4];
    if (how == 0)
        return kedge_pop_msgs(f->s, 4, msg);
    return how == 1 ? kedge_poll(f->s, 4, wc) : kedge_wait(f->s, 300);
}

START_TEST(what_an_agent_says_of_receives_that_cannot_be_ends_the_session_and_touches_nothing)
{
    for (int which = 0; which < NONSENSES; which++) {
        for (int how = 0; how < 3; how++) {
            struct fixture f;
            const struct posted p = post_some(&f);
            const struct nonsense n = nonsense_of(&f, &p, which);
            const struct schema_cqe_sender from = sender_of(peer_gid, 77);
            put(&f, n.c, n.sender ? &from : NULL);
            ck_assert_msg(ask(&f, how) == -EPROTO, "%d, %d", which, how);
            ck_assert_ptr_nonnull(strstr(kedge_last_error(), "the agent says what makes no sense"));
            for (int again = 0; again < 3; again++)
                ck_assert_int_eq(ask(&f, again), -EPROTO);
            ck_assert_int_eq(kedge_session_status(f.s), -EPROTO);
            teardown(&f);
        }
    }
}
END_TEST

START_TEST(a_receives_completion_where_none_was_ever_posted_ends_the_session)
{
    struct fixture f;
    struct ibv_wc wc;
    setup(&f);
    ck_assert_int_eq(kedge_connect(f.q, peer_gid), 0);
    message(&f, f.q, 0, 77);
    ck_assert_int_eq(kedge_poll(f.s, 1, &wc), -EPROTO);
    teardown(&f);
}
END_TEST

/* Messages of before are still had. */
START_TEST(what_came_before_an_end_is_popped_first)
{
    struct fixture f;
    struct kedge_msg msg;
    setup(&f);
    bind_port(&f);
    message(&f, f.q, receive(&f, f.q, 1, 64), 77);
    atomic_store(&f.a.ro->ended, SCHEMA_REASON_NODE_DRAINED);
    ck_assert_int_eq(kedge_pop_msgs(f.s, 1, &msg), 1);
    ck_assert_uint_eq(msg.wc.wr_id, 1);
    ck_assert_int_eq(kedge_pop_msgs(f.s, 1, &msg), -EPIPE);
    teardown(&f);
}
END_TEST

START_TEST(pages_that_are_taken_back_say_nothing_of_messages)
{
    struct fixture f;
    struct kedge_msg msg;
    setup(&f);
    bind_port(&f);
    (void)receive(&f, f.q, 1, 64);
    atomic_store(&f.a.ro->cq_tail, atomic_load(&f.a.ro->cq_tail) + 2); /* of zeros */
    atomic_store(&f.a.ro->magic, 0);
    ck_assert_int_eq(kedge_pop_msgs(f.s, 1, &msg), -EPIPE);
    ck_assert_ptr_nonnull(strstr(kedge_last_error(), "closed the session or is gone"));
    teardown(&f);
    /* Of a message that is there whole it cannot be told that it is. */
    setup(&f);
    bind_port(&f);
    message(&f, f.q, receive(&f, f.q, 1, 64), 77);
    atomic_store(&f.a.ro->magic, 0);
    ck_assert_int_eq(kedge_pop_msgs(f.s, 1, &msg), -EPIPE);
    teardown(&f);
}
END_TEST

/* Whatever stands in the ring: a session that goes on has what was posted, and nothing else. */
START_TEST(a_ring_of_rubbish_harms_nobody_but_its_session)
{
    struct base_prng random;
    base_prng_seed(&random, 16);
    for (int round = 0; round < 200; round++) {
        struct fixture f;
        const struct posted p = post_some(&f);
        const uint64_t cookies[] = {p.cookie, p.others, p.over, base_prng_next(&random)};
        const struct kedge_vqp *q[] = {f.q, p.other};
        int had = 0;
        for (int i = 0; i < 4; i++) {
            struct schema_cqe c =
                received(q[base_prng_next(&random) % 2], cookies[base_prng_next(&random) % 4],
                         (uint32_t)(base_prng_next(&random) % 80));
            struct schema_cqe_sender from;
            for (size_t at = 0; at < sizeof from; at += 8) {
                const uint64_t word = base_prng_next(&random);
                memcpy((uint8_t *)&from + at, &word, 8);
            }
            c.status = (uint8_t)(base_prng_next(&random) % 3);
            c.extra = base_prng_next(&random) % 4 != 0;
            c.with_imm = (uint8_t)base_prng_next(&random);
            put(&f, c, c.extra != 0 ? &from : NULL);
            const int status = ask(&f, (int)(base_prng_next(&random) % 2));
            ck_assert((status >= 0 && status <= 2) || status == -EPROTO);
            had += status > 0 ? status : 0;
        }
        ck_assert_int_le(had, 2);
        teardown(&f);
    }
}
END_TEST

#define TESTS(T)                                                                                   \
    T(what_an_agent_says_of_receives_that_cannot_be_ends_the_session_and_touches_nothing)          \
    T(a_receives_completion_where_none_was_ever_posted_ends_the_session)                           \
    T(what_came_before_an_end_is_popped_first)                                                     \
    T(pages_that_are_taken_back_say_nothing_of_messages)                                           \
    T(a_ring_of_rubbish_harms_nobody_but_its_session)
KEDGE_CHECK_MAIN("libclient receive nonsense", TESTS)
