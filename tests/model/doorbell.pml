/* SPDX-License-Identifier: Apache-2.0 */
/* How a lane sleeps, and who wakes it (docs/lane.md#sleeping): a worker that posts, the control
 * thread that gives a command, the device that completes. A session may sleep alone, while the lane
 * goes on; or all of it sleeps. No timer is modelled, so that what a timer would repair shows: the
 * lane stands still for ever while there is something for it to do, which spin reports as an
 * invalid end state.
 *
 * Held to this are client_ring_publish(), lane_session_sleep(), lane_session_activate(),
 * lane_doorbell(), lane_prepare_sleep(), sleep_until_work() and command_lane(). */
#define WORKER  0
#define LANE    1
#define CONTROL 2
#define THREADS 3

#define SQ_TAIL   0 /* the worker's */
#define DOORBELL  1 /* the lane's: this session is not polled */
#define ASLEEP    2 /* the lane's thread's */
#define COMMANDS  3 /* how many the control thread has given */
#define SQ_HEAD   4 /* the lane's: how many posts it has taken */
#define VARIABLES 5

#define PLANT_WORKER_BARRIER  1  /* the worker has no barrier between its tail and the doorbell */
#define PLANT_SESSION_BARRIER 2  /* none between the doorbell and the look at the tail */
#define PLANT_SESSION_LOOK    3  /* a session goes to sleep without a look at its tail */
#define PLANT_SESSION_FLAG    4  /* the doorbell is set after that look */
#define PLANT_LANE_BARRIER    5  /* the lane has none between its flag and its last look */
#define PLANT_LANE_FLAG       6  /* its flag is set after its last look */
#define PLANT_COMMAND_LOOK    7  /* that look leaves commands out */
#define PLANT_COMMAND_BARRIER 8  /* the control thread has none before it looks at the flag */
#define PLANT_ARM             9  /* the completion queue is armed after the last look at it */
#define PLANT_COMPLETION_LOOK 10 /* that look leaves completions out */
#define PLANT_ANSWER          11 /* an answer leaves a session asleep that had to wait for it */
#define PLANT_BELL_TAIL       12 /* a bell counts as false when its post was seen meanwhile */
#define PLANT_OUT             13 /* the completion queue is armed where nothing is out, alone */
#define PLANT_RUNG_TAIL       14 /* a worker that has rung rings no more while the doorbell is set */
#define PLANT_RUNG_ONE        15 /* nor while what it rang for is taken, and what is behind not */
#define PLANT_HEAD_EARLY      16 /* it looks at what is taken before its barrier */
#define PLANT_HEAD_LATE       17 /* the lane says what it has taken when it sleeps already */

#include "store_buffers.pml"

/* Three posts, for rings that are heard late; or a command beside one. */
byte posts, given;

bool bell;    /* the session's eventfd was written since it was looked at (edge-triggered) */
bool kick;    /* the lane's own, likewise */
bool event;   /* of the completion channel */
bool armed;   /* the completion queue tells of the next one */
byte submitted, completed;

/* One that has rung for what is not taken yet rings no more. */
proctype worker() {
    byte posted, flag, head, rung_at;
    do
    :: posted < posts ->
        posted++;
        store(WORKER, SQ_TAIL, posted);
        if
        :: planted == PLANT_HEAD_EARLY -> load(WORKER, SQ_HEAD, head)
        :: else
        fi;
        barrier_unless(PLANT_WORKER_BARRIER, WORKER);
        load(WORKER, DOORBELL, flag);
        if
        :: planted != PLANT_HEAD_EARLY -> load(WORKER, SQ_HEAD, head)
        :: else
        fi;
        atomic {
            if
            :: flag != 0 && (rung_at == 0 || (planted != PLANT_RUNG_TAIL &&
               rung_at < head + (planted != PLANT_RUNG_ONE))) ->
                bell = true;
                rung_at = posted
            :: else
            fi;
            flag = 0;
            head = 0
        }
    :: else -> break
    od
}

proctype control() {
    byte flag;
    store(CONTROL, COMMANDS, given);
    barrier_unless(PLANT_COMMAND_BARRIER, CONTROL);
    load(CONTROL, ASLEEP, flag);
    if
    :: flag != 0 -> kick = true
    :: else
    fi
}

proctype device() {
    do
    :: completed < submitted ->
        atomic {
            completed++;
            event = event || armed;
            armed = false
        }
    :: completed == posts -> break
    od
}

/* ---- the lane; its variables are lane()'s own */

#define is_done() (polled == posts && done == given)

