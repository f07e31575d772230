/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_lane.h"

#include <sys/wait.h>

#include "base/clock.h"
#include "schema/record.h"
#include "schema/token.h"

enum { UNUSED_REASON = 16 };
static const uint8_t stranger[16] = {0xfd, 9};

static void refused(struct fake_agent *a, int status)
{
    struct kedge_session *s = NULL;
    ck_assert_int_eq(fake_agent_try_open(a, &s), status);
    ck_assert_ptr_null(s);
    ck_assert_uint_gt(strlen(kedge_last_error()), 0);
    close(a->connection);
}

START_TEST(an_open_session_says_what_the_agent_said)
{
    struct fake_agent a;
    struct kedge_session_info info;
    fake_agent_start(&a);
    struct kedge_session *s = fake_agent_open(&a);
    kedge_session_query(s, &info);
    ck_assert_mem_eq(info.gid, a.ro->gid, 16);
    ck_assert_uint_eq(info.session, 77);
    ck_assert_uint_eq(info.tenant, 5);
    ck_assert_uint_eq(info.max_vqps, MAX_VQPS);
    ck_assert_uint_eq(info.cq_entries, CQ_SLOTS);
    ck_assert_uint_eq(info.arena_bytes, ARENA_BYTES);
    ck_assert_int_eq(kedge_session_status(s), 0);
    kedge_close(s);
    kedge_close(NULL);
    fake_agent_stop(&a);
}
END_TEST

START_TEST(no_agent_and_an_agents_refusal_are_told_apart)
{
    struct fake_agent a;
    struct kedge_session *s;
    struct kedge_open_attr nowhere = {.socket = "/nonexistent/agent.sock"};
    ck_assert_int_eq(kedge_open(&nowhere, &s), -ENOENT);
    fake_agent_start(&a);
    a.error.status = -EDQUOT;
    snprintf(a.error.text, sizeof a.error.text, "the tenant has its 3 sessions");
    refused(&a, -EDQUOT);
    ck_assert_str_eq(kedge_last_error(), "the tenant has its 3 sessions");
    fake_agent_stop(&a);
}
END_TEST

/* Refuses two, and takes the third. */
static void *refuse_twice(void *argument)
{
    struct fake_agent *a = argument;
    for (a->error.status = -EAGAIN; a->refused < 2; a->refused++) {
        fake_agent_serve_attach(a);
        close(a->connection);
    }
    a->error.status = 0;
    return fake_agent_serve_attach(a);
}

START_TEST(who_says_for_how_long_asks_again_when_the_agent_says_so)
{
    struct fake_agent a;
    struct kedge_session *s = NULL;
    pthread_t thread;
    fake_agent_start(&a);
    struct kedge_open_attr attr = {.socket = a.path};
    a.error.retry_ms = 30;
    a.error.status = -EAGAIN;
    snprintf(a.error.text, sizeof a.error.text, "try again in 30 ms");
    ck_assert_int_eq(fake_agent_try_open(&a, &s), -EAGAIN); /* not unless it is said */
    ck_assert_str_eq(kedge_last_error(), "try again in 30 ms");
    close(a.connection);
    uint32_t retry_ms = 0;
    attr.retry_ms = &retry_ms;
    attr.wait_ms = 20; /* which is less */
    ck_assert_int_eq(pthread_create(&thread, NULL, fake_agent_serve_attach, &a), 0);
    ck_assert_int_eq(kedge_open(&attr, &s), -EAGAIN);
    pthread_join(thread, NULL);
    close(a.connection);
    ck_assert_uint_eq(retry_ms, 30);
    attr.wait_ms = 60000;
    const uint64_t before = base_clock_ns();
    ck_assert_int_eq(pthread_create(&thread, NULL, refuse_twice, &a), 0);
    ck_assert_int_eq(kedge_open(&attr, &s), 0);
    pthread_join(thread, NULL);
    ck_assert_uint_eq(a.refused, 2);
    ck_assert_uint_ge(base_clock_ns() - before, 2 * 30 * BASE_NS_PER_MS);
    kedge_close(s);
    fake_agent_stop(&a);
}
END_TEST

