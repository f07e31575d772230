/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a device by its driver, without a device: a directory stands in for sysfs, and
 * the functions here for those of libibverbs that list devices and open one. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../check_main.h"
#include "base/error.h"
#include "verbs/describe.h"
#include "verbs/verbs.h"

static char sysfs[64];
static struct ibv_device device, *list[2];
static int opened;

struct ibv_device **list_devices(int *count) __asm__("ibv_get_device_list");
void free_devices(struct ibv_device **devices) __asm__("ibv_free_device_list");
struct ibv_context *open_device(struct ibv_device *d) __asm__("ibv_open_device");

struct ibv_device **list_devices(int *count)
{
    list[0] = &device;
    *count = 1;
    return list;
}

void free_devices(struct ibv_device **devices)
{
    ck_assert_ptr_eq(devices, list);
}

struct ibv_context *open_device(struct ibv_device *d)
{
    ck_assert_ptr_eq(d, &device);
    opened++;
    errno = EIO;
    return NULL;
}

/* A device of that driver, as the kernel shows it; NULL: of one that has none, as rxe's. */
static void make_device(const char *driver)
{
    char path[128], to[64];
    snprintf(sysfs, sizeof sysfs, "/tmp/kedge-drivers-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(sysfs));
    memset(&device, 0, sizeof device);
    device.transport_type = IBV_TRANSPORT_IB;
    snprintf(device.name, sizeof device.name, "rdma0");
    snprintf(device.ibdev_path, sizeof device.ibdev_path, "%s", sysfs);
    opened = 0;
    snprintf(path, sizeof path, "%s/device", sysfs);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/device/driver", sysfs);
    snprintf(to, sizeof to, "../bus/pci/drivers/%s", driver != NULL ? driver : "");
    if (driver != NULL)
        ck_assert_int_eq(symlink(to, path), 0);
}

static void forget_device(void)
{
    char path[128];
    snprintf(path, sizeof path, "%s/device/driver", sysfs);
    (void)unlink(path);
    snprintf(path, sizeof path, "%s/device", sysfs);
    ck_assert_int_eq(rmdir(path), 0);
    ck_assert_int_eq(rmdir(sysfs), 0);
}

/* Not even opened: so nothing is registered there, and no proof writes to what it finds. */
START_TEST(a_driver_whose_registrations_may_lead_elsewhere_is_refused_with_a_reason)
{
    const struct fab_open_attr attr = {0};
    struct fab_devices all;
    struct base_errbuf err;
    struct fab *fab = NULL;
    make_device("mlx4_core");
    ck_assert_int_eq(fab_verbs.open(&attr, &fab, &err), -ENOTSUP);
    ck_assert_ptr_null(fab);
    ck_assert_ptr_nonnull(strstr(err.text, "rdma0: with mlx4 (ConnectX-3"));
    ck_assert_ptr_nonnull(strstr(err.text, "or use SoftRoCE"));
    ck_assert_int_eq(fab_devices_list(&attr, &all, &err), -ENOTSUP);
    ck_assert_uint_eq(all.count, 1);
    ck_assert_str_eq(all.item[0].driver, "mlx4_core");
    ck_assert_ptr_nonnull(strstr(all.item[0].why, "or use SoftRoCE"));
    ck_assert(!all.item[0].chosen);
    ck_assert_int_eq(opened, 0);
    fab_devices_fini(&all);
    forget_device();
}
END_TEST

START_TEST(one_of_which_nothing_is_known_is_tried)
{
    static const char *const drivers[] = {"mlx5_core", "irdma", "a_new_one", NULL};
    const struct fab_open_attr attr = {0};
    struct base_errbuf err;
    struct fab *fab = NULL;
    for (unsigned i = 0; i < sizeof drivers / sizeof drivers[0]; i++) {
        make_device(drivers[i]);
        ck_assert_int_ne(fab_verbs.open(&attr, &fab, &err), 0);
        ck_assert_int_eq(opened, 1);
        forget_device();
    }
}
END_TEST

static struct fab_caps errors_of(const char *driver, bool is_rxe)
{
    struct fab_caps caps = {.names_culprit = true, .writes_in_order = true};
    make_device(driver);
    verbs_describe_errors(device.ibdev_path, is_rxe, &caps);
    forget_device();
    return caps;
}

/* What stands behind a WRITE that is refused may have been placed, unless it is known that not. */
START_TEST(only_rxe_is_believed_to_place_writes_in_order)
{
    static const char *const drivers[] = {"mlx5_core", "irdma", "bnxt_en", "a_new_one", NULL};
    for (unsigned i = 0; i < sizeof drivers / sizeof drivers[0]; i++)
        ck_assert_msg(!errors_of(drivers[i], false).writes_in_order, "%u", i);
    ck_assert(errors_of(NULL, true).writes_in_order);
}
END_TEST

START_TEST(only_mlx5_and_rxe_are_believed_to_name_the_request_that_failed)
{
    ck_assert(errors_of("mlx5_core", false).names_culprit);
    ck_assert(errors_of("mlx5_core.sf", false).names_culprit); /* a subfunction */
    ck_assert(errors_of(NULL, true).names_culprit);
    ck_assert(!errors_of("irdma", false).names_culprit);
    ck_assert(!errors_of("a_new_one", false).names_culprit);
    ck_assert(!errors_of(NULL, false).names_culprit);
}
END_TEST

START_TEST(the_shortest_time_out_of_a_device_is_known_of_few)
{
    ck_assert_uint_ge(verbs_describe_timeout_least_ns(VERBS_MELLANOX_VENDOR, 26428), 500000000);
    ck_assert_uint_ge(verbs_describe_timeout_least_ns(VERBS_RXE_VENDOR, 0), 10000000);
    ck_assert_uint_eq(verbs_describe_timeout_least_ns(VERBS_MELLANOX_VENDOR, 4119), 0);
    ck_assert_uint_eq(verbs_describe_timeout_least_ns(0x8086, 26428), 0);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_driver_whose_registrations_may_lead_elsewhere_is_refused_with_a_reason)                    \
    T(one_of_which_nothing_is_known_is_tried)                                                      \
    T(only_rxe_is_believed_to_place_writes_in_order)                                               \
    T(only_mlx5_and_rxe_are_believed_to_name_the_request_that_failed)                              \
    T(the_shortest_time_out_of_a_device_is_known_of_few)

KEDGE_CHECK_MAIN("fabric.verbs_drivers", TESTS)
