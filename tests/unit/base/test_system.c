/* SPDX-License-Identifier: Apache-2.0 */
/* What asks the kernel: clock, futex, descriptors. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../check_main.h"
#include "base/clock.h"
#include "base/fds.h"
#include "base/futex.h"

START_TEST(the_fast_clock_never_runs_backwards_and_keeps_the_kernels_pace)
{
    struct base_clock_fast fast;
    base_clock_fast_init(&fast);
    /* Between any two lines the processor may be another's for a while: so the kernel's time is
     * read on both sides of each reading of the fast clock. */
    const uint64_t before = base_clock_ns(), fast_begin = base_clock_fast_ns(&fast);
    const uint64_t begin = base_clock_ns();
    uint64_t last = fast_begin, end = begin;
    while (end - begin < 50 * BASE_NS_PER_MS) {
        const uint64_t now = base_clock_fast_ns(&fast);
        ck_assert_uint_ge(now, last);
        last = now;
        end = base_clock_ns();
    }
    const uint64_t fast_took = base_clock_fast_ns(&fast) - fast_begin;
    const uint64_t after = base_clock_ns();
    ck_assert_double_ge((double)fast_took, 0.98 * (double)(end - begin));
    ck_assert_double_le((double)fast_took, 1.02 * (double)(after - before));
}
END_TEST

START_TEST(a_futex_wait_ends_at_once_on_another_value_and_in_time_on_the_same)
{
    _Atomic uint32_t word = 5;
    ck_assert_int_eq(base_futex_wait(&word, 4, BASE_FUTEX_FOREVER), -EAGAIN);
    uint64_t begin = base_clock_ns();
    ck_assert_int_eq(base_futex_wait(&word, 5, 20 * BASE_NS_PER_MS), -ETIMEDOUT);
    ck_assert_uint_ge(base_clock_ns() - begin, 19 * BASE_NS_PER_MS);
    ck_assert_int_eq(base_futex_wake(&word, 1), 0);
}
END_TEST

START_TEST(a_futex_in_shared_memory_wakes_another_process)
{
    _Atomic uint32_t *word =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(word, MAP_FAILED);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        while (atomic_load(word) == 0)
            base_futex_wait(word, 0, 10 * BASE_NS_PER_S);
        _exit(atomic_load(word) == 1 ? 0 : 1);
    }
    usleep(20000);
    atomic_store(word, 1);
    ck_assert_int_ge(base_futex_wake(word, UINT32_MAX), 0);
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    munmap(word, 4096);
}
END_TEST

static unsigned open_descriptors(void)
{
    unsigned count = 0;
    for (int fd = 0; fd < 1024; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

START_TEST(descriptors_arrive_with_their_message_and_close_on_exec)
{
    int pair[2], sent[3], got[BASE_FDS_MAX];
    char text[16];
    size_t bytes;
    unsigned count;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    for (int i = 0; i < 3; i++)
        sent[i] = memfd_create("sent", 0);
    ck_assert_int_eq(base_fds_send(pair[0], "hello", 5, sent, 3), 0);
    ck_assert_int_eq(base_fds_send(pair[0], "bare", 4, NULL, 0), 0);
    ck_assert_int_eq(base_fds_recv(pair[1], text, sizeof text, &bytes, got, 3, &count), 0);
    ck_assert_uint_eq(bytes, 5);
    ck_assert_mem_eq(text, "hello", 5);
    ck_assert_uint_eq(count, 3);
    for (int i = 0; i < 3; i++) {
        struct stat a, b;
        ck_assert_int_eq(fstat(sent[i], &a), 0);
        ck_assert_int_eq(fstat(got[i], &b), 0);
        ck_assert_uint_eq(a.st_ino, b.st_ino);
        ck_assert_int_eq(fcntl(got[i], F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
        close(got[i]);
        close(sent[i]);
    }
    ck_assert_int_eq(base_fds_recv(pair[1], text, sizeof text, &bytes, NULL, 0, &count), 0);
    ck_assert_uint_eq(count, 0);
    close(pair[0]);
    ck_assert_int_eq(base_fds_recv(pair[1], text, sizeof text, &bytes, NULL, 0, &count), -EPIPE);
    ck_assert_int_eq(base_fds_send(pair[1], "x", 1, NULL, 0), -EPIPE);
    close(pair[1]);
}
END_TEST

/* What a hostile peer sends: more descriptors than BASE_FDS_MAX. */
static void send_many(int socket, unsigned count)
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int) * 200)] = {0};
    struct iovec iov = {.iov_base = "x", .iov_len = 1};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control,
                         .msg_controllen = CMSG_SPACE(sizeof(int) * count)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int) * count);
    for (unsigned i = 0; i < count; i++)
        memcpy(CMSG_DATA(c) + i * sizeof(int), &(int){socket}, sizeof(int));
    ck_assert_int_eq(sendmsg(socket, &msg, 0), 1);
}

