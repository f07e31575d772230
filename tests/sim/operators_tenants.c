/* SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "operators.h"

static const char *const TENANTS[PLAY_TENANTS] = {"default", "blue", "green", "red"};

const char *play_tenant_name(uint32_t number)
{
    BASE_ASSERT(number < PLAY_TENANTS);
    return TENANTS[number];
}

uint32_t play_tenant_uid(uint32_t number)
{
    return 1000 * (number + 1);
}
