/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fds.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <fcntl.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5; Debian 12's headers are older */
#endif

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* Linux 6.16 */
#endif

enum { DRAIN_MOST = 1024 }; /* messages: more than a socket's buffer holds */

/* Aligned as the kernel wants it. */
union control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int) * BASE_FDS_MAX)];
};

int base_fds_send(int socket, const void *message, size_t bytes, const int *fds, unsigned count)
{
    if (count > BASE_FDS_MAX || bytes == 0)
        return -EINVAL;
    union control control;
    struct iovec iov = {.iov_base = (void *)message, .iov_len = bytes};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    if (count > 0) {
        memset(&control, 0, sizeof control);
        msg.msg_control = control.bytes;
        msg.msg_controllen = CMSG_SPACE(sizeof(int) * count);
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int) * count);
        memcpy(CMSG_DATA(c), fds, sizeof(int) * count);
    }
    ssize_t n;
    do
        n = sendmsg(socket, &msg, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : 0;
}

bool base_fds_unread(int socket)
{
    int bytes = 0;
    return ioctl(socket, SIOCOUTQ, &bytes) == 0 && bytes > 0;
}

enum { ROOM_FDS = 253, ROOM_SOCKETS = 128 }; /* SCM_MAX_FD: in one message */

/* Fills a new pair with copies of fd. 0; or -errno. */
static int fill_pair(const int pair[2], int fd, uint32_t most, uint32_t *sent)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int) * ROOM_FDS)];
    } control = {.bytes = ""};
    char byte = 0;
    struct iovec iov = {.iov_base = &byte, .iov_len = sizeof byte};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control.bytes,
                         .msg_controllen = sizeof control.bytes};
    struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
    *c = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
                          .cmsg_type = SCM_RIGHTS,
                          .cmsg_len = CMSG_LEN(sizeof(int) * ROOM_FDS)};
    for (size_t i = 0; i < ROOM_FDS; i++)
        memcpy(CMSG_DATA(c) + i * sizeof fd, &fd, sizeof fd);
    while (*sent < most) {
        if (sendmsg(pair[0], &msg, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
            return errno == EAGAIN ? 0 : -errno; /* its queue is full */
        *sent += ROOM_FDS;
    }
    return 0;
}

int base_fds_room(uint32_t most, uint32_t *room)
{
    int pair[ROOM_SOCKETS][2], pairs = 0;
    const int fd = eventfd(0, EFD_CLOEXEC);
    uint32_t sent = 0;
    int status = fd >= 0 ? 0 : -errno;
    while (status == 0 && sent < most && pairs < ROOM_SOCKETS) {
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair[pairs]) != 0)
            status = -errno;
        else
            status = fill_pair(pair[pairs++], fd, most, &sent);
    }
    for (int i = 0; i < pairs; i++) {
        close(pair[i][0]);
        close(pair[i][1]);
    }
    if (fd >= 0)
        close(fd);
    if (status != 0 && status != -ETOOMANYREFS)
        return status;
    if (status != 0) /* there was room for one descriptor of the last message, perhaps */
        sent -= sent < ROOM_FDS ? sent : ROOM_FDS;
    *room = sent < most ? sent : most;
    return 0;
}

/* Collects what came; there is at most one SCM_RIGHTS header, but nothing here relies on it. */
static unsigned collect_fds(struct msghdr *msg, int fds[BASE_FDS_MAX])
{
    unsigned count = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c != NULL; c = CMSG_NXTHDR(msg, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
            if (count < BASE_FDS_MAX)
                fds[count++] = fd;
            else
                close(fd);
        }
    }
    return count;
}

/* Whether the kernel left descriptors out because this process may have no more of them. */
static bool is_full(int socket)
{
    const int one = fcntl(socket, F_DUPFD_CLOEXEC, 0);
    if (one >= 0)
        close(one);
    return one < 0 && errno == EMFILE;
}

int base_fds_recv(int socket, void *message, size_t capacity, size_t *bytes, int *fds,
                  unsigned max_fds, unsigned *count)
{
    union control control;
    int came[BASE_FDS_MAX];
    struct iovec iov = {.iov_base = message, .iov_len = capacity};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    if (capacity == 0 || max_fds > BASE_FDS_MAX)
        return -EINVAL;
    if (max_fds > 0) { /* else none is made at all: the kernel says that it dropped some */
        msg.msg_control = control.bytes;
        msg.msg_controllen = sizeof control.bytes;
    }
    ssize_t n = recvmsg(socket, &msg, MSG_CMSG_CLOEXEC);
    if (n < 0)
        return -errno;
    unsigned got = collect_fds(&msg, came);
    int status = 0;
    if ((msg.msg_flags & MSG_CTRUNC) != 0 || got > max_fds)
        status = got < max_fds && is_full(socket) ? -EMFILE : -EPROTO;
    else if ((msg.msg_flags & MSG_TRUNC) != 0)
        status = -EMSGSIZE;
    else if (n == 0)
        status = -EPIPE;
    if (status != 0) {
        for (unsigned i = 0; i < got; i++)
            close(came[i]);
        return status;
    }
    if (got > 0)
        memcpy(fds, came, got * sizeof *fds);
    *bytes = (size_t)n;
    *count = got;
    return 0;
}

