/* SPDX-License-Identifier: Apache-2.0 */
/* Nothing is said twice on one command line: the later would silently win. */
#include <errno.h>
#include <string.h>

#include "ctl/options.h"

/* The key that text begins with, up to end: of KEY=VALUE and, of labels, of KEY-. That of
 * KEY+=VALUE is KEY+, since a list may be added to and taken from at once. */
static size_t key_of(const char *text, size_t end)
{
    const char *equals = memchr(text, '=', end);
    if (equals != NULL)
        return (size_t)(equals - text);
    return end > 0 && text[end - 1] == '-' ? end - 1 : end;
}

static bool same_key(const char *a, size_t a_end, const char *b, size_t b_end)
{
    const size_t length = key_of(a, a_end);
    return length == key_of(b, b_end) && memcmp(a, b, length) == 0;
}

int ctl_words_check(const char *const *words, size_t count, struct base_errbuf *err)
{
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++)
            if (same_key(words[i], strlen(words[i]), words[j], strlen(words[j])))
                return base_err(err, -EINVAL, "%.*s is said twice, as \"%.60s\" and \"%.60s\"",
                                (int)key_of(words[i], strlen(words[i])), words[i], words[j],
                                words[i]);
    return 0;
}

int ctl_list_check(const char *of, const char *list, struct base_errbuf *err)
{
    for (const char *one = list; *one != '\0'; one += strspn(one, ",")) {
        const size_t end = strcspn(one, ",");
        for (const char *other = list; other < one;) {
            const size_t other_end = strcspn(other, ",");
            if (same_key(one, end, other, other_end))
                return base_err(err, -EINVAL,
                                "%s says %.*s twice: a node has one value of each label", of,
                                (int)key_of(one, end), one);
            other += other_end + strspn(other + other_end, ",");
        }
        one += end;
    }
    return 0;
}
