/* SPDX-License-Identifier: Apache-2.0 */
/* The end of two probes that lends its device, and does what it is asked. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "peer.h"

enum { CLIENTS = 64 /* that show a wrong word, before it ends */ };

void probe_peer_describe(const struct bed *b, struct peer_end *out)
{
    const struct fab_caps *caps = &b->fab->caps;
    *out = (struct peer_end){.lid = caps->lid,
                             .mtu = caps->mtu,
                             .rc = (caps->transports & FAB_RC) != 0,
                             .dc = probe_bed_uses_dc(b) && (caps->transports & FAB_DC) != 0,
                             .service_level = caps->service.service_level,
                             .traffic_class = caps->service.traffic_class,
                             .pkey = caps->service.pkey_index};
    memcpy(out->gid, caps->gid, sizeof out->gid);
}

int probe_peer_make_connection(struct bed *b, struct fab_qp **out)
{
    return probe_bed_qp_new(b, BED_INITIATOR, NULL, out);
}

int probe_peer_raise(struct bed *b, struct fab_qp *qp, const struct peer_end *to, enum ibv_mtu mtu)
{
    struct bed_steps steps;
    struct bed_far far = {.mtu = mtu, .hasty = true};
    if (to != NULL) {
        memcpy(far.gid, to->gid, sizeof far.gid);
        far.lid = to->lid;
        far.qpn = to->qpn;
    } else {
        memcpy(far.gid, b->fab->caps.gid, sizeof far.gid);
        far.lid = b->fab->caps.lid;
    }
    return probe_bed_raise_to(b, qp, &far, &steps);
}

/* ---- what is lent */

struct lent {
    struct bed *b;
    struct peer_end end;
    struct fab_mem mem;
    struct fab_mr *mr;
    struct fab_qp *qp;
    struct fab_dct *dct[PEER_TARGETS];
};

static int lend_memory(struct lent *l)
{
    struct bed *b = l->b;
    int status = fab_mem_alloc(PEER_MEMORY, "kedge-probe-lent", &l->mem);
    if (status == 0)
        status = probe_bed_register(b, &l->mem, 0, PEER_MEMORY, probe_bed_access(b), &l->mr);
    if (status == 0)
        status = probe_peer_make_connection(b, &l->qp);
    for (int i = 0; i < PEER_TARGETS && status == 0 && l->end.dc; i++) {
        struct fab_ctl c = {
            .kind = FAB_CREATE_DCT,
            .dct = {
                .pd = b->pd, .cq = b->far_cq, .srq = b->srq, .access = probe_bed_target_access(b)}};
        status = base_random_bytes(&c.dct.dc_key, sizeof c.dct.dc_key);
        if (status == 0)
            status = probe_bed_call(b, &c);
        if (status != 0)
            break;
        l->dct[i] = c.dct.x;
        l->end.dctn[i] = l->dct[i]->dctn;
        l->end.dc_key[i] = l->dct[i]->dc_key;
    }
    if (status != 0)
        return status;
    l->end.qpn = l->qp->qpn;
    l->end.addr = l->mr->addr;
    l->end.rkey = l->mr->rkey;
    l->end.bytes = PEER_MEMORY;
    return 0;
}

static void take_back(struct lent *l)
{
    struct bed *b = l->b;
    struct fab_ctl qp = {.kind = FAB_DESTROY_QP, .qp = {.x = l->qp}};
    if (l->qp != NULL)
        (void)probe_bed_call(b, &qp);
    for (int i = 0; i < PEER_TARGETS; i++) {
        struct fab_ctl dct = {.kind = FAB_DESTROY_DCT, .dct = {.x = l->dct[i]}};
        if (l->dct[i] != NULL)
            (void)probe_bed_call(b, &dct);
    }
    if (l->mr == NULL || probe_bed_deregister(b, l->mr) == 0)
        fab_mem_free(&l->mem);
}

/* ---- what is asked */

void probe_peer_pattern(uint8_t *bytes, uint64_t length, uint32_t seed)
{
    for (uint64_t i = 0; i < length; i++)
        bytes[i] = (uint8_t)(((uint32_t)i * 2654435761u + seed * 40503u) >> 24);
}

static int answer_connect(struct lent *l, const char *line, struct peer_link *link)
{
    struct peer_end client;
    unsigned mtu;
    int at = 0;
    if (sscanf(line, "connect %1u %n", &mtu, &at) != 1 || at == 0 || mtu < IBV_MTU_256 ||
        mtu > (unsigned)l->end.mtu || probe_peer_read_end(line + at, &client) != 0)
        return -EBADMSG;
    int status = probe_peer_raise(l->b, l->qp, &client, (enum ibv_mtu)mtu);
    if (status != 0)
        return probe_peer_say(link, "error its queue pair cannot be connected to this node: %s",
                              strerror(-status));
    return probe_peer_say(link, "ok");
}

