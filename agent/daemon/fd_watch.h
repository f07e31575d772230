/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors that the control thread's loop watches. */
#ifndef DAEMON_FD_WATCH_H
#define DAEMON_FD_WATCH_H

#include <uv.h>

#include "base/error.h"

/* Control thread. readable() is called there whenever fd can be read; poll->data is the caller's to
 * set before. 0; or -errno and a sentence: then poll is as it was, and is not to be closed. */
int agentd_fd_watch(uv_loop_t *loop, uv_poll_t *poll, int fd, uv_poll_cb readable,
                    struct base_errbuf *err);

/* The sentence alone, for what libuv said. Returns it as -errno, which libuv's numbers are. */
int agentd_fd_watch_failed(int status, struct base_errbuf *err);

#endif
