/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting in poll() or epoll: the completion channel, which the agent makes readable once for each
 * value of rw->armed (schema/session.h). */
#include "request.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "processor.h"

int kedge_fd(struct kedge_session *s)
{
    if (client_is_null(s))
        return -EINVAL;
    int status = client_usable(s);
    if (status != 0)
        return status;
    if (s->channel >= 0)
        return s->channel;
    if ((s->features & SCHEMA_FEATURE_CHANNEL) == 0)
        return client_fail_text(-EOPNOTSUPP, "the agent is older than completion channels: wait "
                                             "with kedge_wait(), or update it");
    struct schema_control_channel ask, answer;
    int fd;
    status = client_message(s, &ask.h, sizeof ask, SCHEMA_CONTROL_CHANNEL, &answer, sizeof answer,
                            SCHEMA_CONTROL_CHANNEL_OK, &fd);
    if (status != 0)
        return status;
    s->channel = fd;
    return fd;
}

/* What it was told for is over. False: the agent has closed its end. */
static bool drain_channel(const struct kedge_session *s)
{
    char bytes[64];
    ssize_t n;
    do
        n = recv(s->channel, bytes, sizeof bytes, MSG_DONTWAIT);
    while (n == (ssize_t)sizeof bytes || (n < 0 && errno == EINTR));
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK));
}

static void write_armed(struct kedge_session *s, uint32_t armed)
{
    s->armed = armed;
    atomic_store_explicit(&s->rw->armed, armed, memory_order_relaxed);
}

/* It ended for a reason that the rings say, or that the socket shows. */
static int say_closed(struct kedge_session *s)
{
    const int status = client_look_at_socket(s);
    return status != 0 ? status
                       : client_fail_text(-EPIPE, "the agent has closed the completion channel: "
                                                  "open another session");
}

/* Before it is armed the channel is drained, since what comes after that is for this time; and
 * after it is armed, it is looked once more (held to tests/model/channel.pml). */
int kedge_arm(struct kedge_session *s)
{
    if (client_is_null(s))
        return -EINVAL;
    if (*s->alive == 0)
        return client_usable(s);
    if (s->channel < 0)
        return client_fail_text(-EINVAL, "there is no descriptor to arm: call kedge_fd() first");
    const bool open = drain_channel(s);
    if (client_take_something(s))
        return 1;
    int status = open ? client_usable(s) : say_closed(s);
    if (status == 0)
        status = client_look_at_lane(s);
    if (status != 0)
        return status;
    client_say_processor(s);
    write_armed(s, (s->armed | 1) + 2);
    atomic_thread_fence(memory_order_seq_cst);
    const bool found = client_take_something(s);
    status = found ? 1 : client_usable(s);
    if (status != 0)
        write_armed(s, s->armed & ~1u);
    return status;
}
