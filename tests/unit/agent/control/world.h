/* SPDX-License-Identifier: Apache-2.0 */
/* A world (control/world.h) that is the test's: time stands still until the test moves it, and what
 * was begun is kept until the test ends it. */
#ifndef UNIT_AGENT_CONTROL_WORLD_H
#define UNIT_AGENT_CONTROL_WORLD_H

#include "control/lanes.h"
#include "control/world.h"

enum { TEST_CALLS = 64, TEST_DOORBELLS = 256 };

/* A request to a metaserver. */
struct test_call {
    char method[8];
    char url[256];
    http_done done; /* NULL: it was answered, or cancelled */
    int (*on_line)(void *user, const char *line, size_t length); /* a stream; else NULL */
    void *user;
    uint32_t timeout_ms; /* which nobody but the test keeps */
};

struct test_world {
    struct world world; /* the first member */
    uint64_t now_ns, wall_ms;
    uint64_t alarm_ns;                 /* UINT64_MAX: none */
    uint64_t random;                   /* counts: the bytes are its hash */
    struct world_task *tasks;          /* that were begun, the first first */
    struct world_task ran_here;        /* the last one that was done at once */
    struct test_call call[TEST_CALLS]; /* that were begun, in order */
    uint32_t calls;
    uint64_t memory_most;       /* of the host; 0: no bound */
    struct world_task *keeping; /* incarnations, on a disk that is as slow as the test; or NULL */
    uint32_t retry_after_s;     /* that answers say to wait; 0: they do not */
    const char *said;           /* the last event of the log */
    uint32_t stops;
    uint32_t steps[WORLD_DEVICE_DROP + 1]; /* of devices, by kind: none fails; those that are begun
                                            * are the test's to end (agent_address_step_done(),
                                            * agent_pool_device_opened()) */
    void (*stepped)(enum world_device_step step, struct pool *p); /* or NULL: hears of them */
    const struct world_rings *heard[TEST_DOORBELLS]; /* by session: whose doorbell is watched */
    uint32_t lanes_stopped;                          /* of those whose of_world was not NULL */
    void (*lane_told)(const struct lane_command *command); /* of any lane; a test sets it */
};

void test_world_init(struct test_world *w);
/* Moves the clocks, and fires what is due by then, each at its time. */
void test_world_advance(struct test_world *w, uint64_t ns);
/* Ends the first task that was begun, of which there is one, with this status. */
void test_world_end_task(struct test_world *w, int status);
/* Likewise what is being kept. */
void test_world_end_keeping(struct test_world *w, int status);
/* To the call of that number, from 0, which has had none. A status of less than 0 is a failure to
 * get an answer. */
void test_world_answer(struct test_world *w, uint32_t call, int status, const char *body);
/* Until there have been so many calls, of which the last one has that method: 30 s at most. */
void test_world_await_call(struct test_world *w, uint32_t calls, const char *method);

#endif
