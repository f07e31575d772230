/* SPDX-License-Identifier: Apache-2.0 */
/* kedge-stress: honest workers that do one thing for long, and verify all of it. Run by e2e scripts
 * that stop and kill what they depend on meanwhile. */
#ifndef STRESS_STRESS_H
#define STRESS_STRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct stress {
    const char *socket; /* of the agent */
    const char *peer;   /* of the agent of the other side; NULL: the same */
    const char *progress;
    uint64_t random; /* state */
    uint64_t until_ns;
    uint64_t rounds; /* of churn and repair */
    /* of repair */
    const char *provider, *device, *gid, *peer_gid; /* device: NULL for the first that does */
    /* of leases */
    bool fenced;    /* regions have registrations of their own */
    bool deadlines; /* the device keeps them: what is late breaks no connection */
    bool breaks;    /* it is not over before force has broken one */
    /* of revoke, and of leases where an operator revokes too */
    const char *rdmactl, *admin; /* the program, and the peer's admin socket */
    bool writes;                 /* of revoke: who is not concerned WRITEs too */
    bool forced;                 /* of revoke: by force alone */
    bool pause;                  /* stops itself (SIGSTOP) after warming up and before the end */
};

uint64_t stress_random(uint64_t *state);
bool stress_over(const struct stress *s);
/* Likewise, but a host that is slow gets the time that it needs until everything was seen. */
bool stress_over_when(const struct stress *s, bool seen_all);
/* A process of its own, which ends with this one: it becomes be(s, board, number, random) and ends
 * with 0. random is not 0. */
pid_t stress_spawn(const struct stress *s, void *board, int number, uint64_t random,
                   void (*be)(const struct stress *s, void *board, int number, uint64_t random));
/* Memory, zeroed, that such processes share. */
void *stress_share(size_t bytes);
/* Says what is wrong and ends the process with 1. */
_Noreturn void stress_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

enum { STRESS_OUTPUT = 1 << 18, STRESS_WORDS = 5 };
/* Runs rdmactl at s->admin with these words; a NULL ends them. Its exit code, and in out
 * (STRESS_OUTPUT bytes) what it printed. */
int stress_ctl(const struct stress *s, char *out, const char *const words[STRESS_WORDS]);

/* Owners whose memory is used again and again, and remote workers that use it meanwhile and after:
 * nothing is written or read under a withdrawn key. With s->rdmactl an operator revokes them in the
 * middle, by force too: nobody fails but by what his reports name. */
void stress_leases(struct stress *s);
/* Attaches and dies, `rounds` times. */
void stress_churn(struct stress *s);
/* Goes on whatever ends: opens, exports, connects again; counts what it verified. */
void stress_recover(struct stress *s);
/* An operator revokes regions that remote workers use: nothing is executed in them after the
 * answer, and nobody else has a failure. */
void stress_revoke(struct stress *s);
/* On the fabric itself: breaks a connection by a wrong key and repairs both ends, `rounds` times.
 */
void stress_repair(struct stress *s);

#endif
