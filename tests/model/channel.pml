/* SPDX-License-Identifier: Apache-2.0 */
/* How a worker sleeps in epoll, and who makes its completion channel readable (docs/lane.md#sleeping):
 * the lane, which publishes completions and tells later, since that is rationed; the control thread,
 * which says that the node drains; and the thread that sends, which either tells by a bit, and which
 * sleeps itself. The socket is the kernel's: that there is a byte in it, and that the worker waits
 * for one, is one step. No timer is modelled, so that a worker, or a thread that sends, that sleeps
 * for ever while there is something shows as an invalid end state.
 *
 * Held to this are kedge_arm(), lane_sessions_publish(), wake_some(), agent_sessions_drain(),
 * agentd_comp_channels_tell() and run_side(). */
#define WORKER  0
#define LANE    1
#define CONTROL 2
#define SENDER  3
#define THREADS 4

#define CQ_TAIL   0 /* the lane's */
#define ARMED     1 /* the worker's: 2 for each time, and 1 while it is */
#define DRAINS    2 /* the control thread's */
#define ASLEEP    3 /* the sender's; whoever wakes it takes it back */
#define VARIABLES 4

#define PLANT_WORKER_BARRIER  1  /* the worker has no barrier between `armed` and its last look */
#define PLANT_WORKER_LOOK     2  /* it does not look again */
#define PLANT_WORKER_FLAG     3  /* `armed` is set after that look */
#define PLANT_WORKER_DRAIN    4  /* it drains the socket after it has armed */
#define PLANT_WORKER_SAME     5  /* it arms with the same value each time */
#define PLANT_NOTICE_LOOK     6  /* the last look is at completions alone */
#define PLANT_LANE_BARRIER    7  /* the lane has none between what it publishes and `armed` */
#define PLANT_LANE_LATE       8  /* what it was told for is read after it was told */
#define PLANT_CONTROL_BARRIER 9  /* the control thread has none */
#define PLANT_BIT_KICK        10 /* who sets the bit kicks only where it is set already */
#define PLANT_SENDER_FLAG     11 /* the sender's flag is set after its last look */
#define PLANT_SENDER_BARRIER  12 /* no barrier between that flag and the look */
#define PLANT_BIT_CLEAR       13 /* the bit is cleared after the byte is sent */

#include "store_buffers.pml"

/* Two completions; or one, beside what the control thread says. */
byte completions, drains;

bool readable; /* there is a byte in the worker's end */
bool asked;    /* the sender's bit: only read and written by atomic operations */
bool kicked;   /* its eventfd */
byte told;     /* the lane's own: the value of `armed` that it was told for */

/* agentd_comp_channels_tell(): both are atomic operations that are barriers too. */
inline tell(thread) {
    atomic {
        empty(stores[thread]);
        was = asked;
        asked = true
    };
    if
    :: (planted == PLANT_BIT_KICK) == was ->
        atomic {
            if
            :: memory[ASLEEP] != 0 -> memory[ASLEEP] = 0; kicked = true
            :: else
            fi
        }
    :: else
    fi;
    was = false
}

/* Whether there is anything to take, into `ready`. */
inline look(also_notices) {
    load(WORKER, CQ_TAIL, found);
    atomic { ready = found != head; found = 0 };
    if
    :: also_notices ->
        load(WORKER, DRAINS, found);
        atomic { ready = ready || found != heard; found = 0 }
    :: else
    fi
}

inline arm() {
    if
    :: planted != PLANT_WORKER_DRAIN -> readable = false
    :: else
    fi;
    armed = (planted == PLANT_WORKER_SAME -> 3 : armed + 2);
    if
    :: planted != PLANT_WORKER_FLAG -> store(WORKER, ARMED, armed)
    :: else
    fi;
    barrier_unless(PLANT_WORKER_BARRIER, WORKER);
    if
    :: planted == PLANT_WORKER_DRAIN -> readable = false
    :: else
    fi;
    if
    :: planted != PLANT_WORKER_LOOK -> look(planted != PLANT_NOTICE_LOOK)
    :: else
    fi;
    if
    :: planted == PLANT_WORKER_FLAG -> store(WORKER, ARMED, armed); barrier(WORKER)
    :: else
    fi;
    if
    :: ready -> store(WORKER, ARMED, armed - 1)
    :: else -> readable /* epoll_wait() */
    fi;
    ready = false
}

proctype worker() {
    byte head, heard, found, armed = 1;
    bool ready;
    do
    :: head == completions && heard == drains -> break
    :: else ->
        load(WORKER, CQ_TAIL, found);
        atomic { ready = found != head; head = found; found = 0 };
        load(WORKER, DRAINS, found);
        atomic { ready = ready || found != heard; heard = found; found = 0 };
        if
        :: ready -> ready = false
        :: else -> arm()
        fi
    od
}

proctype lane() {
    byte written, flag;
    bool listed, was; /* to be told, when its turn comes */
    do
    :: written < completions ->
        written++;
        store(LANE, CQ_TAIL, written);
        barrier_unless(PLANT_LANE_BARRIER, LANE);
        load(LANE, ARMED, flag);
        atomic { listed = listed || (flag % 2 == 1 && flag != told); flag = 0 }
    :: listed ->
        listed = false;
        load(LANE, ARMED, flag);
        if
        :: flag % 2 == 1 && flag != told ->
            told = flag;
            tell(LANE);
            if
            :: planted == PLANT_LANE_LATE -> load(LANE, ARMED, told)
            :: else
            fi
        :: else
        fi;
        flag = 0
    :: written == completions && !listed -> break
    od
}

proctype control() {
    byte flag;
    bool was;
    store(CONTROL, DRAINS, 1);
    barrier_unless(PLANT_CONTROL_BARRIER, CONTROL);
    load(CONTROL, ARMED, flag);
    if
    :: flag % 2 == 1 -> tell(CONTROL)
    :: else
    fi
}

/* One look at the bit, and the byte. */
inline collect() {
    if
    :: atomic { asked ->
           any = true;
           if
           :: planted == PLANT_BIT_CLEAR -> readable = true
           :: else -> asked = false
           fi
       };
       atomic {
           if
           :: planted == PLANT_BIT_CLEAR -> asked = false
           :: else -> readable = true
           fi
       }
    :: else
    fi
}

proctype sender() {
    bool any;
end:
    do
    :: collect();
        if
        :: any -> any = false
        :: !any ->
            if
            :: planted != PLANT_SENDER_FLAG -> store(SENDER, ASLEEP, 1)
            :: else
            fi;
            barrier_unless(PLANT_SENDER_BARRIER, SENDER);
            collect();
            if
            :: planted == PLANT_SENDER_FLAG -> store(SENDER, ASLEEP, 1); barrier(SENDER)
            :: else
            fi;
            if
            :: any -> any = false
            :: else ->
endasleep:
                kicked;
                kicked = false
            fi;
            atomic { empty(stores[SENDER]) -> memory[ASLEEP] = 0 }
        fi
    od
}

init {
    atomic {
        choose_plant();
        run drain(WORKER);
        run drain(LANE);
        run drain(CONTROL);
        run drain(SENDER);
        if
        :: completions = 1; drains = 1; run control()
        :: completions = 2
        fi;
        run worker();
        run lane();
        run sender()
    }
}
