/* SPDX-License-Identifier: Apache-2.0 */
/* What the C library's calls are renamed to in the product's objects (calls.list): each is as the
 * one without `os_` for the process that runs. */
#ifndef SIM_OS_CALLS_H
#define SIM_OS_CALLS_H

#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>

struct iovec;
struct play_process;

/* memory.c */
void *os_malloc(size_t bytes);
void *os_calloc(size_t count, size_t bytes);
void *os_realloc(void *memory, size_t bytes);
void *os_aligned_alloc(size_t alignment, size_t bytes);
void os_free(void *memory);
char *os_strdup(const char *text);
char *os_strndup(const char *text, size_t most);
void os_drop_blocks(struct play_process *p);

/* clocks.c */
int os_clock_gettime(clockid_t clock, struct timespec *out);
time_t os_time(time_t *out);
int os_sched_getcpu(void);
int os_nanosleep(const struct timespec *wanted, struct timespec *left);
ssize_t os_getrandom(void *bytes, size_t n, unsigned flags);
char *os_getenv(const char *name);
void os_base_futex_relax(void);
int os_base_futex_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns);

/* shared.c */
int os_memfd_create(const char *name, unsigned flags);
int os_ftruncate(int fd, off_t bytes);
int os_fallocate(int fd, int mode, off_t from, off_t bytes);
int os_fcntl(int fd, int command, ...);
int os_fstat(int fd, struct stat *out);
int os_fstatfs(int fd, struct statfs *out);
int os_ioctl(int fd, unsigned long request, ...);
int os_fchmod(int fd, mode_t mode);
void *os_mmap(void *addr, size_t bytes, int protection, int flags, int fd, off_t from);
int os_munmap(void *addr, size_t bytes);
int os_madvise(void *addr, size_t bytes, int advice);
int os_base_hold_new(const struct iovec *maps, unsigned count);
int os_eventfd(unsigned initial, int flags);
int os_close(int fd);

/* files.c */
int os_open(const char *path, int flags, ...);
int os_openat(int dir, const char *name, int flags, ...);
ssize_t os_read(int fd, void *to, size_t bytes);
ssize_t os_write(int fd, const void *bytes, size_t n);
int os_fsync(int fd);
int os_renameat(int from_dir, const char *from, int to_dir, const char *to);
int os_flock(int fd, int how);

/* channels.c */
ssize_t os_recv(int fd, void *to, size_t bytes, int flags);

/* sockets.c */
int os_socket(int domain, int type, int protocol);
int os_connect(int fd, const struct sockaddr *address, socklen_t length);
int os_setsockopt(int fd, int level, int name, const void *value, socklen_t length);
int os_shutdown(int fd, int how);
int os_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
int os_base_fds_send(int socket, const void *message, size_t bytes, const int *fds, unsigned count);
int os_base_fds_recv(int socket, void *message, size_t capacity, size_t *bytes, int *fds,
                     unsigned max_fds, unsigned *count);

#endif
