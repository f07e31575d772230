/* SPDX-License-Identifier: Apache-2.0 */
#include "fabric/providers.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"

static const struct kedge_fab_provider *const providers[] = {&kedge_fab_soft, &kedge_fab_verbs};

const struct kedge_fab_provider *kedge_fab_provider_find(const char *name, struct kedge_errbuf *err)
{
    for (size_t i = 0; i < sizeof providers / sizeof providers[0]; i++)
        if (strcmp(providers[i]->name, name) == 0)
            return providers[i];
    kedge_err(err, -EINVAL,
              "there is no fabric provider \"%.60s\": set provider to soft (one host, no RNIC) or "
              "verbs (RDMA devices, SoftRoCE included)",
              name);
    return NULL;
}
