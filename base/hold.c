/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hold.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

/* One entry of a page table of the level above has a table of entries of 8 bytes below it. */
static size_t huge_page_of(size_t page)
{
    return page / sizeof(uint64_t) * page;
}

/* The first byte of each part that may become one page: the file begins with the mapping. */
static int list_pages(const struct iovec *maps, unsigned count, struct iovec *page)
{
    const size_t huge = huge_page_of((size_t)sysconf(_SC_PAGESIZE));
    unsigned n = 0;
    for (unsigned i = 0; i < count; i++)
        for (size_t at = 0; at < maps[i].iov_len; at += huge) {
            if (n == BASE_HOLD_PAGES)
                return -E2BIG;
            page[n++] = (struct iovec){.iov_base = (char *)maps[i].iov_base + at, .iov_len = 1};
        }
    return (int)n;
}

/* Into a pipe that has room for them and no more. */
static int fill_pipe(int end, const struct iovec *page, unsigned count)
{
    const int bytes = (int)count * (int)sysconf(_SC_PAGESIZE);
    if (fcntl(end, F_SETPIPE_SZ, bytes) < 0)
        return -errno;
    const ssize_t n = vmsplice(end, page, count, SPLICE_F_NONBLOCK);
    if (n < 0)
        return -errno;
    return n == (ssize_t)count ? 0 : -EAGAIN;
}

size_t base_hold_bytes(void)
{
    return BASE_HOLD_PAGES * huge_page_of((size_t)sysconf(_SC_PAGESIZE));
}

int base_hold_new(const struct iovec *maps, unsigned count)
{
    struct iovec page[BASE_HOLD_PAGES];
    int end[2];
    const int pages = list_pages(maps, count, page);
    if (pages <= 0)
        return pages < 0 ? pages : -EINVAL;
    if (pipe2(end, O_CLOEXEC) != 0)
        return -errno;
    const int status = fill_pipe(end[1], page, (unsigned)pages);
    close(end[1]);
    if (status == 0)
        return end[0];
    close(end[0]);
    return status;
}

int base_hold_try(void)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *map = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return -errno;
    const int hold = base_hold_new(&(struct iovec){.iov_base = map, .iov_len = page}, 1);
    if (hold >= 0)
        close(hold);
    munmap(map, page);
    return hold < 0 ? hold : 0;
}
