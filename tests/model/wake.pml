/* SPDX-License-Identifier: Apache-2.0 */
/* How a worker sleeps, and who wakes it (docs/lane.md#sleeping): the lane, which publishes
 * completions and wakes later, since wakes are rationed; and the control thread, which says that the
 * node drains. The futex is the kernel's: that the word is what the worker has seen, and that it
 * waits, is one step. The worker's own look after a tenth of a second is not modelled, so that what
 * it would repair shows: a worker that sleeps for ever, which spin reports as an invalid end state.
 *
 * It waits for one completion or for all that it thinks are out, each time as it likes. For several
 * it is woken when so many are there, when one of them failed, when none is out any more, and for
 * what else there is to hear. What is out may be as many as come, one less than it thinks, or one
 * more, that never completes; the last that comes may fail, or come when that was heard.
 *
 * It says on which value of the word it sleeps. Whoever wakes adds to that: a lane that finds
 * another value has nothing to do, since the worker is woken, or will be, and has not run yet.
 *
 * Held to this are client_sleep_for(), client_sleep_once(), kedge_wait(), kedge_wait_many(),
 * lane_sessions_publish(), wake_some() and agent_sessions_drain(). */
#define WORKER  0
#define LANE    1
#define CONTROL 2
#define THREADS 3

#define CQ_TAIL   0 /* the lane's */
#define WANT_WAKE 1 /* the worker's */
#define WAKE      2 /* the futex's word: whoever wakes adds 1 */
#define DRAINS    3 /* the control thread's */
#define CQ_HEAD   4 /* the worker's: what it has taken */
#define SLEEPS_ON 5 /* the worker's: 1 more than the word on which it sleeps */
#define VARIABLES 6

#define PLANT_WORKER_BARRIER  1 /* the worker has no barrier between its flag and its last look */
#define PLANT_WORKER_LOOK     2 /* it does not look again */
#define PLANT_WORKER_FLAG     3 /* its flag is set after that look */
#define PLANT_WORKER_WORD     4 /* the word that it waits for is read after that look */
#define PLANT_LANE_BARRIER    5 /* the lane has none between what it publishes and the flag */
#define PLANT_LANE_ADD        6 /* it wakes without adding to the word */
#define PLANT_LANE_ONCE       7 /* it wakes once, whoever sleeps anew */
#define PLANT_CONTROL_BARRIER 8 /* the control thread has none */
#define PLANT_NOTICE_LOOK     9 /* the last look is at completions alone */
#define PLANT_LANE_COUNT     10 /* for several it wakes when there is one more than these */
#define PLANT_LANE_NONE      11 /* it does not wake when none is out any more */
#define PLANT_LANE_FAILED    12 /* nor when one has failed */
#define PLANT_LANE_TURN      13 /* when its turn comes it looks once more what is wanted */
#define PLANT_CONTROL_MANY   14 /* the control thread wakes nobody who waits for several */
#define PLANT_WORKER_ON      15 /* the word on which it sleeps is said after the last look */
#define PLANT_LANE_ON        16 /* the lane adds to the word of who was woken, and wakes him not */
#define PLANT_LANE_BEFORE    17 /* it compares with the word as it was when it last woke */

#include "store_buffers.pml"

#define COMPLETIONS 2

bool waits; /* the worker, in the kernel */
bool stays; /* one more is out for ever */
bool fails; /* the last one that comes */
bool more;  /* it waits for one more than there will be */
bool late;  /* the last one comes when the worker has heard that the node drains */
bool heard; /* it has */

inline wake_worker() {
    waits = false
}

