/* SPDX-License-Identifier: Apache-2.0 */
#include "fiber.h"

#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "base/assert.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

enum { STACK_BYTES = 1 << 20, GUARD_BYTES = 1 << 16, KEPT = 64 };

/* Contexts of <ucontext.h> begin a stack, but ask the kernel at each switch: from then on setjmp()
 * is enough. */
struct play_fiber {
    ucontext_t first;
    jmp_buf here, back;
    bool begun;
    void (*run)(void *user);
    void *user;
    uint8_t *stack; /* behind a guard */
    bool ended;
    void *fake_stack, *back_fake_stack; /* the address sanitizer's */
    const void *back_stack;
    size_t back_bytes;
};

static struct play_fiber *inside;
static uint8_t *kept[KEPT]; /* stacks that the next ones get */
static unsigned kept_count;

/* ---- what the address sanitizer is told of stacks */

static void begin_switch(void **fake, const void *stack, size_t bytes)
{
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(fake, stack, bytes);
#else
    (void)fake, (void)stack, (void)bytes;
#endif
}

static void end_switch(void *fake, const void **stack, size_t *bytes)
{
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fake, stack, bytes);
#else
    (void)fake, (void)stack, (void)bytes;
#endif
}

/* ---- stacks */

static uint8_t *take_stack(void)
{
    if (kept_count > 0)
        return kept[--kept_count];
    uint8_t *all = mmap(NULL, GUARD_BYTES + STACK_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED)
        return NULL;
    (void)mprotect(all, GUARD_BYTES, PROT_NONE);
    return all;
}

static void give_stack(uint8_t *all)
{
#if defined(__SANITIZE_ADDRESS__)
    if (all != NULL)
        __asan_unpoison_memory_region(all + GUARD_BYTES, STACK_BYTES);
#endif
    if (all != NULL && kept_count < KEPT)
        kept[kept_count++] = all;
    else if (all != NULL)
        munmap(all, GUARD_BYTES + STACK_BYTES);
}

/* ---- fibers */

static void begin_fiber(void)
{
    struct play_fiber *f = inside;
    end_switch(NULL, &f->back_stack, &f->back_bytes);
    f->run(f->user);
    f->ended = true;
    inside = NULL;
    begin_switch(NULL, f->back_stack, f->back_bytes);
    _longjmp(f->back, 1);
}

static void make_context(ucontext_t *context, void *stack)
{
    (void)getcontext(context);
    context->uc_stack.ss_sp = stack;
    context->uc_stack.ss_size = STACK_BYTES;
    makecontext(context, begin_fiber, 0);
}

struct play_fiber *play_fiber_new(void (*run)(void *user), void *user)
{
    struct play_fiber *f = calloc(1, sizeof *f);
    if (f == NULL || (f->stack = take_stack()) == NULL) {
        free(f);
        return NULL;
    }
    f->run = run;
    f->user = user;
    make_context(&f->first, f->stack + GUARD_BYTES);
    return f;
}

void play_fiber_free(struct play_fiber *f)
{
    if (f == NULL)
        return;
    BASE_ASSERT(inside != f);
    give_stack(f->stack);
    free(f);
}

__attribute__((noinline)) static void go_in(struct play_fiber *f)
{
    if (_setjmp(f->back) != 0)
        return;
    if (f->begun)
        _longjmp(f->here, 1);
    f->begun = true;
    (void)setcontext(&f->first);
}

__attribute__((noinline)) static void go_out(struct play_fiber *f)
{
    if (_setjmp(f->here) == 0)
        _longjmp(f->back, 1);
}

bool play_fiber_enter(struct play_fiber *f)
{
    BASE_ASSERT(inside == NULL && !f->ended);
    inside = f;
    begin_switch(&f->back_fake_stack, f->stack + GUARD_BYTES, STACK_BYTES);
    go_in(f);
    end_switch(f->back_fake_stack, NULL, NULL);
    return f->ended;
}

void play_fiber_leave(void)
{
    struct play_fiber *f = inside;
    BASE_ASSERT(f != NULL);
    inside = NULL;
    begin_switch(&f->fake_stack, f->back_stack, f->back_bytes);
    go_out(f);
    end_switch(f->fake_stack, &f->back_stack, &f->back_bytes);
}
