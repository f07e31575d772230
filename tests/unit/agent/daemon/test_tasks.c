/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks beside the control thread, which is the test's own here. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../check_main.h"
#include "tasks.h"

enum { WAIT_US = 1000, WAITS = 60000 };

static uv_loop_t loop;
static struct tasks tasks;

static _Atomic uint32_t ran; /* tasks that have begun in this test */

struct control_op {
    struct world_task task;
    pthread_t ran_on, heard_on;
    pid_t thread;   /* that it ran on */
    uint32_t times; /* heard of */
    uint32_t nth;   /* of all, when it ran */
    uint32_t tenant;
    uint32_t again;        /* is submitted so often when it is done */
    _Atomic bool *goes_on; /* NULL, or it runs until this is set */
};

static int run(struct world_task *t)
{
    struct control_op *e = t->user;
    e->ran_on = pthread_self();
    e->thread = gettid();
    e->nth = atomic_fetch_add(&ran, 1);
    for (int i = 0; e->goes_on != NULL && !atomic_load(e->goes_on) && i < WAITS; i++)
        (void)usleep(WAIT_US);
    return -ENOENT;
}

static const task_run runs[WORLD_WORKS] = {[WORLD_SAVE_STATE] = run};

static void submit(struct control_op *e);

static void done(void *user)
{
    struct control_op *e = user;
    e->heard_on = pthread_self();
    ck_assert_int_eq(e->task.status, -ENOENT);
    e->times++;
    if (e->again > 0) {
        e->again--;
        submit(e);
    }
}

static void submit(struct control_op *e)
{
    e->task =
        (struct world_task){.work = WORLD_SAVE_STATE, .tenant = e->tenant, .done = done, .user = e};
    agentd_tasks_submit(&tasks, &e->task);
}

static void begin(void)
{
    struct base_errbuf err = {""};
    atomic_store(&ran, 0);
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    ck_assert_msg(agentd_tasks_start(&tasks, runs, NULL, &loop, &err) == 0, "%s", err.text);
}

static void close_loop(void)
{
    uv_close((uv_handle_t *)&tasks.wake.poll, NULL);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
}

static void end(void)
{
    agentd_tasks_stop(&tasks);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
}

static void run_until(const uint32_t *count, uint32_t value)
{
    for (int i = 0; i < WAITS && *count != value; i++) {
        (void)uv_run(&loop, UV_RUN_NOWAIT);
        (void)usleep(WAIT_US);
    }
    ck_assert_uint_eq(*count, value);
}

static void run_until_begun(uint32_t count)
{
    for (int i = 0; i < WAITS && atomic_load(&ran) != count; i++)
        (void)usleep(WAIT_US);
    ck_assert_uint_eq(atomic_load(&ran), count);
}

START_TEST(a_task_runs_on_another_thread_and_is_heard_of_on_this)
{
    struct control_op e = {.again = 2};
    begin();
    submit(&e);
    run_until(&e.times, 3);
    ck_assert(!pthread_equal(e.ran_on, pthread_self()));
    ck_assert(pthread_equal(e.heard_on, pthread_self()));
    close_loop();
    end();
}
END_TEST

START_TEST(what_is_done_is_heard_of_while_all_other_threads_are_busy)
{
    _Atomic bool goes_on = false;
    struct control_op quick = {.times = 0}, slow[TASK_THREADS - 1];
    begin();
    for (int i = 0; i < TASK_THREADS - 1; i++) {
        slow[i] = (struct control_op){.goes_on = &goes_on};
        submit(&slow[i]);
    }
    quick.again = 1;
    submit(&quick);
    run_until(&quick.times, 2);
    ck_assert_uint_eq(slow[0].times, 0);
    atomic_store(&goes_on, true);
    run_until(&slow[TASK_THREADS - 2].times, 1);
    close_loop();
    end();
}
END_TEST

START_TEST(what_tenants_ask_for_never_occupies_all_threads)
{
    _Atomic bool goes_on = false;
    struct control_op own = {.again = 5}, other = {.tenant = 9, .again = 5}, slow[8];
    begin();
    for (int i = 0; i < 8; i++) {
        slow[i] = (struct control_op){.tenant = 7, .goes_on = &goes_on};
        submit(&slow[i]);
    }
    submit(&own);
    submit(&other);
    run_until(&own.times, 6);
    run_until(&other.times, 6);
    ck_assert_uint_eq(slow[0].times, 0);
    atomic_store(&goes_on, true);
    run_until(&slow[7].times, 1);
    close_loop();
    end();
}
END_TEST

/* One tenant's eight were there before the other's one. Of the two that may run at a time one goes
 * on until the end, so that the others run one by one, in the order in which they are taken. */
