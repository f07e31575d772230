/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between a worker and its agent over the attach socket (Unix SOCK_SEQPACKET): fixed-size
 * structs, host byte order (one host), one message one packet. After ATTACH the socket is silent,
 * unless a worker asks for an arena, for the GID of a node by name, for a name for a region of its
 * own, or for a completion channel. A message of another size or version is answered with an error
 * and the connection ends: what came later than the version is asked of an agent that has said that
 * it knows it. */
#ifndef SCHEMA_CONTROL_H
#define SCHEMA_CONTROL_H

#include <assert.h>
#include <stdint.h>

#include "schema/name_record.h"

#define SCHEMA_CONTROL_MAGIC   0x4b43544cu /* "KCTL" */
#define SCHEMA_CONTROL_VERSION 4
#define SCHEMA_CONTROL_MAX_FDS 8
/* With the agent's version and the library's. */
#define SCHEMA_CONTROL_VERSIONS                                                                    \
    "the agent speaks protocol %u, this library %u: run the worker with the libkedge of its "      \
    "host's "                                                                                      \
    "Kedge"

enum schema_control_type {
    SCHEMA_CONTROL_ATTACH = 1,
    SCHEMA_CONTROL_ATTACHED = 2, /* fds: RW, RO, eventfd, peers, arena 0 */
    SCHEMA_CONTROL_ARENA = 3,    /* asks for one more arena */
    SCHEMA_CONTROL_ARENA_OK = 4, /* fds: the arena */
    SCHEMA_CONTROL_RESOLVE = 5,  /* a node's name */
    SCHEMA_CONTROL_RESOLVED = 6,
    SCHEMA_CONTROL_ERROR = 7,
    SCHEMA_CONTROL_PUBLISH = 8,      /* a region of the session's is to be found by a name */
    SCHEMA_CONTROL_UNPUBLISH = 9,    /* and no more */
    SCHEMA_CONTROL_PUBLISHED = 10,   /* either is done */
    SCHEMA_CONTROL_PUBLISH_FOR = 11, /* as PUBLISH, for workers of another tenant */
    SCHEMA_CONTROL_CHANNEL = 14,     /* asks for a completion channel */
    SCHEMA_CONTROL_CHANNEL_OK = 15,  /* fds: the worker's end of it */
};

/* In ATTACHED: what this agent knows beside what all of the version do. */
enum schema_control_feature {
    SCHEMA_FEATURE_PUBLISH = 1 << 0,     /* these messages */
    SCHEMA_FEATURE_LOOKUP = 1 << 1,      /* SCHEMA_OP_LOOKUP, its lanes */
    SCHEMA_FEATURE_TENANTS = 1 << 2,     /* both of and for other tenants */
    SCHEMA_FEATURE_UNIMPORT = 1 << 3,    /* SCHEMA_OP_UNIMPORT, its lanes */
    SCHEMA_FEATURE_IMPORT_MANY = 1 << 4, /* SCHEMA_OP_IMPORT_MANY, likewise */
    SCHEMA_FEATURE_MESSAGES = 1 << 5,    /* SEND, RECV, SEND_TO, BIND_PORT, where its pool has a
                                          * lane that hears messages */
    SCHEMA_FEATURE_RELAXED = 1 << 6,     /* SCHEMA_OP_RELAXED, its lanes */
    SCHEMA_FEATURE_CHANNEL = 1 << 7,     /* CHANNEL, and its lanes `armed` (schema/session.h) */
    SCHEMA_FEATURE_BATCHES = 1 << 8,     /* BATCH and the others of batches, its lanes */
    SCHEMA_FEATURE_NOTIFY = 1 << 10,     /* WRITE_IMM, SCHEMA_OP_LISTED, and the operations of
                                          * counters, beside MESSAGES */
    SCHEMA_FEATURE_LARGE = 1 << 12,      /* with MESSAGES: SENDs of SCHEMA_LARGE_MOST */
    SCHEMA_FEATURE_GUESTS = 1 << 13,     /* with MESSAGES: ports for other tenants: PORT_GRANT,
                                          * PORT_REVOKE, and answers of the tenant whose port a VQP
                                          * sends to */
    SCHEMA_FEATURE_PHASES = 1 << 14,     /* schema/phase.h, its lanes: of both rings */
};

