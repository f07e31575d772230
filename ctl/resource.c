/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "ctl/resources.h"

const char *ctl_resource_value(const struct resource_table *kind,
                               const struct ctl_resource *resource, const char *name)
{
    for (size_t i = 0; i < kind->fields; i++)
        if (strcmp(kind->field[i].name, name) == 0)
            return strcmp(resource->value[i], "-") != 0 ? resource->value[i] : "";
    return "";
}

int ctl_no_such(const char *kind, const char *name, const char *more, struct base_errbuf *err)
{
    return base_err(err, -ENOENT, "there is no %s \"%.70s\": see rdmactl %s list%s", kind, name,
                    kind, more);
}
