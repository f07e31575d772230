/* SPDX-License-Identifier: Apache-2.0 */
#include "closer.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "fd_watch.h"

enum { LOOK_MS = 50, LAST_WORDS_MS = 500, LOGGED = 4, UIDS = 2 * CLOSER_REFUSED };

/* How many processes a uid has, and since when the last of them. */
static uint32_t count_batches(const struct closer *r, uid_t uid, uint64_t *last_ns)
{
    uint32_t count = 0;
    *last_ns = 0;
    for (const struct closer_batch *b = r->batch; b < r->batch + CLOSERS; b++)
        if (b->serial != 0 && b->uid == uid) {
            count++;
            *last_ns = b->since_ns > *last_ns ? b->since_ns : *last_ns;
        }
    return count;
}

static struct closer_batch *find_free(struct closer *r)
{
    for (struct closer_batch *b = r->batch; b < r->batch + CLOSERS; b++)
        if (b->serial == 0)
            return b;
    return NULL;
}

/* ---- the queue */

static void append_closing(struct closer *r, struct closing *c)
{
    c->next = NULL;
    if (r->last == NULL)
        r->first = c;
    else
        r->last->next = c;
    r->last = c;
}

/* The oldest of the uid's, of which as many as a batch can have; their descriptors too. */
static struct closing *take_of_uid(struct closer *r, uid_t uid, int fd[CLOSER_BATCH],
                                   uint32_t *count)
{
    struct closing *taken = NULL, **end = &taken, **at = &r->first;
    r->last = NULL;
    *count = 0;
    while (*at != NULL) {
        struct closing *c = *at;
        if (c->uid == uid && *count < CLOSER_BATCH) {
            fd[(*count)++] = c->fd;
            *at = c->next;
            c->next = NULL;
            *end = c;
            end = &c->next;
        } else {
            r->last = c;
            at = &c->next;
        }
    }
    return taken;
}

static void put_back(struct closer *r, struct closing *first)
{
    struct closing *last = first;
    while (last->next != NULL)
        last = last->next;
    last->next = r->first;
    r->first = first;
    if (r->last == NULL)
        r->last = last;
}

static void call_closed(struct closing *first)
{
    for (struct closing *next; first != NULL; first = next) {
        next = first->next;
        first->closed(first);
    }
}

/* ---- uids */

static bool is_in(const uid_t *uids, uint32_t count, uid_t uid)
{
    for (uint32_t i = 0; i < count; i++)
        if (uids[i] == uid)
            return true;
    return false;
}

static void add_uid(uid_t uids[UIDS], uint32_t *count, uid_t uid)
{
    if (*count < UIDS && !is_in(uids, *count, uid))
        uids[(*count)++] = uid;
}

/* Of which sockets wait, who has waited longest first. */
static uint32_t list_waiting(const struct closer *r, uid_t uids[UIDS])
{
    uint32_t count = 0;
    for (const struct closing *c = r->first; c != NULL; c = c->next)
        add_uid(uids, &count, c->uid);
    return count;
}

static uint32_t count_waiting(const struct closer *r, uid_t uid)
{
    uint32_t count = 0;
    for (const struct closing *c = r->first; c != NULL; c = c->next)
        count += c->uid == uid;
    return count;
}

/* ---- who is refused */

bool agentd_closer_refuses(const struct closer *r, uid_t uid)
{
    return is_in(r->refused, r->refused_count, uid);
}

/* Once it is refused, until all of its sockets are closed: it would be let in and refused by turns.
 */
static bool is_to_be_refused(const struct closer *r, uid_t uid)
{
    uint64_t last_ns;
    const uint32_t waiting = count_waiting(r, uid);
    for (const struct closer_batch *b = r->batch; b < r->batch + CLOSERS; b++)
        if (b->serial != 0 && b->left_behind && b->uid == uid)
            return true;
    return waiting >= CLOSER_QUEUE_OF_UID ||
           (agentd_closer_refuses(r, uid) && waiting + count_batches(r, uid, &last_ns) > 0);
}

static void say_refused(struct closer *r, uid_t uid)
{
    uint32_t suppressed;
    if (base_log_allow(&r->limit, base_clock_ns(), PAUSE_LOGGED_S * BASE_NS_PER_S, LOGGED,
                       &suppressed))
        base_log(BASE_LOG_WARN,
                 "a uid is refused until the descriptors that it has sent to an attach socket are "
                 "closed",
                 "uid=%u suppressed=%u", (unsigned)uid, suppressed);
}

static void update_refused(struct closer *r)
{
    uid_t uids[UIDS], now[CLOSER_REFUSED];
    uint32_t count = 0, seen = list_waiting(r, uids);
    bool same = true;
    for (const struct closer_batch *b = r->batch; b < r->batch + CLOSERS; b++)
        if (b->serial != 0)
            add_uid(uids, &seen, b->uid);
    for (uint32_t i = 0; i < seen && count < CLOSER_REFUSED; i++)
        if (is_to_be_refused(r, uids[i]))
            now[count++] = uids[i];
    for (uint32_t i = 0; i < count; i++)
        if (!agentd_closer_refuses(r, now[i])) {
            same = false;
            say_refused(r, now[i]);
        }
    if (same && count == r->refused_count)
        return;
    memcpy(r->refused, now, count * sizeof *now);
    r->refused_count = count;
    r->refuse(r);
}

/* ---- processes */

static void begin_batch(struct closer *r, struct closer_batch *b, uid_t uid)
{
    int fd[CLOSER_BATCH];
    uint32_t count, serial;
    struct closing *first = take_of_uid(r, uid, fd, &count);
    if (agentd_closer_process_give(r->process, fd, count, &serial) != 0) {
        put_back(r, first); /* the timer tries it again */
        return;
    }
    *b = (struct closer_batch){
        .serial = serial, .uid = uid, .since_ns = base_clock_ns(), .first = first};
}

