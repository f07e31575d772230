/* SPDX-License-Identifier: Apache-2.0 */
/* How an entry of a submission ring says that it is there (schema/phase.h), in all orders of memory
 * that processors may have whose stores become seen in any order but that of a release (ARM's): so
 * also in those of x86. A completion ring is published likewise, but for the tail, which the worker
 * then does not need: the first entry says how many there are.
 *
 * The worker publishes requests of a slot or two, one or two of them together; behind a descriptor
 * stands what looks like a descriptor of either phase; and once it takes back what it has put and
 * not published. The lane takes as many as it likes, and goes to sleep when it likes. What it takes
 * must be published, seen whole, and begin where a request does; and nobody sleeps for ever while
 * there is something to take, which spin reports as an invalid end state.
 *
 * Held to this are schema_sq_publish(), client_ring_publish(), go_back(), intake_avail(),
 * session_waiting(), lane_session_take() and lane_session_sleep(). */
#define WORKER  0
#define LANE    1
#define THREADS 2

#define MOST_SLOTS 4

#define SQ_TAIL   0 /* the worker's */
#define SQ_HEAD   1 /* the lane's */
#define DOORBELL  2 /* likewise */
#define SLOTS     3 /* from there on: of each place what schema_sq_desc.slots says */
#define BODY      (SLOTS + MOST_SLOTS) /* and what else stands there: which index it was put for */
#define VARIABLES (BODY + MOST_SLOTS)

#define PLANT_NO_SCRUB      1  /* what stands where the next entry will be is left as it is */
#define PLANT_SCRUB_LATE    2  /* it is taken away when the first one is published already */
#define PLANT_MORE_TAIL     3  /* of several the tail is written behind the phase */
#define PLANT_PHASE_RELAXED 4  /* the phase may be seen before what stands in the entry */
#define PLANT_TAIL_RELAXED  5  /* the tail may */
#define PLANT_SLEEP_SLOT    6  /* who goes to sleep looks at the head's entry alone */
#define PLANT_AHEAD         7  /* the lane does not know that it may be ahead of the tail */
#define PLANT_SAME_PHASE    8  /* each round has the same phase */
#define PLANT_BODY_FIRST    9  /* the lane reads an entry before its phase */
#define PLANT_NO_MORE       10 /* several do not say that they are */
#define PLANT_BARRIER       11 /* the worker has no barrier before it looks at the doorbell */
#define PLANT_SLEEP_BARRIER 12 /* the lane has none between the doorbell and its last look */
#define PLANT_HEAD_EARLY    13 /* the lane says that it has taken what it still reads */

#define PHASE 4  /* of `slots`, from there on: 4 or 8 */
#define MORE  16 /* and from there on */

#define TOTAL     6 /* indices, at the most */
#define phase(index) \
    (planted == PLANT_SAME_PHASE -> 1 : 1 + ((index) / size) % 2)
#define is_phase(slots, index) (((slots) / PHASE) % 4 == phase(index))
#define place(index) ((index) % size)

byte planted; /* the error, by its number: 0, none */
byte memory[VARIABLES];
/* Stores that are not seen yet: variable, value, and whether it is a release. */
chan stores[THREADS] = [16] of { byte, byte, bit };

byte size, total;     /* of the ring; what the worker publishes */
byte kind[TOTAL + 2]; /* of each index: how many slots the request has that begins there, or 0 */
byte published;       /* before which index */
bool bell;            /* the session's eventfd was written */

inline store(thread, variable, value) {
    stores[thread]!variable,value,0
}

inline release(thread, variable, value) {
    stores[thread]!variable,value,1
}

inline release_unless(plant, thread, variable, value) {
    stores[thread]!variable,value,planted != plant
}

inline barrier_unless(plant, thread) {
    (planted == plant || empty(stores[thread]))
}

/* Any of those that wait, but of each variable the oldest, and a release behind all others. No
 * variable has both kinds in a buffer. */
#define leave(v) d_step { \
        stores[thread]?[v,_,_] || stores[thread]??[v,_,0] -> \
        stores[thread]??v,value,is_release; \
        memory[v] = value; \
        value = 0; \
        is_release = 0 \
    }

proctype drain(byte thread) {
    byte value;
    bit is_release;
end:
    do
    :: leave(SQ_TAIL)
    :: leave(SQ_HEAD)
    :: leave(DOORBELL)
    :: leave(3)
    :: leave(4)
    :: leave(5)
    :: leave(6)
    :: leave(7)
    :: leave(8)
    :: leave(9)
    :: leave(10)
    od
}

/* ---- the worker; its variables are worker()'s own */

inline put_slot(index, slots, whole) {
    shadow[place(index)] = slots;
    kind[index] = whole;
    store(WORKER, SLOTS + place(index), slots);
    store(WORKER, BODY + place(index), (index) + 1)
}

/* `n` slots, for which there is room. */
inline put() {
    put_slot(tail, n, n);
    if
    :: n == 2 ->
        junk = 1 + PHASE * phase(tail + 1 + (goes_back -> 0 : size));
        put_slot(tail + 1, junk, 0)
    :: else
    fi;
    tail = tail + n;
    n = 0;
    junk = 0
}

inline choose_slots() {
    if
    :: n = 1
    :: tail + 2 <= total && size - (tail - memory[SQ_HEAD]) >= 2 -> n = 2
    fi
}

inline scrub() {
    if
    :: is_phase(shadow[place(tail)], tail) ->
        shadow[place(tail)] = 0;
        store(WORKER, SLOTS + place(tail), 0)
    :: else
    fi
}

