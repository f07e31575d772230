/* SPDX-License-Identifier: Apache-2.0 */
/* Datagrams of the handshake: first as bytes, then as a peer's messages to a connector that is
 * itself asking, dropping and getting older. Whatever they say, each queue pair stays in one place,
 * and all of them can be given back at the end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../agent/connect/internal.h"
#include "../unit/agent/connector_made.h"
#include "base/error.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { STEP = 8, MAX_STEPS = 64, INITIATORS = 2, RESPONDERS = 3, WANTED = 4, TAGS = 256 };

struct bed {
    struct fab *fab;
    struct fab_pd *pd;
    struct fab_cq *cq;
    struct connector *c;
    uint64_t now_ns, random;
    uint32_t wanted;
    struct fab_qp *qp[WANTED * MAX_STEPS]; /* connections that the "lane" has */
    uint32_t qps;
};

static int fill(void *user, void *bytes, size_t n)
{
    struct bed *b = user;
    for (size_t i = 0; i < n; i++) {
        b->random = b->random * 6364136223846793005ull + 1442695040888963407ull;
        ((uint8_t *)bytes)[i] = (uint8_t)(b->random >> 56);
    }
    return 0;
}

static void *call(struct bed *b, struct fab_ctl ctl)
{
    int status = fab_call(b->fab, &ctl);
    BASE_ASSERT(status == 0);
    return ctl.pd.x;
}

static char dir[64];

static void remove_dir(void)
{
    char path[80];
    snprintf(path, sizeof path, "%s/device", dir);
    (void)unlink(path);
    (void)rmdir(dir);
}

static void bed_open(struct bed *b)
{
    struct base_errbuf err;
    if (dir[0] == '\0') {
        snprintf(dir, sizeof dir, "/dev/shm/kedge-fuzz-XXXXXX");
        BASE_ASSERT(mkdtemp(dir) != NULL);
        atexit(remove_dir);
    }
    struct fab_open_attr attr = {.device = dir, .gid = {0xfd, [15] = 1}};
    *b = (struct bed){.now_ns = 1000000000, .random = 1};
    int status = fab_soft.open(&attr, &b->fab, &err);
    BASE_ASSERT(status == 0);
    b->pd = call(b, (struct fab_ctl){.kind = FAB_ALLOC_PD});
    b->cq = call(b, (struct fab_ctl){.kind = FAB_CREATE_CQ, .cq = {.cqe = 64}});
    struct connector_config config = {.pool = 1,
                                      .incarnation = 100,
                                      .initiators = INITIATORS,
                                      .responders = RESPONDERS,
                                      .ahead = 2,
                                      .wanted = WANTED,
                                      .handshakes = 2,
                                      .sq_depth = 4,
                                      .sge = 1,
                                      .timeout = 8,
                                      .retry_cnt = 7,
                                      .retry_ns = 5000000,
                                      .silence_ns = 100000000,
                                      .idle_ns = 200000000};
    struct connector_resources r = {.fab = b->fab, .pd = b->pd, .system_pd = b->pd, .cq = b->cq};
    status = connector_made(&config, &r, fill, b, &b->c, &err);
    BASE_ASSERT(status == 0);
}

static void bed_close(struct bed *b)
{
    connector_free(b->c);
    call(b, (struct fab_ctl){.kind = FAB_DESTROY_CQ, .cq = {.x = b->cq}});
    call(b, (struct fab_ctl){.kind = FAB_FREE_PD, .pd = {.x = b->pd}});
    int status = fab_close(b->fab);
    BASE_ASSERT(status == 0); /* nothing was left behind */
}

static void check(const struct bed *b)
{
    struct connector_stats s;
    connector_stats(b->c, &s);
    BASE_ASSERT(s.outgoing == b->qps && s.outgoing <= INITIATORS);
    BASE_ASSERT(s.incoming <= RESPONDERS && s.initiators <= INITIATORS);
    BASE_ASSERT(s.responders <= RESPONDERS && s.responders_ready <= s.responders);
}

