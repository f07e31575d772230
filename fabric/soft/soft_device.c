/* SPDX-License-Identifier: Apache-2.0 */
/* Opening the device: its directory and its file. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "soft/chan.h"
#include "soft/context.h"
#include "soft/soft_control.h"
#include "soft/cq.h"
#include "soft/maps.h"
#include "soft/poll.h"
#include "soft/recv.h"
#include "soft/sendq.h"
#include "soft/soft_model.h"
#include "soft/soft.h"
#include "soft/soft_watch.h"

static int soft_directory(const char *device, char *out, size_t bytes)
{
    int n = device != NULL ? snprintf(out, bytes, "%s", device)
                           : snprintf(out, bytes, "/dev/shm/kedge-soft-%u", (unsigned)geteuid());
    return n >= 0 && (size_t)n < bytes ? 0 : -ENAMETOOLONG;
}

static int name_directory(const char *device, char out[SOFT_DIR_BYTES], struct base_errbuf *err)
{
    if (soft_directory(device, out, SOFT_DIR_BYTES) != 0)
        return base_err(err, -ENAMETOOLONG, "soft device: the path %s is longer than %d bytes",
                        device, SOFT_DIR_BYTES - 1);
    return 0;
}

static int cannot_make(const char *dir, int status, struct base_errbuf *err)
{
    return base_err(err, status,
                    "soft device: cannot make %s: %s (make its parent, or name another `device`)",
                    dir, strerror(-status));
}

/* That only the agents' user can enter it: whoever can read the file owns every node on it. */
static int check_owner(const char *dir, const struct stat *st, struct base_errbuf *err)
{
    if (st->st_uid != geteuid())
        return base_err(err, -EACCES,
                        "soft device: %s must belong to uid %u, which this runs as, not to uid %u "
                        "(run all agents on it as one user, or name another `device`)",
                        dir, (unsigned)geteuid(), (unsigned)st->st_uid);
    if ((st->st_mode & 077) != 0)
        return base_err(err, -EACCES,
                        "soft device: others may enter %s, which must have mode 0700 and has %04o: "
                        "chmod 700 %s, or name another `device`",
                        dir, (unsigned)st->st_mode & 07777, dir);
    return 0;
}

/* Of a directory that the open would make: whether it could. */
static int check_parent(const char *dir, struct base_errbuf *err)
{
    char parent[SOFT_DIR_BYTES];
    snprintf(parent, sizeof parent, "%s", dir);
    if (access(dirname(parent), W_OK | X_OK) != 0)
        return cannot_make(dir, -errno, err);
    return 0;
}

static int soft_check(const char *device, struct base_errbuf *err)
{
    char dir[SOFT_DIR_BYTES];
    struct stat st;
    const int status = name_directory(device, dir, err);
    if (status != 0)
        return status;
    if (lstat(dir, &st) != 0)
        return errno == ENOENT ? check_parent(dir, err) : cannot_make(dir, -errno, err);
    if (!S_ISDIR(st.st_mode))
        return base_err(err, -ENOTDIR, "soft device: cannot open %s: %s", dir, strerror(ENOTDIR));
    return check_owner(dir, &st, err);
}

static int open_directory(struct soft_fab *f, const char *device, struct base_errbuf *err)
{
    struct stat st;
    const int status = name_directory(device, f->dir, err);
    if (status != 0)
        return status;
    if (mkdir(f->dir, 0700) != 0 && errno != EEXIST)
        return cannot_make(f->dir, -errno, err);
    f->dir_fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (f->dir_fd < 0 || fstat(f->dir_fd, &st) != 0)
        return base_err(err, -errno, "soft device: cannot open %s: %s", f->dir, strerror(errno));
    return check_owner(f->dir, &st, err);
}

static int wrong_version(const struct soft_fab *f, struct base_errbuf *err)
{
    return base_err(err, -EPROTO,
                    "soft device: %s was made by another version of Kedge (stop every agent on "
                    "it, then remove it)",
                    f->dir);
}

