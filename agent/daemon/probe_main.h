/* SPDX-License-Identifier: Apache-2.0 */
/* kedge-agentd --probe: tries the configured device and reports, instead of serving. */
#ifndef DAEMON_PROBE_MAIN_H
#define DAEMON_PROBE_MAIN_H

#include <stdbool.h>

/* Whether one of the words is --probe. */
bool agentd_probe_is_asked_for(int argc, char **argv);
/* The whole command line with --probe in it. The program's exit status: 0 when Kedge can run on the
 * device, 1 when it cannot, 2 when the command line or the settings make no sense. */
int agentd_probe_main(int argc, char **argv);

#endif
