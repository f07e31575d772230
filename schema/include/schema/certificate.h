/* SPDX-License-Identifier: Apache-2.0 */
/* How an agent's certificate says whose it is. Agents look at their own as metaservers do. */
#ifndef SCHEMA_CERTIFICATE_H
#define SCHEMA_CERTIFICATE_H

/* Before the node's name in a URI of our own, so that no authority gives it to somebody by chance,
 * as it does common names. */
#define SCHEMA_CERTIFICATE_NODE "kedge://node/"

/* Borrowed, a part of uri: the node that it names. NULL: none. */
const char *schema_certificate_node(const char *uri);

#endif
