/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts: one open of the device each, which of them live, and what dead ones left. */
#include "soft/context.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/error.h"
#include "base/random.h"
#include "soft/chan.h"
#include "soft/soft.h"

int soft_lock_byte(int fd, off_t byte, bool lock)
{
    struct flock l = {
        .l_type = lock ? F_WRLCK : F_UNLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    return fcntl(fd, F_OFD_SETLK, &l) == 0 ? 0 : -errno;
}

/* When a process began, in ticks since boot: /proc/<pid>/stat, field 22. 0 and -errno if it cannot
 * be said; -ESRCH: there is no such process, or nothing of it but its exit status. */
static uint64_t process_started(int32_t pid, int *status)
{
    char path[32], text[512], state;
    unsigned long long started;
    long threads;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    *status = fd >= 0 ? 0 : errno == ENOENT ? -ESRCH : -errno;
    if (fd < 0)
        return 0;
    ssize_t n = read(fd, text, sizeof text - 1);
    *status = n > 0 ? 0 : n < 0 && errno != ESRCH ? -errno : -ESRCH;
    close(fd);
    if (*status != 0)
        return 0;
    text[n] = '\0';
    /* The name before may hold anything, so that the last parenthesis counts. */
    const char *rest = strrchr(text, ')');
    if (rest == NULL || sscanf(rest,
                               ") %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                               "%*s %*s %ld %*s %llu",
                               &state, &threads, &started) != 3) {
        *status = -EPROTO;
        return 0;
    }
    if (state == 'X' || (state == 'Z' && threads <= 1)) {
        *status = -ESRCH;
        return 0;
    }
    return started;
}

bool soft_owner_process_lives(const struct soft_fab *f, soft_owner owner)
{
    uint32_t index = (uint32_t)owner - 1;
    const struct soft_context_shared *c = &f->shared->context[index];
    int32_t pid = atomic_load(&c->pid);
    uint64_t started = atomic_load(&c->started);
    int status;
    if (atomic_load(&c->owner) != owner)
        return false;
    if (owner == f->owner)
        return true;
    struct flock l = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = SOFT_LOCK_BASE + index, .l_len = 1};
    if (fcntl(f->fd, F_OFD_GETLK, &l) == 0 && l.l_type == F_UNLCK)
        return false;
    /* A child that it forked holds the lock too, and may outlive it. */
    uint64_t now_there = process_started(pid, &status);
    return status == 0 ? now_there == started : status != -ESRCH;
}

static bool is_stale(const struct soft_shared *s, soft_owner owner)
{
    return owner != 0 && atomic_load(&s->context[(uint32_t)owner - 1].owner) != owner;
}

/* A stale slot changes hands by one atomic operation, so that of several that clean up only one
 * invalidates it; should that one die too, the slot is stale again. */
#define RECLAIM(table, high, invalidate)                                                           \
    for (uint32_t i = 0; i < atomic_load(&s->high); i++) {                                         \
        soft_owner owner = atomic_load(&s->table[i].owner);                                        \
        if (!is_stale(s, owner) ||                                                                 \
            !atomic_compare_exchange_strong(&s->table[i].owner, &owner, f->owner))                 \
            continue;                                                                              \
        invalidate;                                                                                \
        atomic_store(&s->table[i].owner, 0);                                                       \
    }

void soft_reclaim(struct soft_fab *f, soft_owner dead)
{
    struct soft_shared *s = f->shared;
    if (dead != 0)
        (void)atomic_compare_exchange_strong(&s->context[(uint32_t)dead - 1].owner,
                                             &(soft_owner){dead}, 0);
    RECLAIM(qp, qp_high, {
        atomic_store(&s->qp[i].ident, 0);
        atomic_store(&s->qp[i].inside, 0);
        atomic_store(&s->qp[i].inside_local, 0);
        atomic_store(&s->qp[i].unseen, 0);
    })
    RECLAIM(mr, mr_high, {
        atomic_store(&s->mr[i].key, 0);
        atomic_fetch_add(&s->mr_retired, 1);
        if (dead ==
            0) /* we open: the next process gets the keys of one that died, as on a device */
            soft_keys_give(&f->keys, i);
    })
    RECLAIM(cq, cq_high, atomic_store(&s->cq[i].armed, SOFT_NOT_ARMED))
    RECLAIM(rq, rq_high, (void)0) /* the next owner empties it, under its lock */
    if (dead != 0)
        soft_wake_all(f);
}

/* Frees the contexts of dead processes; finds a free one, and another that has our GID. */
static int look_around(struct soft_fab *f, const uint64_t gid[2], struct soft_context_shared **mine,
                       bool *died, struct base_errbuf *err)
{
    *mine = NULL;
    *died = false;
    for (uint32_t i = 0; i < SOFT_CONTEXTS; i++) {
        struct soft_context_shared *c = &f->shared->context[i];
        soft_owner owner = atomic_load(&c->owner);
        if (owner != 0 && !soft_owner_process_lives(f, owner)) {
            (void)atomic_compare_exchange_strong(&c->owner, &owner, 0);
            owner = 0;
            *died = true;
        }
        if (owner != 0 && soft_gid_is(c->gid, gid))
            return base_err(err, -EADDRINUSE,
                            "soft device: another node on %s has this GID already, process %d "
                            "(give each its own `gid`)",
                            f->dir, c->pid);
        /* A dead process's child may still hold the byte. */
        if (owner == 0 && *mine == NULL && soft_lock_byte(f->fd, SOFT_LOCK_BASE + i, true) == 0)
            *mine = c;
    }
    if (*mine == NULL)
        return base_err(err, -EMFILE, "soft device: %s is open %d times already", f->dir,
                        SOFT_CONTEXTS);
    return 0;
}

int soft_context_take(struct soft_fab *f, const uint8_t gid[16], struct base_errbuf *err)
{
    struct soft_context_shared *mine;
    uint8_t chosen[16] = {0};
    uint64_t words[2];
    bool died;
    int status;
    if (memcmp(gid, chosen, 16) == 0) {
        chosen[0] = 0xfd;
        status = base_random_bytes(chosen + 1, 15);
        if (status != 0)
            return base_err(err, status, "soft device: no random numbers: %s", strerror(-status));
        gid = chosen;
    }
    soft_gid_words(gid, words);
    uint64_t started = process_started(getpid(), &status);
    if (status != 0)
        return base_err(err, status,
                        "soft device: cannot read /proc/%d/stat: %s (mount /proc: peers reach each "
                        "other's memory through it)",
                        getpid(), strerror(-status));
    /* Where Yama lets only a process's parents have its descriptors, its peers may too, which all
     * have its user (maps.c). */
    (void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    status = look_around(f, words, &mine, &died, err);
    if (status != 0)
        return status;
    mine->generation++;
    atomic_store(&mine->pid, getpid());
    atomic_store(&mine->started, started);
    atomic_store(&mine->gid[0], words[0]);
    atomic_store(&mine->gid[1], words[1]);
    f->me = mine;
    f->owner = (uint64_t)mine->generation << 32 | (uint32_t)(mine - f->shared->context + 1);
    memcpy(f->base.caps.gid, gid, 16);
    atomic_store(&mine->owner, f->owner);
    soft_reclaim(f, 0);
    soft_chan_clean(f);
    if (died)
        soft_wake_all(f);
    return 0;
}
