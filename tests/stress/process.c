/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "stress.h"

pid_t stress_spawn(const struct stress *s, void *board, int number, uint64_t random,
                   void (*be)(const struct stress *s, void *board, int number, uint64_t random))
{
    pid_t pid = fork();
    if (pid < 0)
        stress_fail("no process");
    if (pid > 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    be(s, board, number, random | 1);
    _exit(0);
}

void *stress_share(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        stress_fail("no memory");
    return memory;
}
