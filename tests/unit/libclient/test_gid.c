/* SPDX-License-Identifier: Apache-2.0 */
/* A host whose endpoint becomes another one: workers are told its present GID, whole, whenever they
 * ask. How an agent writes it is unit.agent.control.address_change's. */
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "fake_lane.h"
#include "schema/token.h"

/* Of the instructions of a reading so many. The thread sanitizer has a hundred for one. */
#ifdef __SANITIZE_THREAD__
enum { TRIES = 10 };
#else
enum { TRIES = 200 };
#endif

/* The n-th GID: both of its words say which it is. */
static void form_gid(uint8_t gid[16], uint8_t n)
{
    for (int i = 0; i < 16; i++)
        gid[i] = i == 0 ? 0xfd : n;
}

/* As an agent does it. */
static void become_another(struct fake_agent *a)
{
    const uint32_t changes = atomic_load(&a->ro->changes) + 1;
    uint64_t word[2];
    uint8_t gid[16];
    form_gid(gid, (uint8_t)changes);
    memcpy(word, gid, sizeof word);
    for (int i = 0; i < 2; i++)
        atomic_store(&a->ro->present_gid[changes % 2][i], word[i]);
    atomic_store(&a->ro->changes, changes);
}

/* The page is taken back, as of a session that has ended: all of it is zeros. */
static void take_back(struct fake_agent *a)
{
    for (int i = 0; i < 4; i++)
        atomic_store(&a->ro->present_gid[i / 2][i % 2], 0);
    atomic_store(&a->ro->changes, 0);
}

static void is_the(const struct kedge_session *s, uint8_t n)
{
    struct kedge_session_info info;
    uint8_t gid[16];
    form_gid(gid, n);
    kedge_session_query(s, &info);
    ck_assert_mem_eq(info.gid, gid, 16);
}

START_TEST(a_session_says_the_present_gid_of_its_host)
{
    struct fake_agent a;
    fake_agent_start(&a);
    form_gid(a.ro->gid, 0);
    struct kedge_session *s = fake_agent_open(&a);
    is_the(s, 0);
    for (uint8_t n = 1; n <= 4; n++) {
        become_another(&a);
        is_the(s, n);
    }
    take_back(&a);
    is_the(s, 0); /* that it attached with */
    kedge_close(s);
    fake_agent_stop(&a);
}
END_TEST

START_TEST(tokens_name_the_present_gid)
{
    struct fake_agent a;
    struct kedge_mr *mr;
    struct schema_token parsed;
    char token[KEDGE_TOKEN_MAX];
    uint8_t gid[16];
    void *memory;
    uint32_t lkey;
    fake_agent_start(&a);
    form_gid(a.ro->gid, 0);
    struct kedge_session *s = fake_agent_open(&a);
    ck_assert_int_eq(kedge_alloc(s, 64, &memory, &lkey), 0);
    a.reply = (struct schema_reply){.value = {0xbeef}};
    fake_agent_answer(&a);
    ck_assert_int_eq(kedge_reg_mr(s, memory, 64, IBV_ACCESS_REMOTE_READ, &mr), 0);
    (void)fake_agent_asked(&a);
    for (uint8_t n = 0; n <= 2; n++) { /* of a region that was registered under the first one */
        form_gid(gid, n);
        ck_assert_int_eq(kedge_mr_export(mr, token, sizeof token), 0);
        ck_assert_int_eq(schema_token_parse(token, &parsed), 0);
        ck_assert_mem_eq(parsed.gid, gid, 16);
        become_another(&a);
    }
    kedge_close(s);
    fake_agent_stop(&a);
}
END_TEST

/* ---- in the middle of a reading */

/* Of a process that reads the GID, instruction by instruction. */
struct reading {
    _Atomic uint32_t begun, done;
    struct kedge_session_info info;
};

