/* SPDX-License-Identifier: Apache-2.0 */
#include "socket_acl.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define NAME "system.posix_acl_access"

/* A descriptor that was opened with O_PATH has no calls of its own for modes and lists. */
struct link {
    char path[32];
};

static struct link link_to(int file)
{
    struct link l;
    snprintf(l.path, sizeof l.path, "/proc/self/fd/%d", file);
    return l;
}

/* Links are not followed, and nobody else can give a file to us. */
static bool is_own_socket(int file)
{
    struct stat st;
    return fstat(file, &st) == 0 && S_ISSOCK(st.st_mode) && st.st_uid == geteuid();
}

int agentd_socket_acl_open(const char *path, mode_t mode)
{
    const int file = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0)
        return -errno;
    int status = is_own_socket(file) ? 0 : -EEXIST;
    if (status == 0 && chmod(link_to(file).path, mode) != 0)
        status = -errno;
    if (status == 0)
        return file;
    close(file);
    return status;
}

/* The kernel's form of it: entries in the order of their tags, and of uids. */
struct list {
    struct posix_acl_xattr_header head;
    struct posix_acl_xattr_entry entry[SOCKET_ACL_UIDS + 4];
};

static void add_entry(struct list *l, uint32_t *count, uint16_t tag, mode_t bits, uint32_t id)
{
    l->entry[(*count)++] = (struct posix_acl_xattr_entry){
        .e_tag = htole16(tag), .e_perm = htole16((uint16_t)(bits & 7)), .e_id = htole32(id)};
}

static int compare_uids(const void *a, const void *b)
{
    const uid_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

int agentd_socket_acl_refuse(int file, mode_t mode, const uid_t *uids, uint32_t count)
{
    struct list l = {.head.a_version = htole32(POSIX_ACL_XATTR_VERSION)};
    uid_t sorted[SOCKET_ACL_UIDS];
    uint32_t n = 0;
    if (count > SOCKET_ACL_UIDS)
        return -E2BIG;
    for (uint32_t i = 0; i < count; i++)
        sorted[i] = uids[i];
    qsort(sorted, count, sizeof *sorted, compare_uids);
    add_entry(&l, &n, ACL_USER_OBJ, mode >> 6, (uint32_t)ACL_UNDEFINED_ID);
    for (uint32_t i = 0; i < count; i++)
        add_entry(&l, &n, ACL_USER, 0, sorted[i]);
    add_entry(&l, &n, ACL_GROUP_OBJ, mode >> 3, (uint32_t)ACL_UNDEFINED_ID);
    if (count > 0)
        add_entry(&l, &n, ACL_MASK, mode >> 3, (uint32_t)ACL_UNDEFINED_ID);
    add_entry(&l, &n, ACL_OTHER, mode, (uint32_t)ACL_UNDEFINED_ID);
    const size_t bytes = sizeof l.head + n * sizeof l.entry[0];
    return setxattr(link_to(file).path, NAME, &l, bytes, 0) == 0 ? 0 : -errno;
}
