/* SPDX-License-Identifier: Apache-2.0 */
#include "fabric/providers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "fabric/devices.h"

static const struct fab_provider *const providers[] = {&fab_soft, &fab_verbs};

enum { PROVIDERS = sizeof providers / sizeof providers[0] };

const struct fab_provider *fab_provider_find(const char *name, struct base_errbuf *err)
{
    char known[256] = "";
    size_t used = 0;
    for (size_t i = 0; i < PROVIDERS; i++) {
        if (strcmp(providers[i]->name, name) == 0)
            return providers[i];
        const char *between = i == 0 ? "" : i + 1 < PROVIDERS ? ", " : " or ";
        const int n = snprintf(known + used, sizeof known - used, "%s%s (%s)", between,
                               providers[i]->name, providers[i]->about);
        used += n > 0 && used + (size_t)n < sizeof known ? (size_t)n : 0;
    }
    base_err(err, -EINVAL, "there is no fabric provider \"%.60s\": set provider to %s", name,
             known);
    return NULL;
}

const struct fab_provider *fab_provider_usual(bool device_is_named)
{
    struct fab_devices devices;
    struct base_errbuf err;
    const struct fab_open_attr any = {.port = 0};
    bool wanted = device_is_named;
    if (!wanted) {
        (void)fab_devices_list(&any, &devices, &err);
        wanted = devices.count > 0;
        fab_devices_fini(&devices);
    }
    for (size_t i = 0; i < PROVIDERS; i++)
        if (providers[i]->rdma_devices == wanted)
            return providers[i];
    return providers[0];
}
