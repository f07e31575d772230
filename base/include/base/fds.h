/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors: sent over Unix SOCK_SEQPACKET sockets, of processes, and of sealed shared memory.
 *
 * Every descriptor that is made or received here is close-on-exec and owned by the caller. Any
 * thread. */
#ifndef BASE_FDS_H
#define BASE_FDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

enum { BASE_FDS_MAX = 16 }; /* in one message */

/* Sends one whole message with count (0 .. BASE_FDS_MAX) descriptors, which stay the caller's.
 * bytes >= 1. 0; -EAGAIN when the socket is non-blocking and full; -EPIPE or -ECONNRESET when the
 * peer is gone; -ETOOMANYREFS when others have not read what this user sent (base_fds_room());
 * other -errno. Raises no SIGPIPE. */
int base_fds_send(int socket, const void *message, size_t bytes, const int *fds, unsigned count);

/* Of a connected Unix socket: whether its peer, which has neither closed it nor ended, has left
 * something unread that was sent here. As long as it has, descriptors that were sent are in flight.
 */
bool base_fds_unread(int socket);

/* How many descriptors this process can send to peers that do not read them, of `most`: the kernel
 * counts what all processes of its user have in flight, against RLIMIT_NOFILE, and refuses more
 * (ETOOMANYREFS) unless it has CAP_SYS_RESOURCE. Tries it, on sockets of its own. 0 and *room, of
 * which some hundreds may be missing; or -errno: it could not be tried. */
int base_fds_room(uint32_t most, uint32_t *room);

/* Receives one whole message of at most `capacity` bytes and at most max_fds descriptors.
 * 0 and *bytes, fds[0 .. *count). -EPIPE: the peer closed. -EAGAIN: nothing there (non-blocking).
 * -EINTR: a signal came first.
 * -EMSGSIZE: the message was longer; -EPROTO: it held more descriptors (or the kernel dropped
 * some); -EMFILE: the kernel dropped some because this process may open no more: then all that came
 * were closed, and the message is lost. fds is written only on success.
 */
int base_fds_recv(int socket, void *message, size_t capacity, size_t *bytes, int *fds,
                  unsigned max_fds, unsigned *count);

/* Of a Unix socket that nobody shall send descriptors to; of one that listens, all that connect to
 * it from then on. Whoever tries gets EPERM. 0, or -errno: the kernel cannot (it can since 6.16),
 * and the next two are needed. */
int base_fds_refuse(int socket);

/* Whoever receives or closes the last reference to a descriptor that was sent pays for its end,
 * which may take seconds (a large memfd, a socket that lingers). So a receiver that wants none
 * looks before it receives: 0: the next message has no descriptors, or there is none (yet);
 * -EPROTO: it has some, and is left where it is. Other -errno: as base_fds_recv(). */
int base_fds_look(int socket);
/* And before it closes a socket that it has shut down for reading: drops what was sent there. 0:
 * nothing is left; -EPROTO: descriptors are, or too many messages, and close() may take long. */
int base_fds_drain(int socket);

/* Who is at the other end of a connected Unix socket: when it called connect(), for certain. */
struct base_peer_process {
    uid_t uid;
    gid_t gid;
    pid_t pid;
};

/* 0 or -errno. */
int base_fds_peer(int socket, struct base_peer_process *out);

/* So that the process may have `wanted` (>= 1) descriptors: raises its limit as far as that is
 * allowed, and makes the kernel's table of them as large. To be called before there are threads: a
 * table that grows beside several keeps each of them that opens one waiting until the kernel has
 * heard from all processors, some 20 ms. 0, or -EMFILE and a sentence that says what they are for
 * (so many of `things`) and which setting bounds those. */
int base_fds_provide(uint64_t wanted, uint64_t count, const char *things, const char *setting,
                     struct base_errbuf *err);

/* A descriptor of the process at the other end, which the caller closes, or -errno (-ESRCH: it is
 * gone). The kernel's own (SO_PEERPIDFD, since 6.5), else pidfd_open() of a pid, which can have
 * been used again. */
int base_fds_peer_pidfd(int socket, pid_t pid);

/* A descriptor that becomes readable when the process ends, or -errno (-ESRCH: already gone). */
int base_pidfd_open(pid_t pid);

/* What others may do with memory that they are given. */
enum base_memfd_others {
    BASE_MEMFD_WRITE,
    BASE_MEMFD_READ,  /* *fd cannot write, and no process of another uid makes it one that can; but
                       * one of the own uid, and root, does. So who made it does not believe what it
                       * reads there, and can empty it */
    BASE_MEMFD_SEALED /* whoever it is, nobody maps it writable again. Nobody empties it either: it
                       * stays for as long as anybody has it */
};

/* Nobody punches holes in a memory file from now on, nor gives its pages back (EPERM), and it is
 * opened for writing by nobody any more, also through /proc; whoever has it goes on writing, and
 * maps it. Until base_memfd_empty(). Who touches a page while it is punched waits until that is
 * over, however long who punches is kept from his processor. 0; -EPERM: this process lacks
 * CAP_LINUX_IMMUTABLE; -ENOTTY: the kernel is older than 6.0, or these are huge pages. */
int base_memfd_keep_whole(int file);
/* Whether files can be kept so, tried on one of its own. As above. */
int base_memfd_try_whole(void);

/* Creates, sizes, maps (read and write) and seals shared memory, in this order. bytes is rounded up
 * to pages by the kernel's mapping; the file's size is exactly bytes. This mapping stays writable.
 * Nobody can change its size, nor punch holes in it, if that can be had (base_memfd_keep_whole()).
 * 0, *fd (for others) and *map (munmap it with bytes), both the caller's; or -errno with nothing
 * left behind. */
int base_memfd_new(const char *name, size_t bytes, enum base_memfd_others others, int *fd,
                   void **map);

/* Gives the pages of a memory file back, also those that others map, who find zeros there from then
 * on: whoever touches one has it allocated anew, on his account. 0, or -errno: it is SEALED. Blocks
 * for as long as others who have the file want, and for ever: each of their own calls may have the
 * file's lock, and take as long as they arrange. */
int base_memfd_empty(int file);

/* Maps what somebody else made: refuses with -EPROTO what is smaller than bytes or not sealed
 * against shrinking (its owner could otherwise kill the reader with SIGBUS). With `all` its pages
 * are mapped at once, and not each when it is touched first. 0 or -errno. */
int base_memfd_map(int fd, size_t bytes, bool writable, bool all, void **map);

#endif
