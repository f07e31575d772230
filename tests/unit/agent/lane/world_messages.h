/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of a world whose lanes carry messages. */
#ifndef UNIT_AGENT_LANE_WORLD_MESSAGES_H
#define UNIT_AGENT_LANE_WORLD_MESSAGES_H

#include "schema/record.h"
#include "world.h"

enum { WORLD_RECEIVES = 16 };

/* Of the next world's nodes. */
extern bool world_messages;
/* Of what one sends to itself its lanes carry nothing without the device. */
extern bool world_by_device;
/* Shared receives of each, up to 256; 0: WORLD_RECEIVES. */
extern uint32_t world_receives;
/* Handles that are asked for cannot be made, now; how many were asked for, the last
 * ones of nodes given back, and UD queue pairs
 * broke. */
extern bool world_no_handles;
/* UD queue pairs that break are repaired later. */
extern bool world_no_ud_repairs;
/* The record of node 1 says that handshakes are answered where it hears of messages. */
extern bool world_handshakes;
extern uint32_t world_ud_broken, world_handles_wanted, world_handles_dropped;
/* With connections: that node says that it carries none; how often one was asked. */
extern bool world_mute[WORLD_NODES];
/* Likewise: who is asked does not answer. */
extern bool world_no_numbers;
/* Each UD queue pair that breaks is made anew, with another number. */
extern bool world_new_uds;
extern uint32_t world_numbers_wanted;

void world_messages_open(struct world_node *n);
void world_messages_close(struct world_node *n);
/* False: it is about something else. */
bool world_messages_event(struct world_node *n, const struct lane_event *e);
/* As its agent registers again, with what is another now; its regions are gone. */
void world_publish(struct world *w, struct world_node *n);
void world_messages_run(struct world_node *n);
/* The SRQ by which responders hear; NULL: the world carries none. */
struct fab_srq *world_messages_srq(const struct world_node *n);
void world_messages_fill(struct world_node *n);
void world_messages_publish(const struct world_node *n, struct schema_endpoint_record *r);

/* What the next completion of a message says, and whose it is. False: none came. */
bool world_hear(struct world *w, struct world_worker *k, struct schema_cqe *out,
                struct schema_cqe_sender *sender, unsigned passes);
int world_bind_port(struct world *w, struct world_worker *k, uint16_t vqp, uint32_t port);
void world_send_to(struct world_worker *k, uint16_t vqp, uint32_t kind, uint64_t to);
struct schema_sq_desc world_message(uint8_t op, uint64_t wr_id, uint64_t offset, uint32_t length);

struct fab_qp *world_ud(uint32_t node);
/* Its record names the one that it has now. */
void world_publish_ud(struct world *w, uint32_t node);
/* A datagram that is no lane's, by the UD queue pair of one node to another's. */
void world_stranger_says(struct world *w, uint32_t from, uint32_t to, uint32_t bytes);
/* Where that is, of the node that says it. */
void *world_stranger_memory(uint32_t node);
/* Those that were left so, and from now on each at once. */
void world_repair_uds(struct world *w);
/* The node's UD queue pair goes to ERR by itself. */
void world_break_ud(struct world *w, uint32_t node);

/* Runs a shell's command, and says how it ended. */
int world_run_quietly(const char *command);

#endif