START_TEST(tenants_have_their_turns)
{
    _Atomic bool a_goes_on = false, b_goes_on = false;
    struct control_op a = {.tenant = 1, .goes_on = &a_goes_on},
                      b = {.tenant = 2, .goes_on = &b_goes_on}, own = {.again = 5}, many[8],
                      one = {.tenant = 4};
    begin();
    submit(&a);
    submit(&b);
    run_until_begun(2); /* tenants' room is taken */
    for (int i = 0; i < 8; i++) {
        many[i] = (struct control_op){.tenant = 3};
        submit(&many[i]);
    }
    submit(&one);
    submit(&own);
    run_until(&own.times, 6);
    ck_assert_uint_eq(atomic_load(&ran), 2 + 6); /* no third one of tenants' */
    atomic_store(&a_goes_on, true);
    run_until(&many[7].times, 1);
    run_until(&one.times, 1);
    ck_assert_uint_lt(one.nth, many[1].nth);
    atomic_store(&b_goes_on, true);
    run_until(&b.times, 1);
    close_loop();
    end();
}
END_TEST

/* Of all threads but this one and that one, which wait for tasks alone: how often they have slept.
 */
static uint32_t count_sleeps(pid_t but)
{
    uint32_t sleeps = 0;
    char path[64], line[128];
    DIR *all = opendir("/proc/self/task");
    ck_assert_ptr_nonnull(all);
    for (const struct dirent *d; (d = readdir(all)) != NULL;) {
        const pid_t thread = (pid_t)strtol(d->d_name, NULL, 10);
        snprintf(path, sizeof path, "/proc/self/task/%d/status", thread);
        FILE *status =
            thread != 0 && thread != getpid() && thread != but ? fopen(path, "re") : NULL;
        while (status != NULL && fgets(line, sizeof line, status) != NULL)
            if (strncmp(line, "voluntary_ctxt_switches:", 24) == 0)
                sleeps += (uint32_t)strtoul(line + 24, NULL, 10);
        if (status != NULL)
            (void)fclose(status);
    }
    (void)closedir(all);
    return sleeps;
}

START_TEST(what_waits_for_its_tenants_turn_wakes_nobody)
{
    enum { TIMES = 200 };
    static struct control_op next[TIMES];
    _Atomic bool goes_on = false;
    struct control_op slow = {.tenant = 7, .goes_on = &goes_on};
    begin();
    submit(&slow);
    run_until_begun(1);
    const uint32_t before = count_sleeps(slow.thread);
    for (uint32_t i = 0; i < TIMES; i++) {
        next[i] = (struct control_op){.tenant = 7};
        submit(&next[i]);
        (void)usleep(WAIT_US); /* for who was woken to sleep again */
    }
    ck_assert_uint_lt(count_sleeps(slow.thread) - before, TIMES / 2);
    atomic_store(&goes_on, true);
    run_until(&next[TIMES - 1].times, 1);
    close_loop();
    end();
}
END_TEST

START_TEST(the_end_waits_for_what_is_out_and_for_what_that_submits)
{
    struct control_op e[2 * TASK_THREADS];
    begin();
    close_loop(); /* nobody hears before the end */
    for (int i = 0; i < 2 * TASK_THREADS; i++) {
        e[i] = (struct control_op){.again = 3};
        submit(&e[i]);
    }
    end();
    for (int i = 0; i < 2 * TASK_THREADS; i++)
        ck_assert_uint_eq(e[i].times, 4);
}
END_TEST

/* epoll may refuse one more, and who is not heard of would never be done. */
START_TEST(a_loop_that_cannot_watch_them_is_desired)
{
    struct base_errbuf err = {""};
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    ck_assert_int_ge(dup3(null, uv_backend_fd(&loop), O_CLOEXEC), 0); /* no epoll's any more */
    ck_assert_int_lt(agentd_tasks_start(&tasks, runs, NULL, &loop, &err), 0);
    ck_assert_ptr_nonnull(strstr(err.text, "watched"));
    agentd_tasks_stop(&tasks);
    close(null);
}
END_TEST

START_TEST(the_end_of_what_never_began_is_nothing)
{
    static struct tasks none;
    const int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    ck_assert_int_eq(dup2(fd, 0), 0); /* what a descriptor is that nobody has set */
    agentd_tasks_stop(&none);
    ck_assert_int_ge(fcntl(0, F_GETFD), 0);
    close(fd);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_task_runs_on_another_thread_and_is_heard_of_on_this)                                       \
    T(what_is_done_is_heard_of_while_all_other_threads_are_busy)                                   \
    T(what_tenants_ask_for_never_occupies_all_threads)                                             \
    T(tenants_have_their_turns)                                                                    \
    T(what_waits_for_its_tenants_turn_wakes_nobody)                                                \
    T(the_end_waits_for_what_is_out_and_for_what_that_submits)                                     \
    T(a_loop_that_cannot_watch_them_is_desired)                                                    \
    T(the_end_of_what_never_began_is_nothing)
KEDGE_CHECK_MAIN("agent.daemon.tasks", TESTS)
