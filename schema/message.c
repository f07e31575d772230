/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/message.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <infiniband/verbs.h>

#define MAX_24_BITS 0xffffffu

struct wire_message {
    uint16_t magic;
    uint8_t version, kind;
    uint32_t length, epoch, credit;
    uint64_t stream, to;
    uint32_t number, to_incarnation, to_tenant, from_tenant, imm;
    uint8_t with_imm, opens, parts, of_write;
    uint64_t more; /* of_write: written; TO_COUNTER: secret */
};
static_assert(sizeof(struct wire_message) == SCHEMA_MESSAGE_BYTES, "one cache line");

struct wire_part {
    uint64_t addr;
    uint32_t length, vkey;
};
static_assert(sizeof(struct wire_part) == SCHEMA_PART_BYTES, "layout");

struct wire_datagram {
    uint16_t magic;
    uint8_t version, notes;
    uint16_t pool, lid;
    uint8_t from_gid[16];
    uint32_t from_incarnation, to_incarnation, qpn, qkey;
    uint32_t purse_epoch, settled, wants, account_epoch, granted, used;
    uint8_t behind, zero[15];
};
static_assert(sizeof(struct wire_datagram) == SCHEMA_DATAGRAM_BYTES, "layout");

struct wire_note {
    uint64_t stream;
    uint32_t number, wait_us;
    uint8_t kind, status;
    uint16_t aside;
    uint8_t zero[4];
};
static_assert(sizeof(struct wire_note) == SCHEMA_NOTE_BYTES, "layout");
static_assert(SCHEMA_DATAGRAM_BYTES + SCHEMA_DATAGRAM_NOTES * SCHEMA_NOTE_BYTES <= 1024,
              "an Ethernet's MTU");

void schema_message_write(const struct schema_message *m, void *out)
{
    const struct wire_message w = {.magic = htole16(SCHEMA_MESSAGE_MAGIC),
                                   .version = SCHEMA_MESSAGE_VERSION,
                                   .kind = m->kind,
                                   .length = htole32(m->length),
                                   .epoch = htole32(m->epoch),
                                   .credit = htole32(m->credit),
                                   .stream = htole64(m->stream),
                                   .to = htole64(m->to),
                                   .number = htole32(m->number),
                                   .to_incarnation = htole32(m->to_incarnation),
                                   .to_tenant = htole32(m->to_tenant),
                                   .from_tenant = htole32(m->from_tenant),
                                   .imm = htole32(m->imm),
                                   .with_imm = m->with_imm,
                                   .opens = m->opens,
                                   .parts = m->parts,
                                   .of_write = m->of_write,
                                   .more = htole64(m->of_write ? m->written : m->secret)};
    memcpy(out, &w, sizeof w);
}

static bool is_sound(const struct schema_message *m)
{
    const bool names_port = m->kind == SCHEMA_MESSAGE_TO_PORT;
    if (m->kind == SCHEMA_MESSAGE_TO_COUNTER) {
        if (m->length != 0 || m->parts != 0 || m->with_imm || m->of_write)
            return false;
    } else if ((!names_port && m->kind != SCHEMA_MESSAGE_TO_VQP) || m->secret != 0) {
        return false;
    }
    if (m->of_write && (m->of_write > 1 || !m->with_imm || m->length != 0 || m->parts != 0))
        return false;
    return m->with_imm <= 1 && m->opens <= 1 && m->parts <= SCHEMA_PARTS_MOST &&
           (m->with_imm || m->imm == 0) && m->epoch != 0 && m->stream != 0 &&
           (names_port ? m->to <= UINT32_MAX : m->to != 0 && m->to_tenant == 0);
}

int schema_message_read(const void *from, size_t bytes, struct schema_message *out)
{
    struct wire_message w;
    if (bytes < sizeof w)
        return -EPROTO;
    memcpy(&w, from, sizeof w);
    if (le16toh(w.magic) != SCHEMA_MESSAGE_MAGIC)
        return -EPROTO;
    if (w.version != SCHEMA_MESSAGE_VERSION)
        return -EPROTONOSUPPORT;
    const struct schema_message m = {.kind = w.kind,
                                     .with_imm = w.with_imm,
                                     .opens = w.opens,
                                     .parts = w.parts,
                                     .length = le32toh(w.length),
                                     .epoch = le32toh(w.epoch),
                                     .credit = le32toh(w.credit),
                                     .stream = le64toh(w.stream),
                                     .to = le64toh(w.to),
                                     .number = le32toh(w.number),
                                     .to_incarnation = le32toh(w.to_incarnation),
                                     .to_tenant = le32toh(w.to_tenant),
                                     .from_tenant = le32toh(w.from_tenant),
                                     .imm = le32toh(w.imm),
                                     .of_write = w.of_write,
                                     .written = w.of_write ? (uint32_t)le64toh(w.more) : 0,
                                     .secret = w.of_write ? 0 : le64toh(w.more)};
    const size_t behind = m.parts != 0 ? m.parts * sizeof(struct wire_part) : m.length;
    if (!is_sound(&m) || behind != bytes - sizeof w)
        return -EPROTO;
    *out = m;
    return 0;
}

void schema_parts_write(const struct schema_part *parts, uint32_t count, void *out)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct wire_part w = {.addr = htole64(parts[i].addr),
                                    .length = htole32(parts[i].length),
                                    .vkey = htole32(parts[i].vkey)};
        memcpy((uint8_t *)out + i * sizeof w, &w, sizeof w);
    }
}

