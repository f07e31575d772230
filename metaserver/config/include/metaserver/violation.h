/* SPDX-License-Identifier: Apache-2.0 */
/* Why what a client sent is refused. */
#ifndef METASERVER_VIOLATION_H
#define METASERVER_VIOLATION_H

/* What is wrong, and where ("endpoints[2].dc_key"; empty: the whole of it). */
struct meta_violation {
    char field[64];
    char detail[256];
};

#endif
