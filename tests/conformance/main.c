/* SPDX-License-Identifier: Apache-2.0 */
/* conformance PROVIDER [DEVICE]: runs the suite on one provider of the fabric.
 *
 * Exits 0 if everything passed, 1 if not, 77 if the provider's device cannot be used here. Without
 * a device name, software providers get a directory of their own. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <dirent.h>
#include <unistd.h>

#include "base/error.h"
#include "fabric/fault.h"
#include "harness.h"

static int open_soft(const struct kedge_fab_open_attr *attr, struct kedge_fab **out,
                     struct kedge_errbuf *err)
{
    return kedge_fab_soft.open(attr, out, err);
}

/* The layer without a plan must be transparent. */
static int open_fault_soft(const struct kedge_fab_open_attr *attr, struct kedge_fab **out,
                           struct kedge_errbuf *err)
{
    static const struct kedge_fault_plan nothing = {.seed = 1};
    struct kedge_fab *inner;
    int status = kedge_fab_soft.open(attr, &inner, err);
    if (status != 0)
        return status;
    status = kedge_fault_open(inner, &nothing, out);
    if (status != 0)
        (void)kedge_fab_close(inner);
    return status;
}

static const struct conf_provider providers[] = {
    {.name = "soft", .open = open_soft},
    {.name = "fault-soft", .open = open_fault_soft},
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
    unsigned skipped = conf_report_skips();
    printf("%s: %d passed, %d failed, %u skipped\n", provider->name, run - failed - (int)skipped,
           failed, skipped);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    char directory[] = "/dev/shm/kedge-conformance-XXXXXX";
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: %s PROVIDER [DEVICE]\n", argv[0]);
        return 2;
    }
    for (size_t i = 0; i < sizeof providers / sizeof providers[0]; i++) {
        if (strcmp(argv[1], providers[i].name) != 0)
            continue;
        if (argc == 3)
            return run_suite(&providers[i], argv[2]);
        if (mkdtemp(directory) == NULL) {
            perror(directory);
            return 77;
        }
        int status = run_suite(&providers[i], directory);
        remove_directory(directory);
        return status;
    }
    fprintf(stderr, "no provider is called %s\n", argv[1]);
    return 2;
}
