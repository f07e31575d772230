/* SPDX-License-Identifier: Apache-2.0 */
/* Private to agent/probe: two probes, on two nodes, and what they tell each other over TCP.
 *
 * The one that serves lends its bed: a connection, DC targets, memory. The other one, the peer's
 * client, does all that is tried. Lines of text, a question and an answer each; what the other end
 * says is not believed: every number has bounds, and every wait an end. */
#ifndef PROBE_PEER_H
#define PROBE_PEER_H

#include "bed.h"

enum {
    PEER_LINE = 512,
    PEER_VERSION = 1,
    PEER_TARGETS = 2,          /* of DC */
    PEER_MEMORY = 2 << 20,     /* bytes that are lent */
    PEER_WORD = 16,            /* characters of what a client has to show */
    PEER_WORD_MS = 2000,       /* until that */
    PEER_PATIENCE_MS = 30000,  /* for one answer */
    PEER_WAIT_MS = 10 * 60000, /* for a client to come */
};

/* How an end is reached, and by what. */
struct peer_end {
    uint8_t gid[16];
    uint16_t lid;
    enum ibv_mtu mtu; /* that its port takes, and its settings */
    bool rc, dc;      /* that the agent there would use DC */
    unsigned service_level, traffic_class, pkey;
    uint32_t qpn; /* of its connection */
    uint32_t dctn[PEER_TARGETS];
    uint64_t dc_key[PEER_TARGETS];
    uint64_t addr, bytes; /* its memory */
    uint32_t rkey;
};

/* A stream of lines; fd -1: none. */
struct peer_link {
    int fd;
    unsigned line_ms; /* for a whole line, however many bytes of it come in between */
    size_t used;
    char buffer[PEER_LINE];
};
/* Both end in line_ms: -ETIMEDOUT. 0 or -errno; -EBADMSG: a line that is too long; -ECONNRESET: its
 * end. */
int probe_peer_say(struct peer_link *l, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
int probe_peer_hear(struct peer_link *l, char line[PEER_LINE]);
/* -errno and a sentence. address: HOST:PORT or [HOST]:PORT. */
int probe_peer_listen(const char *address, uint16_t *port, struct base_errbuf *err);
int probe_peer_accept(int listener, uint64_t wait_ms, struct peer_link *out);
int probe_peer_dial(const char *address, struct peer_link *out, struct base_errbuf *err);
void probe_peer_close(struct peer_link *l);
/* Of one that was accepted: it has shown the word, and may take its time. */
void probe_peer_trust(struct peer_link *l);

/* What an end says of itself, as one line. */
void probe_peer_write_end(const struct peer_end *e, char line[PEER_LINE]);
int probe_peer_read_end(const char *line, struct peer_end *out); /* 0 or -EBADMSG */
/* What this bed is, without queue pairs and memory. */
void probe_peer_describe(const struct bed *b, struct peer_end *out);

/* Bytes that tell where they belong, of a seed. */
void probe_peer_pattern(uint8_t *bytes, uint64_t length, uint32_t seed);

/* A connection with as many slots, pieces and inline bytes as the agent's. */
int probe_peer_make_connection(struct bed *b, struct fab_qp **out);
/* Through RESET to RTS, connected to another end (NULL: a DCI) with packets of that size, and the
 * agent's time-outs. */
int probe_peer_raise(struct bed *b, struct fab_qp *qp, const struct peer_end *to, enum ibv_mtu mtu);

/* Lends the bed to one client: until that has gone, or nobody has come for long. The address and
 * what the client has to show are printed on out as soon as they are known. 0, or -errno with a
 * sentence. */
int probe_peer_serve(struct bed *b, const char *address, FILE *out, struct base_errbuf *err);
/* The checks with a node that serves at settings->peer. */
void probe_peer(struct bed *b);

#endif