inline activate() {
    if
    :: !awake -> awake = true; store(LANE, DOORBELL, 0)
    :: else
    fi
}

/* The first post is one that holds back what stands behind it until it is answered (CONNECT). */
inline take_posts() {
    load(LANE, SQ_TAIL, found);
    atomic {
        if
        :: awake && !held && taken == 0 && found > 0 -> taken = 1; held = true; submitted = 1
        :: awake && !held && taken > 0 -> taken = found; submitted = found
        :: else
        fi;
        found = 0
    };
    if
    :: taken != told && planted != PLANT_HEAD_LATE -> store(LANE, SQ_HEAD, taken); told = taken
    :: else
    fi
}

inline poll_completions() {
    atomic {
        if
        :: completed > polled ->
            polled = completed;
            if
            :: held ->
                held = false;
                if
                :: planted != PLANT_ANSWER -> activate()
                :: else
                fi
            :: else
            fi
        :: else
        fi
    }
}

inline take_commands() {
    load(LANE, COMMANDS, found);
    atomic { done = found; found = 0 }
}

inline sleep_session() {
    if
    :: planted == PLANT_SESSION_LOOK -> store(LANE, DOORBELL, 1); awake = false
    :: planted == PLANT_SESSION_FLAG && !held ->
        load(LANE, SQ_TAIL, found);
        if
        :: found == taken -> store(LANE, DOORBELL, 1); barrier(LANE); awake = false
        :: else
        fi
    :: else ->
        store(LANE, DOORBELL, 1);
        barrier_unless(PLANT_SESSION_BARRIER, LANE);
        load(LANE, SQ_TAIL, found);
        if
        :: found != taken && !held -> store(LANE, DOORBELL, 0)
        :: else -> awake = false
        fi
    fi;
    if
    :: taken != told && !awake -> store(LANE, SQ_HEAD, taken); told = taken
    :: else
    fi;
    found = 0
}

/* No more than two false rings follow each other of a worker that keeps to this: so none is taken
 * for one that rings without an end (agent/daemon/doorbells.h). */
inline hear_bell() {
    bell = false;
    load(LANE, SQ_TAIL, found);
    atomic {
        if
        :: found != rung && !(planted == PLANT_BELL_TAIL && found == taken + 1) ->
            rung = found;
            falses = 0;
            activate()
        :: else -> falses++; assert(falses <= 2)
        fi;
        found = 0
    }
}

inline look_last() {
    may_sleep = !awake;
    load(LANE, COMMANDS, found);
    atomic {
        may_sleep = may_sleep && (found == done || planted == PLANT_COMMAND_LOOK);
        found = 0
    };
    atomic {
        if
        :: planted == PLANT_COMPLETION_LOOK
        :: else ->
            may_sleep = may_sleep && completed == polled;
            poll_completions()
        fi
    }
}

inline sleep_lane() {
    if
    :: planted != PLANT_LANE_FLAG -> store(LANE, ASLEEP, 1)
    :: else
    fi;
    barrier_unless(PLANT_LANE_BARRIER, LANE);
    if
    :: awake -> sleep_session()
    :: else
    fi;
    if
    :: planted != PLANT_ARM && (submitted != polled) == (planted != PLANT_OUT) -> armed = true
    :: else
    fi;
    (planted == PLANT_LANE_BARRIER || planted == PLANT_SESSION_BARRIER || empty(stores[LANE]));
    look_last();
    if
    :: planted == PLANT_ARM -> armed = true
    :: planted == PLANT_LANE_FLAG -> store(LANE, ASLEEP, 1); barrier(LANE)
    :: else
    fi;
    if
    :: may_sleep ->
        if
        :: bell -> hear_bell()
        :: kick -> kick = false
        :: event -> event = false
        :: is_done()
        fi
    :: else
    fi;
    may_sleep = false;
    store(LANE, ASLEEP, 0);
    barrier(LANE)
}

proctype lane() {
    byte taken, told, rung, found, falses, polled, done;
    bool awake = true, held, may_sleep;
    do
    :: is_done() -> break
    :: else ->
        if
        :: take_commands(); take_posts(); poll_completions()
        :: awake -> sleep_session() /* alone: it was silent for long */
        :: bell -> hear_bell()
        :: atomic { kick -> kick = false }
        :: atomic { event -> event = false }
        :: true -> sleep_lane()
        fi
    od
}

init {
    atomic {
        choose_plant();
        if
        :: posts = 1; given = 1; run control()
        :: posts = 3
        fi;
        run drain(WORKER);
        run drain(LANE);
        run drain(CONTROL);
        run worker();
        run device();
        run lane()
    }
}
