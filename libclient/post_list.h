/* SPDX-License-Identifier: Apache-2.0 */
/* WRITEs that a message ends. One thread at a time. */
#ifndef LIBCLIENT_POST_LIST_H
#define LIBCLIENT_POST_LIST_H

#include "internal.h"

/* Puts a WRITE with an immediate into the ring, whole or not at all: 0, or as kedge_post_send(). */
int client_notify_put(struct kedge_vqp *q, const struct ibv_send_wr *wr) __attribute__((cold));

#endif
