/* SPDX-License-Identifier: Apache-2.0 */
/* Owners: they lend the same memory again and again, and use it themselves as soon as it is free.
 */
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "leases.h"

enum {
    SHORT_MS = 10,     /* that a region is lent for at most, */
    LONG_MS = 400,     /* or this, so that an operator meets it, */
    LONGEST_MS = 4000, /* or this, as long as he has met too few */
    ACCESS = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE,
};
#define FREE_WORD 0xfeeefeeeull /* generation 0 */

struct owned {
    struct kedge_mr *mr;
    volatile uint64_t *memory;
    uint64_t generation; /* 0: not lent yet */
    bool heard;          /* that it is revoked */
    bool free;           /* its memory is the owner's alone */
};

struct owner {
    const struct stress *stress;
    struct board *b;
    struct kedge_session *s;
    int number; /* among the owners */
    uint64_t random, life, leases;
    struct owned region[REGIONS];
};

static void check_words(const volatile uint64_t *memory, uint64_t generation, const char *when)
{
    for (int i = 0; i < WORDS; i++)
        if (memory[i] >> 32 != generation)
            stress_fail("%s, word %d of region %llu is of region %llu (%016llx)", when, i,
                        (unsigned long long)generation, (unsigned long long)(memory[i] >> 32),
                        (unsigned long long)memory[i]);
}

static void publish(struct board *b, int number, int place, const struct offer *offer)
{
    _Atomic uint32_t *at = &b->slot[number][place].seq;
    uint32_t seq = atomic_load(at);
    atomic_store(at, seq + 1);
    atomic_thread_fence(memory_order_seq_cst);
    b->slot[number][place].offer = *offer;
    atomic_thread_fence(memory_order_seq_cst);
    atomic_store(at, seq + 2);
}

/* False: its agent stands still. */
static bool offer_region(struct owner *o, int place, int more_access)
{
    struct owned *r = &o->region[place];
    struct board *b = o->b;
    struct offer offer;
    r->heard = r->free = false;
    r->generation = atomic_fetch_add(&b->generations, 1) + 1;
    if (r->generation >= GENERATIONS || ++o->leases > PER_LIFE)
        stress_fail("more regions than the board has room for: make the run shorter");
    atomic_store(&b->life[o->life].generation[o->leases], r->generation);
    for (int i = 0; i < WORDS; i++)
        r->memory[i] = leases_word(r->generation, (uint64_t)i);
    int status =
        kedge_reg_mr(o->s, (void *)(uintptr_t)r->memory, WORDS * 8, ACCESS | more_access, &r->mr);
    if (status == -ETIMEDOUT)
        return false;
    if (status != 0 || kedge_mr_export(r->mr, offer.token, sizeof offer.token) != 0)
        stress_fail("registering: %s", kedge_last_error());
    offer.generation = r->generation;
    publish(b, o->number, place, &offer);
    atomic_fetch_add(&b->regions, 1);
    return true;
}

/* From here on the memory is the owner's alone. */
static void take_back(struct owned *r)
{
    check_words(r->memory, r->generation, "after withdrawing");
    for (int i = 0; i < WORDS; i++)
        r->memory[i] = FREE_WORD;
    r->free = true;
}

static void watch(struct owner *o)
{
    for (struct owned *r = o->region; r < o->region + REGIONS; r++) {
        if (!r->free)
            continue;
        check_words(r->memory, 0, "in memory that was free");
        atomic_fetch_add(&o->b->watched, 1);
    }
}

/* What the operator has revoked is free when he is told so, although its owner has the region
 * still. */
static void look_after(struct owner *o, struct owned *r)
{
    struct region_facts *facts = &o->b->region[r->generation];
    const bool revoked = atomic_load(&facts->revoked);
    if (r->free)
        return;
    int status = kedge_mr_status(r->mr);
    if (status != 0 && status != -EACCES && status != -ETIMEDOUT)
        stress_fail("asking for a region: %s", kedge_last_error());
    if (revoked && status == 0)
        stress_fail("the owner of region %llu does not hear that it is revoked",
                    (unsigned long long)r->generation);
    if (status == -EACCES && !r->heard) {
        leases_earlier(&facts->refused_ns, base_clock_ns());
        atomic_store(&facts->heard, true);
        atomic_fetch_add(&o->b->heard, 1);
        r->heard = true;
    }
    if (revoked) {
        take_back(r);
        atomic_fetch_add(&o->b->own, 1);
    }
}

