/* SPDX-License-Identifier: Apache-2.0 */
/* The conformance suite's harness: what each test is built of. Written against fabric.h alone.
 *
 * One thread. Devices are opened in the test itself, never in main(), which Check forks from.
 * Helpers that make something fail the test when they cannot; what must be able to fail returns a
 * status. Everything that waits does so with a time-out that only a hang reaches. */
#ifndef CONFORMANCE_HARNESS_H
#define CONFORMANCE_HARNESS_H

#include <check.h>

#include "fabric/fabric.h"

struct base_errbuf;

/* ---- which provider */

struct conf_provider {
    const char *name;
    int (*open)(const struct fab_open_attr *attr, struct fab **out,
                struct base_errbuf *err); /* NULL, but where the device has a time of its own: that,
                                           * and what lets so much of it go by, or as much as until
                                           * the descriptor can be read; then true. */
    uint64_t (*now_ns)(void);
    bool (*pass)(int fd, uint64_t ns);
};

/* Chosen in main(), before Check forks. Device: a provider's device, or NULL. */
void conf_choose(const struct conf_provider *provider, const char *device);
struct fab *conf_open(void); /* the chosen provider's device */
/* Whether the device has these transports; if not, counts the running test as skipped. */
bool conf_has(const struct fab *fab, uint32_t transports, const char *test);
/* The contrary, before it is opened, which takes a while. False where no test has opened it yet. */
bool conf_lacks(uint32_t transports, const char *test);
bool conf_is_short(void); /* less is to be repeated for chance's sake, on a slow machine */
/* How many were skipped; prints which. In main(), after the run. */
unsigned conf_report_skips(void);

/* ---- a node: one open device, a PD, a CQ for everything, registered memory */

enum { NODE_BYTES = 1 << 20, NODE_CQE = 1024, ALL_ACCESS = 0xf /* LOCAL_WRITE and REMOTE_* */ };

struct node {
    struct fab *fab;
    struct fab_pd *pd;
    struct fab_cq *cq;
    struct fab_mem mem;
    struct fab_mr *mr; /* all of mem, ALL_ACCESS */
    uint8_t *bytes;    /* mem.addr */
};

void node_open(struct node *n);
/* Frees what node_open() made; what a test made of it must be gone. */
void node_close(struct node *n);

struct fab_pd *make_pd(struct fab *fab);
struct fab_cq *make_cq(struct fab *fab, uint32_t cqe, struct fab_chan *chan);
struct fab_chan *make_chan(struct fab *fab);
struct fab_srq *make_srq(struct fab_pd *pd, uint32_t max_wr);
struct fab_mr *make_mr(struct fab_pd *pd, const struct fab_mem *mem, uint64_t offset,
                       uint64_t length, unsigned access);
/* The same at an address of its own, or -errno. */
int make_mr_at(struct fab_pd *pd, const struct fab_mem *mem, uint64_t offset, uint64_t length,
               unsigned access, uint64_t iova, struct fab_mr **out);
struct fab_ah *make_ah(struct fab_pd *pd, const uint8_t gid[16]);
struct fab_dct *make_dct(struct node *n, struct fab_srq *srq, uint64_t key);

struct qp_options {
    struct fab_pd *pd; /* NULL: the node's */
    struct fab_cq *send_cq, *recv_cq;
    struct fab_srq *srq;
    uint32_t send_wr, recv_wr; /* 0: 32 */
    uint32_t sge;              /* 0: 4, or what the device has */
};
struct fab_qp *make_qp(struct node *n, enum fab_qp_type type, const struct qp_options *options);

int free_pd(struct fab_pd *pd);
int free_cq(struct fab_cq *cq);
int free_chan(struct fab_chan *chan);
int free_srq(struct fab_srq *srq);
int free_mr(struct fab_mr *mr);
int free_ah(struct fab_ah *ah);
int free_qp(struct fab_qp *qp);
int free_dct(struct fab_dct *dct);

/* ---- states */

struct rc_options {
    unsigned access;       /* 0: all */
    uint8_t timeout;       /* 0: 18 (1 s), since a busy guest stands still for longer than 0.1 s */
    uint8_t retry_cnt;     /* 0: 7; otherwise one more than the real one */
    uint8_t rnr_retry;     /* 0: 7; otherwise one more than the real one */
    uint8_t min_rnr_timer; /* 0: 1 (10 us) */
};

/* Attributes and masks that verbs requires of each move, towards the peer qpn at gid. */
int attr_init(const struct fab_qp *qp, unsigned access, struct ibv_qp_attr *attr);
int attr_rtr(const struct fab_qp *qp, const uint8_t gid[16], uint32_t qpn,
             const struct rc_options *options, struct ibv_qp_attr *attr);
