/* SPDX-License-Identifier: Apache-2.0 */
/* What the processes of a simulation have instead of the machine's: memory, clocks, random numbers,
 * shared memory, doorbells (eventfd) and sockets where workers attach. The product's own objects
 * are linked with their calls of the C library renamed (calls.list): malloc() is os_malloc()
 * there, and nothing else differs.
 *
 * What a process makes is its own, and goes when it is killed. All descriptors are numbers of this
 * file's, from OS_FIRST_FD on. One thread. */
#ifndef SIM_OS_H
#define SIM_OS_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct play_process;

enum { OS_FIRST_FD = 1 << 28 };

/* Of a process that is killed: all that it has. */
void os_drop_all(struct play_process *p);
/* What of the present process is left: bytes of memory that it has not freed. */
uint64_t os_bytes_of(const struct play_process *p);

/* Begins; and ends, when there is no process any more. Returns how many descriptors are left. */
void os_init(void);
uint32_t os_fini(void);

/* ---- files: the disk of a host (disk.h) is this directory of all of its processes */

#define OS_DISK "/disk"

/* The name of a file there; NULL: it is elsewhere. */
const char *os_file_name(const char *path);

/* ---- doorbells: descriptors of eventfd() */

/* Who hears when that one is rung, from now on; NULL: nobody. One that was rung before is heard at
 * once. The descriptor must stay open meanwhile. */
void os_bell_watch(int fd, void (*rung)(void *user, uint32_t number), void *user, uint32_t number);
/* That one watches none any more. */
void os_bells_leave(const void *user);

/* ---- sockets where workers attach. One end is a descriptor of a worker's; the other one belongs
 * to the simulation, which plays the agent's world. */

struct os_socket;

struct os_listener {
    /* A worker has connected; or has sent something; or has hung up. Called from within its call or
     * its death. */
    void (*connected)(void *user, struct os_socket *s, uid_t uid);
    void (*sent)(void *user, struct os_socket *s);
    void (*hung_up)(void *user, struct os_socket *s);
    void *user; /* of connected(); of the others: os_socket_set_user() */
};

/* Somebody listens at that path: until the second. Sockets that connected there stay. */
void os_listen(const char *path, const struct os_listener *listener);
void os_unlisten(const char *path);
void os_socket_set_user(struct os_socket *s, void *user);
/* The next message of the worker's: its length, or 0: there is none. */
size_t os_socket_take(struct os_socket *s, void *message, size_t capacity);
bool os_socket_has_more(const struct os_socket *s);
/* Whether its worker, which is still there, has not read all that was sent. */
bool os_socket_has_unread(const struct os_socket *s);
/* To the worker, with copies of these descriptors: 0 or -EPIPE. */
int os_socket_send(struct os_socket *s, const void *message, size_t bytes, const int *fds,
                   unsigned count);
/* The worker reads no more than what was sent. */
void os_socket_shut(struct os_socket *s);
/* The agent's end is gone: *s too, for it. */
void os_socket_close(struct os_socket *s);

/* A line of the log of the process that runs, into its story: as base_log_v(). */
void play_log(int level, const char *event, const char *format, va_list args);

/* The process that runs sleeps in poll() for a completion channel of its own (kedge_fd()), for so
 * long at the most. */
void os_channel_sleep(int fd, uint64_t ns);

/* Wakes whoever sleeps on that word: world_wake(). */
void os_wake_word(const void *word);

#endif