START_TEST(too_many_descriptors_or_too_long_a_message_leave_none_open)
{
    int pair[2], got[BASE_FDS_MAX];
    char text[4];
    size_t bytes;
    unsigned count;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    unsigned before = open_descriptors();
    static const unsigned many[] = {2, 16, 17, 18, 100, 200};
    for (size_t i = 0; i < sizeof many / sizeof *many; i++) {
        send_many(pair[0], many[i]);
        ck_assert_int_eq(base_fds_recv(pair[1], text, sizeof text, &bytes, got, 1, &count),
                         -EPROTO);
        ck_assert_uint_eq(open_descriptors(), before);
    }
    send_many(pair[0], 200);
    ck_assert_int_eq(base_fds_recv(pair[1], text, sizeof text, &bytes, got, 16, &count), -EPROTO);
    ck_assert_int_eq(base_fds_send(pair[0], "too long", 8, pair, 2), 0);
    ck_assert_int_eq(base_fds_recv(pair[1], text, sizeof text, &bytes, got, 2, &count), -EMSGSIZE);
    ck_assert_uint_eq(open_descriptors(), before);
    int seventeen[17] = {0};
    ck_assert_int_eq(base_fds_send(pair[0], "x", 1, seventeen, 17), -EINVAL);
    close(pair[0]);
    close(pair[1]);
}
END_TEST

START_TEST(a_look_finds_descriptors_and_leaves_them_where_they_are)
{
    int pair[2];
    char text[8];
    size_t bytes;
    unsigned count;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    ck_assert_int_eq(base_fds_look(pair[1]), -EAGAIN);
    ck_assert_int_eq(base_fds_send(pair[0], "bare", 4, NULL, 0), 0);
    ck_assert_int_eq(base_fds_send(pair[0], "two", 3, pair, 2), 0);
    ck_assert_int_eq(base_fds_look(pair[1]), 0);
    ck_assert_int_eq(base_fds_recv(pair[1], text, sizeof text, &bytes, NULL, 0, &count), 0);
    ck_assert_uint_eq(bytes, 4);
    const int before = open_descriptors();
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(base_fds_look(pair[1]), -EPROTO);
    ck_assert_int_eq(open_descriptors(), before);
    close(pair[0]);
    close(pair[1]);
}
END_TEST

/* Ahead of descriptors, or alone: what has no byte is a message too. */
static int drain_after(int messages, bool empty, bool descriptors)
{
    int pair[2];
    struct msghdr none = {0};
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    for (int i = 0; i < messages; i++)
        ck_assert_int_ge(empty ? sendmsg(pair[0], &none, 0) : send(pair[0], "bytes", 5, 0), 0);
    if (descriptors)
        ck_assert_int_eq(base_fds_send(pair[0], "x", 1, pair, 1), 0);
    ck_assert_int_eq(shutdown(pair[1], SHUT_RDWR), 0);
    ck_assert_int_eq(base_fds_send(pair[0], "late", 4, pair, 1), -EPIPE);
    int status = base_fds_drain(pair[1]);
    close(pair[0]);
    close(pair[1]);
    return status;
}

START_TEST(a_drained_socket_has_no_descriptors_left_whatever_stood_before_them)
{
    for (int messages = 0; messages < 4; messages++) {
        for (int empty = 0; empty < 2; empty++) {
            ck_assert_int_eq(drain_after(messages, empty, false), 0);
            ck_assert_int_eq(drain_after(messages, empty, true), -EPROTO);
        }
    }
}
END_TEST

