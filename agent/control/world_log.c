/* SPDX-License-Identifier: Apache-2.0 */
#include "control/world_log.h"

#include "control/world.h"

void world_log(struct world *w, enum base_log_level level, const char *event, const char *format,
               ...)
{
    va_list args;
    va_start(args, format);
    w->log->write(w, level, event, format, args);
    va_end(args);
}

uint64_t world_log_dropped(struct world *w)
{
    return w->log->dropped(w);
}
