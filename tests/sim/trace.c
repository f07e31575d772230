/* SPDX-License-Identifier: Apache-2.0 */
#include "trace.h"

#include <stdarg.h>
#include <string.h>

#include "base/clock.h"
#include "events.h"

enum { LINE_BYTES = 1200 };

static struct {
    FILE *out;
    uint64_t from_ns, hash, lines;
} trace;

void play_trace_init(FILE *out, uint64_t from_ns)
{
    trace.out = out;
    trace.from_ns = from_ns;
    trace.hash = 0xcbf29ce484222325ull; /* FNV-1a's, of 64 bits */
    trace.lines = 0;
}

static void hash_bytes(const void *bytes, size_t length)
{
    const uint8_t *at = bytes;
    for (size_t i = 0; i < length; i++)
        trace.hash = (trace.hash ^ at[i]) * 0x100000001b3ull;
}

void play_trace(const char *who, const char *format, ...)
{
    char line[LINE_BYTES];
    va_list args;
    const uint64_t now_ns = play_now_ns();
    va_start(args, format);
    (void)vsnprintf(line, sizeof line, format, args);
    va_end(args);
    hash_bytes(&now_ns, sizeof now_ns);
    hash_bytes(who, strlen(who));
    hash_bytes(line, strlen(line));
    trace.lines++;
    if (trace.out == NULL || now_ns < trace.from_ns)
        return;
    fprintf(trace.out, "[%5llu.%06llu] %s: %s\n", (unsigned long long)(now_ns / BASE_NS_PER_S),
            (unsigned long long)(now_ns % BASE_NS_PER_S / 1000), who, line);
}

uint64_t play_trace_hash(void)
{
    return trace.hash;
}

uint64_t play_trace_lines(void)
{
    return trace.lines;
}
