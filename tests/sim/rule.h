/* SPDX-License-Identifier: Apache-2.0 */
/* Which rule a violation's sentence is of: "node-a: it keeps 7 of incarnation" and "node-b: it
 * keeps 8 of incarnation" are one's. Any thread. */
#ifndef SIM_RULE_H
#define SIM_RULE_H

#include <stdbool.h>

/* Whether both say the same but for their numbers and for who broke it, up to the first colon. */
bool play_rule_is_same(const char *a, const char *b);

#endif
