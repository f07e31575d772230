/* SPDX-License-Identifier: Apache-2.0 */
/* A simulated network is decided by its seed alone. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../check_main.h"
#include "sim_link.h"

enum { NODES = 4, ROUNDS = 400, HASH_FD = 20 };

static const struct sim_link unkind = {.delay_ns = 2000,
                                       .jitter_ns = 3000,
                                       .late_ppm = 30000,
                                       .late_ns = 50000,
                                       .loss_ppm = 5000,
                                       .repeat_ppm = 5000};

/* Everybody asks everybody, over RC and DC, on a network that loses and delays; the hash of all
 * that happened. */
static uint64_t play_net(uint64_t seed, uint64_t *events)
{
    static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE,
                                                 IBV_WR_ATOMIC_FETCH_AND_ADD};
    struct sim_net *net = sim_net_new(seed, NULL, 0);
    struct bed_node node[NODES];
    struct bed_link link[2 * NODES];
    struct base_prng prng;
    struct ibv_wc wc[64];
    base_prng_seed(&prng, seed);
    ck_assert_int_eq(sim_link_set(net, SIM_ANY_NODE, SIM_ANY_NODE, &unkind), 0);
    for (uint32_t i = 0; i < NODES; i++)
        bed_open(&node[i], net, i);
    for (uint32_t i = 0; i < 2 * NODES; i++)
        bed_link(&link[i], &node[i % NODES], &node[(i + 1) % NODES],
                 i < NODES ? FAB_QP_RC : FAB_QP_DCI);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        struct bed_link *l = &link[base_prng_below(&prng, 2 * NODES)];
        const enum ibv_wr_opcode opcode = opcodes[base_prng_below(&prng, 3)];
        const uint32_t bytes =
            opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? 8 : (uint32_t)base_prng_below(&prng, 8192);
        struct bed_request r = bed_request(l, i, opcode, 0, 8 * (i % 64), bytes);
        (void)bed_post(l, &r);
        bed_pass(net, base_prng_below(&prng, 10000));
        for (uint32_t n = 0; n < NODES; n++)
            (void)fab_poll(node[n].cq, 64, wc);
    }
    while (sim_net_step(net))
        ;
    for (uint32_t i = 0; i < 2 * NODES; i++)
        bed_unlink(&link[i]);
    for (uint32_t i = 0; i < NODES; i++)
        bed_close(&node[i]);
    const uint64_t hash = sim_net_hash(net);
    *events = sim_net_events(net);
    sim_net_free(net);
    return hash;
}

START_TEST(the_same_seed_leads_to_the_same_events)
{
    uint64_t first, second, other;
    const uint64_t hash = play_net(7, &first);
    void *elsewhere = malloc(12345); /* what is allocated next lies elsewhere */
    ck_assert_uint_eq(play_net(7, &second), hash);
    free(elsewhere);
    ck_assert_uint_eq(second, first);
    ck_assert_uint_gt(first, 2 * ROUNDS);
    ck_assert_uint_ne(play_net(8, &other), hash);
}
END_TEST

/* What a process of its own finds, whose addresses are others: its argument is the seed. */
static uint64_t hash_elsewhere(const char *seed)
{
    uint64_t hash = 0;
    int fd[2], status;
    ck_assert_int_eq(pipe(fd), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        (void)dup2(fd[1], HASH_FD);
        execl("/proc/self/exe", "hash", seed, (char *)NULL);
        _exit(127);
    }
    close(fd[1]);
    ck_assert_int_eq(read(fd[0], &hash, sizeof hash), sizeof hash);
    close(fd[0]);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    return hash;
}

START_TEST(and_in_every_process)
{
    uint64_t events;
    const uint64_t hash = play_net(11, &events);
    for (int i = 0; i < 4; i++)
        ck_assert_uint_eq(hash_elsewhere("11"), hash);
}
END_TEST

START_TEST(a_net_in_which_nothing_is_under_way_has_no_event)
{
    struct sim_net *net = sim_net_new(1, NULL, 0);
    struct bed_node a, b;
    struct bed_link l;
    bed_open(&a, net, 0);
    bed_open(&b, net, 1);
    bed_link(&l, &a, &b, FAB_QP_RC);
    ck_assert_int_eq(bed_do(&l, IBV_WR_RDMA_WRITE, 0, 0, 64), IBV_WC_SUCCESS);
    while (sim_net_step(net))
        ;
    ck_assert_int_eq(fab_arm(a.cq, false), 0);
    ck_assert_uint_eq(sim_net_next_due(net), SIM_NEVER); /* also while somebody sleeps */
    bed_unlink(&l);
    bed_close(&a);
    bed_close(&b);
    sim_net_free(net);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(the_same_seed_leads_to_the_same_events)                                                      \
    T(and_in_every_process)                                                                        \
    T(a_net_in_which_nothing_is_under_way_has_no_event)

static const char *asked_seed;
static uint64_t answered_hash;

START_TEST(the_net_of_another_process)
{
    uint64_t events;
    answered_hash = play_net(strtoull(asked_seed, NULL, 10), &events);
}
END_TEST

#define ASKED(T) T(the_net_of_another_process)

int suite_main(void);
int asked_main(void);
#define main suite_main
KEDGE_CHECK_MAIN("fabric.sim_net", TESTS)
#undef main
#define main asked_main
KEDGE_CHECK_MAIN("", ASKED)
#undef main

/* With the argument of hash_elsewhere(), the hash goes to a descriptor that Check does not use. */
int main(int argc, char **argv)
{
    if (argc != 2)
        return suite_main();
    asked_seed = argv[1];
    (void)setenv("CK_FORK", "no", 1);
    (void)setenv("CK_VERBOSITY", "silent", 1);
    if (asked_main() != EXIT_SUCCESS)
        return EXIT_FAILURE;
    return write(HASH_FD, &answered_hash, sizeof answered_hash) == sizeof answered_hash
               ? EXIT_SUCCESS
               : EXIT_FAILURE;
}
