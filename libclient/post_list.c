/* SPDX-License-Identifier: Apache-2.0 */
/* Lists: WRITEs that a message behind them ends, put into the ring whole or not at all. What was
 * put and not published is nobody's yet, so that it is taken out again. */
#include "post_list.h"

#include <errno.h>
#include <kedge_notify.h>
#include <string.h>

#include "post.h"
#include "request.h"

/* Where the ring, and what the lane knows of q, stood. */
struct list_mark {
    uint32_t tail;
    bool bound, known;
};

static struct list_mark make_mark(const struct kedge_vqp *q)
{
    return (struct list_mark){.tail = q->session->sq_tail, .bound = q->bound, .known = q->known};
}

static void go_back(struct kedge_vqp *q, const struct list_mark *to)
{
    q->session->sq_tail = to->tail;
    q->bound = to->bound;
    q->known = to->known;
}

static int check_agent(const struct kedge_vqp *q)
{
    if ((q->session->features & SCHEMA_FEATURE_MESSAGES) == 0)
        return client_fail_text(-EOPNOTSUPP, CLIENT_NO_MESSAGES);
    if ((q->session->features & SCHEMA_FEATURE_NOTIFY) == 0)
        return client_fail_text(-EOPNOTSUPP, "the agent is of before notifications: run a newer "
                                             "kedge-agentd, or post a SEND behind the WRITEs");
    if (q->to_kind == 0)
        return client_fail_text(-EDESTADDRREQ,
                                "the queue pair's notifications go nowhere: name a port "
                                "(kedge_connect_port), a counter (kedge_connect_counter), or take "
                                "a message's own (kedge_pop_msgs)");
    return 0;
}

/* One of a list, but for the last. */
static int put_write(struct kedge_vqp *q, const struct ibv_send_wr *wr)
{
    union client_post p;
    int status = client_post_build(q, wr, &p);
    if (status != 0)
        return status;
    p.d.flags = (uint8_t)((p.d.flags & ~SCHEMA_OP_SIGNALED) | SCHEMA_OP_LISTED);
    return client_post_put(q, &p);
}

/* ---- a WRITE with an immediate */

static int put_written(struct kedge_vqp *q, const struct ibv_send_wr *wr, uint32_t bytes)
{
    const bool signaled = (wr->send_flags & IBV_SEND_SIGNALED) != 0;
    const union client_post p = {
        .d = {.op = SCHEMA_OP_WRITE_IMM,
              .flags =
                  (uint8_t)(SCHEMA_OP_IMM | SCHEMA_OP_LISTED | (signaled ? SCHEMA_OP_SIGNALED : 0)),
              .slots = 1,
              .vqp = q->index,
              .vqp_gen = q->gen,
              .post = {.wr_id = wr->wr_id, .length = bytes, .imm = wr->imm_data}}};
    return client_post_put(q, &p);
}

static uint64_t bytes_of(const struct ibv_send_wr *wr)
{
    uint64_t bytes = 0;
    for (int i = 0; i < wr->num_sge && wr->sg_list != NULL; i++)
        bytes += wr->sg_list[i].length;
    return bytes;
}

int client_notify_put(struct kedge_vqp *q, const struct ibv_send_wr *wr)
{
    struct ibv_send_wr write = *wr;
    const struct list_mark before = make_mark(q);
    const uint64_t bytes = bytes_of(wr);
    int status = check_agent(q);
    if (status == 0 && q->to_kind == SCHEMA_SEND_TO_COUNTER)
        status =
            client_fail_text(-EINVAL, "what raises a counter is an IBV_WR_SEND without a byte");
    if (status == 0 && bytes > UINT32_MAX)
        status = client_fail_text(-EINVAL, "the pieces of sg_list have 4 GiB together, or more");
    if (status != 0)
        return status;
    write.opcode = IBV_WR_RDMA_WRITE;
    if (bytes > 0) /* else it would ask for a region, which verbs do not */
        status = put_write(q, &write);
    if (status == 0)
        status = put_written(q, wr, (uint32_t)bytes);
    if (status != 0)
        go_back(q, &before);
    return status;
}

/* ---- a list */

static int check_write(const struct ibv_send_wr *wr, uint32_t i)
{
    if (wr->opcode == IBV_WR_RDMA_WRITE)
        return 0;
    return client_fail(-EINVAL,
                       "request %u of the list has opcode %u: before the notification, its last, "
                       "there are IBV_WR_RDMA_WRITEs alone",
                       i, (unsigned)wr->opcode);
}

static int check_notification(const struct ibv_send_wr *wr, uint32_t i)
{
    if (wr->opcode != IBV_WR_SEND && wr->opcode != IBV_WR_SEND_WITH_IMM &&
        wr->opcode != IBV_WR_RDMA_WRITE_WITH_IMM)
        return client_fail(-EINVAL,
                           "request %u, the last of the list, has opcode %u: IBV_WR_SEND, "
                           "IBV_WR_SEND_WITH_IMM or IBV_WR_RDMA_WRITE_WITH_IMM ends one",
                           i, (unsigned)wr->opcode);
    if (wr->opcode != IBV_WR_RDMA_WRITE_WITH_IMM && bytes_of(wr) > KEDGE_NOTIFICATION_MOST)
        return client_fail(-EMSGSIZE, "a notification has at most %d bytes, and this one %llu",
                           KEDGE_NOTIFICATION_MOST, (unsigned long long)bytes_of(wr));
    return 0;
}

static int put_last(struct kedge_vqp *q, const struct ibv_send_wr *wr)
{
    union client_post p;
    if (wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
        return client_notify_put(q, wr);
    const int status = client_post_build(q, wr, &p);
    if (status != 0)
        return status;
    p.d.flags |= SCHEMA_OP_LISTED;
    return client_post_put(q, &p);
}

/* Request i of a list, which begins at `tail`. One that no ring of this size takes never fits. */
static int put_one(struct kedge_vqp *q, const struct ibv_send_wr *wr, uint32_t i, uint32_t tail)
{
    const struct kedge_session *s = q->session;
    const bool last = wr->next == NULL;
    int status = last ? check_notification(wr, i) : check_write(wr, i);
    if (status == 0)
        status = last ? put_last(q, wr) : put_write(q, wr);
    if (status == -ENOMEM && s->sq_tail - tail + CLIENT_POST_SLOTS + 1 > s->sq_mask + 1)
        return client_fail(-EMSGSIZE,
                           "the list has more than the submission ring takes, which has %u "
                           "places: make it shorter, or have a batch and a SEND behind it",
                           s->sq_mask + 1);
    return status;
}

int kedge_post_notify(struct kedge_vqp *q, struct ibv_send_wr *list, struct ibv_send_wr **bad)
{
    struct ibv_send_wr *wr = list;
    if (bad != NULL)
        *bad = list;
    if (client_is_null(q) || client_is_null(list))
        return -EINVAL;
    int status = client_post_begin(q);
    if (status == 0)
        status = check_agent(q);
    if (status != 0)
        return status;
    const struct list_mark before = make_mark(q);
    bool signaled = false;
    for (uint32_t i = 0; wr != NULL && status == 0; i++) {
        status = put_one(q, wr, i, before.tail);
        if (status != 0)
            break;
        signaled = (wr->send_flags & IBV_SEND_SIGNALED) != 0;
        wr = wr->next;
    }
    if (status != 0) {
        go_back(q, &before);
        if (bad != NULL)
            *bad = wr;
        return status;
    }
    client_ring_publish(q->session);
    if (signaled) {
        q->out++;
        q->session->processor.out++;
    }
    return 0;
}
