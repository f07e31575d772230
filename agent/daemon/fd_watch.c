/* SPDX-License-Identifier: Apache-2.0 */
#include "fd_watch.h"

#include <errno.h>

#include "base/assert.h"

int agentd_fd_watch_failed(int status, struct base_errbuf *err)
{
    const char *out = status == -ENOSPC ? " (raise fs.epoll.max_user_watches)" : "";
    return base_err(err, status, "no descriptor can be watched: %s%s", uv_strerror(status), out);
}

int agentd_fd_watch(uv_loop_t *loop, uv_poll_t *poll, int fd, uv_poll_cb readable,
                    struct base_errbuf *err)
{
    int status = uv_poll_init(loop, poll, fd);
    if (status != 0)
        return agentd_fd_watch_failed(status, err);
    status = uv_poll_start(poll, UV_READABLE, readable);
    BASE_ASSERT(status == 0); /* of a handle that was just made only the events could be wrong */
    return 0;
}
