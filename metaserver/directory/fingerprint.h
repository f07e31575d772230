/* SPDX-License-Identifier: Apache-2.0 */
/* Which process a registration is of, as far as its endpoints tell. No I/O. Any thread. */
#ifndef METASERVER_FINGERPRINT_H
#define METASERVER_FINGERPRINT_H

#include "metaserver/directory.h"

void meta_fingerprint_of(const struct meta_registration *r, struct meta_store_fingerprint *out);

#endif
