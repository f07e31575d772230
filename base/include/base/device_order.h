/* SPDX-License-Identifier: Apache-2.0 */
/* Barriers for memory that devices read while this process writes it: tables of records, which
 * peers READ. On some processors devices are further away than all threads are, and a fence of C11
 * is for threads alone: on aarch64 it is `dmb ish`, for the inner shareable domain, and a device
 * may be in the outer one. They are for memory that is cached as usual, written by ordinary stores.
 */
#ifndef BASE_DEVICE_ORDER_H
#define BASE_DEVICE_ORDER_H

#include <stdatomic.h>

/* Whoever sees a store behind this, a device or a thread, sees those before it too. That says not
 * when. On x86-64, which keeps stores in order, it is for the compiler alone. */
static inline void base_device_order(void)
{
#if defined(__aarch64__)
    __asm__ volatile("dmb oshst" ::: "memory");
#elif defined(__riscv)
    __asm__ volatile("fence ow, ow" ::: "memory");
#elif defined(__x86_64__) || defined(__s390x__)
    atomic_thread_fence(memory_order_release);
#else
    atomic_thread_fence(memory_order_seq_cst);
#endif
}

/* All stores before this are seen by devices and threads when it returns, before anything behind it
 * is done: loads, stores, a look at the clock. A barrier that orders accesses to memory (dmb) says
 * nothing of a clock, which is none: it takes one that waits (dsb). */
static inline void base_device_show(void)
{
#if defined(__aarch64__)
    __asm__ volatile("dsb osh" ::: "memory");
#elif defined(__riscv)
    __asm__ volatile("fence iorw, iorw" ::: "memory");
#else
    atomic_thread_fence(memory_order_seq_cst);
#endif
}

#endif
