/* SPDX-License-Identifier: Apache-2.0 */
/* The heap of each process: blocks that know whose they are, so that they go with it. */
#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "os.h"
#include "os_calls.h"
#include "process.h"

/* In front of what the process gets. */
struct play_block {
    struct play_block *next, **link; /* link NULL: it is the simulation's */
    struct play_process *process;
    void *raw; /* what the machine's heap gave */
};

static void join_process(struct play_block *b)
{
    struct play_process *p = b->process = play_process;
    b->link = NULL;
    if (p == NULL)
        return;
    b->next = p->blocks;
    if (b->next != NULL)
        b->next->link = &b->next;
    b->link = &p->blocks;
    p->blocks = b;
    p->bytes += malloc_usable_size(b->raw);
}

static void leave_process(struct play_block *b)
{
    if (b->link == NULL)
        return;
    *b->link = b->next;
    if (b->next != NULL)
        b->next->link = b->link;
    b->process->bytes -= malloc_usable_size(b->raw);
}

static void *begin_block(void *raw, size_t before)
{
    if (raw == NULL)
        return NULL;
    struct play_block *b = (struct play_block *)((uint8_t *)raw + before) - 1;
    b->raw = raw;
    join_process(b);
    return b + 1;
}

void *os_malloc(size_t bytes)
{
    return begin_block(malloc(bytes + sizeof(struct play_block)), sizeof(struct play_block));
}

void *os_calloc(size_t count, size_t bytes)
{
    size_t all;
    if (__builtin_mul_overflow(count, bytes, &all) || all > SIZE_MAX - sizeof(struct play_block))
        return NULL;
    return begin_block(calloc(1, all + sizeof(struct play_block)), sizeof(struct play_block));
}

void *os_aligned_alloc(size_t alignment, size_t bytes)
{
    BASE_ASSERT(alignment >= sizeof(struct play_block));
    return begin_block(aligned_alloc(alignment, bytes + alignment), alignment);
}

void os_free(void *memory)
{
    if (memory == NULL)
        return;
    struct play_block *b = (struct play_block *)memory - 1;
    leave_process(b);
    free(b->raw);
}

void *os_realloc(void *memory, size_t bytes)
{
    if (memory == NULL)
        return os_malloc(bytes);
    struct play_block *b = (struct play_block *)memory - 1;
    const size_t had = malloc_usable_size(b->raw) - (size_t)((uint8_t *)memory - (uint8_t *)b->raw);
    void *fresh = os_malloc(bytes);
    if (fresh == NULL)
        return NULL;
    memcpy(fresh, memory, had < bytes ? had : bytes);
    os_free(memory);
    return fresh;
}

char *os_strndup(const char *text, size_t most)
{
    const size_t length = strnlen(text, most);
    char *copy = os_malloc(length + 1);
    if (copy == NULL)
        return NULL;
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

char *os_strdup(const char *text)
{
    return os_strndup(text, strlen(text));
}

uint64_t os_bytes_of(const struct play_process *p)
{
    return p->bytes;
}

void os_drop_blocks(struct play_process *p)
{
    for (struct play_block *b = p->blocks, *next; b != NULL; b = next) {
        next = b->next;
        free(b->raw);
    }
    p->blocks = NULL;
    p->bytes = 0;
}
