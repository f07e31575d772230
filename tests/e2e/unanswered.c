/* SPDX-License-Identifier: Apache-2.0 */
/* Sends descriptors whose closing never ends: of a file of a FUSE server that keeps what is written
 * to itself, with a write-back cache, so that the kernel has dirty pages when the last reference
 * goes, and waits for them to be written. Not installed. To be run as root, who alone mounts FUSE
 * everywhere; what it sends, it sends as UID.
 *
 *   kedge-unanswered SOCKET UID COUNT DIRECTORY
 *
 * Mounts it at DIRECTORY, where nobody else sees that, sends each in a connection of its own, says
 * "sent N, refused M", and holds them until it is killed: then the mount is gone, and whoever
 * waited for it goes on.
 *
 * 77, and why: FUSE cannot be mounted here. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fuse.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fds.h"

enum { FILE_NODE = 2, FILE_BYTES = 4096, WRITE_MOST = 4096, REQUEST_MOST = 256 << 10 };

static void end_badly(int status, const char *what)
{
    printf("%s: %s\n", what, strerror(errno));
    exit(status);
}

/* ---- the server */

static void answer(int dev, uint64_t unique, int error, const void *body, size_t bytes)
{
    static char out[sizeof(struct fuse_out_header) + FILE_BYTES];
    const struct fuse_out_header head = {
        .len = (uint32_t)(sizeof head + bytes), .error = error, .unique = unique};
    memcpy(out, &head, sizeof head);
    if (bytes > 0)
        memcpy(out + sizeof head, body, bytes);
    (void)!write(dev, out, head.len);
}

static struct fuse_attr describe(uint64_t node)
{
    const bool file = node == FILE_NODE;
    return (struct fuse_attr){.ino = node,
                              .nlink = 1,
                              .size = file ? FILE_BYTES : 0,
                              .mode = file ? S_IFREG | 0666 : S_IFDIR | 0777,
                              .blksize = 4096};
}

static void serve_request(int dev, const struct fuse_in_header *in)
{
    static const char zeros[FILE_BYTES];
    static const struct fuse_init_out init = {.major = FUSE_KERNEL_VERSION,
                                              .minor = 31,
                                              .max_readahead = 4096,
                                              .flags = FUSE_WRITEBACK_CACHE | FUSE_BIG_WRITES,
                                              .max_write = WRITE_MOST,
                                              .time_gran = 1};
    static const struct fuse_open_out opened;
    const struct fuse_attr_out attr = {.attr_valid = 3600, .attr = describe(in->nodeid)};
    const struct fuse_entry_out entry = {
        .nodeid = FILE_NODE, .entry_valid = 3600, .attr_valid = 3600, .attr = describe(FILE_NODE)};
    switch (in->opcode) {
    case FUSE_INIT:
        answer(dev, in->unique, 0, &init, sizeof init);
        break;
    case FUSE_LOOKUP:
        answer(dev, in->unique, 0, &entry, sizeof entry);
        break;
    case FUSE_GETATTR:
        answer(dev, in->unique, 0, &attr, sizeof attr);
        break;
    case FUSE_OPEN:
        answer(dev, in->unique, 0, &opened, sizeof opened);
        break;
    case FUSE_READ:
        answer(dev, in->unique, 0, zeros, sizeof zeros);
        break;
    case FUSE_FLUSH:
    case FUSE_RELEASE:
        answer(dev, in->unique, 0, NULL, 0);
        break;
    case FUSE_WRITE:   /* never: the last reference waits for that in Linux 6.18, */
    case FUSE_SETATTR: /* and in 6.1 for this, the times of the file */
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
    case FUSE_INTERRUPT:
        break;
    default:
        answer(dev, in->unique, -ENOSYS, NULL, 0);
    }
}

static _Noreturn void run_server(int dev)
{
    static _Alignas(8) char in[REQUEST_MOST];
    for (;;)
        if (read(dev, in, sizeof in) >= (ssize_t)sizeof(struct fuse_in_header))
            serve_request(dev, (const struct fuse_in_header *)in);
}

static void mount_at(const char *directory, int dev)
{
    char options[128];
    snprintf(options, sizeof options, "fd=%d,rootmode=40777,user_id=0,group_id=0,allow_other", dev);
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("unanswered", directory, "fuse", MS_NOSUID | MS_NODEV, options) != 0)
        end_badly(77, "mount");
}

/* ---- the sender */

static int dial(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&at, sizeof at) == 0)
        return fd;
    const int status = -errno;
    if (fd >= 0)
        close(fd);
    return status;
}

/* The file's last reference lies in a socket, which the one that is returned is the last reference
 * to: who opened the file closes it while it is clean, or would wait himself. */
static int make_parcel(const char *path)
{
    int pair[2];
    const int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0 ||
        base_fds_send(pair[0], "x", 1, &file, 1) != 0)
        end_badly(1, "a file of FUSE");
    close(file);
    close(pair[0]);
    return pair[1];
}

static void send_parcels(const char *socket, const int *parcel, int count)
{
    int sent = 0, refused = 0;
    for (int i = 0; i < count; i++) {
        const int fd = dial(socket);
        const int status = fd >= 0 ? base_fds_send(fd, "x", 1, &parcel[i], 1) : fd;
        if (status == 0)
            close(parcel[i]);
        sent += status == 0;
        refused += status != 0;
        if (fd >= 0)
            close(fd);
    }
    printf("sent %d, refused %d\n", sent, refused);
    fflush(stdout);
}

static _Noreturn void run_sender(const char *socket, const char *path, uid_t uid, int count)
{
    const struct rlimit files = {.rlim_cur = 16384, .rlim_max = 16384};
    int *parcel = calloc((size_t)count, sizeof *parcel);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (parcel == NULL || setrlimit(RLIMIT_NOFILE, &files) != 0 || setresgid(uid, uid, uid) != 0 ||
        setresuid(uid, uid, uid) != 0)
        end_badly(1, "it cannot begin");
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* another uid has none */
    const int file = open(path, O_RDWR | O_CLOEXEC);
    char *page = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file < 0 || page == MAP_FAILED)
        end_badly(1, "the file of FUSE");
    for (int i = 0; i < count; i++)
        parcel[i] = make_parcel(path);
    page[0] = 1;
    send_parcels(socket, parcel, count);
    for (;;)
        (void)pause();
}

int main(int argc, char **argv)
{
    char path[PATH_MAX];
    if (argc != 5)
        return 2;
    const int dev = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (dev < 0)
        end_badly(77, "/dev/fuse");
    mount_at(argv[4], dev);
    snprintf(path, sizeof path, "%s/file", argv[4]);
    const pid_t sender = fork();
    if (sender == 0) {
        close(dev);
        run_sender(argv[1], path, (uid_t)strtoul(argv[2], NULL, 10),
                   (int)strtol(argv[3], NULL, 10));
    }
    if (sender < 0)
        end_badly(1, "fork");
    run_server(dev);
}
