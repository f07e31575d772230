/* SPDX-License-Identifier: Apache-2.0 */
/* How a worker sleeps, and who wakes it (docs/lane.md#sleeping): the lane, which publishes
 * completions and wakes later, since wakes are rationed; and the control thread, which says that the
 * node drains. The futex is the kernel's: that the word is what the worker has seen, and that it
 * waits, is one step. The worker's own look after a tenth of a second is not modelled, so that what
 * it would repair shows: a worker that sleeps for ever, which spin reports as an invalid end state.
 *
 * Held to this are client_sleep(), kedge_wait(), lane_sessions_publish(), wake_some() and
 * agent_sessions_drain(). */
#define WORKER  0
#define LANE    1
#define CONTROL 2
#define THREADS 3

#define CQ_TAIL   0 /* the lane's */
#define WANT_WAKE 1 /* the worker's */
#define WAKE      2 /* the futex's word: whoever wakes adds 1 */
#define DRAINS    3 /* the control thread's */
#define VARIABLES 4

#define PLANT_WORKER_BARRIER  1 /* the worker has no barrier between its flag and its last look */
#define PLANT_WORKER_LOOK     2 /* it does not look again */
#define PLANT_WORKER_FLAG     3 /* its flag is set after that look */
#define PLANT_WORKER_WORD     4 /* the word that it waits for is read after that look */
#define PLANT_LANE_BARRIER    5 /* the lane has none between what it publishes and the flag */
#define PLANT_LANE_ADD        6 /* it wakes without adding to the word */
#define PLANT_LANE_ONCE       7 /* it wakes once, whoever sleeps anew */
#define PLANT_CONTROL_BARRIER 8 /* the control thread has none */
#define PLANT_NOTICE_LOOK     9 /* the last look is at completions alone */

#include "store_buffers.pml"

#define COMPLETIONS 3

bool waits; /* the worker, in the kernel */

inline wake_worker() {
    waits = false
}

/* Whether there is anything to take, into `ready`. */
inline look(also_notices) {
    load(WORKER, CQ_TAIL, found);
    atomic { ready = found != head; found = 0 };
    if
    :: also_notices -> load(WORKER, DRAINS, found); atomic { ready = ready || found != told; found = 0 }
    :: else
    fi
}

inline wait_for_word() {
    atomic {
        waits = memory[WAKE] == seen;
        seen = 0
    };
    !waits
}

inline sleep() {
    if
    :: planted != PLANT_WORKER_WORD -> load(WORKER, WAKE, seen)
    :: else
    fi;
    if
    :: planted != PLANT_WORKER_FLAG -> store(WORKER, WANT_WAKE, 1)
    :: else
    fi;
    barrier_unless(PLANT_WORKER_BARRIER, WORKER);
    if
    :: planted != PLANT_WORKER_LOOK -> look(planted != PLANT_NOTICE_LOOK)
    :: else
    fi;
    if
    :: planted == PLANT_WORKER_WORD -> load(WORKER, WAKE, seen)
    :: planted == PLANT_WORKER_FLAG -> store(WORKER, WANT_WAKE, 1); barrier(WORKER)
    :: else
    fi;
    if
    :: !ready -> wait_for_word()
    :: else
    fi;
    atomic { ready = false; seen = 0 };
    store(WORKER, WANT_WAKE, 0)
}

proctype worker() {
    byte head, told, seen, found;
    bool ready;
    do
    :: head == COMPLETIONS && told == 1 -> break
    :: else ->
        load(WORKER, CQ_TAIL, found);
        atomic { ready = found != head; head = found; found = 0 };
        load(WORKER, DRAINS, found);
        atomic { ready = ready || found != told; told = found; found = 0 };
        if
        :: ready -> ready = false
        :: else -> sleep()
        fi
    od
}

proctype lane() {
    byte written, flag, woken;
    bool listed; /* to be woken, when its turn comes */
    do
    :: written < COMPLETIONS ->
        written++;
        store(LANE, CQ_TAIL, written);
        barrier_unless(PLANT_LANE_BARRIER, LANE);
        load(LANE, WANT_WAKE, flag);
        atomic { listed = listed || flag != 0; flag = 0 }
    :: listed ->
        listed = false;
        load(LANE, WANT_WAKE, flag);
        if
        :: flag != 0 && !(planted == PLANT_LANE_ONCE && woken > 0) ->
            if
            :: planted != PLANT_LANE_ADD -> add(LANE, WAKE)
            :: else
            fi;
            atomic { wake_worker(); woken = 1 }
        :: else
        fi;
        flag = 0
    :: written == COMPLETIONS && !listed -> break
    od
}

proctype control() {
    byte flag;
    store(CONTROL, DRAINS, 1);
    barrier_unless(PLANT_CONTROL_BARRIER, CONTROL);
    load(CONTROL, WANT_WAKE, flag);
    if
    :: flag != 0 -> add(CONTROL, WAKE); wake_worker()
    :: else
    fi
}

init {
    atomic {
        choose_plant();
        run drain(WORKER);
        run drain(LANE);
        run drain(CONTROL);
        run worker();
        run lane();
        run control()
    }
}
