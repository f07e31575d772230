/* SPDX-License-Identifier: Apache-2.0 */
/* Which build this is. Pure; any thread may call. */
#ifndef BASE_VERSION_H
#define BASE_VERSION_H

/* "0.1.0 (1c2d3e4f5a6b)": the version, and the commit that it was built from; "-changed" behind
 * that where files differed from it, and no commit where the sources were not a repository. */
const char *base_version_text(void);
/* The commit alone; empty where it is not known. */
const char *base_version_commit(void);

#endif