int base_fds_refuse(int socket)
{
    const int no = 0;
    return setsockopt(socket, SOL_SOCKET, SO_PASSRIGHTS, &no, sizeof no) == 0 ? 0 : -errno;
}

int base_fds_look(int socket)
{
    char byte;
    struct iovec iov = {.iov_base = &byte, .iov_len = sizeof byte};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    if (recvmsg(socket, &msg, MSG_PEEK | MSG_DONTWAIT) < 0)
        return -errno;
    return (msg.msg_flags & MSG_CTRUNC) != 0 ? -EPROTO : 0;
}

/* One message that has no descriptors. -ENODATA: there is none. The credentials that come with each
 * tell an empty message from the end. */
static int drop_message(int socket)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(struct ucred))];
    } control;
    char byte;
    struct iovec iov = {.iov_base = &byte, .iov_len = sizeof byte};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control.bytes,
                         .msg_controllen = sizeof control.bytes};
    ssize_t n = recvmsg(socket, &msg, MSG_PEEK | MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN ? -ENODATA : -errno;
    if ((msg.msg_flags & MSG_CTRUNC) != 0)
        return -EPROTO;
    if (n == 0 && msg.msg_controllen == 0)
        return -ENODATA;
    return recv(socket, &byte, sizeof byte, MSG_DONTWAIT) < 0 ? -errno : 0;
}

int base_fds_drain(int socket)
{
    const int yes = 1;
    int status = setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes) == 0 ? 0 : -errno;
    for (int i = 0; i < DRAIN_MOST && (status == 0 || status == -EINTR); i++)
        status = drop_message(socket);
    return status == -ENODATA ? 0 : -EPROTO;
}

int base_pidfd_open(pid_t pid)
{
    long fd = syscall(SYS_pidfd_open, pid, 0); /* close-on-exec by itself */
    return fd < 0 ? -errno : (int)fd;
}

int base_fds_peer(int socket, struct base_peer_process *out)
{
    struct ucred cred;
    socklen_t length = sizeof cred;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &cred, &length) != 0)
        return -errno;
    if (cred.pid <= 0)
        return -ENOTCONN;
    *out = (struct base_peer_process){.uid = cred.uid, .gid = cred.gid, .pid = cred.pid};
    return 0;
}

int base_fds_peer_pidfd(int socket, pid_t pid)
{
    int pidfd = -1;
    socklen_t length = sizeof pidfd;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &length) == 0)
        return pidfd;
    if (errno == ENOPROTOOPT)
        return base_pidfd_open(pid);
    return errno == EINVAL || errno == ENODATA ? -ESRCH : -errno;
}

/* Anew, from the same file: what was given up or is held with less. A descriptor, or -errno. */
static int open_again(int file, int flags)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    const int again = open(path, flags | O_CLOEXEC);
    return again >= 0 ? again : -errno;
}

/* A description of a memory file that cannot write, and from which nobody makes one that can but
 * who may change its mode: its owner, and root. The former one is closed. */
static int drop_writing(int *file)
{
    const int reader = fchmod(*file, S_IRUSR) == 0 ? open_again(*file, O_RDONLY) : -errno;
    if (reader < 0)
        return reader;
    close(*file);
    *file = reader;
    return 0;
}

/* The kernel wants an int, whatever the name of the call says. */
static int set_flags(int file, int flags)
{
    return ioctl(file, FS_IOC_SETFLAGS, &flags) == 0 ? 0 : -errno;
}

int base_memfd_keep_whole(int file)
{
    return set_flags(file, FS_IMMUTABLE_FL);
}

int base_memfd_try_whole(void)
{
    const int file = memfd_create("kedge-try", MFD_CLOEXEC);
    if (file < 0)
        return -errno;
    const int status = base_memfd_keep_whole(file);
    close(file);
    return status;
}

