/* SPDX-License-Identifier: Apache-2.0 */
/* What those who drive and the one who serves in a mixed run (mixed.sh) have in common: where what
 * lies in the region of who serves, and what a message says. */
#ifndef E2E_MIXER_H
#define E2E_MIXER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <kedge_batch.h>
#include <kedge_notify.h>

/* Each driver has an area, and behind it bytes that stay 0. In it: blocks of single WRITEs, of a
 * batch and of a list, each of which says in its first bytes whose it is, and a word for atomics.
 */
enum {
    DRIVERS = 8,
    BLOCK = 512,
    SINGLE = 32, /* blocks */
    BATCH = 32,
    LIST = 8,
    BLOCKS = SINGLE + BATCH + LIST,
    WORD_AT = BLOCKS * BLOCK,
    AREA = WORD_AT + 4096,
    REGION = DRIVERS * AREA,
    LONGEST = 100000, /* bytes of a message */
    PORT = 88
};

struct mix_tag { /* the first bytes of a block */
    uint32_t driver, life;
    uint64_t round;
};

/* A block's bytes follow from its tag and its place. */
void mix_fill(uint8_t *block, const struct mix_tag *tag, uint32_t at);
bool mix_holds(const uint8_t *block, const struct mix_tag *tag, uint32_t at);

struct mix_letter {  /* the first bytes of a message */
    uint64_t stream; /* of a connection: random */
    uint64_t number; /* in that, from 0 on */
    struct mix_tag of;
    uint32_t bytes;  /* of the message */
    uint32_t listed; /* 1: a list ends with it, whose blocks have the tag */
    /* How often this life of the driver's has raised what this life of who serves has, at least
     * and at most. */
    uint64_t adds[2], raises[2];
};
void mix_write_letter(uint8_t *at, const struct mix_letter *l);
/* False: it is not what such a message holds. */
bool mix_read_letter(const uint8_t *at, uint32_t bytes, struct mix_letter *out);

/* What went wrong, which is an offence of Kedge's, or of this test's own. Exits with 1. */
#define OFFENCE(...)                                                                               \
    do {                                                                                           \
        printf("OFFENCE: ");                                                                       \
        printf(__VA_ARGS__);                                                                       \
        printf("\n");                                                                              \
        exit(1);                                                                                   \
    } while (0)

extern volatile int mix_over; /* SIGTERM came */
extern const char *mix_plant; /* $MIXER_PLANT: what a driver does wrong, or "" */
int mix_patience_ms(void);    /* how long nothing may come: $MIXER_PATIENCE_MS */

void mix_drive(uint32_t driver, uint32_t life, const char *path);
void mix_serve(const char *path);

#endif