START_TEST(impossible_geometry_sizes_or_descriptors_from_the_agent_are_refused)
{
    struct fake_agent a;
    fake_agent_start(&a);
#define REFUSED(field, value, status)                                                              \
    do {                                                                                           \
        __typeof__(field) good = field;                                                            \
        field = (value);                                                                           \
        refused(&a, status);                                                                       \
        field = good;                                                                              \
    } while (0)
    REFUSED(a.ro->magic, 0, -EPROTO);
    REFUSED(a.ro->version, SCHEMA_SESSION_VERSION - 1, -EPROTONOSUPPORT);
    REFUSED(a.ro->sq_slots, SQ_SLOTS - 1, -EPROTO);
    REFUSED(a.ro->sq_slots, 2 * SQ_SLOTS, -EPROTO); /* more than the mapping */
    REFUSED(a.ro->sq_slots, 2, -EPROTO);
    REFUSED(a.ro->sq_slots, 1u << 31, -EPROTO);
    REFUSED(a.ro->cq_slots, 0, -EPROTO);
    REFUSED(a.ro->cq_slots, 2 * CQ_SLOTS, -EPROTO);
    REFUSED(a.ro->max_vqps, 0, -EPROTO);
    REFUSED(a.ro->max_vqps, 1 << 17, -EPROTO);
    REFUSED(a.attached.rw_bytes, a.attached.rw_bytes + 1, -EPROTO); /* more than the file */
    REFUSED(a.attached.ro_bytes, 100, -EPROTO);
    REFUSED(a.attached.peers_bytes, 64, -EPROTO);
    REFUSED(a.attached.arena_bytes, 1ull << 40, -EPROTO);
    REFUSED(a.attached.arena, 64, -EPROTO);
    REFUSED(a.send_fds, SCHEMA_FD_COUNT - 1, -EPROTO);
    int unsealed = memfd_create("unsealed", MFD_CLOEXEC);
    ck_assert_int_eq(ftruncate(unsealed, ARENA_BYTES), 0);
    REFUSED(a.fds[SCHEMA_FD_ARENA], unsealed, -EPROTO);
#undef REFUSED
    close(unsealed);
    struct kedge_session *s = fake_agent_open(&a);
    kedge_close(s);
    fake_agent_stop(&a);
}
END_TEST

static void connect_refused(struct fake_agent *a, struct kedge_vqp *q, int status, uint32_t reason)
{
    a->reply = (struct schema_reply){.status = status, .reason = reason};
    fake_agent_answer(a);
    ck_assert_int_eq(kedge_connect(q, stranger), status);
    fake_agent_asked(a);
}

