/* SPDX-License-Identifier: Apache-2.0 */
/* A worker that gives many regions back: kedge-give-back together|later N. Not installed. Prints in
 * how many ms they were gone; later: and how often it asked the agent something else meanwhile. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kedge.h>

#include "base/clock.h"

enum { MOST = 256, BYTES = 4096 };

static int fail(const char *what)
{
    printf("%s: %s\n", what, kedge_last_error());
    return 1;
}

static int give_back_later(struct kedge_session *s, struct kedge_mr **mrs, size_t n, void *spare)
{
    unsigned asked = 0;
    int left = kedge_dereg_mrs_begin(mrs, n);
    if (left != 0)
        return left;
    while ((left = kedge_dereg_mrs_wait(s, 0)) > 0) {
        struct kedge_mr *mr;
        if ((size_t)left != n)
            continue; /* those that it has asked for itself are there too, or some are gone */
        if (kedge_reg_mr(s, spare, 8, IBV_ACCESS_REMOTE_READ, &mr) != 0)
            continue;
        asked++;
        left = kedge_dereg_mrs_begin(&mr, 1);
        if (left != 0)
            return left;
        n++;
    }
    printf("%u other requests, ", asked);
    return left;
}

int main(int argc, char **argv)
{
    struct kedge_session *s;
    struct kedge_mr *mrs[MOST];
    const size_t n = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
    uint8_t *memory;
    uint32_t lkey;
    if (n == 0 || n > MOST)
        return 2;
    if (kedge_open(NULL, &s) != 0 || kedge_alloc(s, MOST * BYTES, (void **)&memory, &lkey) != 0)
        return fail("not attached");
    for (size_t i = 0; i < n; i++)
        if (kedge_reg_mr(s, memory + i * BYTES, BYTES, IBV_ACCESS_REMOTE_READ, &mrs[i]) != 0)
            return fail("registering");
    const uint64_t begin = base_clock_ns();
    int status = 0;
    if (strcmp(argv[1], "later") == 0)
        status = give_back_later(s, mrs, n, memory);
    else
        do
            status = kedge_dereg_mrs(mrs, n);
        while (status == -ETIMEDOUT);
    if (status != 0)
        return fail("giving back");
    printf("gone in %llu ms\n", (unsigned long long)((base_clock_ns() - begin) / BASE_NS_PER_MS));
    kedge_close(s);
    return 0;
}
