/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors of simulated processes, between shared.c (memory, doorbells), files.c and
 * sockets.c. */
#ifndef SIM_SHARED_H
#define SIM_SHARED_H

#include <stdbool.h>
#include <stdint.h>

#include "os.h"

enum shared_kind {
    SHARED_MEMORY = 1,
    SHARED_BELL,
    SHARED_SOCKET,
    SHARED_CHANNEL, /* a worker's end (channels.c) */
    SHARED_ZEROS,
    SHARED_FILE,
    SHARED_DIRECTORY /* of the host's disk */
};

struct play_file;

/* What a descriptor is of; of several processes, if it was sent. */
struct shared_object {
    enum shared_kind kind;
    uint32_t refs; /* descriptors, messages that carry it, mappings */
    struct {
        void *addr; /* NULL: nobody has mapped it yet */
        uint64_t bytes;
        bool sealed, whole; /* whole: nobody punches holes in it */
    } memory;
    struct {
        bool was_rung;
        void (*rung)(void *user, uint32_t number);
        void *user;
        uint32_t number;
        struct play_process *watcher;
    } bell;
    struct os_socket *socket;
    struct {
        uint64_t bytes; /* that can be read */
        bool over;
        struct play_process *sleeper; /* NULL: nobody sleeps for it */
    } channel;
    struct {
        struct play_file *file;
        uint64_t at; /* where it is read or written next */
    } file;
};

/* NULL: it is none, or of another process than the present one. */
struct shared_object *shared_of(int fd);
/* With one reference, that of the descriptor. -1: no memory. */
int shared_new(enum shared_kind kind, struct shared_object **out);
/* Another descriptor, of the present process. */
int shared_add(struct shared_object *o);
void shared_drop(struct shared_object *o);
/* That memory, which a simulated process has, is zeros. */
void shared_zero(void *at, size_t bytes);
/* A doorbell. */
void shared_ring(struct shared_object *o);

/* sockets.c: a worker's end is closed. */
void os_socket_end(struct os_socket *s);
/* clocks.c: nobody wakes it any more. */
void os_forget_sleeper(struct play_process *p);

#endif
