/* SPDX-License-Identifier: Apache-2.0 */
/* Values of settings, from text. One thread. */
#ifndef DAEMON_CONFIG_PARSE_H
#define DAEMON_CONFIG_PARSE_H

#include "control/config.h"

enum agentd_type {
    A_TEXT,
    A_LEVEL,
    A_FORMAT,
    A_NAME,
    A_PATH,
    A_PATH_OR_NONE,
    A_COUNT,
    A_POWER,
    A_TIME,
    A_SIZE,
    A_CPUS,
    A_TRANSPORT,
    A_POLLING,
    A_WINDOW_POLICY,
    A_FAULT,
    A_COUNT_OR_AUTO, /* 0: auto */
    A_TIME_OR_AUTO,
    A_GID,
    A_URLS,
    A_UIDS,
    A_MODE, /* of a file */
    A_YES_NO,
    A_HASHES,
    A_SERVICE, /* one of FAB_SERVICE_SETTINGS */
    /* What operators say of pools too, from and to the same: a number; a time, there in ms. */
    A_POOL_COUNT,
    A_POOL_PERIOD_OR_AUTO
};

/* One setting; at: where it goes. 0, or -EINVAL and what the value must be. */
int agentd_set_value(enum agentd_type type, void *at, uint64_t min, uint64_t max, const char *value,
                     struct base_errbuf *must);
/* Those whose values go to more than one place. */
int agentd_set_cpus(struct agent_cpus *cpus, const char *value, struct base_errbuf *must);
int agentd_set_urls(struct agent_config *config, const char *value, struct base_errbuf *must);
int agentd_set_uids(struct agent_tenant_config *tenant, const char *value,
                    struct base_errbuf *must);
int agentd_set_hashes(struct agent_tenant_config *tenant, const char *value,
                      struct base_errbuf *must);

#endif
