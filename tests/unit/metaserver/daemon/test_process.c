/* SPDX-License-Identifier: Apache-2.0 */
/* How a metaserver ends whose device hangs when it gives back its DC target: a child is one, over
 * `soft` with a layer of faults. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../check_main.h"
#include "../../fabric/bed.h"
#include "base/clock.h"
#include "fabric/fault.h"
#include "loop.h"

enum { ENTRIES = 64, BOUND_MS = 200, CODE = 7, HANG_S = 60 };

static char dir[] = "/dev/shm/kedge-process-XXXXXX";
static struct meta_config config;
static struct meta_process process;

static void name_file(char out[128], const char *name)
{
    snprintf(out, 128, "%s/%s", dir, name);
}

static bool has_file(const char *name)
{
    char path[128];
    name_file(path, name);
    return access(path, F_OK) == 0;
}

static bool begin_test(void)
{
    return mkdtemp(dir) != NULL;
}

static void end_test(void)
{
    char device[128];
    name_file(device, "soft");
    bed_dir_remove(device);
    bed_dir_remove(dir);
}

/* It takes up to twice HANG_S for its DC target, and with this seed longer than the tests. */
static struct fab *open_hanging(const char *device)
{
    struct fault_plan plan = {.seed = 1, .drain_ns = HANG_S * BASE_NS_PER_S};
    struct base_errbuf err;
    struct fab *inner, *fab;
    if (fab_soft.open(&(struct fab_open_attr){.device = device}, &inner, &err) != 0 ||
        fault_open(inner, &plan, &fab) != 0)
        _exit(90);
    return fab;
}

static void call(struct fab *fab, struct fab_ctl *ctl)
{
    if (fab_call(fab, ctl) != 0)
        _exit(91);
}

static void make_endpoint(struct meta_table_endpoint *e, size_t bytes)
{
    char device[128];
    name_file(device, "soft");
    e->fab = open_hanging(device);
    if (fab_mem_alloc(bytes, "table", &e->mem) != 0)
        _exit(92);
    struct fab_ctl pd = {.kind = FAB_ALLOC_PD};
    call(e->fab, &pd);
    e->pd = pd.pd.x;
    struct fab_ctl chan = {.kind = FAB_CREATE_CHAN};
    call(e->fab, &chan);
    e->chan = chan.chan.x;
    struct fab_ctl cq = {.kind = FAB_CREATE_CQ, .cq = {.cqe = 4, .chan = e->chan}};
    call(e->fab, &cq);
    e->cq = cq.cq.x;
    struct fab_ctl mr = {
        .kind = FAB_REG_MR,
        .mr = {.pd = e->pd, .mem = &e->mem, .length = bytes, .access = IBV_ACCESS_REMOTE_READ}};
    call(e->fab, &mr);
    e->mr = mr.mr.x;
    struct fab_ctl srq = {.kind = FAB_CREATE_SRQ, .srq = {.pd = e->pd, .max_wr = 1, .max_sge = 1}};
    call(e->fab, &srq);
    e->srq = srq.srq.x;
    struct fab_ctl dct = {
        .kind = FAB_CREATE_DCT,
        .dct = {.pd = e->pd, .cq = e->cq, .srq = e->srq, .access = IBV_ACCESS_REMOTE_READ}};
    call(e->fab, &dct);
    e->dct = dct.dct.x;
}

/* With something in its store that no checkpoint has moved yet. */
static void make_process(void)
{
    struct meta_directory_limits limits = {16, ENTRIES, BASE_NS_PER_S, BASE_NS_PER_S};
    struct meta_service *s = &process.service;
    struct meta_store_node node = {.id = "a", .incarnation = 1};
    struct base_errbuf err;
    char path[128];
    name_file(path, "metad.db");
    meta_loop_world_init(&process.world);
    s->world = &process.world.base;
    if (meta_store_sqlite(path, &s->store, &err) != 0 ||
        meta_store_put(s->store, &node, &err) != 0 ||
        meta_store_worker_new(s->store, &process.world.worker, &err) != 0)
        _exit(93);
    make_endpoint(&process.endpoint, schema_table_bytes(schema_table_log2_slots(ENTRIES)));
    s->directory = meta_directory_new(&limits, process.endpoint.mem.addr, 1, 2);
    s->resources = meta_resources_new(16);
    s->liveness = meta_liveness_new(16, 3);
    s->endpoint = meta_table_endpoint_describe(&process.endpoint);
}

static int serve_clients(void)
{
    struct base_errbuf err;
    config = (struct meta_config){.connections = 8,
                                  .client_connections = 8,
                                  .token_connections = 8,
                                  .tokens_needed = true,
                                  .node_lease_ns = BASE_NS_PER_S};
    name_file(config.admin_socket, "metad.sock");
    make_process();
    const int status = meta_daemon_serve(&config, NULL, &process, &err);
    meta_process_fini(&process);
    return status == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

START_TEST(the_store_is_closed_before_the_device_is_waited_for)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    ck_assert(begin_test());
    const pid_t child = fork();
    if (child == 0) {
        alarm(HANG_S);
        _exit(serve_clients());
    }
    while (!has_file("metad.sock") || !has_file("metad.db-wal"))
        ck_assert_int_eq(waitpid(child, NULL, WNOHANG) | nanosleep(&pause, NULL), 0);
    kill(child, SIGTERM);
    while (has_file("metad.db-wal")) /* which goes with the checkpoint of the end */
        ck_assert_int_eq(waitpid(child, NULL, WNOHANG) | nanosleep(&pause, NULL), 0);
    ck_assert_int_eq(waitpid(child, NULL, WNOHANG), 0); /* it waits for its device */
    kill(child, SIGKILL);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    end_test();
}
END_TEST

START_TEST(a_device_that_hangs_is_left_to_the_kernel_after_a_while)
{
    int status;
    ck_assert(begin_test());
    const pid_t child = fork();
    if (child == 0) {
        struct base_errbuf err;
        alarm(HANG_S);
        make_process();
        if (meta_process_stop_store(&process, &err) != 0 || has_file("metad.db-wal"))
            _exit(94);
        meta_process_stop_device(&process, BOUND_MS, CODE);
        meta_process_fini(&process);
        _exit(95);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), CODE);
    end_test();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(the_store_is_closed_before_the_device_is_waited_for)                                         \
    T(a_device_that_hangs_is_left_to_the_kernel_after_a_while)
KEDGE_CHECK_MAIN("metad.process", TESTS)
