/* SPDX-License-Identifier: Apache-2.0 */
/* How a worker sleeps until there is room in its ring (schema/wake.h), and how the lane knows that
 * it may: by how full the ring was, since who has room does not sleep for it. The lane reads the
 * tail, takes slots, publishes the head, and looks at the worker's flag only where the ring may
 * have been too full for a request, by the oldest head that the worker can have seen. The worker's
 * doorbell is another model (doorbell.pml): here the lane looks whenever there is something.
 *
 * Held to this are await_room(), client_sleep_for(), lane_session_poll() and
 * lane_sessions_publish(). */
#define WORKER  0
#define LANE    1
#define THREADS 2

#define SQ_TAIL   0 /* the worker's */
#define WANT_WAKE 1 /* the worker's: for so many free slots */
#define SQ_HEAD   2 /* the lane's */
#define WAKE      3 /* the futex's word: the lane adds 1 */
#define VARIABLES 4

#define PLANT_WORKER_BARRIER 1 /* the worker has no barrier between its flag and its last look */
#define PLANT_WORKER_LOOK    2 /* it does not look again */
#define PLANT_LANE_BARRIER   3 /* the lane has none between the head and the flag */
#define PLANT_LANE_TAKEN     4 /* it looks where what it finds fills the ring, whatever it took */
#define PLANT_LANE_FULL      5 /* it looks where no slot was free */
#define PLANT_LANE_MORE      6 /* it wakes who waits when there is one more than that */

#include "store_buffers.pml"

#define SLOTS   4
#define MOST    2 /* of a request */
#define AWAITED 2 /* free slots, of who sleeps */
#define KEPT    (SLOTS - AWAITED)
#define TOTAL   8 /* what the worker writes */

bool waits; /* the worker, in the kernel */

inline wait_for_word() {
    atomic {
        waits = memory[WAKE] == seen;
        seen = 0
    };
    !waits
}

/* Whether there is room for what it has to say, into `ready`. */
inline look() {
    load(WORKER, SQ_HEAD, found);
    atomic { ready = SLOTS - (tail - found) >= slots; found = 0 }
}

inline sleep() {
    load(WORKER, WAKE, seen);
    store(WORKER, WANT_WAKE, AWAITED);
    barrier_unless(PLANT_WORKER_BARRIER, WORKER);
    if
    :: planted != PLANT_WORKER_LOOK -> look()
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
    byte tail, slots, seen, found;
    bool ready;
    do
    :: tail == TOTAL -> break
    :: else ->
        if
        :: slots == 0 && tail + 1 < TOTAL -> slots = MOST
        :: slots == 0 -> slots = 1
        :: else
        fi;
        look();
        if
        :: ready ->
            atomic { tail = tail + slots; slots = 0; ready = false };
            store(WORKER, SQ_TAIL, tail)
        :: else -> sleep()
        fi
    od
}

/* As many of those that wait as it likes: windows, quotas and turns hold the others back. */
inline take() {
    if
    :: taken = 1
    :: tail - head > 1 -> taken = 2
    :: tail - head > 2 -> taken = tail - head
    fi;
    atomic { head = head + taken; taken = 0 }
}

proctype lane() {
    byte head, told, tail, taken, flag;
    bool may_wait;
end:
    do
    :: memory[SQ_TAIL] != head ->
        load(LANE, SQ_TAIL, tail);
        if
        :: planted == PLANT_LANE_TAKEN -> may_wait = tail - head > KEPT
        :: planted == PLANT_LANE_FULL -> may_wait = tail - told == SLOTS
        :: else -> may_wait = tail - told > KEPT
        fi;
        take();
        store(LANE, SQ_HEAD, head);
        if
        :: may_wait ->
            barrier_unless(PLANT_LANE_BARRIER, LANE);
            load(LANE, WANT_WAKE, flag);
            load(LANE, SQ_TAIL, tail);
            if
            :: flag != 0 && SLOTS - (tail - head) >= flag + (planted == PLANT_LANE_MORE -> 1 : 0) ->
                add(LANE, WAKE);
                waits = false
            :: else
            fi;
            told = head
        :: else
        fi;
        atomic { flag = 0; tail = 0; may_wait = false }
    od
}

init {
    atomic {
        choose_plant();
        run drain(WORKER);
        run drain(LANE);
        run worker();
        run lane()
    }
}
