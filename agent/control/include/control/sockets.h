/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the world (control/world.h) that workers' sockets are: what the core says there. What
 * it hears is control/attach.h. Control thread. */
#ifndef CONTROL_SOCKETS_H
#define CONTROL_SOCKETS_H

#include <sys/types.h>

#include "control/world.h"

struct fab_mem;
struct world_socket; /* the world's: of a worker that has connected */

/* What a worker is lent with a message, in the order of schema/control.h. NULL: not that. */
struct world_lent {
    const struct world_rings *rings;
    const struct world_peers *peers;
    const struct fab_mem *arena;
    int channel; /* what world_lane_channel() gave, + 1, or 0: the world's again, whatever comes */
};

struct world_socket_ops {
    /* Sends a whole message, with what is lent (or NULL). 0; or -errno: it cannot be, now or ever.
     */
    int (*reply)(struct world *w, struct world_socket *s, const void *message, size_t bytes,
                 const struct world_lent *lent);
    /* Its worker sees that no more comes. */
    void (*shut)(struct world *w, struct world_socket *s);
    /* Nothing of it is reported any more but agent_attach_closed(). */
    void (*mute)(struct world *w, struct world_socket *s);
    /* How many descriptors the kernel lets us send beside those that are unread, of `most`. */
    uint32_t (*room)(struct world *w, uint32_t most);
    /* Whether its worker has left something unread, and can still read it. */
    bool (*unread)(struct world *w, struct world_socket *s);
    /* Its worker sees that it is over; nothing is reported of it, and close() is to come. */
    void (*linger)(struct world *w, struct world_socket *s);
    /* Once: agent_attach_closed() follows. True: that may take long, since descriptors were sent
     * there.
     */
    bool (*close)(struct world *w, struct world_socket *s);
    /* Of these uids, and no others, none is to connect to the socket for all from now on, as far as
     * the host can keep them from it. NULL: it cannot. */
    void (*keep_out)(struct world *w, const uid_t *uids, uint32_t count);
};

static inline int world_reply(struct world *w, struct world_socket *s, const void *message,
                              size_t bytes, const struct world_lent *lent)
{
    return w->sockets->reply(w, s, message, bytes, lent);
}

static inline void world_shut(struct world *w, struct world_socket *s)
{
    w->sockets->shut(w, s);
}

static inline void world_mute(struct world *w, struct world_socket *s)
{
    w->sockets->mute(w, s);
}

static inline uint32_t world_room(struct world *w, uint32_t most)
{
    return w->sockets->room(w, most);
}

static inline bool world_unread(struct world *w, struct world_socket *s)
{
    return w->sockets->unread(w, s);
}

static inline void world_linger(struct world *w, struct world_socket *s)
{
    w->sockets->linger(w, s);
}

static inline bool world_close(struct world *w, struct world_socket *s)
{
    return w->sockets->close(w, s);
}

static inline void world_keep_out(struct world *w, const uid_t *uids, uint32_t count)
{
    if (w->sockets->keep_out != NULL)
        w->sockets->keep_out(w, uids, count);
}

#endif
