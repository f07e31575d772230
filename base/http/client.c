/* SPDX-License-Identifier: Apache-2.0 */
/* Many calls at once. libcurl says which sockets and which timer to watch; they hang in one epoll.
 *
 * Calls are started and removed by run() alone, since libcurl takes neither from inside a callback.
 */
#include "base/http/client.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "transfer.h"

enum {
    EVENTS_PER_ROUND = 32,
    ROUNDS_PER_RUN = 8,
    KEPT_CONNECTIONS = 32,
};

TAILQ_HEAD(http_calls, http_transfer);

struct http_client {
    CURLM *multi;
    int epoll, timer;
    uint64_t due_ns;   /* when libcurl wants to be called; UINT64_MAX: never */
    unsigned silences; /* calls that end when they hear nothing */
    uint64_t last_id;
    unsigned count;
    bool kick; /* there is a call to start or to remove */
    bool freeing;
    struct http_calls calls;
};

/* When the first call has heard nothing for too long. */
static uint64_t silence_ends(const struct http_client *c)
{
    const struct http_transfer *call;
    uint64_t end = UINT64_MAX;
    if (c->silences == 0)
        return end;
    TAILQ_FOREACH(call, &c->calls, link) {
        if (call->silence_ns != 0 && call->heard_at_ns + call->silence_ns < end)
            end = call->heard_at_ns + call->silence_ns;
    }
    return end;
}

static void arm_timer(struct http_client *c)
{
    struct itimerspec t = {0};
    uint64_t now = base_clock_ns(), due = silence_ends(c);
    due = c->due_ns < due ? c->due_ns : due;
    uint64_t wait_ns = c->kick || due <= now ? 1 : due - now;
    if (c->kick || due != UINT64_MAX) {
        t.it_value.tv_sec = (time_t)(wait_ns / BASE_NS_PER_S);
        t.it_value.tv_nsec = (long)(wait_ns % BASE_NS_PER_S);
    }
    timerfd_settime(c->timer, 0, &t, NULL);
}

static int on_timer(CURLM *multi, long ms, void *arg)
{
    (void)multi;
    struct http_client *c = arg;
    c->due_ns = ms < 0 ? UINT64_MAX : base_clock_ns() + (uint64_t)ms * BASE_NS_PER_MS;
    return 0;
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *socket_arg)
{
    (void)easy;
    struct http_client *c = arg;
    struct epoll_event e = {.data.fd = fd};
    if (what == CURL_POLL_REMOVE) {
        epoll_ctl(c->epoll, EPOLL_CTL_DEL, fd, NULL);
        return 0;
    }
    e.events = (what & CURL_POLL_IN ? (unsigned)EPOLLIN : 0u) |
               (what & CURL_POLL_OUT ? (unsigned)EPOLLOUT : 0u);
    if (epoll_ctl(c->epoll, socket_arg != NULL ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &e) != 0 &&
        epoll_ctl(c->epoll, errno == EEXIST ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &e) != 0)
        return -1;
    curl_multi_assign(c->multi, fd, c);
    return 0;
}

int http_client_new(struct http_client **out)
{
    struct http_client *c = calloc(1, sizeof *c);
    int status = -ENOMEM;
    if (c == NULL)
        return status;
    TAILQ_INIT(&c->calls);
    c->due_ns = UINT64_MAX;
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        goto free_client;
    c->multi = curl_multi_init();
    if (c->multi == NULL)
        goto cleanup_curl;
    c->epoll = epoll_create1(EPOLL_CLOEXEC);
    c->timer = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    struct epoll_event e = {.events = EPOLLIN, .data.fd = c->timer};
    if (c->epoll < 0 || c->timer < 0 || epoll_ctl(c->epoll, EPOLL_CTL_ADD, c->timer, &e) != 0) {
        status = -errno;
        goto close_descriptors;
    }
    if (curl_multi_setopt(c->multi, CURLMOPT_SOCKETFUNCTION, on_socket) != CURLM_OK ||
        curl_multi_setopt(c->multi, CURLMOPT_SOCKETDATA, c) != CURLM_OK ||
        curl_multi_setopt(c->multi, CURLMOPT_TIMERFUNCTION, on_timer) != CURLM_OK ||
        curl_multi_setopt(c->multi, CURLMOPT_TIMERDATA, c) != CURLM_OK ||
        curl_multi_setopt(c->multi, CURLMOPT_MAXCONNECTS, (long)KEPT_CONNECTIONS) != CURLM_OK)
        goto close_descriptors;
    *out = c;
    return 0;
close_descriptors:
    if (c->timer >= 0)
        close(c->timer);
    if (c->epoll >= 0)
        close(c->epoll);
    curl_multi_cleanup(c->multi);
cleanup_curl:
    curl_global_cleanup();
free_client:
    free(c);
    return status;
}

