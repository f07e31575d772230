/* SPDX-License-Identifier: Apache-2.0 */
/* kedge-hostile: workers that break every rule, each in its own way, against a real agent. One
 * process each; says what it did in one line, and ends with 0 when the agent behaved: the guilty
 * one was cut off or got an error where that must be, and never saw what is not his. */
#ifndef HOSTILE_HOSTILE_H
#define HOSTILE_HOSTILE_H

#include <stdbool.h>
#include <stdint.h>

#include "schema/control.h"
#include "schema/session.h"

/* What the honest worker's memory is full of. Whoever finds it in memory of his own, or reads it
 * without the token, has broken in. */
#define HOSTILE_SECRET "kedge-victim-secret-0123456789ab" /* 32 bytes */
#define HOSTILE_STAIN  0xa5                               /* what attackers leave in theirs */

struct hostile {
    const char *socket;   /* of the agent */
    const char *peer;     /* of the agent of the victim's region */
    const char *token;    /* of the victim's region; NULL: none is needed */
    const char *node;     /* newcomer: whose name it asks for; NULL: none */
    const char *progress; /* victim: a file that it writes its count to */
    bool stained;     /* accomplices of the same tenant are about: their stain may be in new memory,
                         which is allowed within a tenant (docs/leases.md#memory) */
    uint64_t random;  /* state */
    uint64_t ms;      /* how long it lasts */
    uint64_t rest_us; /* of the victim, after each 32 operations; 0: a millisecond now and then */
    uint64_t until_ns; /* when to end */
    uint64_t did, cut_off, errors;
};

/* The next number. */
uint64_t hostile_random(struct hostile *h);
void hostile_fill(struct hostile *h, void *memory, size_t bytes);
/* Its time begins: what it took to get ready is not of it. */
void hostile_begin(struct hostile *h);
/* Its time is over, and it did something: however slow the machine is. */
bool hostile_over(const struct hostile *h);
/* Says what is wrong and ends the process with 1. */
_Noreturn void hostile_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Fails when the secret is there. */
void hostile_look_for_secret(const void *memory, size_t bytes);

/* An attachment without libkedge: what came over the socket, mapped. */
struct raw {
    int socket;
    int fd[SCHEMA_FD_COUNT];
    struct schema_session_rw *rw;
    const struct schema_session_ro *ro;
    uint8_t *ring; /* slots of SCHEMA_LINE bytes */
    uint8_t *arena;
    const void *peers;
    uint64_t rw_bytes, ro_bytes, arena_bytes, peers_bytes;
    uint32_t tail, tag;
};

/* 0, or what the agent said (-errno). Its arena must be clean. Tries again while the agent is out
 * of sessions. */
int raw_open(struct hostile *h, struct raw *r);
/* One more, of a tenant that has so many: false when it may have none, or there is none. Of the
 * first one that is a failure. */
bool raw_open_more(struct hostile *h, struct raw *r, int sessions);
/* Once, without a look at the arena. */
int raw_try(const char *path, struct raw *r);
void raw_close(struct raw *r);
/* Whether the agent has ended it. */
bool raw_ended(const struct raw *r);
/* The same, waiting for it up to ms. */
bool raw_ends_within(const struct raw *r, unsigned ms);
/* Puts one descriptor (and `more` slots after it), publishes and rings. */
void raw_put(struct raw *r, const struct schema_sq_desc *d, const void *extra, uint32_t more);
void raw_ring(const struct raw *r);
/* A control request, waiting for its answer up to 5 s: its status, or -EPIPE when the session ended
 * instead. */
int raw_ask(struct raw *r, struct schema_sq_desc *d, uint64_t value[2]);
/* Polls up to ms for a completion: its status, or -ETIMEDOUT, or -EPIPE. */
int raw_poll(struct raw *r, struct schema_cqe *out, unsigned ms);
/* VQP 0 connected to the agent's own node. */
int raw_connect(struct raw *r);
/* A session whose one request after the other writes one half of its memory into the other. */
struct writer {
    struct raw r;
    struct schema_sq_desc d;
};
/* bytes: of memory of its own; 0: its first arena. */
void hostile_set_up_writer(struct writer *w, uint64_t bytes);
/* Asks for a node by its name, as kedge_connect_node() does: 0, or what the agent said (-errno). */
int raw_find_node(struct raw *r, const char *name);
/* One message; 0 or -errno. */
int raw_send(int socket, void *message, uint16_t type, uint32_t bytes, uint32_t tag);
int raw_dial(const char *path); /* a connected socket or -errno */

/* The attacks, by file. */
void attack_ring_random(struct hostile *h);
void attack_ring_formed(struct hostile *h);
void attack_ring_torn(struct hostile *h);
void attack_indices(struct hostile *h);
void attack_phases(struct hostile *h);
void attack_resize(struct hostile *h);
void attack_punch(struct hostile *h);
void attack_idle_punch(struct hostile *h);
void attack_idle_collapse(struct hostile *h);
void attack_idle_lock(struct hostile *h);
void attack_promises(struct hostile *h);
void attack_remap(struct hostile *h);
void attack_write_read_only(struct hostile *h);
void attack_doorbell(struct hostile *h);
void attack_flood(struct hostile *h);
void attack_garbage(struct hostile *h);
void attack_tokens(struct hostile *h);
void attack_connections(struct hostile *h);
void attack_descriptors(struct hostile *h);
void attack_linger(struct hostile *h);
void attack_unread(struct hostile *h);
void attack_keys(struct hostile *h);
void attack_secrets(struct hostile *h);
void attack_stale_keys(struct hostile *h);
void attack_never_polls(struct hostile *h);
void attack_greedy(struct hostile *h);
void attack_false_processor(struct hostile *h);
void attack_smalls(struct hostile *h);
void attack_doorbells(struct hostile *h);
void attack_hung_doorbell(struct hostile *h);
void attack_connects(struct hostile *h);
void attack_imports(struct hostile *h);
void attack_statuses(struct hostile *h);
void attack_regions(struct hostile *h);
void attack_sleepers(struct hostile *h);
void attack_crowded_bucket(struct hostile *h);
void attack_crowded_descriptor(struct hostile *h);
void attack_crowded_socket(struct hostile *h);
void attack_strangers(struct hostile *h);
void attack_names(struct hostile *h);
void attack_messages(struct hostile *h);
void attack_counters(struct hostile *h);
void attack_message_flood(struct hostile *h);
void attack_ports(struct hostile *h);
void attack_foreign_port(struct hostile *h);
void attack_batches(struct hostile *h);
void attack_batch_storm(struct hostile *h);
void attack_publishes(struct hostile *h);
void attack_hoard(struct hostile *h);
void attack_balloon(struct hostile *h);
void attack_ask_and_fault(struct hostile *h);
void attack_accomplice(struct hostile *h);
void attack_leaver(struct hostile *h);
void attack_quitter(struct hostile *h);
void attack_dies(struct hostile *h);
/* The honest worker, which runs beside them all, and those that come and go; attacher and
 * registrar print percentiles of what attaching and registering take. */
void victim(struct hostile *h);
void newcomer(struct hostile *h);
void attacher(struct hostile *h);
void registrar(struct hostile *h);

#endif