START_TEST(an_unknown_peer_is_asked_of_the_lane_whether_it_answers_at_once_or_late)
{
    struct fake_agent a;
    struct kedge_vqp *q;
    fake_agent_start(&a);
    struct kedge_session *s = fake_agent_open(&a);
    ck_assert_int_eq(kedge_vqp_create(s, NULL, &q), 0);
    a.reply = (struct schema_reply){.value = {6, 11}};
    for (a.delay_us = 0; a.delay_us < 100000; a.delay_us += 30000) { /* spinning and sleeping */
        fake_agent_answer(&a);
        ck_assert_int_eq(kedge_connect(q, stranger), 0);
        const struct schema_sq_desc *d = fake_agent_asked(&a);
        ck_assert_uint_eq(d->op, SCHEMA_OP_CONNECT);
        ck_assert_uint_eq(d->connect.pool, 1);
        ck_assert_mem_eq(d->connect.gid, stranger, 16);
    }
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_READ}, *bad;
    ck_assert_int_eq(kedge_post_send(q, &wr, &bad), 0);
    ck_assert_uint_eq(fake_lane_slot(&a, 0)->bind.peer_slot, 6);
    ck_assert_uint_eq(fake_lane_slot(&a, 0)->bind.peer_gen, 11);
    fake_lane_take(&a, 2);
    connect_refused(&a, q, -EHOSTUNREACH, SCHEMA_REASON_LOOKUP);
    ck_assert_ptr_nonnull(strstr(kedge_last_error(), "no metaserver answered"));
    connect_refused(&a, q, -ENOENT, 0);
    ck_assert_str_eq(kedge_last_error(),
                     "no node has the GID fd09:: in this session's pool: it is not registered, or "
                     "no longer (rdmactl node list)");
    static const struct {
        int status;
        const char *says;
    } others[] = {{-ESTALE, "an earlier life of the node with the GID"},
                  {-ENOSPC, "no room to know the node with the GID fd09::"},
                  {-EAGAIN, "looks up as many nodes as it can already"},
                  {-EOPNOTSUPP, "the node with the GID fd09:: is not reached in the way"}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        connect_refused(&a, q, others[i].status, 0);
        ck_assert_msg(strstr(kedge_last_error(), others[i].says) != NULL, "%s", kedge_last_error());
    }
    kedge_close(s);
    fake_agent_stop(&a);
}
END_TEST

START_TEST(a_withdrawal_that_times_out_is_not_asked_for_again_and_its_late_answer_ends_it)
{
    struct fake_agent a;
    struct kedge_mr *mr;
    void *memory;
    uint32_t lkey;
    fake_agent_start(&a);
    struct kedge_session *s = fake_agent_open(&a);
    ck_assert_int_eq(kedge_alloc(s, 64, &memory, &lkey), 0);
    a.reply = (struct schema_reply){.value = {5}};
    fake_agent_answer(&a);
    ck_assert_int_eq(kedge_reg_mr(s, memory, 64, IBV_ACCESS_REMOTE_READ, &mr), 0);
    fake_agent_asked(&a);
    ck_assert_int_eq(kedge_dereg_mr(mr), -ETIMEDOUT); /* nobody answers */
    ck_assert_uint_eq(fake_lane_waiting(&a), 1);
    fake_agent_answer(&a);
    ck_assert_int_eq(kedge_dereg_mr(mr), 0);
    ck_assert_uint_eq(fake_agent_asked(&a)->op, SCHEMA_OP_DEREG_MR);
    ck_assert_uint_eq(fake_lane_waiting(&a), 0); /* it was not asked twice */
    kedge_close(s);
    fake_agent_stop(&a);
}
END_TEST

