/* SPDX-License-Identifier: Apache-2.0 */
/* Who may connect to a Unix socket that has a path, beside what its mode says: the kernel refuses
 * some uids, so that their connections do not fill the backlog. Any thread. */
#ifndef DAEMON_SOCKET_ACL_H
#define DAEMON_SOCKET_ACL_H

#include <stdint.h>
#include <sys/types.h>

enum { SOCKET_ACL_UIDS = 320 };

/* The file of a socket that this process has just bound there, which has that mode now. Nothing
 * more is to go by the path: whoever may write in its directory can put another file in its place,
 * or a link to one of ours. A descriptor that the caller closes, or -errno: -EEXIST: another file
 * is there already. */
int agentd_socket_acl_open(const char *path, mode_t mode);

/* From now on nobody of these (0 .. SOCKET_ACL_UIDS) can connect to that file (EACCES), and
 * everybody else can whom mode allows it; its owner and root can in any case. 0, or -errno:
 * -EOPNOTSUPP where the file system has no such lists. */
int agentd_socket_acl_refuse(int file, mode_t mode, const uid_t *uids, uint32_t count);

#endif
