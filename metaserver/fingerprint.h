/* SPDX-License-Identifier: Apache-2.0 */
/* Which process a registration is of, as far as its endpoints tell. No I/O. Any thread. */
#ifndef METASERVER_FINGERPRINT_H
#define METASERVER_FINGERPRINT_H

#include "metaserver/directory.h"

void process_of(const struct kedge_meta_registration *r, struct kedge_store_process *out);
/* Whether both are one process, which may have added and dropped endpoints since, and made some
 * anew: one is what it was, which no other process could have. */
bool process_is(const struct kedge_store_process *known, const struct kedge_store_process *claimed);

#endif