int attr_rts(const struct fab_qp *qp, const struct rc_options *options, struct ibv_qp_attr *attr);
int modify(struct fab_qp *qp, const struct ibv_qp_attr *attr, int mask);
int modify_state(struct fab_qp *qp, enum ibv_qp_state state);
enum ibv_qp_state state_of(struct fab_qp *qp);
/* From RESET to the state; gid and qpn matter to RC alone. */
void bring_to(struct fab_qp *qp, enum ibv_qp_state state, const uint8_t gid[16], uint32_t qpn,
              const struct rc_options *options);

/* ---- a link: an initiator on a that reaches b, over RC or DC */

struct link {
    enum fab_transport transport;
    struct node *a, *b;
    struct fab_qp *qp;   /* on a */
    struct fab_qp *peer; /* on b: RC */
    struct fab_dct *dct; /* on b: DC */
    struct fab_srq *srq;
    struct fab_ah *ah;
};

void link_open(struct link *l, enum fab_transport transport, struct node *a, struct node *b,
               const struct rc_options *options, const struct qp_options *qp_options);
void link_close(struct link *l);
/* RESET to RTS again, both sides. */
void link_repair(struct link *l, const struct rc_options *options);
void link_address(const struct link *l, struct fab_wr *wr); /* where the request goes */
int link_post(struct link *l, struct fab_wr *wr);
void link_post_recv(struct link *l, uint64_t wr_id, struct ibv_sge *sge, int num_sge);

/* The transports that loop tests run over. */
extern const enum fab_transport conf_reliable[2];

/* Two nodes and a link from a to b: what most tests need. */
struct pair {
    struct node a, b;
    struct link l;
};
/* False, and nothing to close, if the device lacks the transport; the test is counted as skipped.
 * The options may be NULL. */
bool pair_open(struct pair *p, enum fab_transport transport, const struct rc_options *options,
               const struct qp_options *qp_options, const char *test);
bool nodes_open(struct pair *p, uint32_t transports, const char *test); /* without a link */
void pair_close(struct pair *p);
void nodes_close(struct pair *p);

/* ---- requests and completions */

struct ibv_sge sge_of(const struct node *n, uint64_t offset, uint32_t length);
/* A signalled request: the local offset of a, the remote offset of b, through b's own region. */
struct fab_wr make_wr(const struct link *l, uint64_t wr_id, enum ibv_wr_opcode opcode,
                      struct ibv_sge *sge, uint64_t remote_offset);
struct fab_wr make_atomic(const struct link *l, uint64_t wr_id, enum ibv_wr_opcode opcode,
                          struct ibv_sge *sge, uint64_t remote_offset, uint64_t compare_add,
                          uint64_t swap);
void post_recv(struct fab_qp *qp, uint64_t wr_id, struct ibv_sge *sge, int num_sge);
/* The pair that is open in this process, or NULL: while somebody waits at one node, the other goes
 * on too. */
void harness_drive(const struct pair *p);
/* Waits for n completions. */
void wait_for(struct fab_cq *cq, int n, struct ibv_wc *wc);
/* Waits for one, which must have this number and status. */
struct ibv_wc expect_wc(struct fab_cq *cq, uint64_t wr_id, enum ibv_wc_status status);
/* Posts one and waits for its status. */
enum ibv_wc_status do_one(struct link *l, struct fab_wr *wr);
/* Nothing completes for a while. */
void expect_silence(struct fab_cq *cq);
/* Polls cq until the queue pair is in ERR. */
void wait_for_err(const struct fab_qp *qp, struct fab_cq *cq);
/* Waits for an event of this type, polling cq meanwhile; others are dropped. */
struct fab_event wait_for_event(struct fab *fab, enum ibv_event_type type, struct fab_cq *cq);
bool fd_is_readable(int fd, int timeout_ms);
/* Of the clock that the device goes by; not_after_ns is told in it. */
uint64_t now_ns(void);
uint64_t now_ms(void);
void pause_us(unsigned us);
bool time_is_free(void); /* it is the device's own, and passes at once */

void add_states(Suite *suite);
void add_transfers(Suite *suite);
void add_queues(Suite *suite);
void add_errors(Suite *suite);
void add_keys(Suite *suite);
void add_memory(Suite *suite);
void add_ud(Suite *suite);
void add_dc(Suite *suite);
void add_rnr(Suite *suite);
void add_channels(Suite *suite);
void add_liveness(Suite *suite);
void add_objects(Suite *suite);
void add_random(Suite *suite);
void add_deadlines(Suite *suite);

TCase *conf_case(Suite *suite, const char *name);
/* Adds a test, unless the device is known to deviate there. The macros put it under Check's own. */
void conf_add(TCase *tcase, const TTest *test, int start, int end);
#undef tcase_add_test
#define tcase_add_test(tcase, test) conf_add(tcase, test, 0, 1)
#undef tcase_add_loop_test
#define tcase_add_loop_test(tcase, test, start, end) conf_add(tcase, test, start, end)

#endif
