/* SPDX-License-Identifier: Apache-2.0 */
/* The world of a simulated agent: time, chance, calls, tasks, its disk. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent_process.h"
#include "base/clock.h"
#include "base/text.h"
#include "control/world_log.h"
#include "calls.h"
#include "device_provider.h"
#include "disk.h"
#include "incarnation.h"
#include "kept.h"
#include "life.h"
#include "os.h"
#include "os_calls.h"
#include "random.h"
#include "state_file.h"
#include "tasks.h"

/* ---- time and chance */

static uint64_t tell_time(struct world *w)
{
    return play_host_now_ns(play_agent_of(w)->host);
}

static uint64_t tell_wall(struct world *w)
{
    return play_host_wall_ms(play_agent_of(w)->host);
}

static void tell_clocks(struct world *w, struct world_clocks *out)
{
    const uint64_t now_ns = tell_time(w);
    *out = (struct world_clocks){.before_ns = now_ns,
                                 .raw_ns = play_host_raw_ns(play_agent_of(w)->host),
                                 .after_ns = now_ns};
}

static int draw_random(struct world *w, void *bytes, size_t n)
{
    play_random_fill(&play_agent_of(w)->process->random, bytes, n);
    return 0;
}

uint64_t play_agent_effects(const struct play_agent *a)
{
    return a->effects + play_provider_submitted();
}

static void set_alarm(struct world *w, uint64_t due_ns)
{
    struct play_agent *a = play_agent_of(w);
    a->effects++;
    if (due_ns == UINT64_MAX || a->ending)
        play_event_cancel(&a->alarm);
    else
        play_event_at(&a->alarm, play_host_due(a->host, due_ns));
}

/* ---- descriptors of the fabric's */

struct play_watch {
    struct play_watch *next;
    struct play_agent *agent;
    struct world_watch *watch;
    int fd;
    struct play_post post;
};

static void watch_is_ready(void *user)
{
    const struct play_watch *w = user;
    w->watch->ready(w->watch->user);
}

static int begin_watch(struct world *world, struct world_watch *watch, int fd,
                       struct base_errbuf *err)
{
    struct play_agent *a = play_agent_of(world);
    struct play_watch *w = calloc(1, sizeof *w);
    if (w == NULL)
        return base_err(err, -ENOMEM, "out of memory");
    *w = (struct play_watch){.next = a->watches,
                             .agent = a,
                             .watch = watch,
                             .fd = fd,
                             .post = {.run = watch_is_ready, .user = w}};
    a->watches = w;
    watch->of_world = w;
    return 0;
}

static void end_watch(struct world *world, struct world_watch *watch)
{
    struct play_agent *a = play_agent_of(world);
    struct play_watch **at = &a->watches;
    while (*at != watch->of_world)
        at = &(*at)->next;
    struct play_watch *w = *at;
    *at = w->next;
    play_inbox_take_back(&a->inbox, &w->post);
    free(w);
}

bool play_agent_watch_ready(struct play_agent *a, int fd)
{
    for (struct play_watch *w = a->watches; w != NULL; w = w->next)
        if (w->fd == fd) {
            play_inbox_put(&a->inbox, &w->post);
            return true;
        }
    return false;
}

void play_agent_stop_watching(struct play_agent *a)
{
    for (struct play_watch *w = a->watches, *next; w != NULL; w = next) {
        next = w->next;
        free(w);
    }
    a->watches = NULL;
}

/* ---- metaservers */

static int begin_call(struct world *w, const struct http_call *call, http_done done, void *user,
                      uint64_t *id)
{
    struct play_agent *a = play_agent_of(w);
    a->effects++;
    return a->ending ? -ECANCELED : play_call_begin(&a->inbox, call, done, user, id);
}

static int cancel_call(struct world *w, uint64_t id)
{
    return play_call_cancel(&play_agent_of(w)->inbox, id);
}

static bool has_token(struct world *w, const uint8_t gid[16], struct base_errbuf *why)
{
    (void)w, (void)gid, (void)why;
    return true;
}

static bool is_token_private(struct world *w, struct base_errbuf *why)
{
    (void)w, (void)why;
    return true;
}

/* ---- tasks: each takes its time, and is carried out at some moment of that */

struct play_task {
    struct play_task *next;
    struct play_agent *agent;
    struct world_task *task;
    struct play_event carry_out, end;
    struct play_post done;
};

static const uint64_t TASK_MOST_NS = 200000;
static const char INCARNATION[] = "incarnation";

static bool writes_disk(const struct world_task *t)
{
    return t->work == WORLD_SAVE_STATE || t->work == WORLD_KEEP_INCARNATIONS;
}

static int do_task(struct play_agent *a, struct world_task *t)
{
    if (t->work == WORLD_RECLAIM_MEMORY)
        return 0;
    if (t->work == WORLD_SAVE_STATE)
        play_kept_begin(a->host->name, t->state.name, t->state.text, t->state.length);
    const int status = TASK_RUNS[t->work](t);
    agentd_task_empty_left(t);
    return status;
}

static void carry_out_task(void *user)
{
    struct play_task *t = user;
    struct play_process *before = play_process_enter(t->agent->process);
    t->task->status = do_task(t->agent, t->task);
    play_process_leave(before);
}

static void end_task(void *user)
{
    struct play_task *t = user;
    play_inbox_put(&t->agent->inbox, &t->done);
}

static void task_is_done(void *user)
{
    struct play_task *t = user, **at = &t->agent->tasks;
    struct world_task *task = t->task;
    while (*at != t)
        at = &(*at)->next;
    *at = t->next;
    t->agent->tasks_out--;
    if (task->work == WORLD_SAVE_STATE && task->status == 0)
        play_kept_done(t->agent->host->name, task->state.name, task->state.text,
                       task->state.length);
    if (task->work == WORLD_KEEP_INCARNATIONS && task->status == 0)
        play_kept_number(t->agent->host->name, INCARNATION, task->incarnations.last);
    free(t);
    task->done(task->user);
}

