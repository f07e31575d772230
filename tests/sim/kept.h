/* SPDX-License-Identifier: Apache-2.0 */
/* What hosts have on their disks by the word of those who wrote it: it is there after any crash and
 * any loss of power. What was begun and not acknowledged is there or not. One thread. */
#ifndef SIM_KEPT_H
#define SIM_KEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void play_kept_init(void);
void play_kept_fini(void);
/* The host has another disk. */
void play_kept_forget(const char *host);

/* ---- documents, which are replaced whole */

/* Somebody begins to write that; and all that was begun before is written, or has failed. */
void play_kept_begin(const char *host, const char *name, const void *bytes, size_t n);
void play_kept_done(const char *host, const char *name, const void *bytes, size_t n);
/* It is found so (bytes NULL: there is none). A violation, if it is neither what was written last
 * nor what somebody has begun to write since. */
void play_kept_found(const char *host, const char *name, const void *bytes, size_t n);

/* ---- numbers, which only go up as long as there is one: lives of nodes */

/* It is kept there that this has that number. A violation if it had a greater one. */
void play_kept_number(const char *host, const char *what, uint32_t number);
/* It is found with that number; 0: not found. A violation, if that is less than what was kept. */
void play_kept_number_found(const char *host, const char *what, uint32_t number);
/* What of it is kept, each, against what there is: number_of() says that, 0: it is not there. */
void play_kept_compare(const char *host, uint32_t (*number_of)(void *user, const char *what),
                       void *user);
/* The last one that is kept; 0: none. */
uint32_t play_kept_last(const char *host, const char *what);
/* Somebody asks for it to be forgotten: until that is answered, or all is compared, it may be gone,
 * whatever is kept of it meanwhile; answered with `gone` it is. */
void play_kept_leaving(const char *host, const char *what);
void play_kept_left(const char *host, const char *what, bool gone);

#endif
