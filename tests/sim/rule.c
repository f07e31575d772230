/* SPDX-License-Identifier: Apache-2.0 */
#include "rule.h"

#include <string.h>

static const char *behind_number(const char *at)
{
    if (at[0] == '0' && at[1] == 'x')
        at += 2 + strspn(at + 2, "0123456789abcdef");
    return at + strspn(at, "0123456789");
}

static const char *behind_name(const char *sentence)
{
    const char *colon = strstr(sentence, ": ");
    return colon != NULL ? colon + 2 : sentence;
}

bool play_rule_is_same(const char *a, const char *b)
{
    a = behind_number(behind_name(a));
    b = behind_number(behind_name(b));
    while (*a != '\0' && *a == *b) {
        a = behind_number(a + 1);
        b = behind_number(b + 1);
    }
    return *a == *b;
}