/* Whether there is what it waits for, into `ready`. */
inline look(also_notices) {
    load(WORKER, CQ_TAIL, found);
    atomic {
        ready = found - head >= want ||
                (found != head && found == COMPLETIONS && (fails || !stays));
        found = 0
    };
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
    :: planted != PLANT_WORKER_ON -> store(WORKER, SLEEPS_ON, seen + 1)
    :: else
    fi;
    if
    :: planted != PLANT_WORKER_FLAG -> store(WORKER, WANT_WAKE, want)
    :: else
    fi;
    barrier_unless(PLANT_WORKER_BARRIER, WORKER);
    if
    :: planted != PLANT_WORKER_LOOK -> look(planted != PLANT_NOTICE_LOOK)
    :: else
    fi;
    if
    :: planted == PLANT_WORKER_WORD -> load(WORKER, WAKE, seen)
    :: planted == PLANT_WORKER_FLAG -> store(WORKER, WANT_WAKE, want); barrier(WORKER)
    :: planted == PLANT_WORKER_ON -> store(WORKER, SLEEPS_ON, seen + 1); barrier(WORKER)
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
    byte head, told, seen, found, want;
    bool ready;
    do
    :: head == COMPLETIONS && told == 1 -> break
    :: else ->
        load(WORKER, CQ_TAIL, found);
        atomic { ready = found != head; head = found; found = 0 };
        if
        :: ready -> store(WORKER, CQ_HEAD, head)
        :: else
        fi;
        load(WORKER, DRAINS, found);
        atomic { ready = ready || found != told; told = found; heard = told == 1; found = 0 };
        if
        :: ready -> ready = false
        :: else ->
            if
            :: want = 1
            :: head < COMPLETIONS -> want = COMPLETIONS - head + more
            fi;
            sleep();
            want = 0
        fi
    od
}

/* Whether there is what the worker sleeps for, which `flag` says, into `awaited`. */
inline judge(failed) {
    load(LANE, CQ_HEAD, taken);
    atomic {
        awaited = flag == 1 ||
                  (flag != 0 &&
                   (written - taken >= flag + (planted == PLANT_LANE_COUNT -> 1 : 0) ||
                    (written == COMPLETIONS && !stays && planted != PLANT_LANE_NONE) ||
                    (failed && planted != PLANT_LANE_FAILED)));
        taken = 0
    }
}

proctype lane() {
    byte written, flag, taken, woken, on, word, before;
    bool awaited, listed; /* to be woken, when its turn comes */
    do
    :: written < COMPLETIONS && (heard || !late || written + 1 < COMPLETIONS) ->
        written++;
        store(LANE, CQ_TAIL, written);
        barrier_unless(PLANT_LANE_BARRIER, LANE);
        load(LANE, WANT_WAKE, flag);
        judge(fails && written == COMPLETIONS);
        atomic { listed = listed || awaited; flag = 0; awaited = false }
    :: listed ->
        listed = false;
        load(LANE, WANT_WAKE, flag);
        load(LANE, SLEEPS_ON, on);
        load(LANE, WAKE, word);
        atomic {
            awaited = flag != 0 &&
                      (on == 0 || on == (planted == PLANT_LANE_BEFORE -> before : word) + 1)
        };
        if
        :: planted == PLANT_LANE_TURN -> judge(false)
        :: planted == PLANT_LANE_ON && flag != 0 && !awaited -> add(LANE, WAKE)
        :: else
        fi;
        if
        :: awaited && !(planted == PLANT_LANE_ONCE && woken > 0) ->
            if
            :: planted != PLANT_LANE_ADD -> add(LANE, WAKE)
            :: else
            fi;
            atomic { wake_worker(); woken = 1; before = word }
        :: else
        fi;
        atomic { flag = 0; awaited = false; on = 0; word = 0 }
    :: written == COMPLETIONS && !listed -> break
    od
}

proctype control() {
    byte flag;
    store(CONTROL, DRAINS, 1);
    barrier_unless(PLANT_CONTROL_BARRIER, CONTROL);
    load(CONTROL, WANT_WAKE, flag);
    if
    :: flag == 1 || (flag != 0 && planted != PLANT_CONTROL_MANY) ->
        add(CONTROL, WAKE);
        wake_worker()
    :: else
    fi
}

init {
    atomic {
        choose_plant();
        if
        :: more = true
        :: stays = true
        :: stays = true; late = true
        :: stays = true; more = true; fails = true
        fi;
        run drain(WORKER);
        run drain(LANE);
        run drain(CONTROL);
        run worker();
        run lane();
        run control()
    }
}
