/* SPDX-License-Identifier: Apache-2.0 */
/* A store that several metaservers share: in etcd, by the JSON gateway of its API v3 (3.4 and
 * later).
 *
 * What is kept under the prefix is described in docs/metaserver.md. Each transaction is fenced by
 * the revisions of what it was decided on, and by the store's own id: so that what was restored, or
 * is another store by now, is not written to by who knows the former one. */
#ifndef METASERVER_STORE_ETCD_H
#define METASERVER_STORE_ETCD_H

#include "metaserver/store_watch.h"

#define META_STORE_ETCD_LIFE_BYTES 33 /* 128 bits as digits, and NUL */
/* So many of them, with a blank or NUL behind each. */
#define META_STORE_ETCD_FORMER       16
#define META_STORE_ETCD_FORMER_BYTES (META_STORE_ETCD_FORMER * META_STORE_ETCD_LIFE_BYTES)

/* Strings are borrowed for the call. "" or NULL: none. */
struct meta_store_etcd_config {
    const char *endpoints; /* "http://127.0.0.1:2379,http://..." : any of them, in turn */
    const char *prefix;    /* of all keys: "/kedge/" */
    const char *user, *password_file;
    const char *ca_file, *cert_file, *key_file; /* of https */
    const char *member;                         /* this metaserver's name, among others' */
    const char *about;                          /* JSON that it says of itself */
    /* This process, as META_STORE_ETCD_LIFE_BYTES of text, to its store and its watch alike: while
     * the name is of another one that lives, the store writes nothing. NULL: each draws its own,
     * and whoever has the name is not looked at. */
    const char *life;
    /* That process's former lives, with a blank between each two, of which it is known that they
     * have ended: their name is taken over at once. Several, because one that ended before etcd
     * answered it never had the name, which the one before it may still have. NULL or "": a life
     * that is over keeps the name for as long as its lease. */
    const char *former;
    bool to_read;        /* the store: nothing is made, and what would write fails with -EROFS */
    uint64_t timeout_ns; /* of a request, all its tries; 0: 5 s */
};

/* Blocks; one thread at a time. No endpoint need answer yet, but for what is wrong with the
 * settings. -errno and a sentence. */
int meta_store_etcd(const struct meta_store_etcd_config *config, struct meta_store **out,
                    struct base_errbuf *err);
/* What of the settings either would refuse without asking etcd; what they name on this host is
 * read. 0, or -errno and a sentence. */
int meta_store_etcd_check(const struct meta_store_etcd_config *config, struct base_errbuf *err);
/* A life that nobody else has. -errno and a sentence. */
int meta_store_etcd_draw(char out[META_STORE_ETCD_LIFE_BYTES], struct base_errbuf *err);
/* Says by a lease of etcd that the member lives, from its first next() until close(); another
 * living metaserver of the same name: this one is told everything, but where there is nothing to
 * tell next() fails with -EADDRINUSE until that one is gone; not in its first 30 s, in which that
 * may be itself before it was killed. */
int meta_store_etcd_watch(const struct meta_store_etcd_config *config,
                          struct meta_store_watch **out, struct base_errbuf *err);

#endif
