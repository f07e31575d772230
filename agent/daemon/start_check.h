/* SPDX-License-Identifier: Apache-2.0 */
/* What can be known of the settings before the device is opened and anything is taken:
 * `--check-config` and the start ask the same. The main thread's. */
#ifndef DAEMON_START_CHECK_H
#define DAEMON_START_CHECK_H

#include <stdbool.h>

#include "control/config.h"
#include "base/error.h"
#include "base/http/tls.h"

/* 0; -EINVAL: the settings are wrong, and to begin again would change nothing; another -errno: the
 * host lacks something that may come (a directory, a limit). A sentence with the way out in *err.
 * Raises the limit of open files as far as it needs to. */
int agentd_start_check(const struct agent_config *config, struct base_errbuf *err);

/* Whether token_file holds a token now, or is not set. Else *why says what is wrong with it, and
 * the command that makes one for this node and gid (zero: not known yet). The agent begins all the
 * same: the file is read again for each request, as one with a wrong token. */
bool agentd_start_check_token(const struct agent_config *config, const uint8_t gid[16],
                              struct base_errbuf *why);
/* Whether each metaserver is shown a token or a certificate. Else *why says, behind "it would
 * begin, and", what it does and what to do. */
bool agentd_start_check_shown(const struct agent_config *config, struct base_errbuf *why);
/* Whether metaservers that are shown the certificate in cert_file will take it for this node and,
 * if it is set, this GID, or none is shown. Else *why says what to do. The agent begins all the
 * same: a newer one is taken without a restart. */
bool agentd_start_check_certificate(const struct agent_config *config, struct base_errbuf *why);
/* The same of what such a certificate says of itself. */
bool agentd_start_check_names(const struct agent_config *config,
                              const struct http_certificate *shown, struct base_errbuf *why);
/* Whether token_file is this user's alone, or not there. Else *why says what to do. The agent uses
 * it all the same: to stay away from its metaservers would end no leak. */
bool agentd_start_check_privacy(const struct agent_config *config, struct base_errbuf *why);

/* Whether workers can be kept from punching holes in what they are given (base/fds.h), but for huge
 * pages, and from making those of it (base/hold.h). Else *why says what it takes. The agent begins
 * all the same. */
bool agentd_start_check_holes(struct base_errbuf *why);

#endif
