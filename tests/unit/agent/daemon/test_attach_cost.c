/* SPDX-License-Identifier: Apache-2.0 */
/* Whose attach sockets make the control thread's calls long: real ones, that are really watched. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../../check_main.h"
#include "agent.h"
#include "attach_socket.h"
#include "base/clock.h"
#include "base/fds.h"
#include "control/world_log.h"
#include "schema/control.h"

/* ---- who owes how much */

enum { ONE = 1000, OTHER = 1001 };

static const uint64_t MS = BASE_NS_PER_MS, FORGIVEN_NS = 2 * BASE_NS_PER_MS;

/* Less than agents forgive, so that a few connections are enough. */
static void be_strict(struct socket_costs *r)
{
    r->long_ns = 50 * BASE_NS_PER_US;
    r->forgiven_ns = FORGIVEN_NS;
    r->calls = 2;
}

/* Behind one that was hardly long: that alone may be a processor that was taken away. */
static bool charge_last(struct socket_costs *r, uid_t uid, uint32_t listener, uint64_t cpu_ns,
                        uint64_t now_ns)
{
    for (uint32_t i = 1; i < r->calls; i++)
        ck_assert(!agentd_socket_costs_charge(r, uid, listener, r->long_ns, now_ns));
    return agentd_socket_costs_charge(r, uid, listener, cpu_ns, now_ns);
}

START_TEST(what_is_short_on_this_host_costs_nothing)
{
    struct socket_costs r;
    agentd_socket_costs_init(&r, 100 * BASE_NS_PER_US); /* a slow one */
    for (int i = 0; i < 100000; i++)
        ck_assert(!agentd_socket_costs_charge(&r, ONE, 0, 3199 * BASE_NS_PER_US, i));
    for (int i = 0; i < COSTS_FORGIVEN_LONG; i++) /* and all of these are forgiven */
        ck_assert(!agentd_socket_costs_charge(&r, ONE, 0, 3200 * BASE_NS_PER_US, 1));
    ck_assert(agentd_socket_costs_charge(&r, ONE, 0, 3200 * BASE_NS_PER_US, 1));
    agentd_socket_costs_init(&r, 100);
    for (int i = 0; i < 100000; i++)
        ck_assert(!agentd_socket_costs_charge(&r, ONE, 0, 499 * BASE_NS_PER_US, i));
    ck_assert(!charge_last(&r, ONE, 0, COSTS_FORGIVEN_MS * MS - (r.calls - 1) * r.long_ns, 1));
    ck_assert(agentd_socket_costs_charge(&r, ONE, 0, r.long_ns, 1));
}
END_TEST

/* As where a guest's processor was another's for a while. */
START_TEST(a_call_that_is_long_now_and_then_ends_nobody)
{
    struct socket_costs r;
    agentd_socket_costs_init(&r, 0);
    for (uint64_t now = 1; now < 100 * BASE_NS_PER_S; now += COSTS_PART * 30 * MS)
        ck_assert(!agentd_socket_costs_charge(&r, ONE, 0, 30 * MS, now));
    ck_assert(!agentd_socket_costs_rests(&r, ONE, 0, 100 * BASE_NS_PER_S));
}
END_TEST

START_TEST(who_is_long_has_no_more_than_its_part_of_the_time)
{
    struct socket_costs r;
    uint64_t had_ns = 0;
    const uint64_t over_ns = 100 * BASE_NS_PER_S;
    agentd_socket_costs_init(&r, 0);
    for (uint64_t now = 1; now < over_ns; now += MS)
        if (!agentd_socket_costs_rests(&r, ONE, 0, now)) {
            had_ns += 20 * MS;
            (void)agentd_socket_costs_charge(&r, ONE, 0, 20 * MS, now);
        }
    ck_assert_uint_le(had_ns, over_ns / COSTS_PART + (1 + COSTS_CALLS) * 20 * MS);
    ck_assert_uint_ge(had_ns, over_ns / COSTS_PART / 2);
}
END_TEST

