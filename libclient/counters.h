/* SPDX-License-Identifier: Apache-2.0 */
/* What a session keeps of its counters. One thread at a time. */
#ifndef LIBCLIENT_COUNTERS_H
#define LIBCLIENT_COUNTERS_H

#include "internal.h"

/* All of the session's, which is over. */
void client_counters_free(struct kedge_session *s);

#endif
