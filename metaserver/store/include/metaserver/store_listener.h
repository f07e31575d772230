/* SPDX-License-Identifier: Apache-2.0 */
/* A watch of a shared store (store_watch.h) with a thread of its own that waits in it.
 *
 * Everything here is called on the owner's thread. */
#ifndef METASERVER_STORE_LISTENER_H
#define METASERVER_STORE_LISTENER_H

#include "metaserver/store_watch.h"

struct meta_store_listener;

enum {
    META_STORE_UNHEARD_MAX = 256
}; /* things that wait to be taken; the thread waits with more */

/* Begins the thread. The watch is the listener's from now on, also if this fails. -errno and a
 * sentence. */
int meta_store_listener_new(struct meta_store_watch *watch, struct meta_store_listener **out,
                            struct base_errbuf *err);
/* Stops the watch, waits for its thread, and closes it. NULL is allowed. */
void meta_store_listener_free(struct meta_store_listener *l);

/* May be read when there is something to take: also that there is nothing new, now and then. */
int meta_store_listener_fd(const struct meta_store_listener *l);
/* The next thing, which is the caller's; NULL: there is no more. */
struct meta_store_heard *meta_store_listener_take(struct meta_store_listener *l);
/* Whether anything was heard, or nothing, since the last call: 1: the store has said that there was
 * nothing more; 0: there is no news of that; -errno and a sentence: it cannot be heard. */
int meta_store_listener_state(struct meta_store_listener *l, struct base_errbuf *why);
/* A snapshot is wanted: what was heard does not fit to what is known. */
void meta_store_listener_ask(struct meta_store_listener *l);

#endif