START_TEST(it_rests_where_it_was_long_and_a_minute_at_most)
{
    struct socket_costs r;
    uid_t uids[COSTS_KNOWN];
    agentd_socket_costs_init(&r, 0);
    be_strict(&r);
    ck_assert(charge_last(&r, ONE, 2, 10 * BASE_NS_PER_S, 1));
    ck_assert(!agentd_socket_costs_rests(&r, ONE, 0, 2));
    ck_assert(!agentd_socket_costs_rests(&r, OTHER, 2, 2));
    ck_assert_uint_eq(agentd_socket_costs_resting(&r, 0, 2, uids), 0);
    ck_assert_uint_eq(agentd_socket_costs_resting(&r, 2, 2, uids), 1);
    ck_assert_uint_eq(uids[0], ONE);
    ck_assert(agentd_socket_costs_rests(&r, ONE, 2, 59 * BASE_NS_PER_S));
    ck_assert(!agentd_socket_costs_rests(&r, ONE, 2, 61 * BASE_NS_PER_S));
}
END_TEST

START_TEST(who_owes_most_is_known_still_when_many_others_come)
{
    struct socket_costs r;
    agentd_socket_costs_init(&r, 0);
    be_strict(&r);
    ck_assert(charge_last(&r, ONE, 0, 100 * MS, 1));
    for (uid_t uid = 5000; uid < 5000 + 3 * COSTS_KNOWN; uid++)
        ck_assert(charge_last(&r, uid, 0, 3 * MS, 2));
    ck_assert(agentd_socket_costs_rests(&r, ONE, 0, 3));
}
END_TEST

/* ---- on sockets */

enum { EPOLLS = 200, COPIES = 100, BEFORE = 16 };

static struct attach_sockets sockets;
static uv_loop_t loop;
static char directory[32], for_all[64], own[64];
static struct agent *agent;
static uint32_t logged;

static uint64_t tell_now(struct world *w)
{
    (void)w;
    return base_clock_ns();
}

static void set_alarm(struct world *w, uint64_t due_ns)
{
    (void)w, (void)due_ns;
}

static void write_log(struct world *w, enum base_log_level level, const char *event,
                      const char *format, va_list args)
{
    (void)w, (void)level, (void)event, (void)format, (void)args;
    logged++;
}

static const struct world_ops WORLD_OPS = {.now_ns = tell_now, .alarm = set_alarm};
static const struct world_log_ops LOG_OPS = {.write = write_log};
static struct world world = {.ops = &WORLD_OPS, .sockets = &SOCKET_OPS, .log = &LOG_OPS};