/* With the open lock held: makes a new file what it must be, or checks an old one. */
static int check_file(struct soft_fab *f, struct base_errbuf *err)
{
    struct soft_shared *s = f->shared;
    if (s->magic == 0) {
        s->version = SOFT_VERSION;
        s->bytes = sizeof *s;
        s->magic = SOFT_MAGIC;
    }
    if (s->magic != SOFT_MAGIC || s->version != SOFT_VERSION || s->bytes != sizeof *s)
        return wrong_version(f, err);
    return 0;
}

/* One process opens at a time, and briefly. */
static int lock_open(struct soft_fab *f, struct base_errbuf *err)
{
    unsigned waited_us = 0;
    for (unsigned pause_us = 100; soft_lock_byte(f->fd, SOFT_OPEN_LOCK, true) != 0;
         pause_us = pause_us < 10000 ? pause_us * 2 : pause_us) {
        if (waited_us > 5000000)
            return base_err(err, -EBUSY,
                            "soft device: another process has been opening %s for 5 s (is it "
                            "stopped? see `fuser %s/device`)",
                            f->dir, f->dir);
        usleep(pause_us);
        waited_us += pause_us;
    }
    return 0;
}

static int open_file(struct soft_fab *f, struct base_errbuf *err)
{
    struct stat st;
    f->fd = openat(f->dir_fd, "device", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (f->fd < 0)
        return base_err(err, -errno, "soft device: cannot open %s/device: %s", f->dir,
                        strerror(errno));
    int status = lock_open(f, err);
    if (status != 0)
        return status;
    if (fstat(f->fd, &st) != 0 ||
        (st.st_size == 0 && ftruncate(f->fd, sizeof(struct soft_shared)) != 0) ||
        (fallocate(f->fd, FALLOC_FL_KEEP_SIZE, 0, offsetof(struct soft_shared, qp)) != 0 &&
         errno != EOPNOTSUPP))
        return base_err(
            err, -errno,
            "soft device: no room for %s/device: %s (it must be on tmpfs with 1 MiB free)", f->dir,
            strerror(errno));
    if (st.st_size != 0 && st.st_size != sizeof(struct soft_shared))
        return wrong_version(f, err);
    f->shared =
        mmap(NULL, sizeof(struct soft_shared), PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, 0);
    if (f->shared == MAP_FAILED) {
        f->shared = NULL;
        return base_err(err, -errno, "soft device: cannot map %s/device: %s", f->dir,
                        strerror(errno));
    }
    (void)madvise(f->shared, sizeof *f->shared, MADV_DONTDUMP);
    return check_file(f, err);
}

static int open_fds(struct soft_fab *f)
{
    struct epoll_event event = {.events = EPOLLIN};
    (void)fab_bell_open(&f->ctl);
    f->ctl_tfd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    f->ctl_epfd = epoll_create1(EPOLL_CLOEXEC);
    if (f->ctl.fd < 0 || f->ctl_tfd < 0 || f->ctl_epfd < 0 ||
        epoll_ctl(f->ctl_epfd, EPOLL_CTL_ADD, f->ctl.fd, &event) != 0 ||
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
    soft_model_fini(f);
    fab_events_fini(&f->events);
    int fds[] = {f->fd, f->dir_fd, f->ctl.fd, f->ctl_tfd, f->ctl_epfd};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

static int soft_close(struct fab *fab)
{
    struct soft_fab *f = soft_of(fab);
    if (atomic_load(&f->objects) != 0)
        return -EBUSY;
    struct fab_ctl **tail = &f->pending;
    while (*tail != NULL)
        tail = &(*tail)->next;
    *tail = f->submitted;
    for (struct fab_ctl *ctl = f->pending, *next; ctl != NULL; ctl = next) {
        next = ctl->next;
        if (ctl->kind == FAB_QUIESCE_MR)
            free(ctl->quiesce.progress);
        ctl->status = -ECANCELED;
        ctl->done(ctl);
    }
    tear_down(f);
    return 0;
}

static int soft_ctl_fd(const struct fab *fab)
{
    return soft_of(fab)->ctl_epfd;
}

static int soft_event_fd(const struct fab *fab)
{
    return soft_of(fab)->events.efd;
}

static int soft_get_event(struct fab *fab, struct fab_event *out)
{
    return fab_events_pop(&soft_of(fab)->events, out);
}

static enum ibv_qp_state soft_qp_state(const struct fab_qp *qp)
{
    return soft_state(atomic_load(&((const struct soft_qp *)qp)->shared->ident));
}

static const struct fab_ops soft_ops = {
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
    .is_busy = soft_is_busy,
    .chan_drain = soft_chan_drain,
    .qp_state = soft_qp_state,
    .event_fd = soft_event_fd,
    .get_event = soft_get_event,
};

static const struct fab_caps soft_caps = {
    .transports = FAB_RC | FAB_UD | FAB_DC,
    .max_qp = SOFT_QPS,
    .max_qp_wr = SOFT_RQ_WR,
    .max_sge = SOFT_SGE,
    .max_inline = SOFT_INLINE,
    .atomics = true,
    .dc_atomics = true,
    .fences = true,
    .names_culprit = true,
    .max_cqe = SOFT_CQE,
    .max_srq_wr = SOFT_RQ_WR,
    .max_mr = SOFT_MRS,
    .max_mr_size = 1ull << 40,
    .max_msg_size = 1ull << 30,
    .ud_payload = SOFT_UD_PAYLOAD,
    .max_rd_atomic = SOFT_READS,
    .port_num = 1,
    .mtu = IBV_MTU_4096,
    .is_ethernet = true,
    .numa_node = -1,
    .comp_vectors = 1,
    .deadlines = true,
    .timeout_stretch = 1,
    .slack_ns = 2 * BASE_NS_PER_MS,
};

static int soft_open(const struct fab_open_attr *attr, struct fab **out, struct base_errbuf *err)
{
    struct soft_fab *f = calloc(1, sizeof *f);
    if (f == NULL)
        return base_err(err, -ENOMEM, "soft device: out of memory");
    f->base = (struct fab){.ops = &soft_ops, .caps = soft_caps};
    f->base.caps.service = attr->service;
    if (attr->service.mtu != 0 && attr->service.mtu < f->base.caps.mtu)
        f->base.caps.mtu = attr->service.mtu;
    f->fd = f->dir_fd = f->ctl.fd = f->ctl_tfd = f->ctl_epfd = -1;
    f->submitted_tail = &f->submitted;
    pthread_mutex_init(&f->lock, NULL);

    int status = fab_events_init(&f->events);
    if (status != 0)
        (void)base_err(err, status, "soft device: %s (raise LimitNOFILE?)", strerror(-status));
    else
        status = soft_keys_init(&f->keys, err);
    if (status == 0)
        status = soft_order_init(&f->order, err);
    if (status == 0 && attr->model != NULL) {
        f->modelled = soft_ops;
        f->modelled.post_send = soft_modelled_post;
        f->modelled.poll = soft_modelled_poll;
        f->modelled.arm = soft_modelled_arm;
        f->base.ops = &f->modelled;
        status = soft_model_init(f, attr->model, err);
    }
    f->base.caps.writes_in_order = !f->order.writes;
    if (status == 0)
        status = open_directory(f, attr->device, err);
    if (status == 0)
        status = open_file(f, err);
    if (status == 0)
        status = soft_context_take(f, attr->gid, err);
    if (f->fd >= 0)
        (void)soft_lock_byte(f->fd, SOFT_OPEN_LOCK, false);
    if (status == 0) {
        status = open_fds(f);
        if (status == 0)
            status = soft_watch_start(f);
        if (status != 0)
            base_err(err, status, "soft device: %s (raise LimitNOFILE?)", strerror(-status));
    }
    if (status != 0) {
        tear_down(f);
        return status;
    }
    *out = &f->base;
    return 0;
}

const struct fab_provider fab_soft = {
    .name = "soft",
    .about = "one host, no RNIC",
    .usual = "the usual directory in /dev/shm",
    .deadlines = true,
    .by_proc = true,
    .models = true,
    .open = soft_open,
    .check = soft_check,
    .directory = soft_directory,
};
