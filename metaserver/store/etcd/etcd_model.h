/* SPDX-License-Identifier: Apache-2.0 */
/* What the keys of a store in etcd are called, and what their values say: docs/metaserver.md has
 * the layout. One thread. */
#ifndef METASERVER_STORE_ETCD_MODEL_H
#define METASERVER_STORE_ETCD_MODEL_H

#include "etcd_wire.h"
#include "metaserver/store_watch.h"

enum {
    META_ETCD_FORMAT = 1, /* of what is stored */
    META_ETCD_PREFIX_BYTES = 128,
    META_ETCD_LIFE_BYTES = META_STORE_ETCD_LIFE_BYTES,
    META_ETCD_VALUE_BYTES = 2 << 20,
};

/* Where a store is. */
struct meta_etcd_place {
    char prefix[META_ETCD_PREFIX_BYTES]; /* ends with '/' */
    char member[META_STORE_ID_BYTES];
};

/* The key PREFIX/store. */
struct meta_etcd_root {
    char id[META_ETCD_LIFE_BYTES];
    uint64_t generation;
    uint64_t mod_revision; /* 0: there is no store */
};

/* A node, and the endpoints that it had when it expired: keys of them are still there. */
struct meta_etcd_node {
    struct meta_store_node node;
    uint32_t former_count;
    struct meta_store_endpoint former[META_STORE_NODE_ENDPOINTS];
};

/* Who has said that nothing is heard of a life of a node: members, and the lives that said it. */
struct meta_etcd_silent {
    uint32_t incarnation, count;
    struct meta_etcd_vote {
        char name[META_STORE_ID_BYTES], life[META_ETCD_LIFE_BYTES];
    } by[META_STORE_MEMBERS_MAX];
};

struct meta_etcd_member {
    struct meta_store_member member;
    char life[META_ETCD_LIFE_BYTES];
};

/* This process's life, and those before it. */
struct meta_etcd_lives {
    char own[META_ETCD_LIFE_BYTES], former[META_STORE_ETCD_FORMER_BYTES];
};

int meta_etcd_read_place(const struct meta_store_etcd_config *config, struct meta_etcd_place *out,
                         struct base_errbuf *err);
/* 128 random bits. 0 or -errno. */
int meta_etcd_draw(char out[META_ETCD_LIFE_BYTES], struct base_errbuf *err);
/* What is given; a life of our own where none is. */
int meta_etcd_take_lives(const struct meta_store_etcd_config *config, struct meta_etcd_lives *out,
                         struct base_errbuf *err);
/* Of this process, or of one before it that is over. */
bool meta_etcd_is_ours(const struct meta_etcd_lives *lives, const char *life);

/* ---- keys. `under`: of a generation, "nodes/" or "last" */
void meta_etcd_key(struct meta_etcd_key *out, const struct meta_etcd_place *p, const char *what,
                   const char *name);
void meta_etcd_key_under(struct meta_etcd_key *out, const struct meta_etcd_place *p,
                         uint64_t generation, const char *under, const char *name);
void meta_etcd_key_endpoint(struct meta_etcd_key *out, const struct meta_etcd_place *p,
                            uint64_t generation, const struct meta_store_endpoint *e);
void meta_etcd_key_trail(struct meta_etcd_key *out, const struct meta_etcd_place *p,
                         uint64_t generation, uint64_t revision);
/* -EINVAL: a name that is too long. */
int meta_etcd_key_resource(struct meta_etcd_key *out, const struct meta_etcd_place *p,
                           uint64_t generation, const char *kind, const char *name,
                           struct base_errbuf *err);
/* Of a region's name, which has room for whatever it may be. */
void meta_etcd_key_name(struct meta_etcd_key *out, const struct meta_etcd_place *p,
                        uint64_t generation, const struct meta_store_name *name);
/* A part of a key as a name again, up to '/' or the end; false: it is too long, or is none. */
bool meta_etcd_name_of(const char *part, char *out, size_t room);

/* ---- values, as they are written; readers return false for what makes no sense */
void meta_etcd_write_root(struct base_text *t, const struct meta_etcd_root *root);
int meta_etcd_read_root(const struct meta_etcd_kv *kv, struct meta_etcd_root *out,
                        struct base_errbuf *err);
void meta_etcd_write_node(struct base_text *t, const struct meta_etcd_node *n);
bool meta_etcd_read_node(const char *id, const char *value, struct meta_etcd_node *out);
void meta_etcd_write_silent(struct base_text *t, const struct meta_etcd_silent *s);
bool meta_etcd_read_silent(const char *value, struct meta_etcd_silent *out);
void meta_etcd_write_member(struct base_text *t, const char *life, const char *about);
bool meta_etcd_read_member(const char *name, const char *value, struct meta_etcd_member *out);
/* Of an endpoint: whose it is. */
void meta_etcd_write_owner(struct base_text *t, const char *id);
bool meta_etcd_read_owner(const char *value, char out[META_STORE_ID_BYTES]);
void meta_etcd_write_resource(struct base_text *t, uint64_t revision, const char *body);
/* The body is borrowed from *root, which is the caller's to json_decref(). */
bool meta_etcd_read_resource(const char *value, json_t **root, struct meta_store_resource *out);
void meta_etcd_write_change(struct base_text *t, const struct meta_store_change *c);
bool meta_etcd_read_change(const char *value, json_t **root, struct meta_store_change *out);

void meta_etcd_write_name(struct base_text *t, const struct meta_store_name *name);
/* part: "TENANT/NAME" as the key has it. value NULL: these alone. */
bool meta_etcd_read_name(const char *part, const char *value, struct meta_store_name *out);

/* "KEY of etcd makes no sense": -EBADMSG, and what to do. */
int meta_etcd_refuse_value(const char *key, struct base_errbuf *err);
/* The same of what one thing alone is stored as: -EUCLEAN. */
int meta_etcd_refuse_thing(const char *key, struct base_errbuf *err);

#endif
