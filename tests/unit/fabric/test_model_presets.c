/* SPDX-License-Identifier: Apache-2.0 */
/* Each card of the model does, end to end, what its paper measured. What no figure of a paper says
 * is held to nothing. */
#include <math.h>
#include <stdio.h>

#include "../check_main.h"
#include "model_load.h"

enum { MS = 1000000 };

/* The model's figure is the paper's, within so many percent; printed, whatever comes of it. */
static void hold(const char *what, double paper, double model, double percent)
{
    printf("%-66s paper %8.2f, model %8.2f (%+.1f %%, held to %.0f %%)\n", what, paper, model,
           100 * (model / paper - 1), percent);
    ck_assert_msg(fabs(model / paper - 1) <= percent / 100, "%s: paper %.2f, model %.2f", what,
                  paper, model);
}

static const struct model_request write_32 = {
    .kind = MODEL_WRITE, .bytes = 32, .sges = 1, .inlined = true, .signalled = true};
static const struct model_request read_32 = {
    .kind = MODEL_READ, .bytes = 32, .sges = 1, .signalled = true};

/* ---- connectx-3: RFP, RDMAbox */

/* RFP's threads wait for each request, and have a connection to each client (III-B). */
static struct load_result rfp_out(uint32_t threads, uint32_t clients, uint32_t bytes)
{
    struct load o = {.preset = "connectx-3",
                     .request = write_32,
                     .out_bound = true,
                     .threads = threads,
                     .clients = clients,
                     .qps = 1,
                     .depth = 1,
                     .list = 1,
                     .for_ns = 2 * MS};
    o.request.bytes = bytes;
    o.request.inlined = bytes <= 256;
    return load_measure(&o);
}

static struct load_result rfp_in(uint32_t threads, uint32_t bytes)
{
    struct load o = {.preset = "connectx-3",
                     .request = read_32,
                     .threads = threads,
                     .clients = 7,
                     .qps = 1,
                     .depth = 1,
                     .list = 1,
                     .for_ns = MS};
    o.request.bytes = bytes;
    return load_measure(&o);
}

START_TEST(a_connectx_3_serves_five_times_what_it_issues)
{
    const double in = rfp_in(5, 32).mops, out = rfp_out(4, 7, 32).mops;
    hold("RFP III-B: in-bound READs of 32 bytes, M/s", 11.26, in, 2);
    hold("RFP III-B: out-bound WRITEs of 32 bytes, M/s", 2.11, out, 5);
    hold("RFP III-B: the one by the other", 11.26 / 2.11, in / out, 5);
}
END_TEST

START_TEST(a_connectx_3_issues_less_for_more_threads_than_four)
{
    static const double paper[4][4] = {{0.62, 0.61, 0.61, 0.61},
                                       {1.12, 1.13, 1.12, 1.12},
                                       {2.17, 2.13, 2.11, 2.11},
                                       {1.46, 1.46, 1.51, 1.50}};
    char what[80];
    for (uint32_t t = 0; t < 4; t++)
        for (uint32_t c = 0; c < 4; c++) {
            snprintf(what, sizeof what, "RFP table I: WRITEs, %u threads, %u clients, M/s", 1u << t,
                     1 + 2 * c);
            hold(what, paper[t][c], rfp_out(1u << t, 1 + 2 * c, 32).mops, 12);
        }
    /* Jakiro's operation is a WRITE and a READ, by 16 threads of each of 7 clients. */
    hold("RFP V-B: 112 client threads, M/s of either", 2 * 3.1, rfp_in(16, 32).mops, 10);
}
END_TEST

START_TEST(a_connectx_3_is_as_fast_either_way_above_1500_bytes)
{
    hold("RFP V-D2: READs of 1 KiB, M/s", 3.1, rfp_in(5, 1024).mops, 10);
    hold("RFP III-B: in-bound by out-bound at 2 KiB", 1,
         rfp_in(5, 2048).mops / rfp_out(8, 7, 2048).mops, 10);
    ck_assert(rfp_in(5, 1024).mops > 1.3 * rfp_out(4, 7, 1024).mops);
}
END_TEST

START_TEST(a_connectx_3_does_atomics_one_by_one)
{
    struct load o = {.preset = "connectx-3",
                     .request = {.kind = MODEL_ATOMIC, .bytes = 8, .sges = 1, .signalled = true},
                     .threads = 4,
                     .clients = 7,
                     .qps = 1,
                     .depth = 1,
                     .list = 1,
                     .for_ns = MS};
    hold("Design Guidelines 5.4: CX3, atomics on one counter, M/s", 2.7, load_measure(&o).mops, 3);
    o.counters = 4096;
    hold("Design Guidelines 5.4: CX3, atomics on 4,096 counters, M/s", 2.7, load_measure(&o).mops,
         3);
}
END_TEST

/* RDMAbox posts blocks of 128 KiB (V-A) by 4 queue pairs. That a thread has 8 of them out is
 * derived: 7 threads have 7 MB. */
static double rdmabox(uint32_t threads, uint32_t most_blocks)
{
    const struct load o = {
        .preset = "connectx-3",
        .request = {.kind = MODEL_WRITE, .bytes = 128 << 10, .sges = 1, .signalled = true},
        .out_bound = true,
        .threads = most_blocks > 0 ? 1 : threads,
        .clients = 1,
        .shared_qps = 4,
        .depth = most_blocks > 0 ? most_blocks : 8,
        .list = 1,
        .for_ns = 60 * MS};
    return load_measure(&o).mops * 1e6;
}

