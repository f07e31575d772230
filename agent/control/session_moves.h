/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions whose requests another lane of their pool carries out, since theirs has more to do than
 * others (docs/lane.md#sessions-that-move). Everything else that a session has stays in its own
 * lane, and with the pool that stands for that: so does what an operator withdraws. What else is to
 * be told of a session meanwhile waits, and calls it back. Control thread. */
#ifndef CONTROL_SESSION_MOVES_H
#define CONTROL_SESSION_MOVES_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/lane.h"

struct agent;
struct agent_session;
struct lane_command;
struct lane_event;
struct pool;
struct session_move;

/* Of a pool that is one of several lanes. */
struct session_moves {
    struct agent_session *lodger[LANE_LODGERS]; /* of others, that it has; by number */
    uint32_t lodgers;
    uint64_t moved;   /* that were lodgers here, and are back, so far */
    uint64_t refused; /* that were to, and stayed, since they had what does not go */
};

/* It goes to that lane, if it can. */
void agent_session_move(struct agent_session *s, struct pool *to);
/* It comes home soon; nothing if it is there. hurry: nobody sees any more what of it is out. */
void agent_session_call_home(struct agent_session *s, bool hurry);
/* Now and then: lodgers of this lane that have had nothing for it for long are called home. */
void agent_session_moves_look(struct pool *p, uint64_t now_ns);
/* Which lane has it, or is to: its own, or another one. */
struct pool *agent_session_is_at(const struct agent_session *s);
/* LANE_EVENT_SESSION_LEFT, LODGER_LEFT, and ARENA_REREGISTERED of a lodger. False: another one. */
bool agent_session_moves_event(struct pool *p, const struct lane_event *e);
/* Gives the lane a command about a session of its own: what is of its regions at once, wherever it
 * is; that an arena has another registration (a number of `reregister.tag` that no other pool has)
 * after the lane that it lodges with; other ones when it is at home. */
void agent_session_command(struct pool *p, const struct lane_command *c);
/* After the lane thread has ended. */
void agent_session_moves_stop(struct agent_session *s);

#endif
