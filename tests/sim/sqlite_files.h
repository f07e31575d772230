/* SPDX-License-Identifier: Apache-2.0 */
/* SQLite's files on the disk of the host whose process runs (disk.h): a VFS, as SQLite calls what
 * it has instead of a file system. It does as SQLite's own for Unix does, and one process alone has
 * a database open. One thread. */
#ifndef SIM_SQLITE_FILES_H
#define SIM_SQLITE_FILES_H

#include <stdint.h>

/* Of a simulation that begins: SQLite's files are these, and its random numbers that seed's. */
void play_sqlite_init(uint64_t seed);

#endif