/* A socket for all, and one of a tenant; both tenants have this uid. */
static void begin(void)
{
    struct base_errbuf err = {{0}};
    logged = 0;
    snprintf(directory, sizeof directory, "/tmp/kedge-cost-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(for_all, sizeof for_all, "%s/a.sock", directory);
    snprintf(own, sizeof own, "%s/own.sock", directory);
    agent = calloc(1, sizeof *agent);
    ck_assert_ptr_nonnull(agent);
    snprintf(agent->config.socket, sizeof agent->config.socket, "%s", for_all);
    agent->config.max_sessions = 1000;
    agent->config.tenants = 1;
    snprintf(agent->config.tenant[0].socket, sizeof agent->config.tenant[0].socket, "%s", own);
    agent->config.tenant[0].socket_mode = 0666;
    agent->world = &world;
    for (int i = 0; i < 2; i++)
        agent->tenants.at[i] = (struct agent_tenant){
            .state = AGENT_TENANT_LIVE,
            .config = {.name = "some", .uid_ranges = 1, .uids = {{getuid(), getuid()}}}};
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    sockets = (struct attach_sockets){.agent = agent, .loop = &loop};
    ck_assert_msg(agentd_listeners_open(&sockets, &agent->config, &err) == 0, "%s", err.text);
    be_strict(&sockets.costs);
}

static void end(void)
{
    agentd_listeners_close(&sockets);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    agentd_socket_ender_stop(&sockets.ender);
    ck_assert_ptr_null(agent->connections);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
    (void)rmdir(directory);
    free(agent);
}

static int dial(const char *path)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    snprintf(to.sun_path, sizeof to.sun_path, "%s", path);
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    ck_assert_int_eq(connect(fd, (const struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

/* Ten thousand watch it. */
struct crowd {
    int epoll[EPOLLS], copy[COPIES];
};

static void hang_on(struct crowd *w, int fd)
{
    for (int i = 0; i < COPIES; i++)
        w->copy[i] = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    for (int i = 0; i < EPOLLS; i++)
        for (int n = 0; n < COPIES; n++) {
            struct epoll_event e = {.events = EPOLLIN | EPOLLOUT | EPOLLET};
            ck_assert_int_eq(epoll_ctl(w->epoll[i], EPOLL_CTL_ADD, w->copy[n], &e), 0);
        }
    for (int i = 0; i < COPIES; i++)
        close(w->copy[i]); /* the watches stay, since fd does */
}

static void open_epolls(struct crowd *w)
{
    for (int i = 0; i < EPOLLS; i++)
        ck_assert_int_ge(w->epoll[i] = epoll_create1(EPOLL_CLOEXEC), 0);
}

static void close_epolls(const struct crowd *w)
{
    for (int i = 0; i < EPOLLS; i++)
        close(w->epoll[i]);
}

/* What its worker is told next: a status, or 0 at the end; the loop runs meanwhile. */
static int next_error(int fd)
{
    const uint64_t until_ns = base_clock_ns() + 60 * BASE_NS_PER_S;
    struct schema_control_error m;
    while (base_clock_ns() < until_ns) {
        (void)uv_run(&loop, UV_RUN_NOWAIT);
        const ssize_t got = recv(fd, &m, sizeof m, 0);
        if (got == 0)
            return 0;
        if (got > 0) {
            ck_assert_int_eq(got, sizeof m);
            ck_assert_uint_eq(m.h.type, SCHEMA_CONTROL_ERROR);
            return m.status;
        }
        ck_assert_int_eq(errno, EAGAIN);
        usleep(100);
    }
    ck_abort_msg("nothing comes");
}

static void run_for(uint64_t ms)
{
    const uint64_t until_ns = base_clock_ns() + ms * MS;
    while (base_clock_ns() < until_ns) {
        (void)uv_run(&loop, UV_RUN_NOWAIT);
        usleep(1000);
    }
}

START_TEST(a_worker_on_whose_socket_thousands_hang_is_told_so_and_ended)
{
    struct crowd crowd;
    begin();
    open_epolls(&crowd);
    const int guilty = dial(for_all);
    hang_on(&crowd, guilty);
    ck_assert_int_eq(send(guilty, "x", 1, 0), 1);
    ck_assert_int_eq(next_error(guilty), -EPROTO); /* the answer to what it said */
    ck_assert_int_eq(next_error(guilty), -EBUSY);
    ck_assert_int_eq(next_error(guilty), 0);
    run_for(10);
    ck_assert_uint_eq(agent->costly, 1);
    ck_assert_uint_ge(logged, 1);
    close(guilty);
    close_epolls(&crowd);
    end();
}
END_TEST

/* All that it had connected before is ended beside the control thread, and who comes at another
 * socket is answered as ever. */
START_TEST(who_has_made_calls_long_keeps_the_control_thread_no_more)
{
    struct crowd crowd;
    int fd[BEFORE];
    begin();
    open_epolls(&crowd);
    for (int i = 0; i < BEFORE; i++) {
        fd[i] = dial(for_all);
        hang_on(&crowd, fd[i]);
        ck_assert_int_eq(send(fd[i], "x", 1, 0), 1);
    }
    uint64_t since_ns = base_clock_thread_ns();
    (void)shutdown(fd[BEFORE - 1], SHUT_RD); /* about what one call takes */
    ck_assert_int_eq(send(fd[0], "x", 1, 0), 1);
    const int honest = dial(own);
    ck_assert_int_eq(send(honest, "x", 1, 0), 1);
    since_ns = base_clock_thread_ns();
    for (int i = 0; i < BEFORE - 1; i++)
        while (next_error(fd[i]) != 0)
            ;
    const uint64_t took_ns = base_clock_thread_ns() - since_ns;
    const uint64_t guilty_ns = sockets.costs.at[0].debt_ns;
    for (uint32_t i = 1; i < sockets.costs.known; i++) /* where a call is slow, one of its */
        ck_assert_uint_lt(sockets.costs.at[i].debt_ns, FORGIVEN_NS);
    ck_assert_int_eq(next_error(honest), -EPROTO);
    ck_assert_int_eq(next_error(honest), 0);
    ck_assert_msg(guilty_ns > FORGIVEN_NS, "%lu ns", (unsigned long)guilty_ns);
    /* A receive and an answer of one, and what the loop itself takes. */
    ck_assert_msg(took_ns < 3 * guilty_ns + 50 * MS, "%lu ns beside %lu", (unsigned long)took_ns,
                  (unsigned long)guilty_ns);
    printf("%lu us of the control thread, of which %lu were long\n",
           (unsigned long)(took_ns / 1000), (unsigned long)(guilty_ns / 1000));
    for (int i = 0; i < BEFORE; i++)
        close(fd[i]);
    close(honest);
    close_epolls(&crowd);
    end();
}
END_TEST

/* It is what was owed by then, and not for ever. */
START_TEST(what_it_has_sent_meanwhile_is_read_when_it_has_rested)
{
    begin();
    const int patient = dial(for_all);
    run_for(20);
    ck_assert(charge_last(&sockets.costs, getuid(), 0, FORGIVEN_NS + 2 * MS,
                          base_clock_ns())); /* rests for half a second */
    sockets.cost_news = true;
    ck_assert_int_eq(send(patient, "x", 1, 0), 1);
    run_for(200);
    ck_assert_uint_eq(agent->refused, 0);
    ck_assert_ptr_nonnull(sockets.resting);
    ck_assert_int_eq(next_error(patient), -EPROTO);
    ck_assert_ptr_null(sockets.resting);
    ck_assert_int_eq(next_error(patient), 0);
    close(patient);
    end();
}
END_TEST

START_TEST(one_that_rests_and_hangs_up_is_over_at_once)
{
    begin();
    const int gone = dial(for_all);
    run_for(20);
    ck_assert_ptr_nonnull(agent->connections);
    ck_assert(charge_last(&sockets.costs, getuid(), 0, 10 * BASE_NS_PER_S, base_clock_ns()));
    sockets.cost_news = true;
    ck_assert_int_eq(send(gone, "x", 1, 0), 1);
    run_for(50);
    ck_assert_ptr_nonnull(sockets.resting);
    close(gone);
    run_for(200);
    ck_assert_ptr_null(agent->connections);
    ck_assert_ptr_null(sockets.resting);
    end();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(what_is_short_on_this_host_costs_nothing)                                                    \
    T(a_call_that_is_long_now_and_then_ends_nobody)                                                \
    T(who_is_long_has_no_more_than_its_part_of_the_time)                                           \
    T(it_rests_where_it_was_long_and_a_minute_at_most)                                             \
    T(who_owes_most_is_known_still_when_many_others_come)                                          \
    T(a_worker_on_whose_socket_thousands_hang_is_told_so_and_ended)                                \
    T(who_has_made_calls_long_keeps_the_control_thread_no_more)                                    \
    T(what_it_has_sent_meanwhile_is_read_when_it_has_rested)                                       \
    T(one_that_rests_and_hangs_up_is_over_at_once)
KEDGE_CHECK_MAIN("agent.daemon.attach_cost", TESTS)