static pid_t begin_reading(struct reading *r, const struct kedge_session *s)
{
    int status;
    memset(r, 0, sizeof *r);
    const pid_t reader = fork();
    ck_assert_int_ge(reader, 0);
    if (reader == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0 || raise(SIGSTOP) != 0)
            _exit(1);
        atomic_store(&r->begun, 1);
        kedge_session_query(s, &r->info);
        atomic_store(&r->done, 1);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(reader, &status, 0), reader);
    ck_assert_msg(WIFSTOPPED(status), "no process can be traced here");
    return reader;
}

static void step(pid_t reader)
{
    int status;
    ck_assert_int_eq(ptrace(PTRACE_SINGLESTEP, reader, NULL, NULL), 0);
    ck_assert_int_eq(waitpid(reader, &status, 0), reader);
    ck_assert(WIFSTOPPED(status));
}

static void end_reading(pid_t reader)
{
    int status;
    ck_assert_int_eq(ptrace(PTRACE_CONT, reader, NULL, NULL), 0);
    ck_assert_int_eq(waitpid(reader, &status, 0), reader);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Lets it go on for so many instructions, or until it has read: for how many. */
static uint32_t read_for(pid_t reader, struct reading *r, uint32_t most)
{
    uint32_t steps = 0;
    while (atomic_load(&r->begun) == 0)
        step(reader);
    for (; steps < most && atomic_load(&r->done) == 0; steps++)
        step(reader);
    return steps;
}

/* The host has become another so often, and does so again after that many instructions (more is 0:
 * the page is taken back). Which one was read. */
static uint32_t read_meanwhile(struct fake_agent *a, struct reading *r,
                               const struct kedge_session *s, uint32_t before, uint32_t more,
                               uint32_t *steps)
{
    uint8_t gid[16];
    take_back(a);
    for (uint32_t i = 0; i < before; i++)
        become_another(a);
    const pid_t reader = begin_reading(r, s);
    *steps = read_for(reader, r, *steps);
    for (uint32_t i = 0; i < more; i++)
        become_another(a);
    if (more == 0)
        take_back(a);
    end_reading(reader);
    form_gid(gid, r->info.gid[1]);
    ck_assert_mem_eq(r->info.gid, gid, 16); /* nothing of two */
    return r->info.gid[1];
}

START_TEST(a_gid_that_changes_while_it_is_read_is_read_whole)
{
    static const struct {
        uint32_t before, more;
    } cases[] = {{0, 1}, {1, 0}, {1, 1}, {1, 2}, {2, 2}};
    struct fake_agent a;
    struct reading *r =
        mmap(NULL, sizeof *r, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert(r != MAP_FAILED);
    fake_agent_start(&a);
    form_gid(a.ro->gid, 0);
    struct kedge_session *s = fake_agent_open(&a);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const uint32_t before = cases[i].before, more = cases[i].more,
                       last = more == 0 ? 0 : before + more;
        uint32_t all = UINT32_MAX, first = 0;
        ck_assert_uint_eq(read_meanwhile(&a, r, s, before, more, &all), before);
        for (uint32_t at = 0; at < all; at += 1 + all / TRIES) {
            uint32_t steps = at;
            const uint32_t n = read_meanwhile(&a, r, s, before, more, &steps);
            /* Fewer: it was over. A sanitizer does not take as many each time. */
            ck_assert_uint_le(steps, at);
            ck_assert_msg(n == before || n == last, "%u of %u and %u after %u instructions", n,
                          before, last, at);
            first += n == before;
            ck_assert_msg(at > 0 || n == last, "%u, which it was before the reading", n);
        }
        ck_assert_uint_gt(first, 0); /* it is over some instructions before it says so */
    }
    kedge_close(s);
    fake_agent_stop(&a);
    munmap(r, sizeof *r);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_session_says_the_present_gid_of_its_host)                                                  \
    T(tokens_name_the_present_gid)                                                                 \
    T(a_gid_that_changes_while_it_is_read_is_read_whole)
KEDGE_CHECK_MAIN("libkedge gid", TESTS)
