/* SPDX-License-Identifier: Apache-2.0 */
#include "wake.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "fd_watch.h"

static void on_readable(uv_poll_t *poll, int status, int events)
{
    const struct wake *w = poll->data;
    uint64_t times;
    (void)status;
    (void)events;
    if (read(w->fd, &times, sizeof times) < 0) {
        /* Somebody has read it. */
    }
    w->heard(w->user);
}

int agentd_wake_init(struct wake *w, uv_loop_t *loop, void (*heard)(void *user), void *user,
                     struct base_errbuf *err)
{
    *w = (struct wake){.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    if (w->fd < 0)
        return base_err(err, -errno, "no descriptor can be had: %s (raise LimitNOFILE?)",
                        strerror(errno));
    w->poll.data = w;
    const int status = agentd_fd_watch(loop, &w->poll, w->fd, on_readable, err);
    if (status != 0) {
        close(w->fd);
        return status;
    }
    w->heard = heard;
    w->user = user;
    return 0;
}

void agentd_wake_fini(struct wake *w)
{
    if (w->heard != NULL)
        close(w->fd);
    w->heard = NULL;
}

void agentd_wake_up(const struct wake *w)
{
    const uint64_t once = 1;
    if (write(w->fd, &once, sizeof once) < 0) {
        /* Full, and so readable. */
    }
}
