/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "operators.h"

bool play_known_change(struct play_known *k, const char *method, int status, const char *body)
{
    const bool deletes = strcmp(method, "DELETE") == 0;
    if (status < 0 || status == 504) { /* nobody knows whether it was done, nor will be */
        k->what = ANSWERED_UNKNOWN;
        return true;
    }
    if (status / 100 == 2) {
        k->what = deletes ? ANSWERED_GONE : ANSWERED_BODY;
        const int length = snprintf(k->body, sizeof k->body, "%s", deletes ? "" : body);
        return length < (int)sizeof k->body;
    }
    if (deletes && status == 404) {
        const bool right = k->what != ANSWERED_BODY;
        k->what = ANSWERED_GONE;
        return right;
    }
    return true; /* as it was */
}

bool play_known_allows(const struct play_known *k, int status, const char *body)
{
    if (status < 0 || status >= 500)
        return true;
    if (k->what == ANSWERED_BODY)
        return status == 200 && strcmp(k->body, body) == 0;
    if (k->what == ANSWERED_GONE || k->what == ANSWERED_NOTHING)
        return status == 404;
    return status == 200 || status == 404;
}
