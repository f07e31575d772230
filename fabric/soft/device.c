/* SPDX-License-Identifier: Apache-2.0 */
/* Opening the device: its directory and file, this context's place in it, and what dead contexts
 * left. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "soft/soft.h"

static int lock_byte(int fd, off_t byte, bool lock)
{
    struct flock l = {
        .l_type = lock ? F_WRLCK : F_UNLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    return fcntl(fd, F_OFD_SETLK, &l) == 0 ? 0 : -errno;
}

bool soft_owner_process_lives(const struct soft_fab *f, soft_owner owner)
{
    uint32_t index = (uint32_t)owner - 1;
    if (atomic_load(&f->shared->context[index].owner) != owner)
        return false;
    if (owner == f->owner)
        return true;
    struct flock l = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = SOFT_LOCK_BASE + index, .l_len = 1};
    return fcntl(f->fd, F_OFD_GETLK, &l) != 0 || l.l_type != F_UNLCK;
}

int soft_reserve(const struct soft_fab *f, const void *at, size_t bytes)
{
    off_t offset = (const uint8_t *)at - (const uint8_t *)f->shared;
    return fallocate(f->fd, FALLOC_FL_KEEP_SIZE, offset, (off_t)bytes) == 0 ? 0 : -errno;
}

/* Every slot begins with its owner word. */
int64_t soft_claim(struct soft_fab *f, void *table, size_t slot_bytes, uint32_t count,
                   _Atomic uint32_t *high)
{
    for (uint32_t i = 0; i < count; i++) {
        uint8_t *slot = (uint8_t *)table + i * slot_bytes;
        uint32_t known = atomic_load(high);
        /* Memory for it first: a table on a full tmpfs is an error here and not a SIGBUS later. */
        if (i >= known && soft_reserve(f, slot, slot_bytes) != 0)
            return -ENOSPC;
        soft_owner expected = 0;
        if (!atomic_compare_exchange_strong((_Atomic soft_owner *)slot, &expected, f->owner))
            continue;
        while (known <= i && !atomic_compare_exchange_weak(high, &known, i + 1))
            ;
        return i;
    }
    return -ENOSPC;
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
        atomic_store(&s->qp[i].qpn, 0);
        atomic_store(&s->qp[i].inside, 0);
    })
    RECLAIM(mr, mr_high, atomic_store(&s->mr[i].key, 0))
    RECLAIM(cq, cq_high, atomic_store(&s->cq[i].armed, SOFT_NOT_ARMED))
    RECLAIM(rq, rq_high, atomic_store(&s->rq[i].head, atomic_load(&s->rq[i].tail)))
}

/* A directory that only the agents' user can enter: whoever can read the file owns every node on
 * it. */
static int open_directory(struct soft_fab *f, const char *device, struct kedge_errbuf *err)
{
    struct stat st;
    if (device == NULL)
        snprintf(f->dir, sizeof f->dir, "/dev/shm/kedge-soft-%u", (unsigned)geteuid());
    else if ((size_t)snprintf(f->dir, sizeof f->dir, "%s", device) >= sizeof f->dir)
        return kedge_err(err, -ENAMETOOLONG, "soft device: the path %s is longer than %zu bytes",
                         device, sizeof f->dir - 1);
    if (mkdir(f->dir, 0700) != 0 && errno != EEXIST)
        return kedge_err(
            err, -errno,
            "soft device: cannot make %s: %s (make its parent, or name another `device`)", f->dir,
            strerror(errno));
    f->dir_fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (f->dir_fd < 0 || fstat(f->dir_fd, &st) != 0)
        return kedge_err(err, -errno, "soft device: cannot open %s: %s", f->dir, strerror(errno));
    if (st.st_uid != geteuid() || (st.st_mode & 077) != 0)
        return kedge_err(
            err, -EACCES,
            "soft device: %s must belong to uid %u with mode 0700, not to uid %u with mode %04o "
            "(remove it, or name another `device`)",
            f->dir, (unsigned)geteuid(), (unsigned)st.st_uid, (unsigned)st.st_mode & 07777);
    return 0;
}

/* With the open lock held: makes a new file what it must be, or checks an old one. */
static int check_file(struct soft_fab *f, struct kedge_errbuf *err)
{
    struct soft_shared *s = f->shared;
    if (s->magic == 0) {
        s->version = SOFT_VERSION;
        s->bytes = sizeof *s;
        s->magic = SOFT_MAGIC;
    }
    if (s->magic != SOFT_MAGIC || s->version != SOFT_VERSION || s->bytes != sizeof *s)
        return kedge_err(err, -EPROTO,
                         "soft device: %s was made by another version of Kedge (stop every agent "
                         "on it, then remove it)",
                         f->dir);
    return 0;
}