static void begin_task(struct world *w, struct world_task *task)
{
    struct play_agent *a = play_agent_of(w);
    struct play_task *t = calloc(1, sizeof *t);
    const uint64_t first = writes_disk(task) ? play_disk_time(a->host->disk)
                                             : base_prng_below(&a->random, TASK_MOST_NS),
                   then = base_prng_below(&a->random, TASK_MOST_NS);
    struct play_owner *of = &a->process->owner;
    *t = (struct play_task){.next = a->tasks,
                            .agent = a,
                            .task = task,
                            .carry_out = {.happen = carry_out_task, .user = t, .owner = of},
                            .end = {.happen = end_task, .user = t, .owner = of},
                            .done = {.run = task_is_done, .user = t}};
    a->tasks = t;
    a->tasks_out++;
    a->effects++;
    play_event_after(&t->carry_out, first);
    play_event_after(&t->end, first + then);
}

static void do_task_here(struct world *w, struct world_task *t)
{
    t->status = do_task(play_agent_of(w), t);
}

void play_agent_finish_tasks(struct play_agent *a)
{
    while (a->tasks_out > 0)
        (void)play_inbox_step(&a->inbox, PLAY_NEVER);
}

/* What it writes is in the middle of that. */
static void crash_in_task(struct play_task *t)
{
    struct play_disk *d = t->agent->host->disk;
    if (!writes_disk(t->task) || !play_event_is_set(&t->carry_out))
        return;
    play_disk_fail_after(d, play_disk_moment(d));
    carry_out_task(t);
    play_disk_recover(d);
}

static void crash_in_incarnation(struct play_agent *a)
{
    struct play_disk *d = a->host->disk;
    struct play_process *before = play_process_enter(a->process);
    uint32_t next;
    bool lost;
    play_disk_fail_after(d, play_disk_moment(d));
    (void)agentd_incarnation_next(OS_DISK, play_host_wall_ms(a->host) / 1000, 0, &next, &lost,
                                  NULL);
    play_disk_recover(d);
    play_process_leave(before);
}

void play_agent_forget_tasks(struct play_agent *a)
{
    if (a->takes_incarnation)
        crash_in_incarnation(a);
    for (struct play_task *t = a->tasks; t != NULL; t = t->next)
        crash_in_task(t);
    for (struct play_task *t = a->tasks, *next; t != NULL; t = next) {
        next = t->next;
        play_event_cancel(&t->carry_out);
        play_event_cancel(&t->end);
        free(t);
    }
    a->tasks = NULL;
}

/* ---- the disk */

static int load_document(struct world *w, const char *name, void *bytes, size_t capacity,
                         size_t *length)
{
    const int dir = os_open(OS_DISK, 0);
    const int status = agentd_state_file_read(dir, name, bytes, capacity, length);
    (void)os_close(dir);
    if (status == 0 || status == -ENOENT)
        play_kept_found(play_agent_of(w)->host->name, name, status == 0 ? bytes : NULL, *length);
    return status;
}

/* What is there; 0: nothing that makes sense. */
static uint32_t read_incarnation(void)
{
    char text[32] = "";
    size_t length = 0;
    uint64_t number = 0;
    const int dir = os_open(OS_DISK, 0);
    (void)agentd_state_file_read(dir, INCARNATION, text, sizeof text - 1, &length);
    (void)os_close(dir);
    text[strcspn(text, "\n")] = '\0';
    (void)base_parse_u64(text, 1, UINT32_MAX, &number);
    return (uint32_t)number;
}

int play_agent_take_incarnation(struct play_agent *a, uint32_t at_least, struct base_errbuf *err)
{
    uint32_t incarnation;
    bool lost;
    const uint32_t former = read_incarnation();
    a->unknowing = former == 0;
    play_kept_number_found(a->host->name, INCARNATION, former);
    a->takes_incarnation = true;
    play_process_sleep(play_disk_time(a->host->disk));
    a->takes_incarnation = false;
    const int status = agentd_incarnation_next(OS_DISK, play_host_wall_ms(a->host) / 1000, at_least,
                                               &incarnation, &lost, err);
    if (status != 0)
        return status;
    play_kept_number(a->host->name, INCARNATION, life_last_kept(incarnation));
    agent_life_begin(a->agent, incarnation);
    return 0;
}

static uint64_t tell_memory(struct world *w, bool *of_group)
{
    (void)w;
    *of_group = false;
    return 1ull << 40;
}

static void write_log(struct world *w, enum base_log_level level, const char *event,
                      const char *format, va_list args)
{
    play_agent_of(w)->effects++;
    play_log(level, event, format, args);
}

static uint64_t count_dropped(struct world *w)
{
    (void)w;
    return 0;
}

const struct world_log_ops PLAY_LOG_OPS = {.write = write_log, .dropped = count_dropped};

static void stop_agent(struct world *w)
{
    play_agent_of(w)->told_to_stop = true;
}

const struct world_ops PLAY_WORLD_OPS = {
    .now_ns = tell_time,
    .wall_ms = tell_wall,
    .clocks = tell_clocks,
    .random = draw_random,
    .alarm = set_alarm,
    .watch = begin_watch,
    .unwatch = end_watch,
    .call = begin_call,
    .cancel = cancel_call,
    .has_token = has_token,
    .token_is_private = is_token_private,
    .load = load_document,
    .run = begin_task,
    .run_here = do_task_here,
    .memory_most = tell_memory,
    .stop = stop_agent,
};