static void step(struct bed *b, uint64_t ms)
{
    struct connector_event e;
    b->now_ns += ms * 1000000;
    (void)fab_run(b->fab);
    (void)connector_step(b->c, b->now_ns);
    while (connector_event(b->c, &e)) {
        BASE_ASSERT(e.tag < TAGS && (e.qp == NULL) == (e.status != 0));
        b->wanted--;
        if (e.qp != NULL)
            b->qp[b->qps++] = e.qp;
    }
    for (struct fab_qp *qp; (qp = connector_broken(b->c)) != NULL;) {
        uint32_t i = 0;
        while (i < b->qps && b->qp[i] != qp)
            i++;
        BASE_ASSERT(i < b->qps);
    }
    check(b);
}

static void gid_of(const struct bed *b, uint8_t choice, uint8_t gid[16])
{
    memcpy(gid, b->fab->caps.gid, 16);
    gid[15] = (uint8_t)(1 + choice % 4); /* 1 is the connector's own */
}

/* One that it has, or one that is made up. */
static uint64_t nonce_of(const struct bed *b, uint8_t choice)
{
    uint32_t i = choice % (b->c->outs + RESPONDERS + 4);
    if (i < b->c->outs)
        return b->c->out[i].nonce;
    if (i < b->c->outs + RESPONDERS)
        return b->c->in[i - b->c->outs].request.nonce;
    return i;
}

/* Eight bytes are a message; it goes through the same door as one from the wire. */
static void say(struct bed *b, const uint8_t d[STEP])
{
    struct schema_handshake h = {.magic = SCHEMA_HANDSHAKE_MAGIC,
                                 .version = SCHEMA_HANDSHAKE_VERSION,
                                 .kind = d[0] & 15,
                                 .reason = d[0] >> 4,
                                 .from_incarnation = 98u + d[2] % 5,
                                 .to_incarnation = d[2] & 128 ? 99 : 100,
                                 .nonce = nonce_of(b, d[3]),
                                 .pool = d[4] & 128 ? 2 : 1,
                                 .mtu = d[4] & 7,
                                 .rd_atomic = d[5],
                                 .qpn = d[6] * 77u,
                                 .psn = d[7] * 77777u,
                                 .ud_qpn = d[6] & 128 ? connector_ud_qpn(b->c) : 1u + d[6],
                                 .ud_qkey = connector_ud_qkey(b->c)};
    struct schema_handshake checked;
    gid_of(b, d[1], h.from_gid);
    gid_of(b, d[1] & 128 ? 3 : 0, h.to_gid);
    if (schema_handshake_read(&h, sizeof h, &checked) == 0)
        connector_message(b->c, &checked);
}

static void act(struct bed *b, const uint8_t d[STEP])
{
    struct connector_peer peer = {.incarnation = d[2] & 1 ? 100 : 99,
                                  .ud_qpn = connector_ud_qpn(b->c),
                                  .ud_qkey = connector_ud_qkey(b->c)};
    gid_of(b, d[1], peer.gid);
    if ((d[0] & 3) == 0 && b->wanted < WANTED) {
        b->wanted++;
        connector_connect(b->c, &peer, d[3]);
    } else if ((d[0] & 3) == 1 && b->qps > 0) {
        connector_drop(b->c, b->qp[--b->qps], b->now_ns);
    }
    step(b, d[4]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct schema_handshake h;
    struct bed b;
    (void)schema_handshake_read(data, size, &h);
    if (size % STEP != 0) /* the steps are those without what is behind the last one */
        return 0;
    bed_open(&b);
    for (uint32_t i = 0; i < MAX_STEPS && size >= STEP; i++, data += STEP, size -= STEP) {
        if (data[0] & 8 && data[0] & 4)
            act(&b, data);
        else
            say(&b, data);
        step(&b, 1);
    }
    bed_close(&b);
    return 0;
}
