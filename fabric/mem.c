/* SPDX-License-Identifier: Apache-2.0 */
#include "fabric/fabric.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const size_t HUGE_PAGE = 2u << 20;
static const unsigned HUGE_2MB = 21u << 26; /* MFD_HUGE_2MB of <linux/memfd.h> */

/* Much at a time, so that it costs nothing, and little enough to be given up in some ms. */
static const size_t PIECE = 16u << 20;

/* Allocated here and now, so that a full tmpfs is an error and not a SIGBUS later. */
static int take_pages(int fd, size_t size, const _Atomic bool *unwanted)
{
    for (size_t at = 0; at < size; at += PIECE) {
        if (unwanted != NULL && atomic_load(unwanted))
            return -ECANCELED;
        if (fallocate(fd, 0, (off_t)at, (off_t)(size - at < PIECE ? size - at : PIECE)) != 0)
            return errno == ENOSPC ? -ENOMEM : -errno;
    }
    return 0;
}

static int alloc_pages(size_t size, const char *name, unsigned flags, const _Atomic bool *unwanted,
                       struct fab_mem *out)
{
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);
    if (fd < 0)
        return -errno;
    int status = take_pages(fd, size, unwanted);
    if (status != 0) {
        close(fd);
        return status;
    }
    void *addr = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (addr == MAP_FAILED)
        goto fail;
    /* One call: after SEAL no other seal can be added. Without these a worker could truncate it
     * under us. */
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
        status = -errno;
        munmap(addr, size);
        close(fd);
        return status;
    }
    *out = (struct fab_mem){.addr = addr, .size = size, .fd = fd, .huge = flags != 0};
    return 0;
fail:
    status = errno == ENOSPC ? -ENOMEM : -errno;
    close(fd);
    return status;
}

int fab_mem_alloc_unless(size_t size, const char *name, bool huge, const _Atomic bool *unwanted,
                         struct fab_mem *out)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (size == 0 || size > SIZE_MAX - page)
        return -EINVAL;
    if (huge && size % HUGE_PAGE == 0 &&
        alloc_pages(size, name, MFD_HUGETLB | HUGE_2MB, unwanted, out) == 0)
        return 0;
    return alloc_pages((size + page - 1) & ~(page - 1), name, 0, unwanted, out);
}

int fab_mem_alloc(size_t size, const char *name, struct fab_mem *out)
{
    return fab_mem_alloc_unless(size, name, false, NULL, out);
}

int fab_mem_alloc_huge(size_t size, const char *name, struct fab_mem *out)
{
    return fab_mem_alloc_unless(size, name, true, NULL, out);
}

int fab_mem_zero(const struct fab_mem *mem)
{
    if (mem->give_back != NULL) {
        memset(mem->addr, 0, mem->size);
        return 0;
    }
    if (fallocate(mem->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)mem->size) == 0 &&
        fallocate(mem->fd, 0, 0, (off_t)mem->size) == 0)
        return 0;
    return errno == ENOSPC ? -ENOMEM : -errno;
}

void fab_mem_free(struct fab_mem *mem)
{
    if (mem->addr == NULL)
        return;
    if (mem->give_back != NULL) {
        mem->give_back(mem);
        *mem = (struct fab_mem){.fd = -1};
        return;
    }
    munmap(mem->addr, mem->size);
    close(mem->fd);
    *mem = (struct fab_mem){.fd = -1};
}
