/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite_files.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "disk.h"
#include "os.h"
#include "process.h"
#include "random.h"

enum { SECTOR = 4096, INDEX_PARTS = 64 };

struct file {
    sqlite3_file base; /* the first member */
    struct play_disk *disk;
    struct play_file *file;
    bool new_name; /* perhaps, which its first sync keeps */
    int error;     /* the last one */
    void *index[INDEX_PARTS];
};

static struct base_prng numbers;
static int last_error;

static struct file *file_of(sqlite3_file *f)
{
    return (struct file *)f;
}

static int note_error(struct file *f, int status, int otherwise)
{
    if (status == 0)
        return SQLITE_OK;
    f->error = last_error = -status;
    return status == -ENOSPC ? SQLITE_FULL : otherwise;
}

/* ---- a file */

static int close_file(sqlite3_file *base)
{
    struct file *f = file_of(base);
    for (int i = 0; i < INDEX_PARTS; i++)
        free(f->index[i]);
    play_file_close(f->file);
    f->base.pMethods = NULL;
    return SQLITE_OK;
}

static int read_file(sqlite3_file *base, void *to, int n, sqlite3_int64 from)
{
    struct file *f = file_of(base);
    size_t got = 0;
    const int status = play_file_read(f->file, (uint64_t)from, to, (size_t)n, &got);
    if (status != 0)
        return note_error(f, status, SQLITE_IOERR_READ);
    if (got == (size_t)n)
        return SQLITE_OK;
    memset((uint8_t *)to + got, 0, (size_t)n - got);
    return SQLITE_IOERR_SHORT_READ;
}

static int write_file(sqlite3_file *base, const void *bytes, int n, sqlite3_int64 at)
{
    struct file *f = file_of(base);
    return note_error(f, play_file_write(f->file, (uint64_t)at, bytes, (size_t)n),
                      SQLITE_IOERR_WRITE);
}

static int truncate_file(sqlite3_file *base, sqlite3_int64 length)
{
    struct file *f = file_of(base);
    return note_error(f, play_file_cut(f->file, (uint64_t)length), SQLITE_IOERR_TRUNCATE);
}

static int sync_file(sqlite3_file *base, int flags)
{
    struct file *f = file_of(base);
    (void)flags;
    int status = play_file_sync(f->file);
    if (status == 0 && f->new_name)
        status = play_disk_sync_names(f->disk);
    f->new_name &= status != 0;
    return note_error(f, status, SQLITE_IOERR_FSYNC);
}

static int tell_length(sqlite3_file *base, sqlite3_int64 *out)
{
    *out = (sqlite3_int64)play_file_length(file_of(base)->file);
    return SQLITE_OK;
}

static int lock_file(sqlite3_file *base, int level)
{
    (void)base, (void)level;
    return SQLITE_OK;
}

static int is_reserved(sqlite3_file *base, int *out)
{
    (void)base;
    *out = 0;
    return SQLITE_OK;
}

static int control_file(sqlite3_file *base, int what, void *out)
{
    if (what != SQLITE_FCNTL_LAST_ERRNO)
        return SQLITE_NOTFOUND;
    *(int *)out = file_of(base)->error;
    return SQLITE_OK;
}

static int tell_sector(sqlite3_file *base)
{
    (void)base;
    return SECTOR;
}

