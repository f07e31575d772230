/* SPDX-License-Identifier: Apache-2.0 */
/* Fault injection as a layer over any provider: errors, delays, losses and what a device may lack
 * or do otherwise, by a seeded plan.
 *
 * The layer owns no randomness: the plan holds the seed, and the same plan over the same calls
 * gives the same faults; and a clock for packets that are late alone, which a plan can replace.
 * Rates are per million, 0 = never. */
#ifndef FABRIC_FAULT_H
#define FABRIC_FAULT_H

#include "fabric/fabric.h"

enum { FAULT_PATH = 64 };

struct fault_plan {
    uint64_t seed;
    uint32_t post_error_ppm;       /* post_send fails with -ENOMEM before anything is posted */
    uint32_t completion_error_ppm; /* a request completes with `status` and its queue pair goes to
                                    * ERR; it was not executed */
    enum ibv_wc_status status;     /* which; 0: IBV_WC_RETRY_EXC_ERR */
    /* A request is executed, and perhaps some behind it to the same target; the answers are lost,
     * so that it ends with RETRY_EXC, and its queue pair goes to ERR. With a plan that the layer is
     * opened with and that has this, or a cut. */
    uint32_t answer_loss_ppm;
    /* A READ or WRITE is carried out in part, up to one of its pieces if it has several, and fails
     * there, with `status` (0: IBV_WC_REM_OP_ERR). Likewise with a plan that the layer is opened
     * with and that has this. */
    uint32_t torn_ppm;
    uint32_t delay_ppm; /* a completion is withheld for `delay_polls` polls, and with it those
                         * behind it of its queue pair: others pass */
    uint32_t delay_polls;
    uint32_t loss_ppm;          /* a UD SEND is completed and dropped */
    uint32_t control_error_ppm; /* a control operation fails with -EIO; half of a queue pair's
                                 * changes of state were carried out, as when a command's answer
                                 * is lost */
    uint32_t fence_error_ppm;   /* a QUIESCE_MR does */
    uint32_t destroy_error_ppm; /* what frees, destroys or deregisters does: the object stays */
    enum ibv_mtu mtu; /* of the path, when it is less than the port's: the port says so when it is
                       * asked, and what is longer fails (RETRY_EXC) on queue pairs that were
                       * connected with more; 0: as the inner provider has it */
    enum ibv_mtu hop; /* likewise, of something on the way that nobody tells of; 0: none */
    /* No answer comes from this GID: datagrams to it are lost, other requests complete with
     * RETRY_EXC, executed or not, as with answer_loss; while that file is there, if one is
     * named. */
    bool cuts;
    uint8_t cut[16];
    char cut_while[FAULT_PATH];
    /* With a cut: of that GID alone what leads there by a handle or connection that was made under
     * an earlier plan. What is made since arrives: another router, or the node itself with another
     * LID or hardware address, which a handle does not learn once it is made. */
    bool moved;
    /* P_Keys are so many places further behind in the port's table than the inner provider has
     * them, or are not in it at all: what a queue pair sends that was given another place in INIT
     * is lost (RETRY_EXC). An event says so when a plan changes it. */
    uint16_t pkey_moved;
    bool pkey_gone;
    uint32_t refuse_ppm; /* post_send refuses a request for itself (-EINVAL), once */
    /* The device's clock beside the host's: it gains so many millionths (a host's clock that is
     * slow), or loses them; and once, so long after the layer was opened, it goes so far ahead, as
     * when the host was stopped for that time. Of the plan that the layer is opened with. */
    int32_t clock_drift_ppm;
    uint64_t clock_jump_ns, clock_jump_after_ns;
    bool no_clock; /* the device has none */
    bool picky;    /* post_send refuses (-EINVAL, each time) what some device does: a length of 0, a
                    * piece of length 0, more than max_msg_size, atomics that are not aligned, and
                    * atomics and fences that the device does not have */
    /* Not 0: packets of a former life of an RC queue pair or DC initiator come in for so long after
     * its RESET, and an acknowledgement whose number falls in the present life completes a request
     * that was not executed. Of the plan that the layer is opened with: caps.time_wait_ns says it.
     */
    uint64_t packet_life_ns;
    bool numbers_return; /* with that: a new queue pair has the number of one that is gone, of the
                          * process before this one or of this one's, of whose packets nobody knows
                          * the numbers */
    const uint64_t *now_ns; /* the time for that, borrowed; NULL: base_clock_ns() */
    uint32_t max_objects;   /* creating more than so many fails with -EAGAIN, as an rdma cgroup's
                             * limit does; completion channels are none; 0: no limit */
    uint64_t register_ns;   /* a registration takes so long, one after another, as pinning does */
    /* Not 0: so long after the layer was opened the device is removed. Control operations fail with
     * -EIO from then on, but destructions: some kinds of these succeed still, by the seed, and a
     * channel with a completion queue that could not be destroyed is busy (-EBUSY). Requests are
     * refused with -EIO or taken and never heard of; of what has completed some is polled, then
     * nothing more; and up to 100 ms later one event says so. */
    uint64_t removed_ns;
    char removed_when[FAULT_PATH]; /* likewise, once that file is there; "": none. Of the plan
                                    * that the layer is opened with. */
    char hang_while[FAULT_PATH];   /* control operations that are submitted while that file is there
                                    * are not begun before it has gone, nor is any behind them, and
                                    * fab_qp_state() does not return; "": they are */
    /* Each time that this file is made DC targets break: nothing answers what is sent to those that
     * there are, and no event says so, as of mlx5's. Those that are made since work. It is looked
     * for in fab_run(). "": they do not. */
    char dct_silent_when[FAULT_PATH];
    uint64_t drain_ns; /* destroying a DC target takes up to twice as long, one after another,
                        * as one does whose peers are slow */
    /* What the device does not have. Of the plan that the layer is opened with. */
    bool no_deadlines, no_atomics, no_fences;
    bool no_dc_atomics; /* over DC alone */
    bool errors_first;  /* an error is completed in the name of the oldest request of which nothing
                         * was said, and all from that on are flushed (caps.names_culprit) */
    bool less_inline;   /* it takes max_inline bytes, where the inner one takes more */
    uint32_t max_inline;
    uint32_t max_sge; /* 0: as the inner one */
    uint32_t timeout; /* its own, whatever queue pairs are given, as irdma has; 0: as they are */
    /* RESET is final for RC and UD queue pairs, new ones too: INIT is refused (-EINVAL) then, as
     * irdma does. */
    bool resets_are_final;
    /* So many of the queue pairs that are put to RESET after they were in RTR refuse that and all
     * other states but ERR, for ever (-EIO); and half of those the first try to destroy them. */
    uint32_t stuck_ppm;
};