enum schema_attached_fd {
    SCHEMA_FD_RW,
    SCHEMA_FD_RO,
    SCHEMA_FD_DOORBELL,
    SCHEMA_FD_PEERS,
    SCHEMA_FD_ARENA,
    SCHEMA_FD_COUNT
};

struct schema_control_header {
    uint32_t magic;
    uint16_t version;
    uint16_t type; /* enum schema_control_type */
    uint32_t tag;  /* the answer has the question's; questions' are not 0, an ERROR with 0 is about
                      the connection and its last message */
    uint32_t size; /* of the whole message, header included */
};

struct schema_control_attach {
    struct schema_control_header h;
    char pool[32];   /* NUL-padded; empty: the tenant's */
    char token[128]; /* likewise; empty: by the socket, else by uid */
    /* When it was sent, of base_clock_ns(), and for how long its worker still waited for an answer
     * then. Between that and when it is read much of that time may be over. A worker in a time
     * namespace has another clock. */
    uint64_t sent_ns;
    uint32_t left_ms;
    uint32_t reserved;
};

struct schema_control_attached {
    struct schema_control_header h;
    uint64_t rw_bytes, ro_bytes, peers_bytes, arena_bytes;
    uint32_t session; /* for logs */
    uint32_t tenant;
    uint32_t arena;    /* index of the first arena: its lkey */
    uint32_t features; /* enum schema_control_feature */
};

struct schema_control_arena {
    struct schema_control_header h;
    uint64_t bytes; /* wanted, rounded up by the agent; 0: the usual */
};

struct schema_control_arena_ok {
    struct schema_control_header h;
    uint64_t bytes;
    uint32_t arena;
    uint32_t reserved;
};

struct schema_control_resolve {
    struct schema_control_header h;
    char name[64]; /* NUL-padded */
};

struct schema_control_resolved {
    struct schema_control_header h;
    uint8_t gid[16];
    uint16_t pool;
    uint16_t reserved[3];
};

/* PUBLISH and UNPUBLISH. */
struct schema_control_publish {
    struct schema_control_header h;
    uint32_t vkey;
    uint32_t reserved;
    char name[SCHEMA_NAME_MAX + 1]; /* NUL-padded; UNPUBLISH: empty: all that the region has */
};

/* PUBLISH_FOR: begins as PUBLISH does. */
struct schema_control_publish_for {
    struct schema_control_publish what;
    char reader[SCHEMA_NAME_TENANT_MAX + 1]; /* a tenant's name, NUL-padded */
};

/* CHANNEL and CHANNEL_OK. */
struct schema_control_channel {
    struct schema_control_header h;
};

struct schema_control_published {
    struct schema_control_header h;
    uint32_t names; /* that the region has now */
    uint32_t reserved;
};

struct schema_control_error {
    struct schema_control_header h;
    int32_t status;    /* -errno */
    uint32_t retry_ms; /* -EAGAIN of an ATTACH: ask again after so long; 0: not known */
    char text[240];    /* a sentence, NUL-terminated */
};

static_assert(sizeof(struct schema_control_header) == 16, "layout");
static_assert(sizeof(struct schema_control_attach) == 192, "layout");
static_assert(sizeof(struct schema_control_attached) == 64, "layout");
static_assert(sizeof(struct schema_control_arena) == 24, "layout");
static_assert(sizeof(struct schema_control_arena_ok) == 32, "layout");
static_assert(sizeof(struct schema_control_resolve) == 80, "layout");
static_assert(sizeof(struct schema_control_resolved) == 40, "layout");
static_assert(sizeof(struct schema_control_error) == 264, "layout");
static_assert(sizeof(struct schema_control_publish) == 280, "layout");
static_assert(sizeof(struct schema_control_publish_for) == 312, "layout");
static_assert(sizeof(struct schema_control_published) == 24, "layout");
static_assert(sizeof(struct schema_control_channel) == 16, "layout");

#define SCHEMA_CONTROL_MAX_BYTES 312

/* Checks a packet that came from outside: magic, version, a known type, the size that this type has
 * (both the packet's and the header's), strings terminated. 0, -EPROTO, -EPROTONOSUPPORT (version).
 */
int schema_control_check(const void *packet, uint64_t bytes);

#endif
