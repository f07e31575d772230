/* SPDX-License-Identifier: Apache-2.0 */
/* What an operator calls workers and leases on the admin socket, and the cursors of their lists.
 *
 * A worker's id is SESSION-SERIAL ("12-9f01ab34"), a lease's has its number behind that. No I/O;
 * any thread. */
#ifndef CONTROL_LEASE_IDS_H
#define CONTROL_LEASE_IDS_H

#include <stdbool.h>
#include <stdint.h>

enum { AGENT_ID_BYTES = 48, AGENT_CURSOR_BYTES = 48 };

/* Whose: the session's number, and the worker's among all that this agent has had. */
struct agent_worker_id {
    uint32_t session, serial;
};

const char *agent_worker_id_format(const struct agent_worker_id *id, char out[AGENT_ID_BYTES]);
/* A worker's id, or with number (not NULL) a lease's. False: it is none; outputs are untouched. */
bool agent_worker_id_parse(const char *text, struct agent_worker_id *out, uint32_t *number);

/* Where a list goes on: a session's number and a place in it. */
struct agent_cursor {
    uint32_t session, place;
};

const char *agent_cursor_format(const struct agent_cursor *at, char out[AGENT_CURSOR_BYTES]);
bool agent_cursor_parse(const char *text, struct agent_cursor *out);

#endif
