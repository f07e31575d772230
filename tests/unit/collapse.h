/* SPDX-License-Identifier: Apache-2.0 */
/* Has the kernel make a huge page of a memory file, as whoever maps it may. */
#ifndef TESTS_UNIT_COLLAPSE_H
#define TESTS_UNIT_COLLAPSE_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fds.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif

/* Of the huge page that begins there: 0 or -errno. What lies there of so many bytes that the file
 * has is touched first. */
static inline int collapse_try_at(int fd, size_t from, size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), huge = page / sizeof(uint64_t) * page;
    char *room = mmap(NULL, 2 * huge, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED)
        return -errno;
    char *at = room + (huge - (uintptr_t)room % huge) % huge;
    int status = 0;
    if (mmap(at, huge, PROT_READ, MAP_SHARED | MAP_FIXED, fd, (off_t)from) != at)
        status = -errno;
    for (size_t i = 0; status == 0 && from + i < bytes && i < huge; i += page)
        (void)*(volatile char *)(at + i);
    if (status == 0 && madvise(at, huge, MADV_COLLAPSE) != 0)
        status = -errno;
    munmap(room, 2 * huge);
    return status;
}

static inline int collapse_try(int fd, size_t bytes)
{
    return collapse_try_at(fd, 0, bytes);
}

/* 0; or why it is of no use to try: an older kernel, one that was told not to, no huge page free.
 */
static inline int collapse_possible(void)
{
    void *map;
    int fd;
    int status = base_memfd_new("kedge-test", 8192, BASE_MEMFD_READ, &fd, &map);
    if (status != 0)
        return status;
    status = collapse_try(fd, 8192);
    munmap(map, 8192);
    close(fd);
    return status;
}

#endif
