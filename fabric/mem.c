/* SPDX-License-Identifier: Apache-2.0 */
#include "fabric/fabric.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

int kedge_fab_mem_alloc(size_t size, const char *name, struct kedge_fab_mem *out)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    int status;
    if (size == 0 || size > SIZE_MAX - page)
        return -EINVAL;
    size = (size + page - 1) & ~(page - 1);
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
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
    *out = (struct kedge_fab_mem){.addr = addr, .size = size, .fd = fd};
    return 0;
fail:
    status = errno == ENOSPC ? -ENOMEM : -errno;
    close(fd);
    return status;
}

void kedge_fab_mem_free(struct kedge_fab_mem *mem)
{
    if (mem->addr == NULL)
        return;
    munmap(mem->addr, mem->size);
    close(mem->fd);
    *mem = (struct kedge_fab_mem){.fd = -1};
}
