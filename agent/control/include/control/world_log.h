/* SPDX-License-Identifier: Apache-2.0 */
/* What a core says to whoever runs the agent. Control thread. */
#ifndef CONTROL_LOG_H
#define CONTROL_LOG_H

#include <stdarg.h>
#include <stdint.h>

#include "base/log.h"

struct world;

struct world_log_ops {
    /* As base_log_v() and base_log_dropped(). */
    void (*write)(struct world *w, enum base_log_level level, const char *event, const char *format,
                  va_list args);
    uint64_t (*dropped)(struct world *w);
};

/* As base_log(). */
void world_log(struct world *w, enum base_log_level level, const char *event, const char *format,
               ...) __attribute__((format(printf, 4, 5)));
uint64_t world_log_dropped(struct world *w);

#endif
