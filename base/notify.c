/* SPDX-License-Identifier: Apache-2.0 */
#include "base/notify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

static struct {
    int fd; /* -1: nobody listens */
    struct sockaddr_un to;
    socklen_t to_bytes;
    uint64_t period_ns; /* of the watchdog's signs of life; 0: nobody waits for them */
    uint64_t next_ns;
    char unsent[BASE_NOTIFY_TEXT]; /* what the supervisor had no room for; empty: nothing */
} notify = {.fd = -1};

/* False for what systemd never gives. */
static bool parse_address(const char *text)
{
    const size_t length = strlen(text);
    if ((text[0] != '/' && text[0] != '@') || length < 2 || length >= sizeof notify.to.sun_path)
        return false;
    notify.to = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(notify.to.sun_path, text, length);
    if (text[0] == '@')
        notify.to.sun_path[0] = '\0'; /* an abstract name ends with the address, not with a NUL */
    notify.to_bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    return true;
}

/* Half of the supervisor's patience, if it is with this process. */
static uint64_t parse_period(const char *usec, const char *pid)
{
    char *end;
    if (usec == NULL || (pid != NULL && strtoll(pid, NULL, 10) != (long long)getpid()))
        return 0;
    errno = 0;
    const unsigned long long value = strtoull(usec, &end, 10);
    if (errno != 0 || usec[0] < '0' || usec[0] > '9' || *end != '\0' ||
        value > UINT64_MAX / BASE_NS_PER_US)
        return 0;
    return value * BASE_NS_PER_US / 2;
}

void base_notify_init(void)
{
    const char *address = getenv("NOTIFY_SOCKET");
    base_notify_fini();
    if (address != NULL && parse_address(address)) {
        notify.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        notify.period_ns = parse_period(getenv("WATCHDOG_USEC"), getenv("WATCHDOG_PID"));
    }
    (void)unsetenv("NOTIFY_SOCKET");
    (void)unsetenv("WATCHDOG_USEC");
    (void)unsetenv("WATCHDOG_PID");
}

/* False when there was no room; whatever else goes wrong would go wrong again. */
static bool send_text(const char *text)
{
    const ssize_t n = sendto(notify.fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT,
                             (const struct sockaddr *)&notify.to, notify.to_bytes);
    return n >= 0 || (errno != EAGAIN && errno != ENOBUFS && errno != EINTR);
}

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
    va_list arguments;
    if (notify.fd < 0)
        return;
    va_start(arguments, format);
    (void)vsnprintf(notify.unsent, sizeof notify.unsent, format, arguments);
    va_end(arguments);
    if (send_text(notify.unsent))
        notify.unsent[0] = '\0';
}

void base_notify_ready(const char *status)
{
    say("READY=1\nSTATUS=%s", status);
}

void base_notify_reloading(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t); /* this very clock: that is how reloads are told apart */
    const uint64_t usec = (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / BASE_NS_PER_US;
    say("RELOADING=1\nMONOTONIC_USEC=%" PRIu64, usec);
}

void base_notify_status(const char *status)
{
    say("STATUS=%s", status);
}

void base_notify_stopping(void)
{
    say("STOPPING=1\nSTATUS=stopping");
}

void base_notify_tick(uint64_t now_ns)
{
    if (notify.fd < 0)
        return;
    if (notify.unsent[0] != '\0' && send_text(notify.unsent))
        notify.unsent[0] = '\0';
    if (notify.period_ns == 0 || now_ns < notify.next_ns)
        return;
    if (send_text("WATCHDOG=1"))
        notify.next_ns = now_ns + notify.period_ns;
}

uint64_t base_notify_due_ns(void)
{
    if (notify.fd >= 0 && notify.unsent[0] != '\0')
        return 0;
    return notify.fd >= 0 && notify.period_ns != 0 ? notify.next_ns : UINT64_MAX;
}

void base_notify_fini(void)
{
    if (notify.fd >= 0)
        close(notify.fd);
    notify.fd = -1;
    notify.period_ns = notify.next_ns = 0;
    notify.unsent[0] = '\0';
}