/* Reads a plan as an operator writes it: "loss=5%, seed=7, completion_error=0.01%,
 * deadlines=off"; the shares are loss, completion_error, answer_loss, torn, post_error, refuse,
 * control_error, fence_error, destroy_error, stuck; and picky=on, deadlines=off, atomics=off,
 * dc_atomics=off, fences=off, errors=first, reset=final, inline=BYTES, sge=NUMBER, objects=NUMBER,
 * mtu=512, hop=512, cut=GID, cut_while=PATH, packet_life=MS, register=MS, drain=MS, timeout=NUMBER,
 * removed=MS, removed_when=PATH, hang_while=PATH, dct_silent_when=PATH, clock=off, clock_drift=-2%,
 * clock_jump=MS and clock_jump_after=MS. 0, or -EINVAL and what it must be. */
int fault_plan_parse(const char *text, struct fault_plan *out, struct base_errbuf *must);

/* Wraps inner, which the layer then owns (closing the layer closes it). The plan is copied.
 * -ENOMEM. */
int fault_open(struct fab *inner, const struct fault_plan *plan, struct fab **out);
/* Replaces the plan, its seed included. On the thread of the data path. */
void fault_set_plan(struct fab *fab, const struct fault_plan *plan);
/* How many faults of all kinds were injected so far. */
uint64_t fault_count(const struct fab *fab);

#endif
