/* SPDX-License-Identifier: Apache-2.0 */
/* What an operator calls workers and leases on the admin socket, and the cursors of their lists.
 *
 * A worker's id is SESSION-SERIAL ("12-9f01ab34"), a lease's has its number behind that. No I/O;
 * any thread. */
#ifndef CONTROL_LEASE_IDS_H
#define CONTROL_LEASE_IDS_H

#include <stdbool.h>
#include <stdint.h>

enum { AGENTD_ID_BYTES = 48, AGENTD_CURSOR_BYTES = 48 };

/* Whose: the session's number, and the worker's among all that this agent has had. */
struct agentd_worker_id {
    uint32_t session, serial;
};

const char *agentd_worker_id_format(const struct agentd_worker_id *id, char out[AGENTD_ID_BYTES]);
/* A worker's id, or with number (not NULL) a lease's. False: it is none; outputs are untouched. */
bool agentd_id_parse(const char *text, struct agentd_worker_id *out, uint32_t *number);

/* Where a list goes on: a session's number and a place in it. */
struct agentd_cursor {
    uint32_t session, place;
};

const char *agentd_cursor_format(const struct agentd_cursor *at, char out[AGENTD_CURSOR_BYTES]);
bool agentd_cursor_parse(const char *text, struct agentd_cursor *out);

#endif
