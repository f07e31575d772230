/* SPDX-License-Identifier: Apache-2.0 */
#include "fabric/fabric.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

static const size_t HUGE_PAGE = 2u << 20;
static const unsigned HUGE_2MB = 21u << 26; /* MFD_HUGE_2MB of <linux/memfd.h> */

static int alloc_pages(size_t size, const char *name, unsigned flags, struct fab_mem *out)
{
    int status;
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);
    if (fd < 0)
        return -errno;
    /* Allocated here and now, so that a full tmpfs is an error and not a SIGBUS later. */
    if (fallocate(fd, 0, 0, (off_t)size) != 0)
        goto fail;
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

int fab_mem_alloc(size_t size, const char *name, struct fab_mem *out)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (size == 0 || size > SIZE_MAX - page)
        return -EINVAL;
    return alloc_pages((size + page - 1) & ~(page - 1), name, 0, out);
}

int fab_mem_alloc_huge(size_t size, const char *name, struct fab_mem *out)
{
    if (size > 0 && size % HUGE_PAGE == 0 &&
        alloc_pages(size, name, MFD_HUGETLB | HUGE_2MB, out) == 0)
        return 0;
    return fab_mem_alloc(size, name, out);
}

int fab_mem_zero(const struct fab_mem *mem)
{
    if (fallocate(mem->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)mem->size) == 0 &&
        fallocate(mem->fd, 0, 0, (off_t)mem->size) == 0)
        return 0;
    return errno == ENOSPC ? -ENOMEM : -errno;
}

void fab_mem_free(struct fab_mem *mem)
{
    if (mem->addr == NULL)
        return;
    munmap(mem->addr, mem->size);
    close(mem->fd);
    *mem = (struct fab_mem){.fd = -1};
}
