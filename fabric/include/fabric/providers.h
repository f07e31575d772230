/* SPDX-License-Identifier: Apache-2.0 */
/* The providers that there are, by name: for programs that let their user choose. In a library of
 * its own, kedge_fabric_providers, since it links them all. */
#ifndef FABRIC_PROVIDERS_H
#define FABRIC_PROVIDERS_H

#include "fabric/fabric.h"

/* NULL, and a sentence that names those there are. Any thread. */
const struct fab_provider *fab_provider_find(const char *name, struct base_errbuf *err);

#endif
