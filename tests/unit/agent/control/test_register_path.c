/* SPDX-License-Identifier: Apache-2.0 */
/* The way to a metaserver leads elsewhere than its address says: it is resolved anew. */
#include "../../check_main.h"
#include "register_bed.h"
#include "register_private.h"

static void registered(void)
{
    answer(0);
    resolve();
    ck_assert_uint_eq(w.told, 1);
    test_world_advance(&w.world, RESOLVE_AGAIN_MS * BASE_NS_PER_MS);
}

/* Its MAC may be another, or a router's on the way, which a handle keeps. */
START_TEST(one_that_the_fabric_does_not_lead_to_is_resolved_anew)
{
    for (int by_proof = 0; by_proof < 2; by_proof++) {
        const struct registration *r = begin();
        registered();
        for (uint64_t i = 1; i <= 10; i++) {
            if (by_proof)
                agent_registrations_unreached(&w.agent, 0);
            else
                agent_registrations_note_failed(&w.pool, i);
        }
        const struct ibv_ah_attr wanted = w.resolving->ah.attr;
        ck_assert(fab_address_is_same(&wanted, &r->address));
        resolve();
        ck_assert_int_eq(r->state, REGISTRATION_DONE);
        ck_assert_ptr_eq(w.heard.ah, &w.ah[1]);
        agent_registrations_unreached(&w.agent, 0); /* not more often than some seconds */
        test_world_advance(&w.world, RESOLVE_AGAIN_MS * BASE_NS_PER_MS);
        agent_registrations_unreached(&w.agent, 0); /* nor while the lane has the former */
        ck_assert_ptr_null(w.resolving);
        give_back(&w.ah[0]);
        ck_assert_uint_eq(w.dropped, 1);
        agent_registrations_unreached(&w.agent, 0);
        resolve_with(-EHOSTUNREACH); /* nobody has that address now */
        ck_assert_ptr_eq(r->lane.ah, &w.ah[1]);
        ck_assert_int_eq(r->state, REGISTRATION_DONE);
        end();
    }
}
END_TEST

START_TEST(one_that_is_lost_while_it_is_resolved_anew_is_put_when_that_is_over)
{
    const struct registration *r = begin();
    registered();
    agent_registrations_unreached(&w.agent, 0);
    const uint32_t renewal = w.world.calls;
    agent_registrations_doubt(&w.agent, 0);
    wait_for_call(renewal + 1, "POST");
    answer_by(renewal, 403, "{}");
    ck_assert_int_eq(r->state, REGISTRATION_LOST);
    test_world_advance(&w.world, BACKOFF_MS * BASE_NS_PER_MS);
    ck_assert_int_eq(r->state, REGISTRATION_ASKING);
    const uint32_t put = w.world.calls;
    resolve();
    wait_for_call(put + 1, "PUT");
    answer_with(put, 200);
    ck_assert_int_eq(r->state, REGISTRATION_DONE);
    ck_assert_ptr_eq(w.heard.ah, &w.ah[1]);
    end();
}
END_TEST

/* The lane gives back what it was told of another one for, and nothing else. */
START_TEST(one_that_is_resolved_anew_while_it_is_lost_may_answer_from_another_address)
{
    const struct registration *r = begin();
    registered();
    agent_registrations_unreached(&w.agent, 0);
    const uint32_t renewal = w.world.calls;
    agent_registrations_doubt(&w.agent, 0);
    wait_for_call(renewal + 1, "POST");
    answer_by(renewal, 403, "{}");
    resolve();
    ck_assert_int_eq(r->state, REGISTRATION_LOST);
    ck_assert_uint_eq(w.told, 3); /* it is lost, then reached elsewhere */
    ck_assert_ptr_eq(w.heard.ah, &w.ah[1]);
    give_back(&w.ah[0]);
    const uint32_t put = w.world.calls;
    wait_for_call(put + 1, "PUT");
    w.lid = 7;
    answer_with(put, 200);
    resolve();
    ck_assert_int_eq(r->state, REGISTRATION_DONE);
    ck_assert_ptr_eq(w.heard.ah, &w.ah[2]);
    end();
}
END_TEST

START_TEST(one_that_is_resolved_anew_when_this_nodes_address_changes_takes_the_present_one)
{
    const struct registration *r = begin();
    registered();
    agent_registrations_unreached(&w.agent, 0);
    agent_registrations_readdress(&w.pool);
    resolve();
    ck_assert_uint_eq(w.dropped, 1);
    answer(w.world.calls - 1);
    resolve();
    ck_assert_int_eq(r->state, REGISTRATION_DONE);
    ck_assert_ptr_eq(w.heard.ah, &w.ah[2]);
    end();
}
END_TEST

/* The device does nothing by itself. */
static void keep_one(struct fab *fab, struct fab_ctl *ctl)
{
    (void)fab;
    ck_assert_ptr_null(w.raising);
    w.raising = ctl;
}

static void finish_one(enum fab_ctl_kind kind, int status)
{
    struct fab_ctl *ctl = w.raising;
    ck_assert_ptr_nonnull(ctl);
    ck_assert_int_eq(ctl->kind, kind);
    w.raising = NULL;
    ctl->status = status;
    if (status == 0 && kind == FAB_CREATE_QP)
        ctl->qp.x = &w.qp[1];
    ctl->done(ctl);
}

/* In a second the control side looks again. */
static void pass_a_second(void)
{
    w.world.now_ns += BASE_NS_PER_S;
    agent_table_initiators_tick(&w.pool);
}

START_TEST(over_rc_a_queue_pair_that_the_device_does_not_bring_back_is_made_anew)
{
    struct registration *r = begin_rc();
    w.ops.submit = keep_one;
    struct table_initiator *initiator = &r->initiator[1];
    initiator->state = INITIATOR_UP;
    agent_table_initiator_drop(initiator);
    for (int i = 0; i < 3; i++) {
        finish_one(FAB_MODIFY_QP, -EIO);
        ck_assert_ptr_null(w.raising);
        pass_a_second();
    }
    finish_one(FAB_DESTROY_QP, -EBUSY); /* nor does it take it back at once */
    pass_a_second();
    finish_one(FAB_DESTROY_QP, 0);
    finish_one(FAB_CREATE_QP, 0);
    finish_one(FAB_MODIFY_QP, 0);
    ck_assert_int_eq(initiator->state, INITIATOR_READY);
    initiator->state = INITIATOR_UP; /* the lane has the new one, which is put to RESET as any is */
    agent_table_initiator_drop(initiator);
    finish_one(FAB_MODIFY_QP, 0);
    finish_one(FAB_MODIFY_QP, 0);
    ck_assert_int_eq(initiator->state, INITIATOR_READY);
    end();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(one_that_the_fabric_does_not_lead_to_is_resolved_anew)                                       \
    T(one_that_is_lost_while_it_is_resolved_anew_is_put_when_that_is_over)                         \
    T(one_that_is_resolved_anew_while_it_is_lost_may_answer_from_another_address)                  \
    T(one_that_is_resolved_anew_when_this_nodes_address_changes_takes_the_present_one)             \
    T(over_rc_a_queue_pair_that_the_device_does_not_bring_back_is_made_anew)
KEDGE_CHECK_MAIN("agent.control.register_path", TESTS)
