/* SPDX-License-Identifier: Apache-2.0 */
/* The VQPs that were made for senders of messages: by sender, so that all messages of one come with
 * the same. One thread at a time. */
#ifndef LIBCLIENT_SENDER_H
#define LIBCLIENT_SENDER_H

#include "internal.h"

/* A VQP that goes to that sender: the one of before, or a new one. NULL: the session has none left,
 * or no memory. One whose endpoint the host does not know is connected with the first post. */
struct kedge_vqp *client_sender_vqp(struct kedge_session *s, const struct schema_cqe_sender *from);
/* Connects it, if it is such a one: 0, or as kedge_connect(); -ENOTCONN: it is none. */
int client_sender_connect(struct kedge_vqp *q);

#endif
