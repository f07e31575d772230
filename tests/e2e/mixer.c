/* SPDX-License-Identifier: Apache-2.0 */
/* Workers of a mixed run, for mixed.sh. Not installed. The agent is $KEDGE_SOCKET's.
 *
 *   serve FILE             has a region, counters and a port, of which FILE says where they are;
 *                          judges what comes, and at SIGTERM each byte of the region
 *   drive DRIVER LIFE FILE does all that a worker can do to who serves, round by round, and judges
 *                          what it READs and hears; what fails is done again, in a new session if
 *                          need be. At SIGTERM it ends the round, and says which one it was
 *
 * Both say "OFFENCE: what" and end with 1 where something is as it must not be. */
#include <signal.h>
#include <string.h>

#include "base/text.h"
#include "mixer.h"

volatile int mix_over;
const char *mix_plant = "";

static void end(int signal)
{
    (void)signal;
    mix_over = 1;
}

static uint8_t byte_of(const struct mix_tag *t, uint32_t at, uint32_t i)
{
    return (uint8_t)(t->driver * 37 + t->life * 101 + t->round * 31 + at * 13 + i * 7 + i / 256);
}

void mix_fill(uint8_t *block, const struct mix_tag *tag, uint32_t at)
{
    memcpy(block, tag, sizeof *tag);
    for (uint32_t i = sizeof *tag; i < BLOCK; i++)
        block[i] = byte_of(tag, at, i);
}

bool mix_holds(const uint8_t *block, const struct mix_tag *tag, uint32_t at)
{
    uint8_t should[BLOCK];
    mix_fill(should, tag, at);
    return memcmp(block, should, BLOCK) == 0;
}

void mix_write_letter(uint8_t *at, const struct mix_letter *l)
{
    memcpy(at, l, sizeof *l);
    for (uint32_t i = sizeof *l; i < l->bytes; i++)
        at[i] = byte_of(&l->of, (uint32_t)l->number, i);
}

bool mix_read_letter(const uint8_t *at, uint32_t bytes, struct mix_letter *out)
{
    if (bytes < sizeof *out)
        return false;
    memcpy(out, at, sizeof *out);
    bool good = out->bytes == bytes && out->of.driver < DRIVERS;
    for (uint32_t i = sizeof *out; good && i < bytes; i++)
        good = at[i] == byte_of(&out->of, (uint32_t)out->number, i);
    return good;
}

static uint64_t number_of(const char *text, uint64_t most)
{
    uint64_t n = 0;
    if (base_parse_u64(text, 0, most, &n) == 0)
        return n;
    printf("no number up to %llu: %s\n", (unsigned long long)most, text);
    exit(2);
}

int mix_patience_ms(void)
{
    const char *ms = getenv("MIXER_PATIENCE_MS");
    return ms != NULL ? (int)number_of(ms, 3600000) : 60000;
}

int main(int argc, char **argv)
{
    const struct sigaction on_end = {.sa_handler = end};
    sigaction(SIGTERM, &on_end, NULL);
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (getenv("MIXER_PLANT") != NULL)
        mix_plant = getenv("MIXER_PLANT");
    if (argc == 3 && strcmp(argv[1], "serve") == 0)
        mix_serve(argv[2]);
    else if (argc == 5 && strcmp(argv[1], "drive") == 0)
        mix_drive((uint32_t)number_of(argv[2], DRIVERS - 1),
                  (uint32_t)number_of(argv[3], UINT32_MAX), argv[4]);
    else
        return 2;
    return 0;
}
