/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets of tokens, as their bearers show them: "kedge_NAME_" and 43 characters of base64url,
 * which are 32 random bytes. The name is no secret; it says where to look, and which token was
 * found somewhere. Any thread. */
#ifndef METASERVER_SECRET_H
#define METASERVER_SECRET_H

#include <stdbool.h>

#include "metaserver/resources.h"
#include "metaserver/world.h"

enum { SECRET_TEXT = 6 + META_RESOURCE_NAME_BYTES + 1 + 43 }; /* with the NUL */

/* A new one for a token of that name, and its hash. 0 or -errno: there are no random numbers. */
int meta_secret_make(struct meta_world *w, const char *name, char out[SECRET_TEXT],
                     uint8_t hash[META_TOKEN_HASH_BYTES]);
/* The hash of what meta_secret_name() takes for a secret. 0 or -EIO. */
int meta_secret_hash(const char *secret, uint8_t hash[META_TOKEN_HASH_BYTES]);
/* The name in a secret. 0, or -EINVAL: it is none. */
int meta_secret_name(const char *secret, char name[META_RESOURCE_NAME_BYTES]);
/* Whether a secret has that hash; takes as long for every secret of one length. */
bool meta_secret_matches(const char *secret, const uint8_t hash[META_TOKEN_HASH_BYTES]);

#endif