START_TEST(a_region_is_registered_exported_imported_and_withdrawn)
{
    struct fake_agent a;
    struct kedge_mr *mr, *local;
    struct kedge_remote remote;
    char token[KEDGE_TOKEN_MAX];
    void *first, *memory;
    uint32_t lkey;
    fake_agent_start(&a);
    struct kedge_session *s = fake_agent_open(&a);
    ck_assert_int_eq(kedge_alloc(s, 100, &first, &lkey), 0);
    ck_assert_int_eq(kedge_alloc(s, 4096, &memory, &lkey), 0);
    ck_assert_int_eq(kedge_reg_mr(s, token, 8, IBV_ACCESS_REMOTE_READ, &mr), -EINVAL);
    ck_assert_int_eq(kedge_reg_mr(s, memory, ARENA_BYTES, 0, &mr), -EINVAL);
    ck_assert_int_eq(kedge_reg_mr(s, memory, 8, IBV_ACCESS_MW_BIND, &mr), -EINVAL);
    ck_assert_int_eq(kedge_reg_mr(s, memory, 8, 0, &local), 0); /* no message */
    ck_assert_uint_eq(kedge_mr_rkey(local), 0);
    ck_assert_int_eq(kedge_mr_export(local, token, sizeof token), -EINVAL);
    a.reply = (struct schema_reply){.value = {0xbeef}, .secret = {1, 2, 3}};
    fake_agent_answer(&a);
    int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
    ck_assert_int_eq(kedge_reg_mr(s, memory, 4096, access, &mr), 0);
    const struct schema_sq_desc *d = fake_agent_asked(&a);
    ck_assert_uint_eq(d->op, SCHEMA_OP_REG_MR);
    ck_assert_uint_eq(d->reg_mr.arena, 0);
    ck_assert_uint_eq(d->reg_mr.offset, 128);
    ck_assert_uint_eq(d->reg_mr.length, 4096);
    ck_assert_uint_eq(d->reg_mr.vaddr, (uintptr_t)memory);
    ck_assert_uint_eq(d->reg_mr.access, SCHEMA_RECORD_WRITE | SCHEMA_RECORD_ATOMIC);
    ck_assert_uint_eq(kedge_mr_rkey(mr), 0xbeef);
    ck_assert_uint_eq(kedge_mr_lkey(mr), lkey);
    ck_assert_int_eq(kedge_mr_export(mr, token, sizeof token - 1), -ENOSPC);
    ck_assert_int_eq(kedge_mr_export(mr, token, sizeof token), 0);
    ck_assert_int_eq(kedge_import(s, "kedge1.rubbish", &remote), -EINVAL);
    struct schema_token other;
    char apart[KEDGE_TOKEN_MAX];
    ck_assert_int_eq(schema_token_parse(token, &other), 0);
    other.pool++;
    schema_token_format(&other, apart);
    ck_assert_int_eq(kedge_import(s, apart, &remote), -EXDEV);
    ck_assert_ptr_nonnull(strstr(kedge_last_error(), "kept apart"));
    ck_assert_int_eq(kedge_import(s, token, &remote), 0); /* nobody has answered */
    ck_assert_uint_eq(fake_lane_waiting(&a), 1);
    fake_agent_answer(&a);
    d = fake_agent_asked(&a);
    ck_assert_uint_eq(d->op, SCHEMA_OP_IMPORT);
    ck_assert_uint_eq(d->import.vkey, 0xbeef);
    ck_assert_uint_eq(d->import.secret[2], 3);
    ck_assert_mem_eq(remote.gid, a.ro->gid, 16);
    ck_assert_uint_eq(remote.addr, (uintptr_t)memory);
    ck_assert_uint_eq(remote.length, 4096);
    ck_assert_int_eq(remote.access, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
    fake_agent_answer(&a);
    ck_assert_int_eq(kedge_dereg_mr(mr), 0);
    ck_assert_uint_eq(fake_agent_asked(&a)->dereg_mr.vkey, 0xbeef);
    kedge_close(s); /* with it goes the local one */
    fake_agent_stop(&a);
}
END_TEST

START_TEST(a_fenced_region_is_asked_for_and_one_that_nobody_reaches_is_refused)
{
    const int fenced = IBV_ACCESS_REMOTE_WRITE | KEDGE_MR_FENCED;
    struct fake_agent a;
    struct kedge_mr *mr;
    char token[KEDGE_TOKEN_MAX];
    struct kedge_remote remote;
    void *memory;
    uint32_t lkey;
    fake_agent_start(&a);
    struct kedge_session *s = fake_agent_open(&a);
    ck_assert_int_eq(kedge_alloc(s, 4096, &memory, &lkey), 0);
    ck_assert_int_eq(kedge_reg_mr(s, memory, 8, KEDGE_MR_FENCED, &mr), -EINVAL);
    ck_assert_ptr_nonnull(strstr(kedge_last_error(), "remote access"));
    ck_assert_int_eq(kedge_reg_mr(s, memory, 8, KEDGE_MR_FENCED | IBV_ACCESS_LOCAL_WRITE, &mr),
                     -EINVAL);
    ck_assert_uint_eq(fake_lane_waiting(&a), 0);
    a.reply = (struct schema_reply){.status = -EDQUOT, .reason = SCHEMA_REASON_FENCED_REGIONS};
    a.reply.reason = SCHEMA_REASON_QUOTA_MRS;
    a.reply.value[0] = 7;
    fake_agent_answer(&a);
    ck_assert_int_eq(kedge_reg_mr(s, memory, 100, fenced, &mr), -EDQUOT);
    (void)fake_agent_asked(&a);
    ck_assert_ptr_nonnull(
        strstr(kedge_last_error(), "(mrs) is used up (the quota is 7); `rdmactl agent"));
    a.reply.value[0] = 0;
    a.reply.reason = SCHEMA_REASON_QUOTA;
    fake_agent_answer(&a);
    ck_assert_int_eq(kedge_reg_mr(s, memory, 100, fenced, &mr), -EDQUOT);
    (void)fake_agent_asked(&a);
    ck_assert_ptr_nonnull(strstr(kedge_last_error(), "a session has 256 regions"));
    a.reply.reason = SCHEMA_REASON_FENCED_REGIONS;
    fake_agent_answer(&a);
    ck_assert_int_eq(kedge_reg_mr(s, memory, 100, fenced, &mr), -EDQUOT);
    ck_assert_ptr_nonnull(strstr(kedge_last_error(), "fenced_regions in [pool]"));
    ck_assert_uint_eq(fake_agent_asked(&a)->reg_mr.access, SCHEMA_RECORD_WRITE | SCHEMA_REG_FENCED);
    a.reply = (struct schema_reply){.value = {0xbeef}};
    fake_agent_answer(&a);
    ck_assert_int_eq(kedge_reg_mr(s, memory, 100, fenced, &mr), 0);
    (void)fake_agent_asked(&a);
    ck_assert_int_eq(kedge_mr_export(mr, token, sizeof token), 0); /* which tells nothing of it */
    fake_agent_answer(&a);
    ck_assert_int_eq(kedge_import(s, token, &remote), 0);
    ck_assert_int_eq(remote.access, IBV_ACCESS_REMOTE_WRITE);
    (void)fake_agent_asked(&a);
    kedge_close(s);
    fake_agent_stop(&a);
}
END_TEST

START_TEST(a_revoked_region_is_heard_of_when_its_worker_looks)
{
    struct fake_agent a;
    struct kedge_mr *mr, *other, *local;
    char token[KEDGE_TOKEN_MAX];
    void *memory;
    uint32_t lkey;
    fake_agent_start(&a);
    struct kedge_session *s = fake_agent_open(&a);
    ck_assert_int_eq(kedge_alloc(s, 4096, &memory, &lkey), 0);
    ck_assert_int_eq(kedge_reg_mr(s, memory, 8, 0, &local), 0);
    a.reply = (struct schema_reply){.value = {0xbeef}};
    fake_agent_answer(&a);
    ck_assert_int_eq(kedge_reg_mr(s, memory, 8, IBV_ACCESS_REMOTE_READ, &mr), 0);
    (void)fake_agent_asked(&a);
    ck_assert_int_eq(kedge_mr_status(mr), 0); /* nobody is asked: nobody answers */
    atomic_store(&a.ro->revoked, 1);
    ck_assert_int_eq(kedge_mr_status(local), 0);
    a.reply = (struct schema_reply){.value = {0xcafe}};
    fake_agent_answer(&a);
    ck_assert_int_eq(kedge_reg_mr(s, memory, 8, IBV_ACCESS_REMOTE_READ, &other), 0);
    (void)fake_agent_asked(&a);
    ck_assert_int_eq(kedge_mr_status(other), 0); /* it is younger than that */
    a.reply = (struct schema_reply){.status = -EACCES, .reason = SCHEMA_REASON_REVOKED};
    fake_agent_answer(&a);
    ck_assert_int_eq(kedge_mr_status(mr), -EACCES);
    const struct schema_sq_desc *d = fake_agent_asked(&a);
    ck_assert_uint_eq(d->op, SCHEMA_OP_MR_STATUS);
    ck_assert_uint_eq(d->dereg_mr.vkey, 0xbeef);
    ck_assert_ptr_nonnull(strstr(kedge_last_error(), "revoked"));
    ck_assert_int_eq(kedge_mr_status(mr), -EACCES); /* once is enough */
    ck_assert_int_eq(kedge_mr_export(mr, token, sizeof token), -EACCES);
    atomic_store(&a.ro->revoked, 2);
    a.reply = (struct schema_reply){.status = 0};
    fake_agent_answer(&a);
    ck_assert_int_eq(kedge_mr_status(other), 0); /* it was another one */
    (void)fake_agent_asked(&a);
    ck_assert_int_eq(kedge_mr_status(other), 0);
    ck_assert_int_eq(kedge_mr_export(other, token, sizeof token), 0);
    fake_agent_answer(&a);
    ck_assert_int_eq(kedge_dereg_mr(mr), 0);
    (void)fake_agent_asked(&a);
    kedge_close(s);
    fake_agent_stop(&a);
}
END_TEST

/* Answers an ARENA and then a RESOLVE, each after a late answer to an older question. */
static void *serve_messages(void *argument)
{
    struct fake_agent *a = argument;
    union {
        struct schema_control_header h;
        uint8_t bytes[SCHEMA_CONTROL_MAX_BYTES];
    } m;
    size_t bytes;
    unsigned count;
    void *map;
    int fd;
    ck_assert_int_eq(base_memfd_new("more", ARENA_BYTES, BASE_MEMFD_WRITE, &fd, &map), 0);
    ck_assert_int_eq(base_fds_recv(a->connection, &m, sizeof m, &bytes, NULL, 0, &count), 0);
    ck_assert_uint_eq(m.h.type, SCHEMA_CONTROL_ARENA);
    struct schema_control_arena_ok ok = {.bytes = ARENA_BYTES, .arena = 2};
    fake_agent_send(a->connection, &ok.h, m.h.tag - 1, SCHEMA_CONTROL_ARENA_OK, sizeof ok, &fd, 1);
    fake_agent_send(a->connection, &ok.h, m.h.tag, SCHEMA_CONTROL_ARENA_OK, sizeof ok, &fd, 1);
    munmap(map, ARENA_BYTES);
    close(fd);
    ck_assert_int_eq(base_fds_recv(a->connection, &m, sizeof m, &bytes, NULL, 0, &count), 0);
    ck_assert_str_eq(((struct schema_control_resolve *)&m)->name, "node7");
    struct schema_control_resolved resolved = {.pool = 1};
    memcpy(resolved.gid, stranger, 16);
    fake_agent_send(a->connection, &resolved.h, m.h.tag, SCHEMA_CONTROL_RESOLVED, sizeof resolved,
                    NULL, 0);
    return NULL;
}

START_TEST(another_arena_and_a_nodes_name_are_asked_over_the_socket)
{
    struct fake_agent a;
    struct kedge_vqp *q;
    pthread_t server;
    void *one, *two, *again;
    uint32_t lkey;
    fake_agent_start(&a);
    ck_assert_int_ge(schema_peers_put(a.peers, 0, stranger, 1, 1), 0);
    struct kedge_session *s = fake_agent_open(&a);
    pthread_create(&server, NULL, serve_messages, &a);
    ck_assert_int_eq(kedge_alloc(s, ARENA_BYTES, &one, &lkey), 0);
    ck_assert_uint_eq(lkey, 1);
    ck_assert_int_eq(kedge_alloc(s, ARENA_BYTES - 7, &two, &lkey), 0);
    ck_assert_uint_eq(lkey, 3);
    memset(two, 1, ARENA_BYTES - 7);
    kedge_free(s, one);
    kedge_free(s, NULL);
    ck_assert_int_eq(kedge_alloc(s, 1, &again, &lkey), 0);
    ck_assert_ptr_eq(again, one);
    ck_assert_int_eq(kedge_vqp_create(s, NULL, &q), 0);
    ck_assert_int_eq(kedge_connect_node(q, "node7"), 0);
    ck_assert_int_eq(kedge_connect_node(q, ""), -EINVAL);
    ck_assert_str_eq(kedge_last_error(), "a node's name has 1 to 63 bytes");
    pthread_join(server, NULL);
    kedge_close(s);
    fake_agent_stop(&a);
}
END_TEST

START_TEST(an_ended_session_gives_its_completions_and_then_the_reason)
{
    static const struct {
        uint32_t reason;
        int status;
    } ends[] = {{SCHEMA_REASON_RING, -EPROTO}, {SCHEMA_REASON_GUESSES, -EACCES},
                {SCHEMA_REASON_DRAIN, -EPIPE}, {SCHEMA_REASON_DEVICE_LOST, -EPIPE},
                {UNUSED_REASON, -EPIPE},       {999, -EPIPE}};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct fake_agent a;
        struct kedge_vqp *q;
        struct ibv_wc wc;
        struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_READ}, *bad;
        fake_agent_start(&a);
        struct kedge_session *s = fake_agent_open(&a);
        ck_assert_int_eq(kedge_vqp_create(s, NULL, &q), 0);
        fake_lane_complete(&a, kedge_vqp_num(q), 4, IBV_WC_WR_FLUSH_ERR);
        atomic_store(&a.ro->ended, ends[i].reason);
        ck_assert_int_eq(kedge_wait(s, -1), 1);
        ck_assert_int_eq(kedge_poll(s, 1, &wc), 1);
        ck_assert_int_eq(kedge_poll(s, 1, &wc), ends[i].status);
        ck_assert_int_eq(kedge_wait(s, -1), ends[i].status);
        ck_assert_int_eq(kedge_session_status(s), ends[i].status);
        ck_assert_int_eq(kedge_post_send(q, &wr, &bad), ends[i].status);
        ck_assert_ptr_eq(bad, &wr);
        ck_assert_int_eq(kedge_connect(q, stranger), ends[i].status);
        char sentence[256]; /* the same for every call */
        snprintf(sentence, sizeof sentence, "the agent ended the session: %s",
                 kedge_reason_str(ends[i].reason));
        ck_assert_str_eq(kedge_last_error(), sentence);
        kedge_close(s);
        fake_agent_stop(&a);
    }
}
END_TEST

