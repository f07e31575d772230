/* SPDX-License-Identifier: Apache-2.0 */
/* When a metaserver's own certificates end: who reads them says so. Of service.h. */
#ifndef METASERVER_CERTIFICATE_H
#define METASERVER_CERTIFICATE_H

#include "metaserver/liveness.h"

/* What is known of a certificate of its own, and has been told. */
struct meta_certificate_seen {
    int64_t expires_s; /* since 1970; 0: there is none */
    bool said_soon, said_end;
};

struct meta_service;

/* That a certificate ends then (since 1970; 0: there is none): for metrics, and for those who
 * watch, who are told once from soon_s before its end on, once when it has ended, and when another
 * one has come. Every few seconds. */
void meta_service_certificate(struct meta_service *s, enum meta_certificate_use of,
                              int64_t expires_s, int64_t soon_s, uint64_t now);

#endif
