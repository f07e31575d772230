/* SPDX-License-Identifier: Apache-2.0 */
#include "fabric/providers.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"

static const struct fab_provider *const providers[] = {&fab_soft, &fab_verbs};

const struct fab_provider *fab_provider_find(const char *name, struct base_errbuf *err)
{
    for (size_t i = 0; i < sizeof providers / sizeof providers[0]; i++)
        if (strcmp(providers[i]->name, name) == 0)
            return providers[i];
    base_err(err, -EINVAL,
             "there is no fabric provider \"%.60s\": set provider to soft (one host, no RNIC) or "
             "verbs (RDMA devices, SoftRoCE included)",
             name);
    return NULL;
}