START_TEST(an_agent_that_is_gone_is_noticed_by_sleepers_and_by_spinners)
{
    struct fake_agent a;
    struct ibv_wc wc;
    int status = 0;
    fake_agent_start(&a);
    struct kedge_session *s = fake_agent_open(&a);
    ck_assert_int_eq(kedge_wait(s, 20), 0);
    shutdown(a.connection, SHUT_RDWR);
    ck_assert_int_eq(kedge_wait(s, -1), -EPIPE);
    kedge_close(s);
    close(a.connection);
    s = fake_agent_open(&a);
    shutdown(a.connection, SHUT_RDWR);
    while (status == 0)
        status = kedge_poll(s, 1, &wc);
    ck_assert_int_eq(status, -EPIPE);
    kedge_close(s);
    fake_agent_stop(&a);
}
END_TEST

static void *complete_soon(void *argument)
{
    usleep(30000);
    fake_lane_complete(argument, 0, 1, 0);
    return NULL;
}

START_TEST(a_sleeper_is_woken_by_a_completion)
{
    struct fake_agent a;
    struct kedge_vqp *q;
    struct ibv_wc wc;
    pthread_t lane;
    fake_agent_start(&a);
    struct kedge_session *s = fake_agent_open(&a);
    ck_assert_int_eq(kedge_vqp_create(s, NULL, &q), 0);
    for (int i = 0; i < 5; i++) {
        pthread_create(&lane, NULL, complete_soon, &a);
        ck_assert_int_eq(kedge_wait(s, -1), 1);
        ck_assert_int_eq(kedge_poll(s, 1, &wc), 1);
        pthread_join(lane, NULL);
    }
    ck_assert_uint_eq(atomic_load(&a.rw->want_wake), 0);
    kedge_close(s);
    fake_agent_stop(&a);
}
END_TEST

