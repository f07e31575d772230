/* SPDX-License-Identifier: Apache-2.0 */
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "stress.h"

uint64_t stress_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

enum { PATIENCE_MS = 120000 };

bool stress_over(const struct stress *s)
{
    return base_clock_ns() >= s->until_ns;
}

bool stress_over_when(const struct stress *s, bool seen_all)
{
    const uint64_t now_ns = base_clock_ns();
    return now_ns >= s->until_ns + (seen_all ? 0 : PATIENCE_MS * BASE_NS_PER_MS);
}

void stress_fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("kedge-stress: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

static int usage(void)
{
    fputs("usage: kedge-stress leases|churn|recover|revoke --socket PATH [--peer PATH] [--seed N] "
          "[--ms N] "
          "[--rounds N] [--progress FILE]\n"
          "                    [--rdmactl PROGRAM --admin PATH] [--forced] [--writes] [--fenced] "
          "[--deadlines] [--breaks]\n"
          "       kedge-stress repair --provider NAME [--device NAME] --gid GID --peer-gid GID "
          "[--rounds N] [--pause]\n",
          stderr);
    return 2;
}

/* Options that are a text or a flag. False: it is none of them. */
static bool take(int option, struct stress *s)
{
    const struct {
        int option;
        const char **text;
        bool *flag;
    } all[] = {{'s', &s->socket, NULL},   {'p', &s->peer, NULL},      {'f', &s->progress, NULL},
               {'v', &s->provider, NULL}, {'d', &s->device, NULL},    {'g', &s->gid, NULL},
               {'h', &s->peer_gid, NULL}, {'c', &s->rdmactl, NULL},   {'a', &s->admin, NULL},
               {'w', NULL, &s->pause},    {'F', NULL, &s->forced},    {'W', NULL, &s->writes},
               {'N', NULL, &s->fenced},   {'D', NULL, &s->deadlines}, {'B', NULL, &s->breaks}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (all[i].option != option)
            continue;
        if (all[i].text != NULL)
            *all[i].text = optarg;
        else
            *all[i].flag = true;
        return true;
    }
    return false;
}

static int run(const char *what, struct stress *s)
{
    if (strcmp(what, "repair") == 0 && s->provider != NULL)
        stress_repair(s);
    else if (s->socket == NULL)
        return usage();
    else if (strcmp(what, "leases") == 0 && (s->rdmactl == NULL) == (s->admin == NULL))
        stress_leases(s);
    else if (strcmp(what, "churn") == 0)
        stress_churn(s);
    else if (strcmp(what, "recover") == 0)
        stress_recover(s);
    else if (strcmp(what, "revoke") == 0 && s->rdmactl != NULL && s->admin != NULL)
        stress_revoke(s);
    else
        return usage();
    return 0;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"socket", required_argument, NULL, 's'},
                                            {"peer", required_argument, NULL, 'p'},
                                            {"seed", required_argument, NULL, 'r'},
                                            {"ms", required_argument, NULL, 'm'},
                                            {"progress", required_argument, NULL, 'f'},
                                            {"rounds", required_argument, NULL, 'n'},
                                            {"provider", required_argument, NULL, 'v'},
                                            {"device", required_argument, NULL, 'd'},
                                            {"gid", required_argument, NULL, 'g'},
                                            {"peer-gid", required_argument, NULL, 'h'},
                                            {"pause", no_argument, NULL, 'w'},
                                            {"rdmactl", required_argument, NULL, 'c'},
                                            {"admin", required_argument, NULL, 'a'},
                                            {"forced", no_argument, NULL, 'F'},
                                            {"writes", no_argument, NULL, 'W'},
                                            {"fenced", no_argument, NULL, 'N'},
                                            {"deadlines", no_argument, NULL, 'D'},
                                            {"breaks", no_argument, NULL, 'B'},
                                            {0}};
    struct stress s = {.random = 1, .rounds = 1000};
    uint64_t ms = 1000;
    signal(SIGPIPE, SIG_IGN);
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;)
        switch (c) {
        case 'n':
            s.rounds = strtoull(optarg, NULL, 10);
            break;
        case 'r':
            s.random = 0x9e3779b97f4a7c15ull * (strtoull(optarg, NULL, 10) + 1);
            break;
        case 'm':
            ms = strtoull(optarg, NULL, 10);
            break;
        default:
            if (!take(c, &s))
                return usage();
        }
    if (optind + 1 != argc)
        return usage();
    if (s.peer == NULL)
        s.peer = s.socket;
    s.until_ns = base_clock_ns() + ms * BASE_NS_PER_MS;
    return run(argv[optind], &s);
}
