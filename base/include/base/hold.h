/* SPDX-License-Identifier: Apache-2.0 */
/* Memory files of which strangers who map them make no huge pages.
 *
 * Whoever maps a file in memory, also if he may only read it, can have the kernel put small pages
 * together (MADV_COLLAPSE, Linux 6.1). For that it takes them from all who map them, locked, and
 * looks through all mappings of the file, of which he may have as many as he likes, and can be kept
 * from his processor meanwhile: whoever touches such a page waits as long, and whoever maps or
 * unmaps anything in the same process. It leaves pages alone that somebody refers to beside
 * mappings, before it has done anything. So one page of each huge page that there could be lies in
 * a pipe. Any thread. */
#ifndef BASE_HOLD_H
#define BASE_HOLD_H

#include <stddef.h>

struct iovec;

enum {
    BASE_HOLD_MAPS = 2,    /* of one hold, at most */
    BASE_HOLD_PAGES = 256, /* likewise: 512 MiB, where a huge page has 2 MiB */
};

/* Of one mapping that one hold has room for: a multiple of what a huge page has. */
size_t base_hold_bytes(void);
/* Holds pages of count (1 .. BASE_HOLD_MAPS) mappings of memory files, each from its first byte, or
 * a multiple of base_hold_bytes(), to its end, or for as many bytes. To be closed before their
 * files are emptied, else these pages are kept. A descriptor, the caller's; or -errno: -E2BIG,
 * these are too large; -EMFILE; -EPERM: this user's pipes have as many pages as they may
 * (fs.pipe-user-pages-soft). */
int base_hold_new(const struct iovec *maps, unsigned count);

/* Whether pages can be held here, tried on one of its own. 0 or -errno. */
int base_hold_try(void);

#endif
