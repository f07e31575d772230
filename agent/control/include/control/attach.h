/* SPDX-License-Identifier: Apache-2.0 */
/* What workers' sockets report to the agent. The world accepts, receives and watches; the core
 * decides who is lent what, and answers by world_reply().
 *
 * Control thread. None of these is called from inside a world's operation. A connection is the
 * core's, and lives until agent_attach_closed() of it; its socket lives as long. */
#ifndef CONTROL_ATTACH_H
#define CONTROL_ATTACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "control/tenants.h"

struct agent;
struct connection;
struct world_socket;

/* Who has connected, and where. */
struct attach_peer {
    uid_t uid;
    pid_t pid;
    uint32_t tenant;  /* whose socket it is: its index + 1; 0: all tenants' */
    bool refused;     /* of that uid none is let in now: what it sent has not ended yet */
    const char *path; /* of that, as long as the agent lives */
};

/* Somebody has connected. NULL: no more may; that was said there, and the world closes it. Else
 * what came with the connection is reported at once, and then agent_attach_watched(). */
struct connection *agent_attach_connected(struct agent *a, struct world_socket *s,
                                          const struct attach_peer *peer);

/* Whose its messages are: of one tenant's workers that have attached, or wait for a session, a few
 * are reported in a turn, so that who sends many keeps nobody else waiting. Its index + 1; 0: of a
 * worker that has not, whose ATTACH is taken at once: so many may be there at a time. */
enum { ATTACH_OWNERS = 1 + AGENT_TENANT_SLOTS };
uint32_t agent_attach_owner(const struct connection *c);

/* status: 0 and a whole message, which is the caller's; -EPROTO: one that can be none, since it is
 * too long or descriptors are with it. */
void agent_attach_received(struct connection *c, int status, const void *message, size_t bytes);

/* From now on what it sends and how it ends is reported. Or (status, of -errno, and a sentence) it
 * cannot be. */
void agent_attach_watched(struct connection *c, int status, const char *why);

/* Its worker has hung up, or the process has ended. */
void agent_attach_hung_up(struct connection *c);

/* What its worker has hung on its end makes each call on it take this thread long: it is ended, and
 * the world tells its worker why. */
void agent_attach_costly(struct connection *c);

/* After world_close(): the socket is no more. */
void agent_attach_closed(struct connection *c);

/* The agent ends: all of them are closed. */
void agent_attach_close_all(struct agent *a);

#endif