START_TEST(a_socket_that_refuses_descriptors_gets_none_where_the_kernel_can)
{
    int pair[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    if (base_fds_refuse(pair[1]) == 0) {
        ck_assert_int_eq(base_fds_send(pair[0], "x", 1, pair, 1), -EPERM);
        ck_assert_int_eq(base_fds_send(pair[0], "x", 1, NULL, 0), 0);
    } else {
        puts("skip: this kernel has no SO_PASSRIGHTS (it came with 6.16)");
    }
    close(pair[0]);
    close(pair[1]);
}
END_TEST

START_TEST(a_pidfd_tells_when_its_process_ends)
{
    int pair[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    struct base_peer_process peer;
    ck_assert_int_eq(base_fds_peer(pair[0], &peer), 0);
    ck_assert_uint_eq(peer.uid, getuid());
    ck_assert_int_eq(peer.pid, getpid());
    int own = base_fds_peer_pidfd(pair[0], peer.pid);
    ck_assert_int_ge(own, 0);
    close(own);
    close(pair[0]);
    close(pair[1]);
    pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    int pidfd = base_pidfd_open(child);
    struct pollfd p = {.fd = pidfd, .events = POLLIN};
    ck_assert_int_ge(pidfd, 0);
    ck_assert_int_eq(poll(&p, 1, 0), 0);
    kill(child, SIGKILL);
    ck_assert_int_eq(poll(&p, 1, 10000), 1);
    waitpid(child, NULL, 0);
    close(pidfd);
    ck_assert_int_eq(base_pidfd_open(child), -ESRCH);
}
END_TEST

START_TEST(sealed_memory_cannot_be_resized_and_a_reader_cannot_write_it)
{
    int fd;
    void *map, *other;
    ck_assert_int_eq(base_memfd_new("kedge-test", 8192, BASE_MEMFD_SEALED, &fd, &map), 0);
    memcpy(map, "ours", 4);
    ck_assert_int_ne(ftruncate(fd, 0), 0);
    ck_assert_int_ne(ftruncate(fd, 1 << 20), 0);
    ck_assert_int_ne(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
    ck_assert_int_eq(base_memfd_map(fd, 8192, true, false, &other), -EPERM);
    ck_assert_int_eq(base_memfd_map(fd, 8193, false, false, &other), -EPROTO);
    ck_assert_int_eq(base_memfd_map(fd, 8192, false, false, &other), 0);
    ck_assert_mem_eq(other, "ours", 4);
    ck_assert_int_ne(mprotect(other, 8192, PROT_READ | PROT_WRITE), 0);
    munmap(other, 8192);
    munmap(map, 8192);
    close(fd);
    ck_assert_int_eq(base_memfd_new("kedge-test", 0, BASE_MEMFD_SEALED, &fd, &map), -EINVAL);
}
END_TEST

/* What another process tries on memory that it may only read, each with this errno. */
static void try_to_change(int fd, void *map, bool own_uid)
{
    char path[64];
    ck_assert_int_eq(pwrite(fd, "x", 1, 0), -1);
    ck_assert_int_eq(errno, EBADF);
    ck_assert_int_ne(ftruncate(fd, 0), 0);
    ck_assert_int_ne(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), 0);
    ck_assert_ptr_eq(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
    ck_assert_int_ne(mprotect(map, 4096, PROT_READ | PROT_WRITE), 0);
    if (own_uid)
        return;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ck_assert_int_eq(open(path, O_RDWR | O_CLOEXEC), -1);
    ck_assert(errno == EACCES || errno == EPERM);
    ck_assert_int_ne(fchmod(fd, 0600), 0);
    ck_assert_int_eq(errno, EPERM);
}

START_TEST(memory_that_others_may_read_is_written_by_none_of_them_and_emptied_by_who_made_it)
{
    int fd;
    uint8_t *map, *other;
    struct stat st;
    ck_assert_int_eq(base_memfd_new("kedge-test", 8000, BASE_MEMFD_READ, &fd, (void **)&map), 0);
    ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
    ck_assert_int_eq(base_memfd_map(fd, 8000, true, false, (void **)&other), -EACCES);
    ck_assert_int_eq(base_memfd_map(fd, 8000, false, true, (void **)&other), 0);
    memset(map, 0x5a, 8000);
    ck_assert_uint_eq(other[7999], 0x5a);
    try_to_change(fd, other, true);
    if (geteuid() == 0) {
        const pid_t child = fork();
        if (child == 0) {
            ck_assert_int_eq(setresuid(65534, 65534, 65534), 0);
            try_to_change(fd, other, false);
            exit(0);
        }
        int how;
        ck_assert_int_eq(waitpid(child, &how, 0), child);
        ck_assert_int_eq(how, 0);
    } else {
        printf("skip: what another uid can do to memory that it may read (only root can be one)\n");
    }
    ck_assert_int_eq(base_memfd_empty(fd), 0);
    ck_assert_int_eq(fstat(fd, &st), 0);
    ck_assert_int_eq(st.st_blocks, 0);
    ck_assert_uint_eq(other[7999], 0);
    munmap(other, 8000);
    munmap(map, 8000);
    close(fd);
    ck_assert_int_eq(base_memfd_new("kedge-test", 8192, BASE_MEMFD_SEALED, &fd, (void **)&map), 0);
    ck_assert_int_eq(base_memfd_empty(fd), -EPERM);
    munmap(map, 8192);
    close(fd);
}
END_TEST

/* What a process does that has been given memory it may write: 0, or the line of what it could. */
static int try_to_punch(int fd)
{
    const int zero = 0;
    char path[64];
    void *map;
    if (base_memfd_map(fd, 8192, true, false, &map) != 0)
        return __LINE__;
    memset(map, 0x5a, 8192);
    if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) == 0 || errno != EPERM)
        return __LINE__;
    if (fallocate(fd, 0, 0, 4096) == 0 || errno != EPERM)
        return __LINE__;
    if (madvise(map, 4096, MADV_REMOVE) == 0 || errno != EPERM)
        return __LINE__;
    if (ioctl(fd, FS_IOC_SETFLAGS, &zero) == 0)
        return __LINE__;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return open(path, O_RDWR | O_CLOEXEC) >= 0 ? __LINE__ : 0;
}

START_TEST(nobody_punches_holes_in_memory_that_he_was_given_to_write)
{
    int fd, how;
    uint8_t *map;
    struct stat st;
    const int status = base_memfd_try_whole();
    ck_assert(status == 0 || status == -EPERM || status == -ENOTTY);
    if (status != 0 || geteuid() != 0) {
        printf("skip: that nobody punches holes in what he was given (it takes root, with "
               "CAP_LINUX_IMMUTABLE, and Linux 6.0)\n");
        return;
    }
    ck_assert_int_eq(base_memfd_new("kedge-test", 8192, BASE_MEMFD_WRITE, &fd, (void **)&map), 0);
    const pid_t child = fork();
    if (child == 0)
        _exit(setresuid(65534, 65534, 65534) != 0 ? 1 : try_to_punch(fd) & 0xff);
    ck_assert_int_eq(waitpid(child, &how, 0), child);
    ck_assert_int_eq(how, 0);
    ck_assert_uint_eq(map[0], 0x5a); /* it could do what it is for */
    ck_assert_int_eq(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), -1);
    ck_assert_int_eq(base_memfd_empty(fd), 0);
    ck_assert_int_eq(fstat(fd, &st), 0);
    ck_assert_int_eq(st.st_blocks, 0);
    munmap(map, 8192);
    close(fd);
}
END_TEST

