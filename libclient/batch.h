/* SPDX-License-Identifier: Apache-2.0 */
/* What a session keeps of its batches. One thread at a time. */
#ifndef LIBCLIENT_BATCH_H
#define LIBCLIENT_BATCH_H

#include "internal.h"

/* All of the session's, which is over. */
void client_batches_free(struct kedge_session *s);

#endif