int schema_parts_read(const void *from, const struct schema_message *m, struct schema_part *out)
{
    struct schema_part parts[SCHEMA_PARTS_MOST];
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < m->parts; i++) {
        struct wire_part w;
        memcpy(&w, (const uint8_t *)from + i * sizeof w, sizeof w);
        parts[i] = (struct schema_part){
            .addr = le64toh(w.addr), .length = le32toh(w.length), .vkey = le32toh(w.vkey)};
        if (parts[i].length == 0 || parts[i].addr > UINT64_MAX - parts[i].length)
            return -EPROTO;
        bytes += parts[i].length;
    }
    if (bytes != m->length)
        return -EPROTO;
    memcpy(out, parts, m->parts * sizeof parts[0]);
    return 0;
}

size_t schema_datagram_write(const struct schema_datagram *d, void *out)
{
    struct wire_datagram w = {.magic = htole16(SCHEMA_DATAGRAM_MAGIC),
                              .version = SCHEMA_MESSAGE_VERSION,
                              .notes = (uint8_t)d->notes,
                              .pool = htole16(d->pool),
                              .lid = htole16(d->lid),
                              .from_incarnation = htole32(d->from_incarnation),
                              .to_incarnation = htole32(d->to_incarnation),
                              .qpn = htole32(d->qpn),
                              .qkey = htole32(d->qkey),
                              .purse_epoch = htole32(d->purse_epoch),
                              .settled = htole32(d->settled),
                              .wants = htole32(d->wants),
                              .account_epoch = htole32(d->account_epoch),
                              .granted = htole32(d->granted),
                              .used = htole32(d->used),
                              .behind = d->behind};
    memcpy(w.from_gid, d->from_gid, sizeof w.from_gid);
    memcpy(out, &w, sizeof w);
    for (uint32_t i = 0; i < d->notes; i++) {
        const struct schema_note *n = &d->note[i];
        const struct wire_note note = {.stream = htole64(n->stream),
                                       .number = htole32(n->number),
                                       .wait_us = htole32(n->wait_us),
                                       .kind = n->kind,
                                       .status = n->status,
                                       .aside = htole16(n->aside)};
        memcpy((uint8_t *)out + sizeof w + i * sizeof note, &note, sizeof note);
    }
    return sizeof w + d->notes * sizeof(struct wire_note);
}

static bool note_is_sound(const struct schema_note *n)
{
    const bool failed = n->kind == SCHEMA_NOTE_FAILED;
    return n->stream != 0 && n->kind >= SCHEMA_NOTE_TAKEN && n->kind <= SCHEMA_NOTE_READS &&
           (failed ? n->status > IBV_WC_SUCCESS && n->status <= IBV_WC_GENERAL_ERR
                   : n->status == 0) &&
           (n->kind == SCHEMA_NOTE_REFUSED || n->wait_us == 0) &&
           (n->kind == SCHEMA_NOTE_TAKEN || n->kind == SCHEMA_NOTE_ANSWER || n->aside == 0);
}

/* Field by field: the room for notes, most of which is not used, is left as it was. */
static void read_head(const struct wire_datagram *w, struct schema_datagram *out)
{
    memcpy(out->from_gid, w->from_gid, sizeof out->from_gid);
    out->from_incarnation = le32toh(w->from_incarnation);
    out->to_incarnation = le32toh(w->to_incarnation);
    out->pool = le16toh(w->pool);
    out->lid = le16toh(w->lid);
    out->qpn = le32toh(w->qpn);
    out->qkey = le32toh(w->qkey);
    out->purse_epoch = le32toh(w->purse_epoch);
    out->settled = le32toh(w->settled);
    out->wants = le32toh(w->wants);
    out->account_epoch = le32toh(w->account_epoch);
    out->granted = le32toh(w->granted);
    out->used = le32toh(w->used);
    out->behind = w->behind;
    out->notes = w->notes;
}

int schema_datagram_read(const void *from, size_t bytes, struct schema_datagram *out)
{
    struct wire_datagram w;
    if (bytes < sizeof w)
        return -EPROTO;
    memcpy(&w, from, sizeof w);
    if (le16toh(w.magic) != SCHEMA_DATAGRAM_MAGIC)
        return -EPROTO;
    if (w.version != SCHEMA_MESSAGE_VERSION)
        return -EPROTONOSUPPORT;
    if (w.notes > SCHEMA_DATAGRAM_NOTES || bytes != sizeof w + w.notes * sizeof(struct wire_note))
        return -EPROTO;
    read_head(&w, out);
    if (out->qpn == 0 || out->qpn > MAX_24_BITS || out->from_incarnation == 0 || out->behind > 1)
        return -EPROTO;
    for (uint32_t i = 0; i < out->notes; i++) {
        struct wire_note n;
        memcpy(&n, (const uint8_t *)from + sizeof w + i * sizeof n, sizeof n);
        out->note[i] = (struct schema_note){.stream = le64toh(n.stream),
                                            .number = le32toh(n.number),
                                            .wait_us = le32toh(n.wait_us),
                                            .kind = n.kind,
                                            .status = n.status,
                                            .aside = le16toh(n.aside)};
        if (!note_is_sound(&out->note[i]))
            return -EPROTO;
    }
    return 0;
}
