/* SPDX-License-Identifier: Apache-2.0 */
#include "batch.h"
#include "counters.h"
#include "lent.h"
#include "receive.h"

#include <stdatomic.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

enum { RETRY_MS = 50, RETRY_MOST_MS = 60000 }; /* where the agent does not say when, or nonsense */

/* A page that a forked child finds zeroed: a handler of fork() would outlive the library. */
static int new_alive(const uint32_t **out)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint32_t *word = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (word == MAP_FAILED)
        return client_fail(-errno, "mapping a page failed: %s", strerror(errno));
    if (madvise(word, page, MADV_WIPEONFORK) != 0) {
        int status = client_fail(-errno, "MADV_WIPEONFORK failed: %s", strerror(errno));
        munmap(word, page);
        return status;
    }
    *word = 1;
    *out = word;
    return 0;
}

/* -EAGAIN: and after how long to ask again. */
static int open_once(const struct kedge_open_attr *attr, struct kedge_session **out,
                     uint64_t *retry_ns)
{
    struct kedge_session *s = calloc(1, sizeof *s);
    if (s == NULL)
        return client_fail_text(-ENOMEM, "no memory for a session");
    s->socket = s->doorbell = s->channel = -1;
    s->told.withdrawn = true;
    int status = new_alive(&s->alive);
    if (status != 0) {
        free(s);
        return status;
    }
    status = client_attach(s, attr);
    if (status == 0) {
        s->vqps = calloc(s->max_vqps, sizeof *s->vqps);
        if (s->vqps == NULL)
            status = client_fail_text(-ENOMEM, "no memory for the queue pairs");
    }
    if (status != 0) {
        *retry_ns = s->retry_ms > 0 && s->retry_ms < RETRY_MOST_MS ? s->retry_ms * BASE_NS_PER_MS
                                                                   : RETRY_MS * BASE_NS_PER_MS;
        kedge_close(s);
        return status;
    }
    *out = s;
    return 0;
}

int kedge_open(const struct kedge_open_attr *attr, struct kedge_session **out)
{
    if (client_is_null(out))
        return -EINVAL;
    const int wait_ms = attr != NULL ? attr->wait_ms : 0;
    const uint64_t until =
        wait_ms < 0 ? UINT64_MAX : base_clock_ns() + (uint64_t)wait_ms * BASE_NS_PER_MS;
    for (;;) {
        uint64_t retry_ns = 0;
        const int status = open_once(attr, out, &retry_ns);
        if (status == -EAGAIN && attr != NULL && attr->retry_ms != NULL)
            *attr->retry_ms = (uint32_t)(retry_ns / BASE_NS_PER_MS);
        if (status != -EAGAIN || wait_ms == 0 || base_clock_ns() + retry_ns > until)
            return status;
        const struct timespec pause = {.tv_sec = (time_t)(retry_ns / BASE_NS_PER_S),
                                       .tv_nsec = (long)(retry_ns % BASE_NS_PER_S)};
        (void)nanosleep(&pause, NULL); /* a signal is as good as its end */
    }
}

void kedge_close(struct kedge_session *s)
{
    if (s == NULL)
        return;
    client_detach(s);
    while (s->mrs != NULL) {
        struct kedge_mr *mr = s->mrs;
        s->mrs = mr->next;
        client_free_mr(mr);
    }
    client_batches_free(s);
    client_counters_free(s);
    client_messages_free(s->messages);
    free(s->vqps);
    munmap((void *)(uintptr_t)s->alive, (size_t)sysconf(_SC_PAGESIZE));
    free(s);
}

void kedge_session_query(const struct kedge_session *s, struct kedge_session_info *out)
{
    size_t arena_bytes = 0;
    if (client_is_null(s) || client_is_null(out))
        return;
    for (uint32_t i = 0; i < CLIENT_MAX_ARENAS && arena_bytes == 0; i++)
        arena_bytes = s->arenas[i].bytes;
    *out = (struct kedge_session_info){.session = s->session,
                                       .tenant = s->tenant,
                                       .max_vqps = s->max_vqps,
                                       .max_inflight = s->max_inflight,
                                       .cq_entries = s->cq_mask + 1,
                                       .max_recvs = client_receives_most(s),
                                       .arena_bytes = arena_bytes};
    client_gid(s, out->gid);
}

int kedge_session_status(const struct kedge_session *s)
{
    if (client_is_null(s))
        return -EINVAL;
    /* What it may find (that the agent is gone) is remembered; the object itself is never const. */
    return client_look_at_socket((struct kedge_session *)(uintptr_t)s);
}
