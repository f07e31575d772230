/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a node's agent has done what was set of the node: what the metaserver has stored is not
 * what is in force. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "ctl/fetch.h"
#include "ctl/nodes.h"

enum { LOOK_MS = 50, SHORTLY_MS = 2000 };

/* Of a node that is registered. */
static enum ctl_force force_of_node(const struct ctl_node *n, uint64_t revision)
{
    if (strcmp(n->state, "live") != 0)
        return CTL_UNHEARD;
    if (n->reported && n->revision >= revision)
        return CTL_IN_FORCE;
    return n->reported && n->seen >= revision && n->why[0] != '\0' ? CTL_REFUSED : CTL_NOT_YET;
}

static void pause_between(void)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
}

/* -ENOENT: it is not registered. */
static int fetch_node(const struct ctl_options *o, const char *path, struct ctl_node *out,
                      struct base_errbuf *err)
{
    struct http_result result;
    int status = ctl_fetch_server(o, path, &result, err);
    if (status != 0)
        return status;
    status = ctl_decode_node(result.body, result.body_length, out, err);
    http_result_fini(&result);
    return status == 0 && strcmp(out->state, "absent") == 0 ? -ENOENT : status;
}

static void say_why_not(const struct ctl_options *o, const struct ctl_node *n, enum ctl_force force)
{
    fflush(stdout);
    switch (force) {
    case CTL_IN_FORCE:
        return;
    case CTL_REFUSED:
        if (o->wait) /* it ends with that */
            return;
        fprintf(stderr,
                "rdmactl: node %s is behind, and this is not in force: its agent cannot apply the "
                "settings: %s\n",
                o->id, n->why);
        return;
    case CTL_NOT_YET:
        fprintf(stderr,
                "rdmactl: node %s is behind, and this is not in force yet: its agent has not "
                "applied the settings%s%s\n",
                o->id, n->why[0] != '\0' ? ": " : "", n->why);
        return;
    case CTL_UNHEARD:
        fprintf(stderr,
                "rdmactl: node %s is %s, and this is not known to be in force: it will be when its "
                "agent is heard of again\n",
                o->id, n->state);
        return;
    case CTL_ABSENT:
        fprintf(stderr,
                "rdmactl: node %s is not registered: this will be in force when its agent is heard "
                "of\n",
                o->id);
        return;
    }
}

int ctl_node_settle(const struct ctl_options *o, const char *path, uint64_t revision,
                    enum ctl_force *out, struct base_errbuf *err)
{
    struct ctl_node node = {.id = ""};
    enum ctl_force force = CTL_NOT_YET;
    for (unsigned left = SHORTLY_MS / LOOK_MS; force == CTL_NOT_YET && left > 0; left--) {
        int status = fetch_node(o, path, &node, err);
        if (status != 0 && status != -ENOENT)
            return status;
        force = status == -ENOENT ? CTL_ABSENT : force_of_node(&node, revision);
        if (force == CTL_NOT_YET)
            pause_between();
    }
    say_why_not(o, &node, force);
    *out = force;
    return 0;
}

/* ---- drain --wait */

static void say_left(const struct ctl_node *n, uint64_t *said)
{
    if (*said == n->sessions)
        return;
    *said = n->sessions;
    printf("node %s: %" PRIu64 " worker%s left\n", n->id, n->sessions, n->sessions == 1 ? "" : "s");
    fflush(stdout);
}

/* 0: go on waiting. */
static int check_drain(const struct ctl_node *n, uint64_t revision, struct base_errbuf *err)
{
    if (strcmp(n->state, "expired") == 0)
        return base_err(err, -ECONNRESET, "node %.70s: nothing is heard of its agent any more",
                        n->id);
    if (!n->draining)
        return base_err(err, -EREMCHG, "node %.70s: somebody has ended its draining", n->id);
    if (force_of_node(n, revision) == CTL_REFUSED)
        return base_err(err, -ECANCELED,
                        "node %.70s does not drain: its agent cannot apply the settings: %.300s",
                        n->id, n->why);
    return 0;
}

int ctl_node_wait_until_empty(const struct ctl_options *o, const char *path, uint64_t revision,
                              struct base_errbuf *err)
{
    uint64_t said = UINT64_MAX;
    for (;; pause_between()) {
        struct ctl_node node;
        int status = fetch_node(o, path, &node, err);
        if (status == -ENOENT)
            return base_err(err, -ECONNRESET,
                            "node %.70s is gone: its agent has ended, or was removed", o->id);
        if (status == 0)
            status = check_drain(&node, revision, err);
        if (status != 0)
            return status;
        if (!node.says_sessions || force_of_node(&node, revision) != CTL_IN_FORCE)
            continue;
        if (!o->json)
            say_left(&node, &said);
        if (node.sessions == 0)
            return 0;
    }
}