static uint64_t most_ms(struct owner *o)
{
    if (o->stress->rdmactl == NULL || stress_random(&o->random) % 2 == 0)
        return SHORT_MS;
    return leases_operator_has_seen_all(o->stress, o->b) ? LONG_MS : LONGEST_MS;
}

static void lend(struct owner *o)
{
    const uint64_t most = most_ms(o);
    const uint64_t end = base_clock_ns() + stress_random(&o->random) % (most * BASE_NS_PER_MS);
    while (base_clock_ns() < end && !atomic_load(&o->b->stop)) {
        for (struct owned *r = o->region; r < o->region + REGIONS; r++) {
            look_after(o, r);
            if (r->heard && stress_random(&o->random) % 256 == 0)
                return; /* and gives it back, perhaps while it is being revoked */
        }
        usleep(500);
        watch(o);
    }
}

static void give_back(struct owner *o, struct owned *r)
{
    struct region_facts *facts = &o->b->region[r->generation];
    int status;
    leases_earlier(&facts->ending_ns, base_clock_ns());
    while ((status = kedge_dereg_mr(r->mr)) == -ETIMEDOUT)
        usleep(1000);
    if (status != 0)
        stress_fail("deregistering: %s", kedge_last_error());
    atomic_fetch_add(&o->b->reused, 1);
    atomic_store(&facts->free, true);
    if (!r->free)
        take_back(r);
}

/* The same memory again and again. False: that was the last time. */
static bool lend_and_use(struct owner *o, int more_access, bool last)
{
    for (int i = 0; i < REGIONS; i++)
        if (!offer_region(o, i, more_access))
            return false;
    lend(o);
    if (last) /* it ends with its regions in use: its agent withdraws them */
        return false;
    for (int i = 0; i < REGIONS; i++)
        give_back(o, &o->region[i]);
    uint64_t end = base_clock_ns() + stress_random(&o->random) % (20 * BASE_NS_PER_MS);
    do {
        usleep(500);
        watch(o);
    } while (base_clock_ns() < end);
    return true;
}

static void open_owner(const struct stress *s, struct owner *o)
{
    const struct kedge_open_attr attr = {.socket = s->peer};
    volatile uint64_t *words;
    void *memory;
    uint32_t lkey;
    int status;
    o->life = atomic_fetch_add(&o->b->lives, 1) + 1;
    if (o->life >= LIVES)
        stress_fail("more owners than the board has room for: make the run shorter");
    atomic_store(&o->b->life[o->life].pid, (uint64_t)getpid());
    while ((status = kedge_open(&attr, &o->s)) == -EAGAIN)
        usleep(1000);
    if (status != 0 || kedge_alloc(o->s, (size_t)REGIONS * WORDS * 8, &memory, &lkey) != 0)
        stress_fail("an owner: %s", kedge_last_error());
    words = memory;
    for (int i = 0; i < REGIONS * WORDS; i++)
        if (words[i] != 0)
            stress_fail("a new worker's memory has %016llx in word %d",
                        (unsigned long long)words[i], i);
    for (int i = 0; i < REGIONS; i++)
        o->region[i].memory = words + (size_t)i * WORDS;
}

void leases_own(const struct stress *s, struct board *b, int number, uint64_t random)
{
    struct owner o = {.stress = s, .b = b, .number = number, .random = random};
    open_owner(s, &o);
    uint64_t times = stress_random(&o.random) % 4;
    while (!atomic_load(&b->stop) && lend_and_use(&o, s->fenced ? KEDGE_MR_FENCED : 0, times == 0))
        times--;
    for (int i = 0; i < REGIONS; i++)
        leases_earlier(&b->region[o.region[i].generation].ending_ns, base_clock_ns());
    if (stress_random(&o.random) % 2 == 0)
        kill(getpid(), SIGKILL);
    kedge_close(o.s);
}
