/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker's requests can wait for: what agents count and operators read. A row is all that
 * there is of a reason: its name, the word that JSON has for it, how it is counted, and a sentence.
 * What to do about each says docs/failures.md. No state. */
#ifndef SCHEMA_WAIT_REASON_H
#define SCHEMA_WAIT_REASON_H

/* With the first request of its queue a virtual queue pair waits for one thing at a time:
 * WAIT(name, word, sentence). The lane asks for them in try_post() of agent/lane/schedule/vqp.c. */
/* clang-format off */
#define SCHEMA_VQP_WAITS(WAIT)                                                                     \
    WAIT(OWN, "earlier_requests",                                                                  \
         "requests of the same queue pair are out, and have to end first")                         \
    WAIT(RECORD, "endpoint_record",                                                                \
         "the metaservers are asked for the record of the node that it goes to")                   \
    WAIT(PATH, "path",                                                                             \
         "the path to the node that it goes to is being made, or could not be made just now")      \
    WAIT(SIGN, "silent_node",                                                                      \
         "the node that it goes to is silent; what is out to it finds out whether it answers")     \
    WAIT(REGION, "region_record",                                                                  \
         "the record of the region that it goes to is being read from its node")                   \
    WAIT(REST, "tenant_rest",                                                                      \
         "its tenant's requests have broken queue pairs, and wait for a while after each")         \
    WAIT(NEWS, "next_look",                                                                        \
         "nothing any more: the lane tries it at its next look")                                   \
    WAIT(CREDIT, "message_credit",                                                                 \
         "the node that its message goes to has granted no room for it")                           \
    WAIT(RECEIVER, "message_receiver",                                                             \
         "who hears its message has posted no buffer, and it goes again after a while")            \
    WAIT(FLOW, "node_room",                                                                        \
         "its tenant, or the lane, has requests to as many nodes as it may")                       \
    WAIT(ASKING_RECORD, "lookup_room",                                                             \
         "as many endpoints are being looked up as may be at a time")                              \
    WAIT(ASKING_PATH, "path_room",                                                                 \
         "as many paths are there, or being made, as may be at a time")                            \
    WAIT(ASKING_REGION, "region_room",                                                             \
         "as many records of regions are kept, or being read, as may be at a time")                \
    WAIT(QP, "queue_pair",                                                                         \
         "the queue pair of the device that it goes through broke, or is not there yet")           \
    WAIT(SMALL, "inline_memory",                                                                   \
         "the memory for inline data that the device itself does not take is all in use")          \
    WAIT(BATCHES, "batch_room",                                                                    \
         "as much of batches is out as others are to stand behind")                                \
    WAIT(LENDING, "message_lending",                                                               \
         "the region that its large message is read from is being made, or withdrawn")             \
    WAIT(INITIATOR, "quarantine_initiator",                                                        \
         "the DC initiator of tenants in quarantine is not there yet")                             \
    WAIT(TURNS, "turn_room",                                                                       \
         "there are turns at as many windows and queue pairs as can be kept")                      \
    WAIT(PASS, "next_pass",                                                                        \
         "its session has had its part of the lane's present pass")                                \
    WAIT(ROOM, "queue_pair_room",                                                                  \
         "the queue pair of the device that it goes through has as much out as it may")            \
    WAIT(TENANT_WINDOW, "tenant_window",                                                           \
         "the window of its tenant is full")                                                       \
    WAIT(DESTINATION_WINDOW, "destination_window",                                                 \
         "the window of the node that it goes to is full")                                         \
    WAIT(DEVICE_WINDOW, "device_window",                                                           \
         "the window of the device is full")

/* Why nothing more is taken from a worker's ring, one thing at a time, likewise. */
#define SCHEMA_RING_WAITS(WAIT)                                                                    \
    WAIT(CONNECT, "connect",                                                                       \
         "kedge_connect() waits for the metaservers to say where the node is")                     \
    WAIT(REGISTER, "register",                                                                     \
         "kedge_reg_mr() waits for a registration")                                                \
    WAIT(LOOKUP, "lookup",                                                                         \
         "kedge_lookup() waits for the metaservers to say which region has the name")              \
    WAIT(CONTROL, "control_turn",                                                                  \
         "what connects, registers or imports waits for its turn, or for its tenant's budget")     \
    WAIT(BIND, "rebind",                                                                           \
         "a queue pair is connected anew when what it has out has ended")                          \
    WAIT(PLACES, "session_room",                                                                   \
         "as many requests of the worker are taken as may be at a time (max_inflight)")            \
    WAIT(UNPOLLED, "completion_room",                                                              \
         "there is no room for more completions before the worker polls some")                     \
    WAIT(TURN, "ring_turn",                                                                        \
         "the lane has not come to it yet")

/* And what waits for nothing of the lane any more. */
#define SCHEMA_LATE_WAITS(WAIT)                                                                    \
    WAIT(ANSWER, "answer",                                                                         \
         "the device has it, and the node that it goes to has not answered yet")                   \
    WAIT(POLL, "poll",                                                                             \
         "it has completed, and the worker has not polled that yet")

#define SCHEMA_WAIT_ENUM(name, word, sentence) SCHEMA_WAIT_##name,
enum schema_wait {
    SCHEMA_WAIT_NOTHING,
    SCHEMA_VQP_WAITS(SCHEMA_WAIT_ENUM)
    SCHEMA_RING_WAITS(SCHEMA_WAIT_ENUM)
    SCHEMA_LATE_WAITS(SCHEMA_WAIT_ENUM)
    SCHEMA_WAITS
};
#undef SCHEMA_WAIT_ENUM
/* clang-format on */

struct schema_wait_row {
    const char *word;     /* "destination_window" */
    const char *unit;     /* one of what is counted: "virtual queue pair", "ring slot", ... */
    const char *sentence; /* of one of them, without a full stop */
};
/* By enum schema_wait. */
extern const struct schema_wait_row schema_waits[SCHEMA_WAITS];
/* By its word; NULL: there is none. */
const struct schema_wait_row *schema_wait_find(const char *word);

#endif
