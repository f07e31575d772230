/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "control/question.h"

static const char head[] = "{\"ask\":";

bool agent_line_is_question(const char *line, size_t length)
{
    return length >= sizeof head - 1 && memcmp(line, head, sizeof head - 1) == 0;
}

bool agent_line_is_renewal(const char *line, size_t length)
{
    static const char renew[] = "{\"renew\":";
    return length >= sizeof renew - 1 && memcmp(line, renew, sizeof renew - 1) == 0;
}

bool agent_renewal_is_of_many(const char *line, size_t length)
{
    static const char soon[] = "{\"renew\":\"soon\"";
    return length >= sizeof soon - 1 && memcmp(line, soon, sizeof soon - 1) == 0;
}

static int decode_id(const json_t *ask, struct agent_question *out, struct base_errbuf *why)
{
    const char *id = json_string_value(json_object_get(ask, "id"));
    if (id == NULL || strlen(id) != sizeof out->id - 1 ||
        strspn(id, "0123456789abcdef") != sizeof out->id - 1)
        return base_err(why, -EINVAL, "a question has no id");
    memcpy(out->id, id, sizeof out->id);
    return 0;
}

static int decode_limit(const json_t *value, struct agent_question *out, struct base_errbuf *why)
{
    const json_int_t limit = json_integer_value(value);
    if (!json_is_integer(value) || limit < 1 || limit > 1000)
        return base_err(why, -EINVAL, "limit must be a number from 1 to 1000");
    snprintf(out->limit, sizeof out->limit, "%d", (int)limit);
    return 0;
}

static int decode_text(const char *name, const json_t *value, char *out, size_t size,
                       struct base_errbuf *why)
{
    const char *text = json_string_value(value);
    if (text == NULL || text[0] == '\0' || strlen(text) >= size)
        return base_err(why, -EINVAL, "%s must have 1 to %zu characters", name, size - 1);
    memcpy(out, text, strlen(text) + 1);
    return 0;
}

static int decode_method(const json_t *value, struct agent_question *out, struct base_errbuf *why)
{
    const char *text = json_string_value(value);
    if (text == NULL || (strcmp(text, "GET") != 0 && strcmp(text, "DELETE") != 0))
        return base_err(why, -EINVAL, "method must be GET or DELETE");
    out->revoke = strcmp(text, "DELETE") == 0;
    return 0;
}

static int decode_resource(const json_t *value, struct agent_question *out, struct base_errbuf *why)
{
    static const char *const words[] = {[AGENT_QUESTION_WORKERS] = "workers",
                                        [AGENT_QUESTION_LEASES] = "leases",
                                        [AGENT_QUESTION_STATUS] = "status"};
    const char *text = json_string_value(value);
    for (size_t i = 0; text != NULL && i < sizeof words / sizeof words[0]; i++)
        if (strcmp(text, words[i]) == 0) {
            out->of = (enum agent_question_of)i;
            return 0;
        }
    return base_err(why, -EINVAL, "resource must be workers, leases or status");
}

static int decode_member(const char *name, const json_t *value, struct agent_question *out,
                         struct base_errbuf *why)
{
    const struct {
        const char *name;
        char *to;
        size_t size;
    } texts[] = {{"item", out->item, sizeof out->item},
                 {"worker", out->worker, sizeof out->worker},
                 {"cursor", out->cursor, sizeof out->cursor},
                 {"tenant", out->tenant, sizeof out->tenant}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (strcmp(texts[i].name, name) == 0)
            return decode_text(name, value, texts[i].to, texts[i].size, why);
    if (strcmp(name, "id") == 0)
        return 0;
    if (strcmp(name, "method") == 0)
        return decode_method(value, out, why);
    if (strcmp(name, "resource") == 0)
        return decode_resource(value, out, why);
    if (strcmp(name, "limit") == 0)
        return decode_limit(value, out, why);
    if (strcmp(name, "force") == 0) {
        out->force = json_is_true(value);
        return json_is_boolean(value) ? 0 : base_err(why, -EINVAL, "force must be true or false");
    }
    return base_err(why, -EINVAL, "this agent does not know \"%.40s\": it is of another version",
                    name);
}

static int decode_question(json_t *ask, struct agent_question *out, struct base_errbuf *why)
{
    const char *name;
    json_t *value;
    int status = decode_id(ask, out, why);
    if (status != 0)
        return status;
    if (json_object_get(ask, "method") == NULL || json_object_get(ask, "resource") == NULL)
        return base_err(why, -EINVAL, "a question needs a method and a resource");
    json_object_foreach(ask, name, value)
    {
        status = decode_member(name, value, out, why);
        if (status != 0)
            return status;
    }
    return 0;
}

int agent_question_decode(const char *line, size_t length, struct agent_question *out,
                          struct base_errbuf *why)
{
    json_error_t error;
    memset(out, 0, sizeof *out);
    json_t *root = length <= AGENT_QUESTION_BYTES
                       ? json_loadb(line, length, JSON_REJECT_DUPLICATES, &error)
                       : NULL;
    const int status = decode_question(json_object_get(root, "ask"), out, why);
    json_decref(root);
    return status;
}
