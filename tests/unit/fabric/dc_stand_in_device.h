/* SPDX-License-Identifier: Apache-2.0 */
/* What the stand-in is made of, and its trace (dc_stand_in.h). */
#ifndef TESTS_UNIT_FABRIC_DC_STAND_IN_DEVICE_H
#define TESTS_UNIT_FABRIC_DC_STAND_IN_DEVICE_H

#include <check.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "verbs/verbs.h"

enum { FAKE_WRS = 128, FAKE_CQE = 1024 /* of a DCI's ring, and of the CQ, at most */ };

enum { NO_REQUEST, BUILT, ADDRESSED = 2, FILLED = 4 }; /* bits of the request that is being built */

struct fake_qp {
    struct ibv_qp_ex ex; /* first: an ibv_qp is taken for it */
    struct mlx5dv_qp_ex dv;
    enum mlx5dv_dc_type dc;
    uint32_t max_wr, head, log_streams;
    uint32_t tail;   /* by which libmlx5 sees room: behind the last completion that was polled */
    uint32_t oldest; /* that the device may still execute */
    bool inside;     /* between start and complete */
    bool scatters;   /* its completions carry data (dc_stand_in_data.h) */
    int request, err;
    uint32_t building;
    struct {
        uint64_t wr_id;
        bool signalled, over;
        uint16_t stream;
    } wr[FAKE_WRS];
    uint32_t polls_to_err; /* a stream has failed: so many polls until the DCI is in ERR */
    uint16_t failed_stream;
    struct base_prng prng;
};

/* The device. */
static struct fake_device {
    char trace[16384];
    bool mlx5;
    uint8_t log_streams;
    uint32_t max_inline, max_rd_atomic;
    bool no_atomics, old_kernel; /* no target allows them; it takes no address of a DCI */
    const char *refused;         /* the call that fails: a beginning of its line */
    int refused_errno;
    uint64_t disliked; /* wr_id of a request that its doorbell is refused for; 0: none */
    int live;          /* objects */
    uint32_t next_number;
    int wrong;
    struct ibv_cq *cq;          /* its one; has room for cq->cqe */
    bool overflowed;            /* for good; the device has told of it (fake_cq_event()) */
    struct ibv_wc wc[FAKE_CQE]; /* `completions` that wait to be polled */
    struct fake_of {
        struct fake_qp *qp;
        uint32_t index;
    } of[FAKE_CQE]; /* which request each is of */
    int completions;
    struct ibv_qp_attr last; /* of modify_qp */
    struct ibv_ah_attr last_ah;
    void (*rung)(void);      /* after a doorbell; or NULL */
    struct fake_qp *failing; /* with streams: on its way to ERR (dc_stand_in_streams.h) */
    void (*goes_on)(struct fake_qp *q);
} fake;
static pthread_mutex_t fake_cq_lock = PTHREAD_MUTEX_INITIALIZER; /* as libmlx5 has one */

/* ---- the trace */

/* Adds a line. True when the test wants this call to fail. */
__attribute__((format(printf, 1, 2))) static bool say(const char *format, ...)
{
    va_list args;
    size_t at = strlen(fake.trace);
    va_start(args, format);
    vsnprintf(fake.trace + at, sizeof fake.trace - at, format, args);
    va_end(args);
    bool refused =
        fake.refused != NULL && strncmp(fake.trace + at, fake.refused, strlen(fake.refused)) == 0;
    at = strlen(fake.trace);
    snprintf(fake.trace + at, sizeof fake.trace - at, "\n");
    return refused;
}

static int wrong(const char *why)
{
    fake.wrong++;
    say("WRONG: %s", why);
    return EINVAL;
}

static inline void expect_trace(const char *expected)
{
    ck_assert_str_eq(fake.trace, expected);
    ck_assert_int_eq(fake.wrong, 0);
    fake.trace[0] = '\0';
}

#endif
