/* SPDX-License-Identifier: Apache-2.0 */
/* Between register.c, which registers, and renew.c, which keeps what is registered. Control thread.
 */
#ifndef CONTROL_REGISTER_PRIVATE_H
#define CONTROL_REGISTER_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include "register.h"

/* ---- register.c */

void agent_registration_put(struct registration *r);
/* It is tried again from now on, later each time. */
void agent_registration_lose(struct registration *r, const char *why);
/* Asks again when the metaserver has said, at a moment of this node's own behind that: many are
 * told the same. */
void agent_registration_come_again(struct registration *r, uint32_t after_s);
/* An answer that says no. */
void agent_registration_refuse(struct registration *r, const struct http_answer *answer);
/* A request about this node. ms: of it all. 0; or -errno and why it cannot be asked. */
int agent_registration_call(struct registration *r, const char *method, const char *tail,
                            const char *body, uint32_t ms, http_done done, struct base_errbuf *why);
/* Of the own pool: the node's endpoints, if it has not been told. */
void agent_registration_tell_endpoints(struct registration *r);

/* After a try without a yes: when the next one is to be. Many agents miss the same metaserver at
 * one time: they do not ask it again at one time, and less often the longer it answers none in
 * time. */
uint64_t agent_registration_backoff_ms(struct registration *r);
/* The same of one that is lost here; while the metaserver may have it still, within what its lease
 * has left. renew.c */
uint64_t agent_registration_lost_pause_ms(struct registration *r);

/* ---- register_turn.c */

/* The number of the metaserver that is asked first when none has the pool. */
uint32_t agent_registration_first(const struct pool *p);
/* Whether another one is being asked first; then its timer says when it has its own turn. */
bool agent_registration_must_wait(struct registration *r);
/* How long it has alone: less, if its last try has failed, or another one says nothing. */
uint64_t agent_registration_turn_ms(const struct registration *r);
/* It is asked now, or comes again later: for so long the others wait for it. */
void agent_registration_begin_turn(struct registration *r, uint64_t ms);
/* It has answered, whatever that was: those that waited for it are asked. */
void agent_registration_end_turn(struct registration *r);

/* ---- renew.c */

/* Whether a request with that status was left without an answer of the metaserver's own: it may not
 * have come, or the metaserver could not look. */
bool agent_registration_is_no_answer(int status);
/* DONE: it has answered what was asked at that time; the next renewal follows in time. */
void agent_registration_answered(struct registration *r, uint64_t asked_ns);
/* DONE: it has not. It is kept, and asked again, as long as its lease runs. */
void agent_registration_silent(struct registration *r, int status, const char *why);
/* DONE: as agent_registration_silent(), unless it has said when to come again: then it is there,
 * and has too much to do. */
void agent_registration_unanswered(struct registration *r, const struct http_answer *answer);
/* DONE: asks for a renewal. */
void agent_registration_renew(struct registration *r);
/* DONE: its metaserver has asked for a renewal, of this agent or of many. */
void agent_registration_renew_asked(struct registration *r, bool of_many);
/* A renewal, or the next try, comes sooner: its metaserver may have been started again. */
void agent_registration_look_soon(struct registration *r);
/* Likewise those of other pools that do not know the table that this one has been told of. */
void agent_registration_look_with_others(const struct registration *r);

/* So many lookups of the pool have failed, since it began: as agent_registrations_note_lookups().
 */
void agent_registrations_note_failed(struct pool *p, uint64_t failed);

#endif
