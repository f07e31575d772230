/* SPDX-License-Identifier: Apache-2.0 */
/* What a tenant has of its quotas: the one thing that several lanes and the control thread write,
 * each at any time. */
#include "schedule/quota.h"

#include <stdatomic.h>

/* ---- how many */

bool lane_quota_take(struct lane_quota *quota, enum lane_quota_kind which, _Atomic uint32_t *used,
                     uint32_t most)
{
    if (atomic_fetch_add_explicit(used, 1, memory_order_relaxed) < most)
        return true;
    lane_quota_give(used);
    atomic_fetch_add_explicit(&quota->refused[which], 1, memory_order_relaxed);
    return false;
}

void lane_quota_give(_Atomic uint32_t *used)
{
    atomic_fetch_sub_explicit(used, 1, memory_order_relaxed);
}

/* ---- how often */

/* The generic cell rate algorithm (ITU-T I.371): a bucket of tokens whose whole state is one word,
 * the time at which what was asked so far has been paid for, each operation with its part of a
 * second. That time is never further ahead than so many seconds. */
static bool pay_operation(struct lane_quota *quota, uint64_t now_ns, unsigned seconds)
{
    const uint64_t second = 1000000000;
    const uint64_t rate = atomic_load_explicit(&quota->control_ops_per_s, memory_order_relaxed);
    if (rate == 0)
        return true;
    const uint64_t price = (second + rate - 1) / rate, most = seconds * rate * price;
    uint64_t due = atomic_load_explicit(&quota->control_due_ns, memory_order_relaxed), next;
    do {
        next = (due > now_ns ? due : now_ns) + price;
        if (next - now_ns > most)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&quota->control_due_ns, &due, next,
                                                    memory_order_relaxed, memory_order_relaxed));
    return true;
}

bool lane_quota_ask(struct lane_quota *quota, uint64_t now_ns)
{
    const bool paid = pay_operation(quota, now_ns, 1);
    atomic_fetch_add_explicit(paid ? &quota->control_ops : &quota->refused[LANE_QUOTA_CONTROL_OPS],
                              1, memory_order_relaxed);
    return paid;
}

void lane_quota_forget(struct lane_quota *quota)
{
    atomic_store_explicit(&quota->control_ops, 0, memory_order_relaxed);
    atomic_store_explicit(&quota->control_due_ns, 0, memory_order_relaxed);
    for (int which = 0; which < LANE_QUOTAS; which++)
        atomic_store_explicit(&quota->refused[which], 0, memory_order_relaxed);
}

void lane_quota_charge(struct lane_quota *quota, uint64_t now_ns)
{
    (void)pay_operation(quota, now_ns, 2);
    atomic_fetch_add_explicit(&quota->control_ops, 1, memory_order_relaxed);
}
