/* SPDX-License-Identifier: Apache-2.0 */
#include "fabric/iova.h"

#include <errno.h>

static const uint64_t PAGE = 4096, HUGE_PAGE = 2u << 20;
/* Each kind's range, from where it begins at random in the lower half. The upper ones of a range
 * last for years: 2^39 regions of 2 MiB each, which take less than four times their length. */
static const uint64_t TABLES = 1ull << 47, TABLES_END = 1ull << 48;
static const uint64_t REGIONS = 1ull << 48, REGIONS_END = 1ull << 63;

static uint64_t begin_in(uint64_t from, uint64_t end, uint64_t random)
{
    return from + random % ((end - from) / 2) / HUGE_PAGE * HUGE_PAGE;
}

void fab_iova_init(struct fab_iova *v, uint64_t random)
{
    *v = (struct fab_iova){.next_table = begin_in(TABLES, TABLES_END, random),
                           .next_region = begin_in(REGIONS, REGIONS_END, random)};
}

/* The largest page by which a driver may translate so many bytes at that address. */
static uint64_t largest_page(uint64_t at, uint64_t length)
{
    const uint64_t bytes = (at & (PAGE - 1)) + length;
    uint64_t page = PAGE;
    while (page < bytes && page <= UINT64_MAX / 2)
        page *= 2;
    return page;
}

bool fab_iova_fits(uint64_t at, uint64_t length, uint64_t iova)
{
    return ((at ^ iova) & (largest_page(at, length) - 1)) == 0;
}

int fab_iova_take(struct fab_iova *v, enum fab_iova_kind kind, const struct fab_mem *mem,
                  uint64_t offset, uint64_t length, uint64_t *out)
{
    const uint64_t end = kind == FAB_IOVA_TABLE ? TABLES_END : REGIONS_END;
    uint64_t *next = kind == FAB_IOVA_TABLE ? &v->next_table : &v->next_region;
    const uint64_t at = (uintptr_t)mem->addr + offset;
    if (length > end) /* before anything is rounded */
        return -ENOSPC;
    uint64_t page = largest_page(at, length);
    if (mem->huge && page < HUGE_PAGE)
        page = HUGE_PAGE;
    const uint64_t first = *next + ((at - *next) & (page - 1));
    /* A page between neighbours belongs to nobody: what runs over an end meets nothing. */
    if (first > end || length + 2 * PAGE > end - first)
        return -ENOSPC;
    *next = (first + length + 2 * PAGE - 1) & ~(PAGE - 1);
    *out = first;
    return 0;
}
