/* SPDX-License-Identifier: Apache-2.0 */
/* Workers that attach and die at once: by themselves, or wherever they are when they are killed. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kedge.h>

#include "stress.h"

enum { MEMORY = 65536, MOMENTS_US = 1500 };

/* A little work, then death: by itself, or with everything open. */
static _Noreturn void live_and_die(const struct stress *s, uint64_t random)
{
    const struct kedge_open_attr attr = {.socket = s->socket};
    struct kedge_session *session;
    struct kedge_mr *mr;
    uint32_t lkey;
    void *memory;
    int status;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while ((status = kedge_open(&attr, &session)) == -EAGAIN)
        usleep(200);
    if (status != 0)
        stress_fail("attaching: %s", kedge_last_error());
    if (random % 2 == 0 &&
        (kedge_alloc(session, MEMORY, &memory, &lkey) != 0 ||
         kedge_reg_mr(session, memory, MEMORY, IBV_ACCESS_REMOTE_READ, &mr) != 0))
        stress_fail("registering: %s", kedge_last_error());
    if (random % 8 == 1)
        kedge_close(session);
    kill(getpid(), SIGKILL);
    _exit(1);
}

void stress_churn(struct stress *s)
{
    for (uint64_t i = 0; i < s->rounds; i++) {
        int status;
        uint64_t random = stress_random(&s->random);
        pid_t pid = fork();
        if (pid == 0)
            live_and_die(s, random);
        if (pid > 0 && random % 3 == 0) {
            usleep((useconds_t)(stress_random(&s->random) % MOMENTS_US));
            (void)kill(pid, SIGKILL);
        }
        if (pid < 0 || waitpid(pid, &status, 0) != pid)
            stress_fail("no child");
        if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
            stress_fail("a worker ended with status %d in round %llu", status,
                        (unsigned long long)i);
    }
    printf("churn: %llu workers attached and died\n", (unsigned long long)s->rounds);
}
