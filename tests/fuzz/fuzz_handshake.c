/* SPDX-License-Identifier: Apache-2.0 */
/* Datagrams of the handshake: first as bytes, then as a peer's messages to a connector that is
 * itself asking, dropping and getting older. Whatever they say, each queue pair stays in one place,
 * and all of them can be given back at the end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../agent/connect/internal.h"
#include "base/error.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { STEP = 8, MAX_STEPS = 64, INITIATORS = 2, RESPONDERS = 3, WANTED = 4, TAGS = 256 };

struct bed {
    struct kedge_fab *fab;
    struct kedge_fab_pd *pd;
    struct kedge_fab_cq *cq;
    struct kedge_connector *c;
    uint64_t now_ns, random;
    uint32_t wanted;
    struct kedge_fab_qp *qp[WANTED * MAX_STEPS]; /* connections that the "lane" has */
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

static void *call(struct bed *b, struct kedge_fab_ctl ctl)
{
    int status = kedge_fab_call(b->fab, &ctl);
    KEDGE_ASSERT(status == 0);
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
    struct kedge_errbuf err;
    if (dir[0] == '\0') {
        snprintf(dir, sizeof dir, "/dev/shm/kedge-fuzz-XXXXXX");
        KEDGE_ASSERT(mkdtemp(dir) != NULL);
        atexit(remove_dir);
    }
    struct kedge_fab_open_attr attr = {.device = dir, .gid = {0xfd, [15] = 1}};
    *b = (struct bed){.now_ns = 1000000000, .random = 1};
    int status = kedge_fab_soft.open(&attr, &b->fab, &err);
    KEDGE_ASSERT(status == 0);
    b->pd = call(b, (struct kedge_fab_ctl){.kind = KEDGE_FAB_ALLOC_PD});
    b->cq = call(b, (struct kedge_fab_ctl){.kind = KEDGE_FAB_CREATE_CQ, .cq = {.cqe = 64}});
    struct kedge_connector_config config = {.pool = 1,
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
    struct kedge_connector_resources r = {
        .fab = b->fab, .pd = b->pd, .system_pd = b->pd, .cq = b->cq};
    status = kedge_connector_new(&config, &r, fill, b, &b->c, &err);
    KEDGE_ASSERT(status == 0);
}

static void bed_close(struct bed *b)
{
    kedge_connector_free(b->c);
    call(b, (struct kedge_fab_ctl){.kind = KEDGE_FAB_DESTROY_CQ, .cq = {.x = b->cq}});
    call(b, (struct kedge_fab_ctl){.kind = KEDGE_FAB_FREE_PD, .pd = {.x = b->pd}});
    int status = kedge_fab_close(b->fab);
    KEDGE_ASSERT(status == 0); /* nothing was left behind */
}

static void check(const struct bed *b)
{
    struct kedge_connector_stats s;
    kedge_connector_stats(b->c, &s);
    KEDGE_ASSERT(s.outgoing == b->qps && s.outgoing <= INITIATORS);
    KEDGE_ASSERT(s.incoming <= RESPONDERS && s.initiators <= INITIATORS);
    KEDGE_ASSERT(s.responders <= RESPONDERS && s.responders_ready <= s.responders);
}

static void step(struct bed *b, uint64_t ms)
{
    struct kedge_connector_event e;
    b->now_ns += ms * 1000000;
    (void)kedge_fab_run(b->fab);
    (void)kedge_connector_step(b->c, b->now_ns);
    while (kedge_connector_event(b->c, &e)) {
        KEDGE_ASSERT(e.tag < TAGS && (e.qp == NULL) == (e.status != 0));
        b->wanted--;
        if (e.qp != NULL)
            b->qp[b->qps++] = e.qp;
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
    struct kedge_handshake h = {.magic = KEDGE_HANDSHAKE_MAGIC,
                                .version = KEDGE_HANDSHAKE_VERSION,
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
                                .ud_qpn = d[6] & 128 ? kedge_connector_ud_qpn(b->c) : 1u + d[6],
                                .ud_qkey = kedge_connector_ud_qkey(b->c)};
    struct kedge_handshake checked;
    gid_of(b, d[1], h.from_gid);
    gid_of(b, d[1] & 128 ? 3 : 0, h.to_gid);
    if (kedge_handshake_read(&h, sizeof h, &checked) == 0)
        connector_message(b->c, &checked);
}

static void act(struct bed *b, const uint8_t d[STEP])
{
    struct kedge_connector_peer peer = {.incarnation = d[2] & 1 ? 100 : 99,
                                        .ud_qpn = kedge_connector_ud_qpn(b->c),
                                        .ud_qkey = kedge_connector_ud_qkey(b->c)};
    gid_of(b, d[1], peer.gid);
    if ((d[0] & 3) == 0 && b->wanted < WANTED) {
        b->wanted++;
        kedge_connector_connect(b->c, &peer, d[3]);
    } else if ((d[0] & 3) == 1 && b->qps > 0) {
        kedge_connector_drop(b->c, b->qp[--b->qps], b->now_ns);
    }
    step(b, d[4]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kedge_handshake h;
    struct bed b;
    (void)kedge_handshake_read(data, size, &h);
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
