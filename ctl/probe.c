/* SPDX-License-Identifier: Apache-2.0 */
/* Runs kedge-agentd --probe and takes what it prints. */
#include "ctl/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"

#define PROGRAM "kedge-agentd"

enum {
    REPORT_BYTES = 4 << 20,
    WORDS_BYTES = 4096, /* of its standard error */
    PROBE_S = 300,      /* the probe ends by itself long before, unless a driver hangs */
    ENDING_MS = 2000,
    PATHS = 4,
    ARGUMENTS = 16,
};

extern char **environ;

/* Where it may be, besides PATH; a user's PATH has no sbin. */
static int list_paths(char path[PATHS][512])
{
    int n = 0;
    char self[400];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    char *slash = NULL;
    if (length > 0) {
        self[length] = '\0';
        slash = strrchr(self, '/');
    }
    if (slash != NULL) {
        *slash = '\0';
        snprintf(path[n++], 512, "%s/" PROGRAM, self);
        snprintf(path[n++], 512, "%s/../sbin/" PROGRAM, self);
    }
    snprintf(path[n++], 512, "/usr/local/sbin/" PROGRAM);
    snprintf(path[n++], 512, "/usr/sbin/" PROGRAM);
    return n;
}

static int spawn_it(char *const argv[], int out, int words, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    char path[PATHS][512];
    int status = posix_spawn_file_actions_init(&actions);
    if (status != 0)
        return -status;
    status = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    if (status == 0)
        status = posix_spawn_file_actions_adddup2(&actions, words, STDERR_FILENO);
    if (status == 0)
        status = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    bool found = false;
    int paths = list_paths(path);
    for (int i = 0; i < paths && status == 0 && !found; i++) {
        if (access(path[i], X_OK) != 0)
            continue;
        found = true;
        status = posix_spawn(pid, path[i], &actions, NULL, argv, environ);
    }
    if (status == 0 && !found)
        status = posix_spawnp(pid, PROGRAM, &actions, NULL, argv, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    return -status;
}

/* Reads both until they end. 0 or -ETIMEDOUT, -EMSGSIZE. */
static int listen_to(int out, int words, struct base_text *report, struct base_text *errors)
{
    struct pollfd p[2] = {{.fd = out, .events = POLLIN}, {.fd = words, .events = POLLIN}};
    struct base_text *text[2] = {report, errors};
    const uint64_t end = base_clock_ns() + PROBE_S * BASE_NS_PER_S;
    char buffer[4096];
    while (p[0].fd >= 0 || p[1].fd >= 0) {
        if (base_clock_ns() >= end)
            return -ETIMEDOUT;
        if (poll(p, 2, 1000) <= 0)
            continue;
        for (int i = 0; i < 2; i++) {
            if (p[i].fd < 0 || p[i].revents == 0)
                continue;
            ssize_t n = read(p[i].fd, buffer, sizeof buffer);
            if (n > 0)
                (void)base_text_append(text[i], buffer, (size_t)n);
            else if (n == 0 || errno != EINTR)
                p[i].fd = -1; /* poll() passes it over */
        }
    }
    return report->error;
}

/* Its exit status, or -ETIMEDOUT: whoever hangs in the kernel does not end when it is killed. */
static int wait_for_end(pid_t pid, bool kill_it)
{
    const uint64_t end = base_clock_ns() + ENDING_MS * BASE_NS_PER_MS;
    int how;
    if (kill_it)
        (void)kill(pid, SIGKILL);
    while (base_clock_ns() < end) {
        pid_t done = waitpid(pid, &how, WNOHANG);
        if (done == pid)
            return WIFEXITED(how) ? WEXITSTATUS(how) : 128;
        if (done < 0)
            return -errno;
        usleep(1000);
    }
    return -ETIMEDOUT;
}

static int fill_arguments(const struct ctl_options *o, char *argv[ARGUMENTS])
{
    static char words[][16] = {PROGRAM,      "--probe",  "--output", "json",   "--config",
                               "--provider", "--device", "--peer",   "--serve"};
    const char *values[] = {o->config, o->provider, o->device, o->peer, o->serve};
    int n = 0;
    for (int i = 0; i < 4; i++)
        argv[n++] = words[i];
    for (int i = 0; i < 5; i++)
        if (values[i] != NULL) {
            argv[n++] = words[4 + i];
            argv[n++] = (char *)(uintptr_t)values[i]; /* posix_spawn() leaves them as they are */
        }
    argv[n] = NULL;
    return n;
}

static int run_probe(char *const argv[], struct base_text *report, struct base_text *errors,
                     int *exit_code, struct base_errbuf *err)
{
    int out[2], words[2];
    pid_t pid;
    if (pipe2(out, O_CLOEXEC) != 0)
        return base_err(err, -errno, "no pipe: %s", strerror(errno));
    if (pipe2(words, O_CLOEXEC) != 0) {
        int status = -errno;
        close(out[0]);
        close(out[1]);
        return base_err(err, status, "no pipe: %s", strerror(-status));
    }
    int status = spawn_it(argv, out[1], words[1], &pid);
    close(out[1]);
    close(words[1]);
    if (status == 0) {
        status = listen_to(out[0], words[0], report, errors);
        *exit_code = wait_for_end(pid, status != 0);
        if (status != 0)
            base_err(err, status,
                     "%s --probe did not end within %d s: a call into the device hangs (see dmesg)",
                     argv[0], PROBE_S);
    } else {
        base_err(err, status,
                 "%s cannot be run: %s (it was looked for beside rdmactl, in sbin and in PATH)",
                 argv[0], strerror(-status));
    }
    close(out[0]);
    close(words[0]);
    return status;
}

static void choose_config(struct ctl_options *o)
{
    if (o->config == NULL && access(CTL_DEFAULT_CONFIG, R_OK) == 0)
        o->config = CTL_DEFAULT_CONFIG;
}

int ctl_probe_serve(const struct ctl_options *o, struct base_errbuf *err)
{
    struct ctl_options with = *o;
    char *argv[ARGUMENTS], path[PATHS][512];
    int paths = list_paths(path);
    choose_config(&with);
    (void)fill_arguments(&with, argv);
    for (int i = 0; i < paths; i++)
        (void)execv(path[i], argv);
    (void)execvp(PROGRAM, argv);
    return base_err(err, -errno,
                    "%s cannot be run: %s (it was looked for beside rdmactl, in sbin and in PATH)",
                    PROGRAM, strerror(errno));
}

int ctl_probe_run(const struct ctl_options *o, struct ctl_probe *out, struct base_errbuf *err)
{
    struct ctl_options with = *o;
    struct base_text report, errors;
    char *argv[ARGUMENTS];
    int exit_code = 0;
    choose_config(&with);
    (void)fill_arguments(&with, argv);
    base_text_init(&report, REPORT_BYTES);
    base_text_init(&errors, WORDS_BYTES);
    int status = run_probe(argv, &report, &errors, &exit_code, err);
    if (status == 0 && report.length == 0) {
        char first[400];
        snprintf(first, sizeof first, "%s", base_text_str(&errors));
        first[strcspn(first, "\n")] = '\0';
        status = base_err(err, -EINVAL, "%s (%s ended with %d)",
                          first[0] != '\0' ? first : "it said nothing", argv[0], exit_code);
    } else if (status == 0) {
        status = ctl_probe_decode(base_text_str(&report), report.length, out, err);
    }
    base_text_fini(&report);
    base_text_fini(&errors);
    return status;
}