static int answer_memory(struct lent *l, const char *line, struct peer_link *link)
{
    uint64_t at, length;
    uint32_t seed;
    uint8_t *bytes = l->mem.addr;
    const bool sum = sscanf(line, "sum %" SCNu64 " %" SCNu64, &at, &length) == 2;
    if (!sum && sscanf(line, "fill %" SCNu64 " %" SCNu64 " %" SCNu32, &at, &length, &seed) != 3)
        return -EBADMSG;
    if (at > PEER_MEMORY || length > PEER_MEMORY - at)
        return -EBADMSG;
    if (!sum)
        probe_peer_pattern(bytes + at, length, seed);
    return probe_peer_say(link, "ok %" PRIu32, sum ? base_crc32c(0, bytes + at, length) : 0);
}

/* Until the client goes: 0, or what it said that makes no sense. */
static int serve_client(struct lent *l, struct peer_link *link)
{
    char line[PEER_LINE];
    probe_peer_write_end(&l->end, line);
    int status = probe_peer_say(link, "%s", line);
    while (status == 0) {
        status = probe_peer_hear(link, line);
        if (status != 0)
            return status == -ECONNRESET ? 0 : status;
        status = strncmp(line, "connect ", 8) == 0 ? answer_connect(l, line, link)
                                                   : answer_memory(l, line, link);
    }
    return status;
}

/* Whether the client has shown the word: whoever else reaches the port gets nothing of the device.
 */
static bool shows_word(struct peer_link *link, const char *word)
{
    char line[PEER_LINE], wanted[PEER_WORD + 8];
    unsigned char differs = 0;
    snprintf(wanted, sizeof wanted, "word %s", word);
    if (probe_peer_hear(link, line) != 0 || strlen(line) != strlen(wanted))
        return false;
    for (size_t i = 0; wanted[i] != '\0'; i++)
        differs |= (unsigned char)(line[i] ^ wanted[i]);
    return differs == 0;
}

static int make_word(char out[PEER_WORD + 1])
{
    uint8_t random[PEER_WORD / 2];
    int status = base_random_bytes(random, sizeof random);
    for (size_t i = 0; i < sizeof random && status == 0; i++)
        snprintf(out + 2 * i, 3, "%02x", random[i]);
    return status;
}

static int serve_on(struct lent *l, int listener, const char *word, struct base_errbuf *err)
{
    const uint64_t end = base_clock_ns() + PEER_WAIT_MS * BASE_NS_PER_MS;
    for (int i = 0; i < CLIENTS; i++) {
        const uint64_t now = base_clock_ns();
        struct peer_link link = {.fd = -1};
        int status = now < end ? probe_peer_accept(listener, (end - now) / BASE_NS_PER_MS, &link)
                               : -ETIMEDOUT;
        if (status != 0)
            return base_err(err, status, "nobody came within %d minutes", PEER_WAIT_MS / 60000);
        bool known = shows_word(&link, word);
        if (known) {
            probe_peer_trust(&link);
            status = serve_client(l, &link);
        }
        probe_peer_close(&link);
        if (known)
            return status == 0 ? 0
                               : base_err(err, status, "the other node's probe broke off: %s",
                                          strerror(-status));
    }
    return base_err(err, -EACCES, "strangers keep coming to this port: choose another one");
}

/* HOST of HOST:PORT, with the port that it was given. */
static void print_where(const char *address, uint16_t port, const char *word, FILE *out)
{
    const int host = (int)(strrchr(address, ':') - address);
    fprintf(out,
            "waiting for the other node; run there, with this host's address in place of one that "
            "is not its own:\n  rdmactl doctor --peer %.*s:%u/%s\n",
            host, address, port, word);
    fflush(out);
}

int probe_peer_serve(struct bed *b, const char *address, FILE *out, struct base_errbuf *err)
{
    static struct lent l;
    char word[PEER_WORD + 1] = "";
    uint16_t port = 0;
    l = (struct lent){.b = b, .mem = {.fd = -1}};
    probe_peer_describe(b, &l.end);
    int status = lend_memory(&l), listener = -1;
    if (status == 0)
        status = make_word(word);
    if (status != 0)
        base_err(err, status, "what the other node needs cannot be made: %s", strerror(-status));
    else
        status = listener = probe_peer_listen(address, &port, err);
    if (listener >= 0) {
        print_where(address, port, word, out);
        status = serve_on(&l, listener, word, err);
        close(listener);
    }
    take_back(&l);
    return status;
}
