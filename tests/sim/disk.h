/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a simulated host: small ones, each replaced whole, that outlive its processes. What
 * is here is on the platter; who writes decides when (and whether) it gets there. One thread. */
#ifndef SIM_DISK_H
#define SIM_DISK_H

#include <stddef.h>

struct play_host;

void play_disk_init(void);
void play_disk_fini(void);
void play_disk_write(const struct play_host *h, const char *name, const void *bytes, size_t length);
/* As world_load(). */
int play_disk_read(const struct play_host *h, const char *name, void *bytes, size_t capacity,
                   size_t *length);
/* The host gets another disk, which is empty. */
void play_disk_lose(const struct play_host *h);

#endif