START_TEST(memory_that_its_owner_could_shrink_is_not_mapped)
{
    void *map;
    int fd = memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ck_assert_int_eq(ftruncate(fd, 4096), 0);
    ck_assert_int_eq(base_memfd_map(fd, 4096, false, false, &map), -EPROTO);
    close(fd);
    int zero = open("/dev/zero", O_RDWR | O_CLOEXEC);
    ck_assert_int_eq(base_memfd_map(zero, 4096, false, false, &map), -EPROTO);
    close(zero);
}
END_TEST

static int table_size(void)
{
    char line[256];
    int size = -1;
    FILE *f = fopen("/proc/self/status", "re");
    ck_assert_ptr_nonnull(f);
    while (size < 0 && fgets(line, sizeof line, f) != NULL)
        (void)sscanf(line, "FDSize: %d", &size);
    fclose(f);
    return size;
}

START_TEST(descriptors_that_are_provided_for_have_their_places_at_once)
{
    enum { WANTED = 900 };
    struct base_errbuf err = {""};
    ck_assert_int_lt(table_size(), WANTED);
    ck_assert_msg(base_fds_provide(WANTED, 1, "things", "setting", &err) == 0, "%s", err.text);
    ck_assert_int_ge(table_size(), WANTED);
    ck_assert_int_eq(fcntl(WANTED - 1, F_GETFD), -1); /* none is left open */
    ck_assert_int_eq(base_fds_provide(UINT32_MAX, 7, "things", "setting", &err), -EMFILE);
    ck_assert_ptr_nonnull(strstr(err.text, "lower setting"));
}
END_TEST

