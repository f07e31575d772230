/* SPDX-License-Identifier: Apache-2.0 */
#include "fabric/fabric.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/fds.h"
#include "base/hold.h"

static const size_t HUGE_PAGE = 2u << 20;
static const unsigned HUGE_2MB = 21u << 26; /* MFD_HUGE_2MB of <linux/memfd.h> */

/* What takes long goes in pieces, each of some 0.1 ms, and others have the processor now and then:
 * a kernel may let whoever runs finish his slice of 3 ms or more, also in a system call, however
 * urgent the thread is that wakes there meanwhile. Not after each: on a busy host every time costs
 * some ms, and an arena of the usual size would be made and zeroed eight times as long. */
static const size_t PIECE = 256u << 10;
static const unsigned PIECES_ON_END = 4;

static void end_piece(void)
{
    static _Thread_local unsigned pieces; /* since it last let others run, whatever they were of */
    if (++pieces < PIECES_ON_END)
        return;
    pieces = 0;
    (void)sched_yield();
}

static size_t piece_of(const struct fab_mem *mem, size_t at)
{
    const size_t piece = mem->huge ? HUGE_PAGE : PIECE;
    return mem->size - at < piece ? mem->size - at : piece;
}

/* Allocated here and now, so that a full tmpfs is an error and not a SIGBUS later. */
static int take_pages(const struct fab_mem *mem, const _Atomic bool *unwanted)
{
    for (size_t at = 0; at < mem->size; at += piece_of(mem, at)) {
        if (unwanted != NULL && atomic_load(unwanted))
            return -ECANCELED;
        if (fallocate(mem->fd, 0, (off_t)at, (off_t)piece_of(mem, at)) != 0)
            return errno == ENOSPC ? -ENOMEM : -errno;
        end_piece();
    }
    return 0;
}

static int give_pages(const struct fab_mem *mem)
{
    for (size_t at = 0; at < mem->size; at += piece_of(mem, at)) {
        if (fallocate(mem->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)at,
                      (off_t)piece_of(mem, at)) != 0)
            return -errno;
        end_piece();
    }
    return 0;
}

static int alloc_pages(size_t size, const char *name, unsigned flags, const _Atomic bool *unwanted,
                       struct fab_mem *out)
{
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);
    if (fd < 0)
        return -errno;
    const struct fab_mem pages = {.size = size, .fd = fd, .huge = flags != 0};
    int status = take_pages(&pages, unwanted);
    if (status != 0) {
        (void)give_pages(&pages);
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

static int alloc_memory(size_t size, const char *name, bool huge, const _Atomic bool *unwanted,
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
    return alloc_memory(size, name, false, NULL, out);
}

int fab_mem_alloc_huge(size_t size, const char *name, struct fab_mem *out)
{
    return alloc_memory(size, name, true, NULL, out);
}

/* Before its file is emptied or closed, and when it is unmapped: unmapping may wait too. */
static void let_pages_go(struct fab_mem *mem)
{
    while (mem->holds > 0)
        close(mem->hold[--mem->holds]);
    free(mem->hold);
    mem->hold = NULL;
}

static int hold_part(const struct fab_mem *mem, uint32_t number)
{
    const size_t most = base_hold_bytes(), at = number * most, left = mem->size - at;
    const struct iovec part = {.iov_base = (char *)mem->addr + at,
                               .iov_len = left < most ? left : most};
    return base_hold_new(&part, 1);
}

/* Of huge pages nobody makes others. A pipe has room for no more than one hold. */
static bool hold_pages(struct fab_mem *mem)
{
    const size_t holds = (mem->size + base_hold_bytes() - 1) / base_hold_bytes();
    mem->hold = mem->huge ? NULL : calloc(holds, sizeof *mem->hold);
    while (mem->hold != NULL && mem->holds < holds) {
        const int hold = hold_part(mem, mem->holds);
        if (hold < 0)
            let_pages_go(mem);
        else
            mem->hold[mem->holds++] = hold;
    }
    return mem->hold != NULL;
}

/* The memory knows its pipes by numbers, which other files get. 0 or -errno. */
static int give_number(int file, int number)
{
    const int status = dup3(file, number, O_CLOEXEC) < 0 ? -errno : 0;
    close(file);
    return status;
}

bool fab_mem_let_move(const struct fab_mem *mem)
{
    bool moves = mem->holds > 0;
    for (uint32_t i = 0; i < mem->holds && moves; i++) {
        const int empty = eventfd(0, EFD_CLOEXEC);
        moves = empty >= 0 && give_number(empty, mem->hold[i]) == 0;
    }
    return moves;
}

int fab_mem_hold_again(const struct fab_mem *mem)
{
    int status = 0;
    for (uint32_t i = 0; i < mem->holds && status == 0; i++) {
        const int hold = hold_part(mem, i);
        status = hold < 0 ? hold : give_number(hold, mem->hold[i]);
    }
    return status;
}

/* Holes are kept from it also where pages cannot be held. */
int fab_mem_alloc_lent(size_t size, const char *name, bool huge, const _Atomic bool *unwanted,
                       struct fab_mem *out)
{
    const int status = alloc_memory(size, name, huge, unwanted, out);
    if (status == 0) {
        const bool held = hold_pages(out);
        out->whole = base_memfd_keep_whole(out->fd) == 0 && held;
    }
    return status;
}

/* The kernel writes, which says -EFAULT where we would end by SIGBUS: whoever maps it too may have
 * punched holes in it, if it is not kept whole, and there may be no pages to fill them. */
static int read_zeros(const struct fab_mem *mem, int zeros)
{
    for (size_t at = 0; at < mem->size;) {
        const ssize_t n = read(zeros, (char *)mem->addr + at, piece_of(mem, at));
        if (n < 0 && errno != EINTR)
            return errno == EFAULT ? -ENOMEM : -errno;
        at += n > 0 ? (size_t)n : 0;
        end_piece();
    }
    return 0;
}

static int write_zeros(const struct fab_mem *mem)
{
    const int zeros = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    if (zeros < 0)
        return -errno;
    const int status = read_zeros(mem, zeros);
    close(zeros);
    return status;
}

/* Of huge pages no CPU of ours touches any (fab_mem_alloc_huge()). */
int fab_mem_zero(const struct fab_mem *mem)
{
    if (!mem->huge)
        return write_zeros(mem);
    int status = give_pages(mem);
    return status == 0 ? take_pages(mem, NULL) : status;
}

/* A few pages at a time: unmapping keeps others of this process from mapping. */
int fab_mem_leave(struct fab_mem *mem)
{
    const int file = mem->fd;
    if (mem->give_back != NULL) {
        fab_mem_free(mem);
        return -1;
    }
    for (size_t at = 0, piece; at < mem->size; at += piece) {
        piece = piece_of(mem, at);
        munmap((char *)mem->addr + at, piece);
        end_piece();
    }
    let_pages_go(mem);
    *mem = (struct fab_mem){.fd = -1};
    return file;
}

void fab_mem_lose(struct fab_mem *mem)
{
    free(mem->hold);
    *mem = (struct fab_mem){.fd = -1};
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
    let_pages_go(mem);
    close(mem->fd);
    *mem = (struct fab_mem){.fd = -1};
}
