/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP between simulated processes: calls as agents make them (base/http/client.h), and what a
 * server sees of them. A call is delayed, lost, or cut off in its middle, as the network between
 * two hosts is; what was lost the client learns by its own time-outs alone, and a server that dies
 * by a connection that is reset. One thread. */
#ifndef SIM_CALLS_H
#define SIM_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/http/client.h"
#include "inbox.h"

struct play_call;
struct play_host;

/* Who answers calls to that authority ("metad-a:7480"). */
struct play_server {
    const char *authority;
    struct play_host *host;
    struct play_inbox *inbox; /* of its process; asked() runs there */
    void (*asked)(void *user, struct play_call *c);
    /* Of a stream: there may be more to send. Runs there too. */
    void (*pumped)(void *user, struct play_call *c);
    /* Of a stream: nobody reads it any more, and the call is gone after this. */
    void (*left)(void *user, struct play_call *c);
    void *user;
};

/* From now on, until the second: then all that it has of calls is dropped, and those who called are
 * cut off. */
void play_server_begin(struct play_server *server);
void play_server_end(struct play_server *server);
/* Of a server that is about to end: what one of its streams has as data, once. NULL: there is none
 * left. */
void *play_server_stream(const struct play_server *server);

/* The network of two hosts, for calls: of all at first 200 us and 100 us jitter. */
struct play_calls_network {
    uint64_t delay_ns, jitter_ns;
    uint32_t lost_ppm;  /* of requests, and of answers: nothing comes of them */
    uint32_t reset_ppm; /* of requests, and of answers: the client hears that it was reset */
};
void play_calls_init(uint64_t seed, const struct play_calls_network *network);
void play_calls_set_network(const struct play_calls_network *network);
/* Nothing gets through from one to the other, until it is undone. The other way it does, also of
 * the same calls. */
void play_calls_cut(const struct play_host *from, const struct play_host *to, bool cut);
/* How many calls are under way. */
uint32_t play_calls_open(void);

/* ---- the client's end; done and on_line run from its inbox */

int play_call_begin(struct play_inbox *inbox, const struct http_call *call, http_done done,
                    void *user, uint64_t *id);
int play_call_cancel(struct play_inbox *inbox, uint64_t id);
/* All of this client's: with -ECANCELED, in its process; or without a word, since it is dead. */
void play_calls_end(struct play_inbox *inbox, bool tell);

/* ---- the server's end */

/* What its server was begun with as user. */
void *play_call_server(const struct play_call *c);
const char *play_call_method(const struct play_call *c);
/* As it was asked for, with its query. */
const char *play_call_target(const struct play_call *c);
const char *play_call_token(const struct play_call *c);  /* NULL: none */
const char *play_call_client(const struct play_call *c); /* the host's name */
const char *play_call_body(const struct play_call *c, size_t *length);
/* Whether nobody waits for the answer. */
bool play_call_is_gone(const struct play_call *c);
void play_call_set_data(struct play_call *c, void *data);
void *play_call_data(const struct play_call *c);
/* All of it; the call is over. */
void play_call_answer(struct play_call *c, int status, const char *content_type, const char *body,
                      size_t length);
/* It is a stream, and pumped() follows. */
void play_call_stream(struct play_call *c);
void play_call_pump(struct play_call *c);
void play_call_send(struct play_call *c, const char *bytes, size_t length);
/* The stream ends; the call is over. */
void play_call_finish(struct play_call *c);

#endif
