/* SPDX-License-Identifier: Apache-2.0 */
/* Small files of the state directory, replaced whole. Blocks on disk. Any thread, one per name. */
#ifndef DAEMON_STATE_FILE_H
#define DAEMON_STATE_FILE_H

#include <stddef.h>

/* Durable (file and directory) when this returns 0; -errno, and the old one is still there. name:
 * at most 56 characters. */
int agentd_state_file_write(int dir, const char *name, const void *bytes, size_t length);

/* 0, *length and at most capacity bytes; -ENOENT; -EFBIG: it is longer; or -errno. */
int agentd_state_file_read(int dir, const char *name, void *bytes, size_t capacity, size_t *length);

#endif