START_TEST(a_connectx_3_is_slower_with_more_out_than_7_megabytes)
{
    const double with = rdmabox(0, 56), at_7 = rdmabox(7, 0), at_8 = rdmabox(8, 0),
                 at_64 = rdmabox(64, 0);
    hold("RDMAbox V-A: blocks/s of 7 threads, by the most with a window", 1, at_7 / with, 1);
    ck_assert(at_8 < 0.995 * at_7);
    hold("RDMAbox V-A: blocks/s with a window of 7 MB, by 64 threads without", 1.299, with / at_64,
         5);
}
END_TEST

/* ---- connectx-4: KRCore */

static struct load_result krcore(enum model_kind kind, bool dc, uint32_t clients, uint32_t threads,
                                 uint32_t depth)
{
    const struct load o = {.preset = "connectx-4",
                           .request = {.kind = kind,
                                       .bytes = 8,
                                       .sges = 1,
                                       .inlined = kind == MODEL_WRITE,
                                       .signalled = true,
                                       .dc = dc},
                           .threads = threads,
                           .clients = clients,
                           .qps = 1,
                           .depth = depth,
                           .list = 1,
                           .for_ns = MS / 4};
    return load_measure(&o);
}

START_TEST(a_connectx_4_serves_what_krcore_measured)
{
    hold("KRCore 5.2: READs of 8 bytes, RC, M/s", 138, krcore(MODEL_READ, false, 9, 27, 16).mops,
         2);
    hold("KRCore 5.2: READs, DC, M/s", 118, krcore(MODEL_READ, true, 9, 27, 16).mops, 2);
    hold("KRCore 5.2: WRITEs, RC, M/s", 145, krcore(MODEL_WRITE, false, 9, 27, 16).mops, 2);
    hold("KRCore 5.2: WRITEs, DC, M/s", 132, krcore(MODEL_WRITE, true, 9, 27, 16).mops, 2);
    const double rc = krcore(MODEL_READ, false, 1, 1, 1).latency_us,
                 dc = krcore(MODEL_READ, true, 1, 1, 1).latency_us;
    hold("KRCore 5.2: a READ of 8 bytes, us", 2.15, rc, 2);
    hold("KRCore 5.2: a READ by DC, by one by RC", 3.24 / 3.15, dc / rc, 3);
}
END_TEST

/* ---- connect-ib: Design Guidelines */

static double guidelines(struct model_request r, bool out_bound, uint32_t list, uint32_t counters)
{
    const struct load o = {.preset = "connect-ib",
                           .request = r,
                           .out_bound = out_bound,
                           .threads = 14,
                           .clients = 8,
                           .qps = 1,
                           .depth = 512,
                           .list = list,
                           .counters = counters,
                           .for_ns = MS / 4};
    return load_measure(&o).mops;
}

START_TEST(a_connect_ib_does_what_the_guidelines_measured)
{
    const struct model_request send = {
        .kind = MODEL_SEND, .bytes = 60, .sges = 1, .inlined = true, .datagram = true};
    /* The guidelines carry the address and 4 bytes in one cache line (figure 5). */
    const struct model_request header_only = {.kind = MODEL_SEND, .sges = 1, .inlined = true};
    struct model_request read = {.kind = MODEL_READ, .bytes = 64, .sges = 1, .signalled = true};
    const struct model_request atomic = {
        .kind = MODEL_ATOMIC, .bytes = 8, .sges = 1, .signalled = true};
    hold("Design Guidelines table 4: UD SENDs, one by one, M/s", 80, guidelines(send, true, 1, 0),
         10);
    hold("Design Guidelines table 5: UD SENDs, 16 a doorbell, M/s", 101.6,
         guidelines(send, true, 16, 0), 5);
    hold("Design Guidelines table 5: the same without payload, M/s", 157,
         guidelines(header_only, true, 16, 0), 5);
    hold("Design Guidelines table 5: RECVs, M/s", 82, guidelines(send, false, 16, 0), 3);
    hold("Design Guidelines table 5: RECVs without payload, M/s", 122,
         guidelines(header_only, false, 16, 0), 3);
    hold("Design Guidelines table 4: in-bound READs of 64 bytes, M/s", 121.6,
         guidelines(read, false, 1, 0), 5);
    read.bytes = 128;
    hold("Design Guidelines table 4: in-bound READs of 128 bytes, M/s", 76.2,
         guidelines(read, false, 1, 0), 5);
    read.bytes = 8;
    hold("Design Guidelines 5.3.2: out-bound READs, M/s", 88, guidelines(read, true, 1, 0), 5);
    hold("Design Guidelines table 4: atomics on one counter, M/s", 2.24,
         guidelines(atomic, false, 1, 0), 3);
    hold("Design Guidelines table 4: atomics on 4,096 counters, M/s", 52,
         guidelines(atomic, false, 1, 4096), 3);
}
END_TEST

#define TESTS(X)                                                                                   \
    X(a_connectx_3_serves_five_times_what_it_issues)                                               \
    X(a_connectx_3_issues_less_for_more_threads_than_four)                                         \
    X(a_connectx_3_is_as_fast_either_way_above_1500_bytes)                                         \
    X(a_connectx_3_does_atomics_one_by_one)                                                        \
    X(a_connectx_3_is_slower_with_more_out_than_7_megabytes)                                       \
    X(a_connectx_4_serves_what_krcore_measured)                                                    \
    X(a_connect_ib_does_what_the_guidelines_measured)

KEDGE_CHECK_MAIN("model presets", TESTS)