static int open_file(struct soft_fab *f, struct kedge_errbuf *err)
{
    struct stat st;
    f->fd = openat(f->dir_fd, "device", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (f->fd < 0)
        return kedge_err(err, -errno, "soft device: cannot open %s/device: %s", f->dir,
                         strerror(errno));
    for (int tries = 0; lock_byte(f->fd, SOFT_OPEN_LOCK, true) != 0; tries++) {
        if (tries == 500)
            return kedge_err(err, -EBUSY,
                             "soft device: another process has been opening %s for 5 s (is it "
                             "stopped? see `fuser %s/device`)",
                             f->dir, f->dir);
        usleep(10000);
    }
    if (fstat(f->fd, &st) != 0 ||
        (st.st_size == 0 && ftruncate(f->fd, sizeof(struct soft_shared)) != 0) ||
        fallocate(f->fd, FALLOC_FL_KEEP_SIZE, 0, offsetof(struct soft_shared, qp)) != 0)
        return kedge_err(
            err, -errno,
            "soft device: no room for %s/device: %s (it must be on tmpfs with 1 MiB free)", f->dir,
            strerror(errno));
    if (st.st_size != 0 && st.st_size != sizeof(struct soft_shared))
        return kedge_err(err, -EPROTO,
                         "soft device: %s was made by another version of Kedge (stop every agent "
                         "on it, then remove it)",
                         f->dir);
    f->shared =
        mmap(NULL, sizeof(struct soft_shared), PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, 0);
    if (f->shared == MAP_FAILED) {
        f->shared = NULL;
        return kedge_err(err, -errno, "soft device: cannot map %s/device: %s", f->dir,
                         strerror(errno));
    }
    return check_file(f, err);
}

static bool is_zero(const uint8_t gid[16])
{
    static const uint8_t zero[16];
    return memcmp(gid, zero, 16) == 0;
}

/* With the open lock held: a context for this process; then what dead ones left is taken back. */
static int take_context(struct soft_fab *f, const uint8_t gid[16], struct kedge_errbuf *err)
{
    struct soft_context_shared *mine = NULL;
    uint8_t chosen[16] = {0xfd};
    if (is_zero(gid)) {
        int status = kedge_random_bytes(chosen + 1, 15);
        if (status != 0)
            return kedge_err(err, status, "soft device: no random numbers: %s", strerror(-status));
        gid = chosen;
    }
    for (uint32_t i = 0; i < SOFT_CONTEXTS; i++) {
        struct soft_context_shared *c = &f->shared->context[i];
        soft_owner owner = atomic_load(&c->owner);
        if (owner != 0 && !soft_owner_process_lives(f, owner)) {
            (void)atomic_compare_exchange_strong(&c->owner, &owner, 0);
            owner = 0;
        }
        if (owner != 0 && memcmp(c->gid, gid, 16) == 0)
            return kedge_err(err, -EADDRINUSE,
                             "soft device: another node on %s has this GID already, process %d "
                             "(give each its own `gid`)",
                             f->dir, c->pid);
        if (owner == 0 && mine == NULL)
            mine = c;
    }
    if (mine == NULL)
        return kedge_err(err, -EMFILE, "soft device: %s is open %d times already", f->dir,
                         SOFT_CONTEXTS);
    uint32_t index = (uint32_t)(mine - f->shared->context);
    if (lock_byte(f->fd, SOFT_LOCK_BASE + index, true) != 0)
        return kedge_err(err, -EBUSY, "soft device: context %u of %s is locked by another process",
                         index, f->dir);
    mine->generation++;
    mine->pid = getpid();
    memcpy(mine->gid, gid, 16);
    f->me = mine;
    f->owner = (uint64_t)mine->generation << 32 | (index + 1);
    atomic_store(&mine->owner, f->owner);
    soft_reclaim(f, 0);
    return 0;
}

static int open_fds(struct soft_fab *f)
{
    struct epoll_event event = {.events = EPOLLIN};
    f->ctl_efd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    f->event_efd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    f->ctl_tfd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    f->ctl_epfd = epoll_create1(EPOLL_CLOEXEC);
    if (f->ctl_efd < 0 || f->event_efd < 0 || f->ctl_tfd < 0 || f->ctl_epfd < 0 ||
        epoll_ctl(f->ctl_epfd, EPOLL_CTL_ADD, f->ctl_efd, &event) != 0 ||
        epoll_ctl(f->ctl_epfd, EPOLL_CTL_ADD, f->ctl_tfd, &event) != 0)
        return -errno;
    return 0;
}

/* Undoes whatever part of an open was done. */
static void tear_down(struct soft_fab *f)
{
    soft_watch_stop(f);
    if (f->shared != NULL) {
        soft_map_sweep(f, true);
        if (f->owner != 0) /* nothing is left that it owns: close() saw to that */
            atomic_store(&f->me->owner, 0);
        munmap(f->shared, sizeof *f->shared);
    }
    for (struct soft_event *e = f->events, *next; e != NULL; e = next) {
        next = e->next;
        free(e);
    }
    int fds[] = {f->fd, f->dir_fd, f->ctl_efd, f->ctl_tfd, f->ctl_epfd, f->event_efd};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

static int soft_close(struct kedge_fab *fab)
{
    struct soft_fab *f = soft_of(fab);
    if (atomic_load(&f->objects) != 0)
        return -EBUSY;
    for (struct kedge_fab_ctl *ctl = f->submitted, *next; ctl != NULL; ctl = next) {
        next = ctl->next;
        ctl->status = -ECANCELED;
        ctl->done(ctl);
    }
    tear_down(f);
    return 0;
}

static int soft_ctl_fd(const struct kedge_fab *fab)
{
    return soft_of(fab)->ctl_epfd;
}

static int soft_event_fd(const struct kedge_fab *fab)
{
    return soft_of(fab)->event_efd;
}

static enum ibv_qp_state soft_qp_state(const struct kedge_fab_qp *qp)
{
    return (enum ibv_qp_state)atomic_load(&((const struct soft_qp *)qp)->shared->state);
}

static const struct kedge_fab_ops soft_ops = {
    .name = "soft",
    .close = soft_close,
    .submit = soft_submit,
    .run = soft_run,
    .ctl_fd = soft_ctl_fd,
    .post_send = soft_post_send,
    .post_recv = soft_post_recv,
    .post_srq_recv = soft_post_srq_recv,
    .poll = soft_poll,
    .arm = soft_arm,
    .chan_drain = soft_chan_drain,
    .qp_state = soft_qp_state,
    .event_fd = soft_event_fd,
    .get_event = soft_get_event,
};

static const struct kedge_fab_caps soft_caps = {
    .transports = KEDGE_FAB_RC | KEDGE_FAB_UD | KEDGE_FAB_DC,
    .max_qp = SOFT_QPS,
    .max_qp_wr = SOFT_RQ_WR,
    .max_sge = SOFT_SGE,
    .max_inline = SOFT_INLINE,
    .max_cqe = 1 << 16,
    .max_srq_wr = SOFT_RQ_WR,
    .max_mr = SOFT_MRS,
    .max_mr_size = 1ull << 40,
    .max_msg_size = 1ull << 30,
    .ud_payload = SOFT_UD_PAYLOAD,
    .max_rd_atomic = 128,
    .port_num = 1,
    .mtu = IBV_MTU_4096,
    .is_ethernet = true,
    .slack_ns = 2 * KEDGE_NS_PER_MS,
};

static int soft_open(const struct kedge_fab_open_attr *attr, struct kedge_fab **out,
                     struct kedge_errbuf *err)
{
    struct soft_fab *f = calloc(1, sizeof *f);
    if (f == NULL)
        return kedge_err(err, -ENOMEM, "soft device: out of memory");
    f->base = (struct kedge_fab){.ops = &soft_ops, .caps = soft_caps};
    f->fd = f->dir_fd = f->ctl_efd = f->ctl_tfd = f->ctl_epfd = f->event_efd = -1;
    f->submitted_tail = &f->submitted;
    f->events_tail = &f->events;
    pthread_mutex_init(&f->lock, NULL);

    int status = open_directory(f, attr->device, err);
    if (status == 0)
        status = open_file(f, err);
    if (status == 0)
        status = take_context(f, attr->gid, err);
    if (f->fd >= 0)
        (void)lock_byte(f->fd, SOFT_OPEN_LOCK, false);
    if (status == 0) {
        status = open_fds(f);
        if (status == 0)
            status = soft_watch_start(f);
        if (status != 0)
            kedge_err(err, status, "soft device: %s (raise LimitNOFILE?)", strerror(-status));
    }
    if (status != 0) {
        tear_down(f);
        return status;
    }
    memcpy(f->base.caps.gid, f->me->gid, 16);
    *out = &f->base;
    return 0;
}

const struct kedge_fab_provider kedge_fab_soft = {.name = "soft", .open = soft_open};
