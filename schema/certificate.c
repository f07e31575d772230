/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/certificate.h"

#include <stddef.h>
#include <string.h>

#include "base/text.h"
#include "schema/resources.h"

const char *schema_certificate_node(const char *uri)
{
    const size_t length = sizeof SCHEMA_CERTIFICATE_NODE - 1;
    if (strncmp(uri, SCHEMA_CERTIFICATE_NODE, length) != 0)
        return NULL;
    return base_parse_name(uri + length, RESOURCE_NODE_NAME_MAX) == 0 ? uri + length : NULL;
}