/* As SQLite believes of each disk: what is not written does not change. */
static int tell_device(sqlite3_file *base)
{
    (void)base;
    return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

/* ---- the index of its log, which is made anew whenever it is opened */

static int map_index(sqlite3_file *base, int part, int bytes, int extend, void volatile **out)
{
    struct file *f = file_of(base);
    BASE_ASSERT(part < INDEX_PARTS);
    if (f->index[part] == NULL && extend)
        f->index[part] = calloc(1, (size_t)bytes);
    *out = f->index[part];
    return SQLITE_OK;
}

static int lock_index(sqlite3_file *base, int from, int n, int flags)
{
    (void)base, (void)from, (void)n, (void)flags;
    return SQLITE_OK;
}

static void order_index(sqlite3_file *base)
{
    (void)base;
}

static int unmap_index(sqlite3_file *base, int remove)
{
    struct file *f = file_of(base);
    (void)remove;
    for (int i = 0; i < INDEX_PARTS; i++) {
        free(f->index[i]);
        f->index[i] = NULL;
    }
    return SQLITE_OK;
}

static const sqlite3_io_methods METHODS = {.iVersion = 2,
                                           .xClose = close_file,
                                           .xRead = read_file,
                                           .xWrite = write_file,
                                           .xTruncate = truncate_file,
                                           .xSync = sync_file,
                                           .xFileSize = tell_length,
                                           .xLock = lock_file,
                                           .xUnlock = lock_file,
                                           .xCheckReservedLock = is_reserved,
                                           .xFileControl = control_file,
                                           .xSectorSize = tell_sector,
                                           .xDeviceCharacteristics = tell_device,
                                           .xShmMap = map_index,
                                           .xShmLock = lock_index,
                                           .xShmBarrier = order_index,
                                           .xShmUnmap = unmap_index};

/* ---- the disk */

static int open_file(sqlite3_vfs *vfs, const char *path, sqlite3_file *out, int flags,
                     int *out_flags)
{
    struct file *f = file_of(out);
    const char *name = path != NULL ? os_file_name(path) : NULL;
    struct play_disk *d = play_process->host->disk;
    (void)vfs;
    *f = (struct file){.disk = d};
    /* Also of one that is there: a process that was killed may have made it and synced nothing. */
    f->new_name = name != NULL && (flags & SQLITE_OPEN_CREATE) != 0 &&
                  (flags & (SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_WAL)) != 0;
    const int status = play_file_open(d, name, (flags & SQLITE_OPEN_CREATE) != 0, &f->file);
    if (status != 0)
        return note_error(f, status, SQLITE_CANTOPEN);
    f->base.pMethods = &METHODS;
    if (out_flags != NULL)
        *out_flags = flags;
    return SQLITE_OK;
}

static int remove_file(sqlite3_vfs *vfs, const char *path, int sync)
{
    struct play_disk *d = play_process->host->disk;
    (void)vfs;
    int status = play_disk_remove(d, os_file_name(path));
    if (status == -ENOENT)
        return SQLITE_IOERR_DELETE_NOENT;
    if (status == 0 && sync)
        status = play_disk_sync_names(d);
    return status == 0 ? SQLITE_OK : SQLITE_IOERR_DELETE;
}

static int find_file(sqlite3_vfs *vfs, const char *path, int flags, int *out)
{
    (void)vfs, (void)flags;
    *out = play_disk_has(play_process->host->disk, os_file_name(path));
    return SQLITE_OK;
}

static int tell_path(sqlite3_vfs *vfs, const char *path, int room, char *out)
{
    (void)vfs;
    sqlite3_snprintf(room, out, "%s", path);
    return SQLITE_OK;
}

static int draw_numbers(sqlite3_vfs *vfs, int n, char *out)
{
    (void)vfs;
    play_random_fill(&numbers, out, (uint64_t)n);
    return n;
}

static int sleep_for(sqlite3_vfs *vfs, int us)
{
    (void)vfs;
    return us;
}

static int tell_day(sqlite3_vfs *vfs, double *out)
{
    (void)vfs;
    *out = 2440587.5;
    return SQLITE_OK;
}

static int tell_error(sqlite3_vfs *vfs, int n, char *text)
{
    (void)vfs, (void)n, (void)text;
    return last_error;
}

void play_sqlite_init(uint64_t seed)
{
    static sqlite3_vfs vfs = {.iVersion = 1,
                              .szOsFile = sizeof(struct file),
                              .mxPathname = 512,
                              .zName = "simulated",
                              .xOpen = open_file,
                              .xDelete = remove_file,
                              .xAccess = find_file,
                              .xFullPathname = tell_path,
                              .xRandomness = draw_numbers,
                              .xSleep = sleep_for,
                              .xCurrentTime = tell_day,
                              .xGetLastError = tell_error};
    numbers = play_random_of(seed, "sqlite", 0);
    last_error = 0;
    const int status = sqlite3_vfs_register(&vfs, 1);
    BASE_ASSERT(status == SQLITE_OK);
    sqlite3_randomness(0, NULL); /* else it goes on with those of the simulation before */
}