int base_memfd_new(const char *name, size_t bytes, enum base_memfd_others others, int *fd,
                   void **map)
{
    int status, file, seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    void *mapped;
    if (bytes == 0)
        return -EINVAL;
    file = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (file < 0)
        return -errno;
    /* Its pages at once: a full tmpfs is an error here and not a SIGBUS later. */
    if (ftruncate(file, (off_t)bytes) != 0 || fallocate(file, 0, 0, (off_t)bytes) != 0) {
        status = -errno;
        goto close_file;
    }
    mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
    if (mapped == MAP_FAILED) {
        status = -errno;
        goto close_file;
    }
    /* All in one call: after F_SEAL_SEAL no other is taken. */
    if (others == BASE_MEMFD_SEALED)
        seals |= F_SEAL_FUTURE_WRITE;
    if (fcntl(file, F_ADD_SEALS, seals) != 0) {
        status = -errno;
        goto unmap;
    }
    status = others == BASE_MEMFD_READ ? drop_writing(&file) : 0;
    if (status != 0)
        goto unmap;
    if (others != BASE_MEMFD_SEALED) /* nobody punches holes in what is sealed */
        (void)base_memfd_keep_whole(file);
    *fd = file;
    *map = mapped;
    return 0;
unmap:
    munmap(mapped, bytes);
close_file:
    close(file);
    return status;
}

/* In pieces of some 0.1 ms each, and others have the processor now and then; not after each, which
 * on a busy host costs milliseconds. The last one reaches beyond the file: part of a page would be
 * kept. */
static int punch_all(int file)
{
    static const off_t PIECE = 256 << 10, HUGE_PIECE = 2 << 20;
    static const unsigned PIECES_ON_END = 4;
    struct stat st;
    struct statfs fs;
    if (fstat(file, &st) != 0 || fstatfs(file, &fs) != 0)
        return -errno;
    const off_t piece = fs.f_type == HUGETLBFS_MAGIC ? HUGE_PIECE : PIECE;
    unsigned pieces = 0;
    for (off_t at = 0; at < st.st_size; at += piece) {
        if (fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, piece) != 0)
            return -errno;
        if (++pieces % PIECES_ON_END == 0)
            (void)sched_yield();
    }
    return 0;
}

/* Of what drop_writing() has made another one, of others the same. */
static int regain_writing(int file)
{
    const int flags = fcntl(file, F_GETFL);
    if (flags < 0)
        return -errno;
    if ((flags & O_ACCMODE) == O_RDWR)
        return file;
    return fchmod(file, S_IRUSR | S_IWUSR) == 0 ? open_again(file, O_RDWR) : -errno;
}

int base_memfd_empty(int file)
{
    (void)set_flags(file, 0); /* it never was, or punching says so */
    const int writer = regain_writing(file);
    if (writer < 0)
        return writer;
    const int status = punch_all(writer);
    if (writer != file)
        close(writer);
    return status;
}

int base_memfd_map(int fd, size_t bytes, bool writable, bool all, void **map)
{
    struct stat st;
    if (bytes == 0)
        return -EINVAL;
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & F_SEAL_SHRINK) == 0)
        return -EPROTO;
    if (fstat(fd, &st) != 0)
        return -errno;
    if (st.st_size < 0 || (uint64_t)st.st_size < bytes)
        return -EPROTO;
    void *mapped = mmap(NULL, bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ,
                        MAP_SHARED | (all ? MAP_POPULATE : 0), fd, 0);
    if (mapped == MAP_FAILED)
        return -errno;
    *map = mapped;
    return 0;
}

/* The kernel's table is as large as the highest descriptor was. */
static void grow_table(int entries)
{
    const int any = epoll_create1(EPOLL_CLOEXEC);
    const int highest = fcntl(any, F_DUPFD_CLOEXEC, entries - 1);
    if (highest >= 0)
        close(highest);
    if (any >= 0)
        close(any);
}

int base_fds_provide(uint64_t wanted, uint64_t count, const char *things, const char *setting,
                     struct base_errbuf *err)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 0;
    if (limit.rlim_max != RLIM_INFINITY && limit.rlim_max < wanted)
        return base_err(err, -EMFILE,
                        "%llu %s need %llu open files but %llu are allowed: lower %s, or raise "
                        "LimitNOFILE",
                        (unsigned long long)count, things, (unsigned long long)wanted,
                        (unsigned long long)limit.rlim_max, setting);
    if (limit.rlim_cur < wanted) {
        limit.rlim_cur = wanted;
        if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
            return base_err(err, -EMFILE,
                            "%llu %s need %llu open files, which the kernel refuses: %s (lower "
                            "%s, or raise fs.nr_open)",
                            (unsigned long long)count, things, (unsigned long long)wanted,
                            strerror(errno), setting);
    }
    grow_table((int)wanted);
    return 0;
}
