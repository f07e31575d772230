/* SPDX-License-Identifier: Apache-2.0 */
/* kedge-agentd: reads its options and settings, and serves (serve.c). */
#include <errno.h>
#include <getopt.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>

#include "agent.h"
#include "base/log.h"
#include "base/notify.h"
#include "base/version.h"
#include "probe_main.h"
#include "ring_guard.h"
#include "serve.h"
#include "start_check.h"

static void print_help(void)
{
    printf(
        "usage: kedge-agentd [--config FILE] [--check-config]\n"
        "       kedge-agentd --probe [--config FILE] [--provider NAME] [--device NAME] [-o "
        "text|json]\n"
        "                    [--serve ADDRESS:PORT | --peer HOST:PORT/WORD]\n"
        "\n"
        "Keeps queue pairs and registered memory ready on this host, and lends them to workers.\n"
        "\n"
        "  --config FILE    settings (none: the defaults below)\n"
        "  --check-config   read the settings, say what is wrong, and end\n"
        "  --probe          try the device in all that Kedge does with it, report, and end\n"
        "  --version        print the version and end\n"
        "  --help           print this and end\n"
        "\n"
        "Settings, with their defaults:\n");
    agent_config_help(stdout);
}

/* Tables are large and sparse: huge pages that a kernel makes by itself would fill them (arenas ask
 * for theirs). And most of a session's memory then comes from the kernel and goes back to it,
 * whatever threads made and freed it; memory_reclaim.c trims the rest. */
static void keep_little_memory(void)
{
    (void)prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    (void)mallopt(M_MMAP_THRESHOLD, 32 << 10);
}

static const char SPIN_IS_GONE[] =
    "spin in [pool] is no setting any more, and changes nothing: take it out, and where it was not "
    "50us say as max_retry after how many polls in vain the lane sleeps (10 for each us), or that "
    "polling is event or busy";

/* What the start would find out too, but for what only the device can say. */
static int check_only(const struct agent_config *config)
{
    struct base_errbuf why;
    printf("kedge-agentd: the settings are right\n");
    if (config->says_spin)
        printf("kedge-agentd: %s\n", SPIN_IS_GONE);
    if (!agentd_start_check_shown(config, &why))
        printf("kedge-agentd: it would begin, and %s\n", why.text);
    if (!agentd_start_check_token(config, config->gid, &why))
        printf("kedge-agentd: it would begin, and not be let in by metaservers: %s\n", why.text);
    if (!agentd_start_check_certificate(config, &why))
        printf("kedge-agentd: it would begin, and not be let in by metaservers: %s\n", why.text);
    if (!agentd_start_check_privacy(config, &why))
        printf("kedge-agentd: it would begin, but %s\n", why.text);
    return EXIT_SUCCESS;
}

/* From its first sentence in the log on no signal interrupts it, and none is lost: they are read.
 * Other threads and processes are made later and get none. */
static void hold_signals(void)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGHUP);
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static int open_hangups(int *fd, struct base_errbuf *err)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGHUP);
    *fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return *fd >= 0 ? 0
                    : base_err(err, -errno, "signals cannot be heard: %s (raise LimitNOFILE)",
                               strerror(errno));
}

/* What --check-config says is for people. */
static void begin_log(const struct agent_config *config)
{
    enum base_log_level level = BASE_LOG_INFO;
    enum base_log_format format = BASE_LOG_TEXT;
    (void)base_log_parse_level(config->log_level, &level);
    (void)base_log_parse_format(config->log_format, &format);
    base_log_set_format(format);
    base_log_init("kedge-agentd", level);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"config", required_argument, NULL, 'c'},
                                            {"check-config", no_argument, NULL, 'k'},
                                            {"version", no_argument, NULL, 'v'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    static struct agent agent;
    static struct process process;
    struct base_errbuf err = {""};
    const char *path = NULL;
    bool check = false;
    keep_little_memory();
    if (agentd_probe_is_asked_for(argc, argv))
        return agentd_probe_main(argc, argv);
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (c) {
        case 'c':
            path = optarg;
            break;
        case 'k':
            check = true;
            break;
        case 'v':
            printf("kedge-agentd %s\n", base_version_text());
            return EXIT_SUCCESS;
        case 'h':
            print_help();
            return EXIT_SUCCESS;
        default:
            return agentd_fail_for_good("see kedge-agentd --help");
        }
    }
    if (optind < argc)
        return agentd_fail_for_good(
            "it takes no arguments but its options: see kedge-agentd --help");
    agent.config_path = path;
    if (agent_config_read(path, &agent.config, &err) != 0)
        return agentd_fail_for_good(err.text);
    if (!check)
        begin_log(&agent.config);
    int status = agentd_start_check(&agent.config, &err);
    if (status != 0)
        return status == -EINVAL ? agentd_fail_for_good(err.text) : agentd_fail_start(err.text);
    if (check)
        return check_only(&agent.config);
    signal(SIGPIPE, SIG_IGN);
    agentd_ring_guard_start();
    hold_signals();
    if (agentd_closer_process_start(&process.closers, &err) != 0 ||
        agentd_emptier_process_start(&process.emptiers, &err) != 0 ||
        open_hangups(&process.hangup_fd, &err) != 0 ||
        agentd_stop_watch_init(&process.watch, FAB_STOP_MS, &err) != 0)
        return agentd_fail_start(err.text);
    base_notify_init();
    if (agent.config.says_spin)
        base_log(BASE_LOG_WARN, SPIN_IS_GONE, "config=\"%s\"", path);
    if (!agentd_start_check_holes(&err))
        base_log(BASE_LOG_WARN,
                 "workers can punch holes in memory that they are given, or make huge pages of it, "
                 "and so have lanes wait",
                 "reason=\"%s\"", err.text);
    if (!agentd_start_check_token(&agent.config, agent.config.gid, &err))
        base_log(BASE_LOG_WARN, "there is no token yet", "reason=\"%s\"", err.text);
    return agentd_serve(&agent, &process);
}
