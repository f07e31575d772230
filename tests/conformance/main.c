/* SPDX-License-Identifier: Apache-2.0 */
/* conformance PROVIDER [DEVICE]: runs the suite on one provider of the fabric.
 *
 * Exits 0 if everything passed, 1 if not, 77 if the provider's device cannot be used here. Without
 * a device name, software providers get a directory of their own, and verbs takes the first device
 * that can be used. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "deviations.h"
#include "fabric/fault.h"
#include "fabric/sim.h"
#include "harness.h"

enum { SIM_POLL_NS = 10000 /* that a poll takes */ };

static int open_soft(const struct fab_open_attr *attr, struct fab **out, struct base_errbuf *err)
{
    return fab_soft.open(attr, out, err);
}

/* The layer without a plan must be transparent. With one, in KEDGE_CONFORMANCE_FAULT as an operator
 * writes it, the device has less (inline=48). */
static int open_fault_soft(const struct fab_open_attr *attr, struct fab **out,
                           struct base_errbuf *err)
{
    const char *text = getenv("KEDGE_CONFORMANCE_FAULT");
    struct fault_plan plan = {.seed = 1};
    struct fab *inner;
    int status = text != NULL ? fault_plan_parse(text, &plan, err) : 0;
    if (status == 0)
        status = fab_soft.open(attr, &inner, err);
    if (status != 0)
        return status;
    status = fault_open(inner, &plan, out);
    if (status != 0)
        (void)fab_close(inner);
    return status;
}

static int open_verbs(const struct fab_open_attr *attr, struct fab **out, struct base_errbuf *err)
{
    return fab_verbs.open(attr, out, err);
}

/* One net for all devices of this process, which goes on while somebody polls or waits. Its seed is
 * KEDGE_CONFORMANCE_SEED, or 1. */
static struct sim_net *net;

static int open_sim(const struct fab_open_attr *attr, struct fab **out, struct base_errbuf *err)
{
    static uint32_t nodes;
    const char *seed = getenv("KEDGE_CONFORMANCE_SEED");
    const struct sim_device_attr device = {.node = nodes++, .service = attr->service};
    if (net == NULL)
        net = sim_net_new(seed != NULL ? strtoull(seed, NULL, 0) : 1, NULL, 0);
    if (net == NULL)
        return base_err(err, -ENOMEM, "out of memory");
    sim_net_poll_takes(net, SIM_POLL_NS);
    return sim_device_open(net, &device, out, err);
}

/* The same over links that repeat packets, also when they have long arrived. (Where packets are
 * lost or overtaken, so may be what an error is: unit.fabric.sim_links.) */
static int open_sim_repeat(const struct fab_open_attr *attr, struct fab **out,
                           struct base_errbuf *err)
{
    const struct sim_link link = {.delay_ns = 2000, .jitter_ns = 5000, .repeat_ppm = 50000};
    const int status = open_sim(attr, out, err);
    return status != 0 ? status : sim_link_set(net, SIM_ANY_NODE, SIM_ANY_NODE, &link);
}

static uint64_t sim_now_ns(void)
{
    return sim_net_now(net);
}

static bool pass_sim_time(int fd, uint64_t ns)
{
    const uint64_t end = sim_net_now(net) + ns;
    while (!sim_fd_is_readable(net, fd) && sim_net_next_due(net) <= end)
        (void)sim_net_step(net);
    if (sim_fd_is_readable(net, fd))
        return true;
    sim_net_run_until(net, end);
    return false;
}

static const struct {
    struct conf_provider conf;
    bool hardware; /* its device is there or not; ours otherwise: a directory */
} providers[] = {
    {.conf = {.name = "soft", .open = open_soft}},
    {.conf = {.name = "fault-soft", .open = open_fault_soft}},
    {.conf = {.name = "sim", .open = open_sim, .now_ns = sim_now_ns, .pass = pass_sim_time}},
    {.conf = {.name = "sim-repeat",
              .open = open_sim_repeat,
              .now_ns = sim_now_ns,
              .pass = pass_sim_time}},
    {.conf = {.name = "verbs", .open = open_verbs}, .hardware = true},
};

static void (*const topics[])(Suite *) = {
    add_states, add_transfers, add_queues,   add_errors,   add_keys,    add_memory, add_ud,
    add_dc,     add_rnr,       add_channels, add_liveness, add_objects, add_random, add_deadlines,
};

/* Removes a directory without subdirectories. */
static void remove_directory(const char *path)
{
    DIR *dir = opendir(path);
    if (dir == NULL)
        return;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            (void)unlinkat(dirfd(dir), entry->d_name, 0);
    closedir(dir);
    (void)rmdir(path);
}

static int run_suite(const struct conf_provider *provider, const char *device)
{
    conf_choose(provider, device);
    Suite *suite = suite_create(provider->name);
    for (size_t i = 0; i < sizeof topics / sizeof topics[0]; i++)
        topics[i](suite);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int run = srunner_ntests_run(runner), failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    unsigned skipped = conf_report_skips(), left_out = deviations_report();
    printf("%s: %d passed, %d failed, %u skipped, %u left out\n", provider->name,
           run - failed - (int)skipped, failed, skipped, left_out);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Opens and closes the device in a process of its own, which Check does not fork from: 0, or 77
 * when it cannot be used here. */
static int try_device(const struct conf_provider *provider, const char *device)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        struct fab_open_attr attr = {.device = device};
        struct base_errbuf err = {.text = ""};
        struct fab *fab;
        if (provider->open(&attr, &fab, &err) == 0)
            _exit(fab_close(fab) == 0 ? 0 : 1);
        fprintf(stderr, "%s\n", err.text);
        _exit(77);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
        return EXIT_FAILURE;
    return WEXITSTATUS(status);
}

/* SoftRoCE's devices, and they alone, name the network interface that they are on. */
static bool is_rxe(const char *device)
{
    char path[300];
    snprintf(path, sizeof path, "/sys/class/infiniband/%s/parent",
             device != NULL ? device : "rxe0");
    return access(path, F_OK) == 0;
}

static int run_on_hardware(const struct conf_provider *provider, const char *device)
{
    int status = try_device(provider, device);
    if (status != 0)
        return status;
    deviations_of(provider->name, is_rxe(device) ? "rxe" : NULL);
    return run_suite(provider, device);
}

static int run_in_directory(const struct conf_provider *provider)
{
    char directory[] = "/dev/shm/kedge-conformance-XXXXXX";
    if (mkdtemp(directory) == NULL) {
        perror(directory);
        return 77;
    }
    int status = run_suite(provider, directory);
    remove_directory(directory);
    return status;
}

static int run_in_net(const struct conf_provider *provider)
{
    const int status = run_suite(provider, NULL);
    if (status == EXIT_SUCCESS)
        sim_net_free(net);
    return status;
}

int main(int argc, char **argv)
{
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: %s PROVIDER [DEVICE]\n", argv[0]);
        return 2;
    }
    const char *device = argc == 3 ? argv[2] : NULL;
    for (size_t i = 0; i < sizeof providers / sizeof providers[0]; i++) {
        const struct conf_provider *provider = &providers[i].conf;
        if (strcmp(argv[1], provider->name) != 0)
            continue;
        if (providers[i].hardware)
            return run_on_hardware(provider, device);
        deviations_of(provider->name, strcmp(provider->name, "sim-repeat") == 0 ? "sim" : NULL);
        if (provider->pass != NULL)
            return run_in_net(provider);
        return device != NULL ? run_suite(provider, device) : run_in_directory(provider);
    }
    fprintf(stderr, "no provider is called %s\n", argv[1]);
    return 2;
}