START_TEST(what_a_peer_has_not_read_is_known_until_it_reads_or_closes)
{
    int pair[2], got[2];
    unsigned count;
    char text[8];
    size_t bytes;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    ck_assert(!base_fds_unread(pair[0]));
    ck_assert_int_eq(base_fds_send(pair[0], "x", 1, pair, 2), 0);
    ck_assert_int_eq(recv(pair[1], text, sizeof text, MSG_PEEK), 1);
    ck_assert(base_fds_unread(pair[0]));
    ck_assert(!base_fds_unread(pair[1]));
    ck_assert_int_eq(shutdown(pair[0], SHUT_RDWR), 0);
    ck_assert(base_fds_unread(pair[0]));
    ck_assert_int_eq(base_fds_recv(pair[1], text, sizeof text, &bytes, got, 2, &count), 0);
    ck_assert(!base_fds_unread(pair[0]));
    close(got[0]);
    close(got[1]);
    close(pair[0]);
    close(pair[1]);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    ck_assert_int_eq(base_fds_send(pair[0], "x", 1, &pair[0], 1), 0);
    ck_assert(base_fds_unread(pair[0]));
    close(pair[1]);
    ck_assert(!base_fds_unread(pair[0]));
    close(pair[0]);
}
END_TEST

START_TEST(room_for_descriptors_is_what_the_kernel_still_takes)
{
    enum { LIMIT = 1000, NOBODY = 65530, AT_ONCE = 253 };
    const struct rlimit limit = {LIMIT, LIMIT};
    uint32_t room = 0, less = 0;
    int pair[2], copies[BASE_FDS_MAX];
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_int_eq(base_fds_room(100, &room), 0);
    if (geteuid() != 0) { /* who has sent others, perhaps */
        puts("skip: how much room for descriptors a uid has (only root can be one without any)");
        return;
    }
    ck_assert_uint_eq(room, 100); /* root's has no bound */
    ck_assert_int_eq(setresuid(NOBODY, NOBODY, NOBODY), 0);
    ck_assert_int_eq(base_fds_room(10 * LIMIT, &room), 0);
    ck_assert_uint_ge(room, LIMIT - AT_ONCE);
    ck_assert_uint_le(room, LIMIT + 1);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair), 0);
    for (unsigned i = 0; i < BASE_FDS_MAX; i++)
        copies[i] = pair[0];
    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(base_fds_send(pair[0], "x", 1, copies, BASE_FDS_MAX), 0);
    ck_assert_int_eq(base_fds_room(10 * LIMIT, &less), 0);
    ck_assert_uint_le(less, LIMIT + 1 - 8 * BASE_FDS_MAX);
    close(pair[0]);
    close(pair[1]);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(the_fast_clock_never_runs_backwards_and_keeps_the_kernels_pace)                              \
    T(a_futex_wait_ends_at_once_on_another_value_and_in_time_on_the_same)                          \
    T(a_futex_in_shared_memory_wakes_another_process)                                              \
    T(descriptors_arrive_with_their_message_and_close_on_exec)                                     \
    T(too_many_descriptors_or_too_long_a_message_leave_none_open)                                  \
    T(a_look_finds_descriptors_and_leaves_them_where_they_are)                                     \
    T(a_drained_socket_has_no_descriptors_left_whatever_stood_before_them)                         \
    T(a_socket_that_refuses_descriptors_gets_none_where_the_kernel_can)                            \
    T(a_pidfd_tells_when_its_process_ends)                                                         \
    T(sealed_memory_cannot_be_resized_and_a_reader_cannot_write_it)                                \
    T(memory_that_others_may_read_is_written_by_none_of_them_and_emptied_by_who_made_it)           \
    T(nobody_punches_holes_in_memory_that_he_was_given_to_write)                                   \
    T(memory_that_its_owner_could_shrink_is_not_mapped)                                            \
    T(descriptors_that_are_provided_for_have_their_places_at_once)                                 \
    T(what_a_peer_has_not_read_is_known_until_it_reads_or_closes)                                  \
    T(room_for_descriptors_is_what_the_kernel_still_takes)
KEDGE_CHECK_MAIN("base system", TESTS)
