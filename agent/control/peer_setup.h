/* SPDX-License-Identifier: Apache-2.0 */
/* What the lane asks for to reach other nodes, nothing of which may block. Control thread. */
#ifndef CONTROL_PEER_SETUP_H
#define CONTROL_PEER_SETUP_H

#include <stdbool.h>

struct base_errbuf;
struct fab_qp;
struct lane_event;
struct pool;

int agent_peer_setup_start(struct pool *p, struct base_errbuf *err);
/* WANT_PATH, DROP_PATH, QP_BROKEN, PROVED. */
void agent_peer_setup_event(struct pool *p, const struct lane_event *e);
/* DC: makes one spare more, or has one less; agent_prewarm_spare() follows. */
void agent_peer_setup_spare(struct pool *p, bool more);
/* SPARE_DROPPED. */
void agent_peer_setup_spare_dropped(struct pool *p, struct fab_qp *qp);
/* After anything that concerns connections. */
void agent_peer_setup_step(struct pool *p);
/* The device says that this queue pair is in ERR: one that is no connection's is left alone. */
void agent_peer_setup_fatal(struct pool *p, const struct fab_qp *qp);
/* The port has another MTU: connections and initiators that are made from now on have it. */
void agent_peer_setup_mtu(struct pool *p);
/* The P_Key of a domain is at another place of the port's table: initiators and the queue pair of
 * handshakes are brought up anew with it. */
void agent_peer_setup_repartition(struct pool *p);
/* The device has another address: initiators are brought up anew at it. */
void agent_peer_setup_readdress(struct pool *p);
/* No peer is heard any more. */
void agent_peer_setup_stop(struct pool *p);

#endif
