/* SPDX-License-Identifier: Apache-2.0 */
/* The operator's program, run at s->admin. */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stress.h"

int stress_ctl(const struct stress *s, char *out, const char *const words[STRESS_WORDS])
{
    const char *argv[] = {s->rdmactl, "--agent-socket", s->admin, words[0], words[1],
                          words[2],   words[3],         words[4], NULL};
    int pipe_fds[2], status;
    size_t used = 0;
    pid_t pid = pipe(pipe_fds) == 0 ? fork() : -1;
    if (pid == 0) {
        (void)dup2(pipe_fds[1], STDOUT_FILENO);
        (void)dup2(pipe_fds[1], STDERR_FILENO);
        close(pipe_fds[0]);
        execv(s->rdmactl, (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    if (pid < 0)
        stress_fail("rdmactl cannot be run");
    close(pipe_fds[1]);
    for (ssize_t n; used < STRESS_OUTPUT - 1 &&
                    (n = read(pipe_fds[0], out + used, STRESS_OUTPUT - 1 - used)) > 0;)
        used += (size_t)n;
    out[used] = '\0';
    close(pipe_fds[0]);
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