static bool may_begin(const struct closer *r, uid_t uid)
{
    uint64_t last_ns;
    const uint32_t count = count_batches(r, uid, &last_ns);
    if (count == 0 || count >= CLOSERS_OF_UID)
        return count == 0;
    return base_clock_ns() - last_ns >= CLOSER_NEXT_MS * BASE_NS_PER_MS ||
           count_waiting(r, uid) >= CLOSER_BATCH;
}

static void begin_if_may(struct closer *r, uid_t uid)
{
    struct closer_batch *b = r->gone ? NULL : find_free(r);
    if (b != NULL && may_begin(r, uid))
        begin_batch(r, b, uid);
}

static void begin_all(struct closer *r)
{
    uid_t uids[UIDS];
    const uint32_t count = list_waiting(r, uids);
    for (uint32_t i = 0; i < count; i++)
        begin_if_may(r, uids[i]);
}

static void say_failed(struct closer *r, int status)
{
    uint32_t suppressed;
    if (base_log_allow(&r->limit, base_clock_ns(), PAUSE_LOGGED_S * BASE_NS_PER_S, LOGGED,
                       &suppressed))
        base_log(BASE_LOG_WARN, "what strangers sent cannot be closed yet",
                 "error=\"%s%s\" suppressed=%u", strerror(-status),
                 status == -EAGAIN ? " (raise TasksMax?)" : "", suppressed);
}

static void take_report(struct closer *r, const struct closer_report *report)
{
    struct closer_batch *b = r->batch;
    while (b < r->batch + CLOSERS && b->serial != report->serial)
        b++;
    if (b == r->batch + CLOSERS) /* of an earlier life of this agent */
        return;
    const struct closer_batch before = *b;
    b->first = NULL;
    if (report->status != 0 || report->news == CLOSER_CLOSED)
        *b = (struct closer_batch){0};
    if (report->status != 0) { /* the timer tries it again */
        say_failed(r, report->status);
        put_back(r, before.first);
        return;
    }
    call_closed(before.first);
    if (report->news == CLOSER_CLOSED && count_waiting(r, before.uid) > 0)
        begin_if_may(r, before.uid);
}

static void on_report(uv_poll_t *poll, int status, int events)
{
    struct closer *r = poll->data;
    struct closer_report report;
    (void)status, (void)events;
    while (agentd_closer_process_hear(r->process, &report) == 0)
        take_report(r, &report);
    update_refused(r);
}

static void on_ended(uv_poll_t *poll, int status, int events)
{
    struct closer *r = poll->data;
    (void)status, (void)events;
    (void)uv_poll_stop(poll);
    r->gone = true;
    base_log(BASE_LOG_ERROR,
             "the process that closes what strangers send has ended: what they send stays open "
             "until the agent is restarted",
             "pid=%d", (int)r->process->pid);
}

static void on_look(uv_timer_t *timer)
{
    struct closer *r = timer->data;
    const uint64_t now_ns = base_clock_ns();
    bool any = r->first != NULL;
    for (struct closer_batch *b = r->batch; b < r->batch + CLOSERS; b++) {
        if (b->serial == 0)
            continue;
        any = true;
        b->left_behind |= now_ns - b->since_ns >= CLOSER_LEFT_MS * BASE_NS_PER_MS;
    }
    begin_all(r);
    update_refused(r);
    if (!any)
        (void)uv_timer_stop(timer);
}

/* ---- beginning and end */

int agentd_closer_start(struct closer *r, struct base_errbuf *err)
{
    if (!closer_is_there(r))
        return 0;
    int status = agentd_fd_watch(r->loop, &r->reports, r->process->fd, on_report, err);
    if (status == 0)
        status = agentd_fd_watch(r->loop, &r->ended, r->process->ended_fd, on_ended, err);
    if (status != 0)
        return status;
    r->reports.data = r->ended.data = r->look.data = r;
    (void)uv_timer_init(r->loop, &r->look);
    return 0;
}

void agentd_closer_take(struct closer *r, struct closing *c)
{
    append_closing(r, c);
    begin_if_may(r, c->uid);
    if (!uv_is_active((const uv_handle_t *)&r->look) && !uv_is_closing((uv_handle_t *)&r->look))
        (void)uv_timer_start(&r->look, on_look, LOOK_MS, LOOK_MS);
    if (r->first != NULL && count_waiting(r, c->uid) == CLOSER_QUEUE_OF_UID)
        update_refused(r);
}

/* What is not given in this time stays open, and ends with this process. */
static void give_all(struct closer *r)
{
    const uint64_t end_ns = base_clock_ns() + LAST_WORDS_MS * BASE_NS_PER_MS;
    struct pollfd room = {.fd = r->process->fd, .events = POLLOUT};
    while (r->first != NULL && !r->gone && base_clock_ns() < end_ns) {
        struct closer_batch b = {0};
        struct closer_report report;
        while (agentd_closer_process_hear(r->process, &report) == 0) {
            /* Nobody waits for it any more; but the process may wait for room. */
        }
        begin_batch(r, &b, r->first->uid);
        call_closed(b.first);
        if (b.serial == 0)
            (void)poll(&room, 1, LOOK_MS);
    }
}

void agentd_closer_stop(struct closer *r)
{
    if (!closer_is_there(r))
        return;
    give_all(r);
    for (struct closer_batch *b = r->batch; b < r->batch + CLOSERS; b++) {
        call_closed(b->first);
        *b = (struct closer_batch){0};
    }
    call_closed(r->first);
    r->first = r->last = NULL;
}
