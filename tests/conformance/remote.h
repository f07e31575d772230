/* SPDX-License-Identifier: Apache-2.0 */
/* A node in another process, which a test can stop and kill.
 *
 * Forked before the test opens a device of its own, so that no thread is forked away. The child has
 * one RC queue pair and one DC target, and serves until it is told to end. */
#ifndef CONFORMANCE_REMOTE_H
#define CONFORMANCE_REMOTE_H

#include <sys/types.h>

#include "harness.h"

/* What one process tells the other about itself. */
struct address {
    uint8_t gid[16];
    uint32_t qpn, dctn, rkey;
    uint64_t dc_key, addr;
    uint32_t transports;
};

struct remote {
    pid_t pid;
    int fd;
    struct address address;
    /* Stand-ins that name the child's objects, for links. */
    struct fab fab;
    struct fab_mr mr;
    struct fab_dct dct;
    struct node node;
};

enum remote_command { REMOTE_END = 'e', REMOTE_RECEIVE = 'r', REMOTE_PEEK = 'p' };

/* Forks the child. Before the test opens anything. */
void remote_start(struct remote *r);
/* Runs body in a child with one end of a socket; returns the other. It must end by _exit(). */
pid_t remote_fork(void (*body)(int fd), int *fd);
/* Connects a link of node a to the child. False and counted as skipped without the transport; then
 * the child is told to end. */
bool remote_link(struct remote *r, struct link *l, enum fab_transport transport, struct node *a,
                 const struct rc_options *options, const char *test);
void remote_unlink(struct link *l);
void remote_stop(struct remote *r); /* SIGSTOP, and waits until it is stopped */
void remote_kill(struct remote *r); /* SIGKILL, and waits until it is gone */
/* Tells the child to end and expects it to find everything in order. */
void remote_end(struct remote *r);
/* Has the child post one receive of 64 bytes at this offset. */
void remote_receive(struct remote *r, uint64_t offset);
/* The 8 bytes at this offset of the child's memory, as the child sees them. */
uint64_t remote_peek(struct remote *r, uint64_t offset);

void say(int fd, const void *bytes, size_t n);
void hear(int fd, void *bytes, size_t n);

#endif
