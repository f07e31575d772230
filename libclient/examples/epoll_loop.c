/* SPDX-License-Identifier: Apache-2.0 */
/* READs a region in a loop of epoll, beside a timer, as a server would that has sockets too: it
 * sleeps while nothing comes.
 *
 *   epoll_loop TOKEN [READS] */
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <kedge.h>

static void check_status(int status, const char *what)
{
    if (status < 0) {
        fprintf(stderr, "%s: %s\n", what, kedge_last_error());
        exit(1);
    }
}

struct reader {
    struct kedge_session *session;
    struct kedge_vqp *vqp;
    struct kedge_remote remote;
    void *buffer;
    uint32_t lkey;
    long wanted, done, slept, beats;
};

static void post_read(struct reader *r)
{
    struct ibv_sge sge = {.addr = (uintptr_t)r->buffer, .length = 8, .lkey = r->lkey};
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_READ,
                             .send_flags = IBV_SEND_SIGNALED,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .wr.rdma = {.remote_addr = r->remote.addr, .rkey = r->remote.rkey}};
    check_status(kedge_post_send(r->vqp, &wr, NULL), "posting");
}

/* All that there is; then it is armed, and nothing has come meanwhile. */
static void on_readable(struct reader *r)
{
    struct ibv_wc wc;
    int status;
    do {
        while ((status = kedge_poll(r->session, 1, &wc)) == 1) {
            if (wc.status != IBV_WC_SUCCESS) {
                fprintf(stderr, "a READ: %s\n", kedge_wc_status_str(wc.status));
                exit(1);
            }
            if (++r->done < r->wanted)
                post_read(r);
        }
        check_status(status, "polling");
        status = kedge_arm(r->session);
        check_status(status, "arming");
    } while (status == 1);
}

static void watch_fd(int epfd, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    if (epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &event) != 0) {
        perror("epoll_ctl");
        exit(1);
    }
}

static void run_loop(struct reader *r)
{
    const struct itimerspec second = {.it_value = {.tv_sec = 1}, .it_interval = {.tv_sec = 1}};
    const int epfd = epoll_create1(EPOLL_CLOEXEC), timer = timerfd_create(CLOCK_MONOTONIC, 0);
    const int fd = kedge_fd(r->session);
    check_status(fd, "the descriptor");
    watch_fd(epfd, fd);
    watch_fd(epfd, timer);
    timerfd_settime(timer, 0, &second, NULL);
    post_read(r);
    on_readable(r);
    while (r->done < r->wanted) {
        struct epoll_event event;
        if (epoll_wait(epfd, &event, 1, -1) != 1)
            continue;
        if (event.data.fd == fd) {
            r->slept++;
            on_readable(r);
            continue;
        }
        uint64_t times; /* a second: whether the agent stands still is asked here too */
        if (read(timer, &times, sizeof times) > 0)
            r->beats++;
        check_status(kedge_session_status(r->session), "the session");
    }
    close(timer);
    close(epfd);
}

int main(int argc, char **argv)
{
    struct reader r = {.wanted = argc > 2 ? strtol(argv[2], NULL, 10) : 1000};
    if (argc < 2 || r.wanted < 1) {
        fprintf(stderr, "usage: epoll_loop TOKEN [READS]\n");
        return 2;
    }
    check_status(kedge_open(NULL, &r.session), "attaching");
    check_status(kedge_import(r.session, argv[1], &r.remote), "the token");
    check_status(kedge_alloc(r.session, 8, &r.buffer, &r.lkey), "memory");
    check_status(kedge_vqp_create(r.session, NULL, &r.vqp), "a queue pair");
    check_status(kedge_connect(r.vqp, r.remote.gid), "connecting");
    run_loop(&r);
    printf("%ld READs, in %ld sleeps of the loop\n", r.done, r.slept);
    kedge_close(r.session);
    return 0;
}