/* How many calls answered otherwise than -EPERM. */
static int calls_in_child(struct kedge_session *s, struct kedge_vqp *q, struct kedge_mr *mr)
{
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_READ}, *bad;
    struct kedge_remote remote;
    struct ibv_wc wc;
    void *memory;
    uint32_t lkey;
    int others = 0;
    others += kedge_session_status(s) != -EPERM;
    others += kedge_alloc(s, 8, &memory, &lkey) != -EPERM;
    others += kedge_reg_mr(s, &wc, 8, 0, &mr) != -EPERM;
    others += kedge_publish(mr, "x") != -EPERM;
    others += kedge_unpublish(mr, "x") != -EPERM;
    others += kedge_dereg_mr(mr) != -EPERM;
    others += kedge_import(s, "", &remote) != -EPERM;
    others += kedge_vqp_create(s, NULL, &q) != -EPERM;
    others += kedge_connect(q, stranger) != -EPERM;
    others += kedge_connect_node(q, "x") != -EPERM;
    others += kedge_post_send(q, &wr, &bad) != -EPERM;
    others += kedge_poll(s, 1, &wc) != -EPERM;
    others += kedge_wait(s, 0) != -EPERM;
    kedge_vqp_destroy(q);
    kedge_close(s);
    return others;
}

