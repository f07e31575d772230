/* SPDX-License-Identifier: Apache-2.0 */
/* What an error of SQLite means to an operator. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "sqlite_private.h"

/* Of a disk, or of what its owner may have of it, which SQLite does not take for a full one. */
static bool is_no_room(int error)
{
    return error == ENOSPC || error == EDQUOT;
}

/* Whether a write, or what makes it last, found no room. SQLite keeps the errno of each of its
 * files, but not that of the index of its log (-shm), which is only ever made longer. */
static bool is_full(const struct sqlite *s, int rc)
{
    sqlite3_file *log = NULL;
    int error = 0;
    if (rc == SQLITE_IOERR_SHMSIZE || is_no_room(sqlite3_system_errno(s->db)))
        return true;
    if (sqlite3_file_control(s->db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log) != SQLITE_OK ||
        log == NULL || log->pMethods == NULL)
        return false;
    return log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &error) == SQLITE_OK &&
           is_no_room(error);
}

static bool is_directory(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

int meta_sqlite_is_directory(const char *path, struct base_errbuf *err)
{
    return base_err(err, -EISDIR,
                    "%s is a directory, and no database: move it away, or set data_dir", path);
}

int meta_sqlite_open_error(const char *path, int errnum, struct base_errbuf *err)
{
    switch (errnum) {
    case ENOENT:
    case ENOTDIR:
        return base_err(err, -ENOENT, "the directory %.*s is missing: make it, or set data_dir",
                        (int)(strrchr(path, '/') - path), path);
    case EISDIR:
        return meta_sqlite_is_directory(path, err);
    case EACCES:
    case EPERM:
    case EROFS:
        return base_err(err, -EROFS,
                        "%s cannot be written: check its owner, its mode and its file system",
                        path);
    case ENOSPC:
    case EDQUOT:
        return base_err(err, -ENOSPC, "the disk of %s is full: make room there", path);
    default:
        return base_err(err, -errnum, "opening %s failed: %s", path, strerror(errnum));
    }
}

int meta_sqlite_failed(const struct sqlite *s, int rc, struct base_errbuf *err)
{
    if ((rc & 0xff) == SQLITE_CANTOPEN && is_directory(s->path))
        return meta_sqlite_is_directory(s->path, err);
    if ((rc & 0xff) == SQLITE_FULL || ((rc & 0xff) == SQLITE_IOERR && is_full(s, rc)))
        return base_err(err, -ENOSPC, "the disk of %s is full: make room there", s->path);
    switch (rc & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return base_err(err, -EBUSY,
                        "%s is locked by another program: end its transaction and try again",
                        s->path);
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return base_err(err, -EROFS,
                        "%s cannot be written: check its owner, its mode and its file system",
                        s->path);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return base_err(
            err, -EIO,
            "%s is damaged or is no database (%s): restore it from a backup, or move it "
            "away to begin anew",
            s->path, sqlite3_errstr(rc));
    case SQLITE_NOMEM:
        return base_err(err, -ENOMEM, "out of memory while using %s", s->path);
    case SQLITE_IOERR:
        return base_err(err, -EIO,
                        "%s cannot be read or written (%s): look whether its disk is full, and "
                        "what the kernel's log says of it",
                        s->path, sqlite3_errstr(rc));
    default:
        return base_err(err, -EIO, "%s: %s (%s)", s->path, sqlite3_errstr(rc),
                        sqlite3_errmsg(s->db));
    }
}
