/* SPDX-License-Identifier: Apache-2.0 */
#include "metaserver/pace.h"

#include "base/clock.h"

#define LEAST_NS (100 * UINT64_C(1000)) /* whatever was measured: requests take time too */
#define MOST_NS  (50 * BASE_NS_PER_MS)
#define MANY     16 /* at once */

void meta_pace_measure(struct meta_pace *p, uint64_t took_ns, uint32_t count)
{
    uint64_t each = count > 0 ? took_ns / count : 0;
    if (count == 0)
        return;
    each = each < LEAST_NS ? LEAST_NS : each > MOST_NS ? MOST_NS : each;
    /* A few take nearly as long as many: who is told to come slowly comes alone, and each of those
     * would be thought to take long. Where the store is slow, many come together. */
    if (count < MANY && p->each_ns != 0 && each > p->each_ns)
        return;
    p->each_ns = p->each_ns == 0 ? each : (3 * p->each_ns + each) / 4;
}

unsigned meta_pace_put_off(struct meta_pace *p, uint32_t waiting, uint64_t now)
{
    const uint64_t each = p->each_ns == 0 ? MOST_NS / 10 : p->each_ns;
    const uint64_t free_ns = now + waiting * each, last_ns = now + META_PACE_MAX_S * BASE_NS_PER_S;
    p->next_ns = (p->next_ns > free_ns ? p->next_ns : free_ns) + each;
    if (p->next_ns > last_ns)
        p->next_ns = last_ns;
    return (unsigned)((p->next_ns - now + BASE_NS_PER_S - 1) / BASE_NS_PER_S);
}