START_TEST(a_forked_childs_calls_answer_eperm_and_its_close_does_not_end_the_parents_session)
{
    struct fake_agent a;
    struct kedge_vqp *q;
    struct kedge_mr *mr;
    void *memory;
    uint32_t lkey;
    int status;
    fake_agent_start(&a);
    struct kedge_session *s = fake_agent_open(&a);
    ck_assert_int_eq(kedge_vqp_create(s, NULL, &q), 0);
    ck_assert_int_eq(kedge_alloc(s, 8, &memory, &lkey), 0);
    ck_assert_int_eq(kedge_reg_mr(s, memory, 8, 0, &mr), 0);
    pid_t child = fork();
    if (child == 0)
        _exit(calls_in_child(s, q, mr));
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 0);
    ck_assert_int_eq(kedge_session_status(s), 0);
    kedge_close(s);
    fake_agent_stop(&a);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(an_open_session_says_what_the_agent_said)                                                    \
    T(no_agent_and_an_agents_refusal_are_told_apart)                                               \
    T(who_says_for_how_long_asks_again_when_the_agent_says_so)                                     \
    T(impossible_geometry_sizes_or_descriptors_from_the_agent_are_refused)                         \
    T(an_unknown_peer_is_asked_of_the_lane_whether_it_answers_at_once_or_late)                     \
    T(a_withdrawal_that_times_out_is_not_asked_for_again_and_its_late_answer_ends_it)              \
    T(a_region_is_registered_exported_imported_and_withdrawn)                                      \
    T(a_fenced_region_is_asked_for_and_one_that_nobody_reaches_is_refused)                         \
    T(a_revoked_region_is_heard_of_when_its_worker_looks)                                          \
    T(another_arena_and_a_nodes_name_are_asked_over_the_socket)                                    \
    T(an_ended_session_gives_its_completions_and_then_the_reason)                                  \
    T(an_agent_that_is_gone_is_noticed_by_sleepers_and_by_spinners)                                \
    T(a_sleeper_is_woken_by_a_completion)                                                          \
    T(a_forked_childs_calls_answer_eperm_and_its_close_does_not_end_the_parents_session)
KEDGE_CHECK_MAIN("libclient session", TESTS)
