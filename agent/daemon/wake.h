/* SPDX-License-Identifier: Apache-2.0 */
/* How another thread makes the control thread look: an eventfd in its loop.
 *
 * Not uv_async_send(): whoever is woken by that waits for the sender to come out of the call, and
 * gives up the processor where both have the same one. A sender that goes on with work then keeps
 * it for a time slice or several, and the control thread stands behind it, also while other
 * processors are idle. */
#ifndef DAEMON_WAKE_H
#define DAEMON_WAKE_H

#include <uv.h>

#include "base/error.h"

struct wake {
    uv_poll_t poll; /* data: this */
    int fd;
    void (*heard)(void *user);
    void *user;
};

/* Control thread. heard() is called there, once for any number of agentd_wake_up() before it. 0 or
 * -errno. */
int agentd_wake_init(struct wake *w, uv_loop_t *loop, void (*heard)(void *user), void *user,
                     struct base_errbuf *err);
/* When its loop is closed and no thread is left that calls agentd_wake_up(); nothing if it is all
 * 0. */
void agentd_wake_fini(struct wake *w);

/* Any thread; also between the closing of the loop and agentd_wake_fini(): then nobody hears. */
void agentd_wake_up(const struct wake *w);

#endif
