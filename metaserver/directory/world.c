/* SPDX-License-Identifier: Apache-2.0 */
#include "metaserver/world.h"

void meta_world_log(struct meta_world *w, enum base_log_level level, const char *event,
                    const char *format, ...)
{
    va_list args;
    va_start(args, format);
    w->ops->log(w, level, event, format, args);
    va_end(args);
}
