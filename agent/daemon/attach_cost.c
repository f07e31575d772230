/* SPDX-License-Identifier: Apache-2.0 */
/* Whose attach sockets make the control thread's calls long (socket_costs.h): the connection is
 * ended, by another thread, and of who made it nobody is let in, nor read, for a while. */
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fds.h"
#include "world_socket.h"

enum { MEASURED = 15, MEASURED_BYTES = 256, LOOK_MS = 100 };

static int compare_ns(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* What a send takes here where nobody watches: the median of some; 0: it cannot be tried. */
static uint64_t measure_send(void)
{
    static const char message[MEASURED_BYTES];
    uint64_t took[MEASURED] = {0};
    char got[MEASURED_BYTES];
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0)
        return 0;
    for (int i = 0; i < MEASURED; i++) {
        const uint64_t since_ns = base_clock_thread_ns();
        (void)base_fds_send(ends[0], message, sizeof message, NULL, 0);
        took[i] = base_clock_thread_ns() - since_ns;
        (void)recv(ends[1], got, sizeof got, 0);
    }
    close(ends[0]);
    close(ends[1]);
    qsort(took, MEASURED, sizeof took[0], compare_ns);
    return took[MEASURED / 2];
}

/* ---- who rests */

bool agentd_attach_cost_rests(const struct world_socket *s)
{
    return agentd_socket_costs_rests(&s->at->of->costs, s->end.uid, s->at->tenant, base_clock_ns());
}

void agentd_attach_cost_rest(struct world_socket *s)
{
    struct attach_sockets *of = s->at->of;
    if (s->rests)
        return;
    s->rests = true;
    s->next_resting = of->resting;
    of->resting = s;
}

static void unlist_resting(struct world_socket *s)
{
    struct world_socket **at = &s->at->of->resting;
    if (!s->rests)
        return;
    while (*at != s)
        at = &(*at)->next_resting;
    *at = s->next_resting;
    s->rests = false;
}

static void wake_rested(struct attach_sockets *of)
{
    struct world_socket *s = of->resting;
    for (struct world_socket *next; s != NULL; s = next) {
        next = s->next_resting;
        if (agentd_attach_cost_rests(s))
            continue;
        unlist_resting(s);
        agentd_socket_read_on(s);
    }
}

static bool anybody_rests(const struct attach_sockets *of)
{
    uid_t uids[COSTS_KNOWN];
    for (const struct listener *l = of->listener; l < of->listener + of->listeners; l++)
        if (agentd_socket_costs_resting(&of->costs, l->tenant, base_clock_ns(), uids) > 0)
            return true;
    return false;
}

/* Lists of files are written anew at each look, while somebody rests and once after it. */
static void on_look(uv_timer_t *timer)
{
    struct attach_sockets *of = timer->data;
    wake_rested(of);
    agentd_listeners_rest(of);
    if (of->resting == NULL && !anybody_rests(of))
        (void)uv_timer_stop(timer);
}

/* ---- whose calls are long */

void agentd_attach_cost_charge(struct world_socket *s, uint64_t since_ns)
{
    struct attach_sockets *of = s->at->of;
    const uint64_t took_ns = base_clock_thread_ns() - since_ns;
    if (took_ns < of->costs.long_ns ||
        !agentd_socket_costs_charge(&of->costs, s->end.uid, s->at->tenant, took_ns,
                                    base_clock_ns()))
        return;
    of->cost_news = true;
    if (s->costly || s->c == NULL)
        return;
    s->costly = true;
    s->next_costly = of->costly;
    of->costly = s;
}

static void unlist_costly(struct world_socket *s)
{
    struct world_socket **at = &s->at->of->costly;
    while (*at != NULL && *at != s)
        at = &(*at)->next_costly;
    if (*at == s)
        *at = s->next_costly;
}

void agentd_attach_cost_forget(struct world_socket *s)
{
    unlist_resting(s);
    unlist_costly(s);
}

void agentd_attach_cost_turn(struct attach_sockets *of)
{
    if (!of->cost_news)
        return;
    of->cost_news = false;
    while (of->costly != NULL) {
        struct world_socket *s = of->costly;
        of->costly = s->next_costly;
        agent_attach_costly(s->c);
    }
    agentd_listeners_rest(of);
    (void)uv_timer_start(&of->cost_look, on_look, LOOK_MS, LOOK_MS);
}

int agentd_attach_cost_init(struct attach_sockets *of, struct base_errbuf *err)
{
    const int status = agentd_socket_ender_init(&of->ender, of->loop, err);
    if (status != 0)
        return status;
    agentd_socket_costs_init(&of->costs, measure_send());
    (void)uv_timer_init(of->loop, &of->cost_look);
    of->cost_look.data = of;
    uv_unref((uv_handle_t *)&of->cost_look);
    return 0;
}

void agentd_attach_cost_stop(struct attach_sockets *of)
{
    if (of->cost_look.data != NULL)
        uv_close((uv_handle_t *)&of->cost_look, NULL);
    of->cost_look.data = NULL;
    agentd_socket_ender_close(&of->ender);
}
