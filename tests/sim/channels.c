/* SPDX-License-Identifier: Apache-2.0 */
/* Completion channels (kedge_fd()): a socket pair of which the agent writes one end, a little after
 * its lane has said so, and the worker sleeps for the other. */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "agent_process.h"
#include "base/assert.h"
#include "base/clock.h"
#include "control/lanes.h"
#include "os.h"
#include "os_calls.h"
#include "random.h"
#include "shared.h"

enum { TELL_MOST_NS = 20000 /* until the thread that tells has run */ };

struct play_channel {
    struct play_channel *next;
    const struct world_lane *of;
    uint32_t session;
    struct shared_object *object;
    struct play_event tell;
};

static void wake_sleeper(const struct shared_object *o)
{
    if (o->channel.sleeper != NULL)
        play_process_wake(o->channel.sleeper);
}

static void on_tell(void *user)
{
    const struct play_channel *c = user;
    c->object->channel.bytes++;
    wake_sleeper(c->object);
}

/* The agent's end is closed: the worker's can be read for ever. */
static void free_channel(struct play_channel *c)
{
    play_event_cancel(&c->tell);
    c->object->channel.over = true;
    wake_sleeper(c->object);
    shared_drop(c->object);
    free(c);
}

static struct play_channel **find_channel(struct play_agent *a, const struct world_lane *of,
                                          uint32_t session)
{
    struct play_channel **at = &a->channels;
    while (*at != NULL && ((*at)->of != of || (*at)->session != session))
        at = &(*at)->next;
    return at;
}

void play_channel_end(struct world *w, struct world_lane *of, uint32_t session)
{
    struct play_channel **at = find_channel(play_agent_of(w), of, session), *c = *at;
    if (c == NULL)
        return;
    *at = c->next;
    free_channel(c);
}

int play_channel_begin(struct world *w, struct world_lane *of, uint32_t session, uint32_t tenant,
                       int *fd, struct base_errbuf *err)
{
    struct play_agent *a = play_agent_of(w);
    struct play_channel *c = calloc(1, sizeof *c);
    (void)tenant;
    play_channel_end(w, of, session);
    if (c == NULL || (*fd = shared_new(SHARED_CHANNEL, &c->object)) < 0) {
        free(c);
        return base_err(err, -ENOMEM, "out of memory");
    }
    c->object->refs++;
    c->of = of;
    c->session = session;
    c->tell = (struct play_event){.happen = on_tell, .user = c, .owner = &a->process->owner};
    c->next = a->channels;
    a->channels = c;
    return 0;
}

void play_channel_tell(struct world *w, struct world_lane *of, uint32_t session)
{
    struct play_agent *a = play_agent_of(w);
    struct play_channel *c = *find_channel(a, of, session);
    if (c != NULL && !play_event_is_set(&c->tell))
        play_event_after(&c->tell, base_prng_below(&a->random, TELL_MOST_NS));
}

void play_agent_forget_channels(struct play_agent *a)
{
    for (struct play_channel *c = a->channels, *next; c != NULL; c = next) {
        next = c->next;
        free_channel(c);
    }
    a->channels = NULL;
}

/* ---- the worker's end */

static struct shared_object *channel_of(int fd)
{
    struct shared_object *o = shared_of(fd);
    BASE_ASSERT(o != NULL && o->kind == SHARED_CHANNEL);
    return o;
}

ssize_t os_recv(int fd, void *to, size_t bytes, int flags)
{
    struct shared_object *o = channel_of(fd);
    const size_t n = o->channel.bytes < bytes ? o->channel.bytes : bytes;
    (void)to;
    BASE_ASSERT(flags == MSG_DONTWAIT);
    o->channel.bytes -= n;
    if (n == 0 && !o->channel.over) {
        errno = EAGAIN;
        return -1;
    }
    return (ssize_t)n;
}

void os_channel_sleep(int fd, uint64_t ns)
{
    struct shared_object *o = channel_of(fd);
    const uint64_t until_ns = play_now_ns() + ns;
    o->channel.sleeper = play_process;
    while (o->channel.bytes == 0 && !o->channel.over && play_now_ns() < until_ns)
        (void)play_process_wait(until_ns);
    o->channel.sleeper = NULL;
}