inline publish() {
    if
    :: planted != PLANT_NO_SCRUB && planted != PLANT_SCRUB_LATE -> scrub()
    :: else
    fi;
    several = tail - shown > 1;
    shadow[place(shown)] = shadow[place(shown)] % PHASE + phase(shown) * PHASE +
                           (several && planted != PLANT_NO_MORE -> MORE : 0);
    published = tail;
    if
    :: several && planted != PLANT_MORE_TAIL ->
        release_unless(PLANT_TAIL_RELAXED, WORKER, SQ_TAIL, tail)
    :: else
    fi;
    release_unless(PLANT_PHASE_RELAXED, WORKER, SLOTS + place(shown), shadow[place(shown)]);
    if
    :: !several || planted == PLANT_MORE_TAIL ->
        release_unless(PLANT_TAIL_RELAXED, WORKER, SQ_TAIL, tail)
    :: else
    fi;
    if
    :: planted == PLANT_SCRUB_LATE && place(tail) != place(shown) -> scrub()
    :: else
    fi;
    shown = tail;
    several = false
}

proctype worker() {
    byte tail, shown, n, junk;
    byte shadow[MOST_SLOTS]; /* what it has written last there */
    bool several, goes_back, went_back;
    do
    :: tail == total -> break
    :: atomic { /* nobody sees a store before it leaves the buffer */
           tail < total && size - (tail - memory[SQ_HEAD]) >= 1 ->
           if
           :: !went_back && size < MOST_SLOTS -> goes_back = true
           :: true
           fi;
           choose_slots();
           put();
           if
           :: tail < total && size - (tail - memory[SQ_HEAD]) >= 1 -> choose_slots(); put()
           :: true
           fi;
           if
           :: goes_back -> goes_back = false; went_back = true; tail = shown
           :: else -> publish()
           fi
       };
       barrier_unless(PLANT_BARRIER, WORKER);
       atomic { bell = bell || memory[DOORBELL] != 0 }
    od
}

/* ---- the lane; its variables are lane()'s own */

/* What the tail says that there is. It may be behind by one. */
#define waiting() \
    (head <= memory[SQ_TAIL] -> memory[SQ_TAIL] - head : (planted == PLANT_AHEAD -> 255 : 0))

/* Whether an entry is the first of what was published: then its slots, with MORE. */
#define shown_at(index) \
    (is_phase(memory[SLOTS + place(index)], index) -> memory[SLOTS + place(index)] : 0)

/* How many slots there are, into `avail`: each load is a step. */
inline look() {
    if
    :: planted == PLANT_BODY_FIRST -> early = memory[BODY + place(head)]
    :: else
    fi;
    atomic {
        slots = shown_at(head);
        is_over = by_slot && slots == 0
    };
    if
    :: by_slot && slots != 0 && slots < MORE ->
        atomic {
            is_over = shown_at(head + 1) == 0;
            avail = is_over
        }
    :: else
    fi;
    if
    :: !is_over ->
        atomic {
            assert(head <= memory[SQ_TAIL] + 1);
            avail = waiting();
            by_slot = avail == 0;
            avail = (avail == 0 && slots != 0 -> 1 : avail)
        }
    :: else
    fi;
    atomic { slots = 0; is_over = false }
}

inline take_one() {
    atomic {
        assert(head < published && kind[head] > 0);
        n = memory[SLOTS + place(head)] % PHASE;
        assert(n == kind[head] && n <= avail);
        if
        :: planted == PLANT_HEAD_EARLY -> release(LANE, SQ_HEAD, head + n)
        :: else
        fi
    };
    atomic {
        assert((planted == PLANT_BODY_FIRST && early != 255 -> early
                                                            : memory[BODY + place(head)]) ==
               head + 1);
        assert(n == 1 || memory[BODY + place(head + 1)] == head + 2);
        head = head + n;
        avail = avail - n;
        n = 0;
        early = (planted == PLANT_BODY_FIRST -> 255 : 0);
        took = true
    }
}

/* As many as it likes: windows, quotas and turns hold the others back. */
inline take() {
    do
    :: avail > 0 -> take_one()
    :: true -> break
    od;
    atomic {
        by_slot = avail == 0;
        avail = 0;
        if
        :: took -> release(LANE, SQ_HEAD, head); took = false
        :: else
        fi
    }
}

inline sleep() {
    store(LANE, DOORBELL, 1);
    barrier_unless(PLANT_SLEEP_BARRIER, LANE);
    avail = (planted == PLANT_SLEEP_SLOT -> shown_at(head) : waiting());
    atomic {
        avail != 0 || bell || head == total ->
        bell = (avail == 0 -> false : bell);
        avail = 0;
        by_slot = false;
        store(LANE, DOORBELL, 0)
    }
}

proctype lane() {
    byte head, avail, slots, n, early;
    bool by_slot, took, is_over;
    do
    :: head == total -> break
    :: else ->
        look();
        if
        :: avail > 0 -> take()
        :: true -> sleep()
        :: avail == 0
        fi;
        early = 0
    od
}

c_decl {
\#include <stdlib.h>
}
#define choose_plant() c_code { now.planted = getenv("PLANT") != NULL ? atoi(getenv("PLANT")) : 0; }

init {
    atomic {
        choose_plant();
        if
        :: size = 1; total = 4
        :: size = 2; total = 6
        :: size = MOST_SLOTS; total = TOTAL
        fi;
        run drain(WORKER);
        run drain(LANE);
        run worker();
        run lane()
    }
}
