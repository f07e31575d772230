/* SPDX-License-Identifier: Apache-2.0 */
#include "fresh.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int perf_fresh_run(const char *const argv[], uint64_t *ns, int steps, struct base_errbuf *err)
{
    int out[2], code = 0, n = 0;
    char line[32];
    if (pipe2(out, O_CLOEXEC) != 0)
        return base_err(err, -errno, "pipe: %s", strerror(errno));
    pid_t pid = fork();
    if (pid == 0) {
        dup2(out[1], STDOUT_FILENO);
        execv("/proc/self/exe", (char **)argv);
        _exit(127);
    }
    close(out[1]);
    FILE *f = fdopen(out[0], "r");
    if (pid < 0 || f == NULL)
        return base_err(err, -EAGAIN, "no process for a repetition");
    while (n < steps && fgets(line, sizeof line, f) != NULL)
        ns[n++] = strtoull(line, NULL, 10);
    fclose(f);
    waitpid(pid, &code, 0);
    if (n != steps || code != 0)
        return base_err(err, -EIO, "a program that was started for one repetition failed");
    return 0;
}

void perf_fresh_print(const uint64_t *ns, int steps)
{
    for (int i = 0; i < steps; i++)
        printf("%llu\n", (unsigned long long)ns[i]);
}

void perf_samples_add(struct perf_samples *s, const uint64_t *ns, int first, int steps)
{
    uint64_t sum = 0;
    for (int i = first; i < steps; i++) {
        s->ns[i][s->count] = ns[i];
        sum += ns[i];
    }
    s->ns[steps][s->count++] = sum;
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

uint64_t perf_samples_medians(struct perf_samples *s, int steps, uint64_t *out)
{
    for (int i = 0; i <= steps; i++) {
        qsort(s->ns[i], s->count, sizeof s->ns[i][0], by_size);
        out[i] = (s->ns[i][(s->count - 1) / 2] + s->ns[i][s->count / 2]) / 2;
    }
    return s->ns[steps][0];
}
