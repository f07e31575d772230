/* SPDX-License-Identifier: Apache-2.0 */
#include "base/version.h"

#include "commit.h" /* made by commit.cmake, in the build directory */

const char *base_version_commit(void)
{
    return KEDGE_COMMIT;
}

const char *base_version_text(void)
{
    return KEDGE_COMMIT[0] != '\0' ? KEDGE_VERSION " (" KEDGE_COMMIT ")" : KEDGE_VERSION;
}
