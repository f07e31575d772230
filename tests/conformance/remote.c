/* SPDX-License-Identifier: Apache-2.0 */
#include "remote.h"

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_MS = 120000 };

void say(int fd, const void *bytes, size_t n)
{
    ck_assert_int_eq(send(fd, bytes, n, MSG_NOSIGNAL), (ssize_t)n);
}

void hear(int fd, void *bytes, size_t n)
{
    ck_assert(fd_is_readable(fd, PATIENCE_MS));
    ck_assert_int_eq(recv(fd, bytes, n, MSG_WAITALL), (ssize_t)n);
}

pid_t remote_fork(void (*body)(int fd), int *fd)
{
    int ends[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(ends[0]);
        alarm(300);
        body(ends[1]);
        _exit(0);
    }
    close(ends[1]);
    *fd = ends[0];
    return pid;
}

/* ---- the child */

struct command {
    uint64_t what, offset;
};

static void obey(int fd, struct node *n, struct fab_qp *qp, struct fab_srq *srq)
{
    struct command c;
    for (;;) {
        hear(fd, &c, sizeof c);
        struct ibv_sge sge = sge_of(n, c.offset, 64);
        struct fab_recv_wr wr = {.wr_id = c.offset, .sg_list = &sge, .num_sge = 1}, *bad;
        uint64_t word = 0;
        switch (c.what) {
        case REMOTE_RECEIVE:
            if (qp != NULL)
                ck_assert_int_eq(fab_post_recv(qp, &wr, &bad), 0);
            if (srq != NULL)
                ck_assert_int_eq(fab_post_srq_recv(srq, &wr, &bad), 0);
            break;
        case REMOTE_PEEK:
            memcpy(&word, n->bytes + c.offset, 8);
            break;
        default:
            return;
        }
        say(fd, &word, sizeof word);
    }
}

static void serve(int fd)
{
    struct node n;
    struct address mine, yours;
    struct fab_qp *qp = NULL;
    struct fab_srq *srq = NULL;
    struct fab_dct *dct = NULL;
    node_open(&n);
    mine = (struct address){
        .rkey = n.mr->rkey, .addr = n.mr->addr, .transports = n.fab->caps.transports};
    memcpy(mine.gid, n.fab->caps.gid, 16);
    if (mine.transports & FAB_RC) {
        qp = make_qp(&n, FAB_QP_RC, NULL);
        mine.qpn = qp->qpn;
    }
    if (mine.transports & FAB_DC) {
        srq = make_srq(n.pd, 16);
        dct = make_dct(&n, srq, 0xd0c);
        mine.dctn = dct->dctn;
        mine.dc_key = dct->dc_key;
    }
    say(fd, &mine, sizeof mine);
    hear(fd, &yours, sizeof yours);
    if (qp != NULL && yours.qpn != 0)
        bring_to(qp, IBV_QPS_RTS, yours.gid, yours.qpn, NULL);
    say(fd, &mine, 1);
    obey(fd, &n, yours.qpn != 0 ? qp : NULL, srq);
    if (qp != NULL)
        ck_assert_int_eq(free_qp(qp), 0);
    if (dct != NULL)
        ck_assert_int_eq(free_dct(dct), 0);
    if (srq != NULL)
        ck_assert_int_eq(free_srq(srq), 0);
    node_close(&n);
}

/* ---- the test's side */

void remote_start(struct remote *r)
{
    *r = (struct remote){.pid = 0};
    r->pid = remote_fork(serve, &r->fd);
    hear(r->fd, &r->address, sizeof r->address);
    r->mr = (struct fab_mr){.rkey = r->address.rkey, .addr = r->address.addr};
    r->dct = (struct fab_dct){.dctn = r->address.dctn, .dc_key = r->address.dc_key};
    memcpy(r->fab.caps.gid, r->address.gid, 16);
    r->node = (struct node){.fab = &r->fab, .mr = &r->mr};
}

bool remote_link(struct remote *r, struct link *l, enum fab_transport transport, struct node *a,
                 const struct rc_options *options, const char *test)
{
    struct address mine = {.qpn = 0};
    char ready;
    bool has = conf_has(a->fab, transport, test);
    memcpy(mine.gid, a->fab->caps.gid, 16);
    *l = (struct link){.transport = transport, .a = a, .b = &r->node};
    if (has && transport == FAB_RC) {
        l->qp = make_qp(a, FAB_QP_RC, NULL);
        mine.qpn = l->qp->qpn;
    } else if (has) {
        l->qp = make_qp(a, FAB_QP_DCI, NULL);
        l->ah = make_ah(a->pd, r->address.gid);
        l->dct = &r->dct;
    }
    say(r->fd, &mine, sizeof mine);
    hear(r->fd, &ready, 1);
    if (has)
        bring_to(l->qp, IBV_QPS_RTS, r->address.gid, r->address.qpn, options);
    else
        remote_end(r);
    return has;
}

void remote_unlink(struct link *l)
{
    ck_assert_int_eq(free_qp(l->qp), 0);
    if (l->ah != NULL)
        ck_assert_int_eq(free_ah(l->ah), 0);
}

void remote_stop(struct remote *r)
{
    int status;
    ck_assert_int_eq(kill(r->pid, SIGSTOP), 0);
    ck_assert_int_eq(waitpid(r->pid, &status, WUNTRACED), r->pid);
    ck_assert(WIFSTOPPED(status));
}

void remote_kill(struct remote *r)
{
    ck_assert_int_eq(kill(r->pid, SIGKILL), 0);
    ck_assert_int_eq(waitpid(r->pid, NULL, 0), r->pid);
    close(r->fd);
}

static uint64_t ask(struct remote *r, enum remote_command what, uint64_t offset)
{
    struct command c = {.what = what, .offset = offset};
    uint64_t answer;
    say(r->fd, &c, sizeof c);
    hear(r->fd, &answer, sizeof answer);
    return answer;
}

void remote_end(struct remote *r)
{
    struct command c = {.what = REMOTE_END};
    int status;
    (void)kill(r->pid, SIGCONT);
    say(r->fd, &c, sizeof c);
    ck_assert_int_eq(waitpid(r->pid, &status, 0), r->pid);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with %#x",
                  (unsigned)status);
    close(r->fd);
}

void remote_receive(struct remote *r, uint64_t offset)
{
    (void)ask(r, REMOTE_RECEIVE, offset);
}

uint64_t remote_peek(struct remote *r, uint64_t offset)
{
    return ask(r, REMOTE_PEEK, offset);
}
