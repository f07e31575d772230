/* SPDX-License-Identifier: Apache-2.0 */
/* The providers that there are, by name: for programs that let their user choose. In a library of
 * its own, kedge_fabric_providers, since it links them all. A new one is a line in providers.c;
 * what it is like stands in its struct fab_provider, and nobody outside of fabric/ asks for its
 * name. Any thread. */
#ifndef FABRIC_PROVIDERS_H
#define FABRIC_PROVIDERS_H

#include "fabric/fabric.h"

/* NULL, and a sentence that names those there are. */
const struct fab_provider *fab_provider_find(const char *name, struct base_errbuf *err);
/* The one for a host of which nothing is configured: for RDMA devices if there is one, or if a
 * device is named; else one that needs none. Blocks: it opens devices. */
const struct fab_provider *fab_provider_usual(bool device_is_named);

#endif
