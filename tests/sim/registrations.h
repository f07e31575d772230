/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes a store that several metaservers share has had, each with which incarnation, and from
 * when to when: as it was looked at whenever something was carried out there. One thread. */
#ifndef SIM_REGISTRATIONS_H
#define SIM_REGISTRATIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "metaserver/store.h"

void play_registrations_begin(void);
void play_registrations_end(void);
/* The store has carried something out just now. */
void play_registrations_look(struct meta_store *store);
/* Whether that node was alive there, with that incarnation or a later one, at some moment from then
 * on. */
bool play_registrations_was(const char *id, uint32_t incarnation, uint64_t from_ns);
/* Whether a life of it is there whose names of regions have that incarnation: that one, or an
 * earlier one which an endpoint of it has outgrown. */
bool play_registrations_lives(const char *id, uint32_t incarnation);
/* Since when there has been none (0: there is one; 1: there never was). */
uint64_t play_registrations_gone_ns(const char *id, uint32_t incarnation);
/* Whether there is one, and was already then. */
bool play_registrations_lived(const char *id, uint32_t incarnation, uint64_t since_ns);

#endif
