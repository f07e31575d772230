/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "operators.h"

static void take_secret(const char *answer, char out[PLAY_SECRET])
{
    static const char NAME[] = "\"secret\":\"";
    const char *at = strstr(answer, NAME);
    if (at == NULL) /* the token was there before, and its secret is not shown again */
        return;
    at += sizeof NAME - 1;
    const size_t length = strcspn(at, "\"");
    (void)snprintf(out, PLAY_SECRET, "%.*s", (int)length, at);
}

void play_secret_lost(struct play_secret *s)
{
    if (s->live[0] != '\0')
        memcpy(s->gone, s->live, sizeof s->gone);
    s->live[0] = '\0';
}

void play_secret_change(struct play_secret *s, const char *method, int status, const char *answer)
{
    const bool deletes = strcmp(method, "DELETE") == 0;
    if (status < 0 || status == 504) { /* nobody knows whether it was done */
        s->live[0] = '\0';
    } else if (deletes && (status / 100 == 2 || status == 404)) {
        play_secret_lost(s);
    } else if (!deletes && status / 100 == 2) {
        take_secret(answer, s->live);
    }
}

bool play_secret_allows(bool live, int status)
{
    return status < 0 || status >= 500 || (status == 401) == !live;
}
