/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/labels.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define ALPHANUMERIC "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

static bool is_word(const char *text, const char *characters)
{
    size_t length = strlen(text);
    return length >= 1 && length <= RESOURCE_LABEL_CHARS && strspn(text, characters) == length &&
           strchr(ALPHANUMERIC, text[0]) != NULL && strchr(ALPHANUMERIC, text[length - 1]) != NULL;
}

bool resource_label_is_key(const char *text)
{
    return is_word(text, ALPHANUMERIC "._-/");
}

bool resource_label_is_value(const char *text)
{
    return text[0] == '\0' || is_word(text, ALPHANUMERIC "._-");
}

bool resource_labels_next(const char *at, struct resource_label *out)
{
    size_t key = strcspn(at, "="), value = at[key] == '=' ? strcspn(at + key + 1, ",") : 0;
    if (at[key] != '=' || key > RESOURCE_LABEL_CHARS || value > RESOURCE_LABEL_CHARS)
        return false;
    memcpy(out->key, at, key);
    out->key[key] = '\0';
    memcpy(out->value, at + key + 1, value);
    out->value[value] = '\0';
    out->next = at + key + 1 + value;
    out->next += *out->next == ',';
    return true;
}

int resource_labels_add(struct resource_labels *labels, const char *key, const char *value)
{
    struct resource_label one;
    char pair[2 * RESOURCE_LABEL_CHARS + 4];
    const char *at = labels->text, *place = NULL;
    uint32_t count = 0;
    if (!resource_label_is_key(key) || !resource_label_is_value(value))
        return -EINVAL;
    for (; resource_labels_next(at, &one); at = one.next, count++) {
        int order = strcmp(one.key, key);
        if (order == 0)
            return -EEXIST;
        if (order > 0 && place == NULL)
            place = at;
    }
    size_t length = strlen(labels->text), offset = length;
    if (place != NULL) {
        offset = (size_t)(place - labels->text);
        snprintf(pair, sizeof pair, "%s=%s,", key, value);
    } else {
        snprintf(pair, sizeof pair, "%s%s=%s", length > 0 ? "," : "", key, value);
    }
    size_t more = strlen(pair);
    if (count == RESOURCE_LABELS_MAX || length + more >= sizeof labels->text)
        return -ENOSPC;
    memmove(labels->text + offset + more, labels->text + offset, length - offset + 1);
    memcpy(labels->text + offset, pair, more);
    return 0;
}

int resource_labels_parse(const char *text, struct resource_labels *out)
{
    struct resource_labels labels = {.text = ""};
    struct resource_label one;
    bool more = true;
    while (more) {
        if (!resource_labels_next(text, &one))
            return -EINVAL;
        int status = resource_labels_add(&labels, one.key, one.value);
        if (status != 0)
            return status;
        more = one.next[-1] == ',';
        text = one.next;
    }
    *out = labels;
    return 0;
}

bool resource_labels_match(const struct resource_labels *labels,
                           const struct resource_labels *wanted)
{
    struct resource_label has, want;
    const char *at = labels->text, *rest = wanted->text;
    bool have = resource_labels_next(at, &has);
    for (; resource_labels_next(rest, &want); rest = want.next) { /* both are by key */
        while (have && strcmp(has.key, want.key) < 0)
            have = resource_labels_next(at = has.next, &has);
        if (!have || strcmp(has.key, want.key) != 0 || strcmp(has.value, want.value) != 0)
            return false;
    }
    return true;
}
