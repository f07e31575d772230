/* SPDX-License-Identifier: Apache-2.0 */
/* The disk of a simulated host: a directory of files that outlives its processes. What is written
 * is there for all of them at once, and for good when it was synced: a cut of the power loses what
 * was not, or some of it. Names (of files that were made, renamed and removed) are synced for
 * themselves, and keep their order: of those that were not, the last ones are lost.
 *
 * All that it does follows from its seed. One thread. */
#ifndef SIM_DISK_H
#define SIM_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct play_disk;
struct play_file;

enum { PLAY_FILE_NAME = 64 };

/* An empty one, of a host. NULL: no memory. */
struct play_disk *play_disk_new(uint64_t seed, uint64_t number);
/* No file is open. */
void play_disk_free(struct play_disk *d);

/* ---- files. Each returns 0, or -ENOSPC, or -EIO: it has failed (play_disk_fail_after()) */

/* *out is open until play_file_close(). name NULL: one that has none, and goes then. -ENOENT: there
 * is none, and it is not to be made. */
int play_file_open(struct play_disk *d, const char *name, bool make, struct play_file **out);
void play_file_close(struct play_file *f);
uint64_t play_file_length(const struct play_file *f);
/* *got: how much there was. */
int play_file_read(struct play_file *f, uint64_t from, void *to, size_t n, size_t *got);
int play_file_write(struct play_file *f, uint64_t at, const void *bytes, size_t n);
/* Shorter, or longer by zeros. */
int play_file_cut(struct play_file *f, uint64_t length);
int play_file_sync(struct play_file *f);

/* ---- names */

bool play_disk_has(const struct play_disk *d, const char *name);
int play_disk_rename(struct play_disk *d, const char *from, const char *to);
int play_disk_remove(struct play_disk *d, const char *name);
int play_disk_sync_names(struct play_disk *d);

/* ---- what goes wrong */

/* From now on there is no room, or there is some again. */
void play_disk_set_full(struct play_disk *d, bool full);
/* From now on what is asked of it takes up to that; 0: as usual. */
void play_disk_set_slow(struct play_disk *d, uint64_t most_ns);
/* How long something that is synced takes now. */
uint64_t play_disk_time(struct play_disk *d);
/* Who uses it comes to its end in the middle of something: so many changes happen yet, and all that
 * is asked behind them fails, until play_disk_recover(). */
void play_disk_fail_after(struct play_disk *d, uint32_t changes);
/* A number for that, which is within a transaction. */
uint32_t play_disk_moment(struct play_disk *d);
void play_disk_recover(struct play_disk *d);
/* The power goes; no file is open. */
void play_disk_power_cut(struct play_disk *d);
/* The host gets another one, which is empty; no file is open. */
void play_disk_lose(struct play_disk *d);

#endif