/* Takes a call out; the caller then owns it. */
static void detach_call(struct http_client *c, struct http_transfer *call)
{
    if (call->added)
        curl_multi_remove_handle(c->multi, call->easy);
    TAILQ_REMOVE(&c->calls, call, link);
    c->count--;
    c->silences -= call->silence_ns != 0;
}

static void finish_call(struct http_client *c, struct http_transfer *call, CURLcode code)
{
    detach_call(c, call);
    if (!call->cancelled) {
        struct http_answer answer = http_transfer_answer(call, code);
        call->done(call->user, &answer);
    }
    http_transfer_free(call);
}

void http_client_free(struct http_client *c)
{
    if (c == NULL)
        return;
    struct http_transfer *call;
    c->freeing = true;
    while ((call = TAILQ_FIRST(&c->calls)) != NULL) {
        call->error = -ECANCELED;
        finish_call(c, call, CURLE_ABORTED_BY_CALLBACK);
    }
    curl_multi_cleanup(c->multi);
    curl_global_cleanup();
    close(c->timer);
    close(c->epoll);
    free(c);
}

int http_client_fd(const struct http_client *c)
{
    return c->epoll;
}

int http_client_call(struct http_client *c, const struct http_call *request, http_done done,
                     void *user, uint64_t *id)
{
    struct http_transfer *call;
    if (c->freeing)
        return -ECANCELED;
    if (c->count >= HTTP_CALLS_MAX)
        return -EAGAIN;
    int status = http_transfer_new(request, user, &call);
    if (status != 0)
        return status;
    call->done = done;
    call->id = ++c->last_id;
    TAILQ_INSERT_TAIL(&c->calls, call, link);
    c->count++;
    c->silences += call->silence_ns != 0;
    c->kick = true;
    arm_timer(c);
    if (id != NULL)
        *id = call->id;
    return 0;
}

int http_client_cancel(struct http_client *c, uint64_t id)
{
    struct http_transfer *call;
    TAILQ_FOREACH(call, &c->calls, link) {
        if (call->id != id || call->cancelled)
            continue;
        call->cancelled = true;
        c->kick = true;
        arm_timer(c);
        return 0;
    }
    return -ENOENT;
}

/* Starts the new calls and removes the cancelled ones. A callback may add more: they set kick. */
static void start_and_remove(struct http_client *c)
{
    while (c->kick) {
        struct http_transfer *call = TAILQ_FIRST(&c->calls), *next;
        c->kick = false;
        for (; call != NULL; call = next) {
            next = TAILQ_NEXT(call, link);
            if (call->cancelled) {
                finish_call(c, call, CURLE_ABORTED_BY_CALLBACK);
            } else if (!call->added) {
                call->added = curl_multi_add_handle(c->multi, call->easy) == CURLM_OK;
                if (!call->added) {
                    finish_call(c, call, CURLE_OUT_OF_MEMORY);
                    c->kick = true; /* `next` may be gone: begin again */
                    break;
                }
            }
        }
    }
}

/* One at a time: its `done` may cancel others. */
static void end_silent(struct http_client *c)
{
    while (silence_ends(c) <= base_clock_ns()) {
        struct http_transfer *call = TAILQ_FIRST(&c->calls);
        uint64_t now = base_clock_ns();
        while (call != NULL &&
               (call->silence_ns == 0 || call->heard_at_ns + call->silence_ns > now))
            call = TAILQ_NEXT(call, link);
        if (call == NULL)
            return;
        call->error = -ETIMEDOUT;
        finish_call(c, call, CURLE_OPERATION_TIMEDOUT);
    }
}

static void finish_ended(struct http_client *c)
{
    CURLMsg *m;
    int left;
    while ((m = curl_multi_info_read(c->multi, &left)) != NULL) {
        struct http_transfer *call = NULL;
        if (m->msg != CURLMSG_DONE)
            continue;
        CURLcode code = m->data.result; /* m is void once the handle is removed */
        curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&call);
        finish_call(c, call, code);
    }
}

void http_client_run(struct http_client *c)
{
    struct epoll_event events[EVENTS_PER_ROUND];
    int running, n = EVENTS_PER_ROUND;
    for (int round = 0; round < ROUNDS_PER_RUN && n == EVENTS_PER_ROUND; round++) {
        start_and_remove(c);
        n = epoll_wait(c->epoll, events, EVENTS_PER_ROUND, 0);
        for (int i = 0; i < n; i++) {
            uint32_t e = events[i].events;
            if (events[i].data.fd == c->timer)
                continue; /* arming it anew clears it */
            int what = (e & EPOLLIN ? CURL_CSELECT_IN : 0) | (e & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                       (e & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);
            curl_multi_socket_action(c->multi, events[i].data.fd, what, &running);
        }
        if (c->due_ns <= base_clock_ns()) {
            c->due_ns = UINT64_MAX; /* unless libcurl sets it again */
            curl_multi_socket_action(c->multi, CURL_SOCKET_TIMEOUT, 0, &running);
        }
        finish_ended(c);
    }
    end_silent(c);
    start_and_remove(c);
    arm_timer(c);
}
