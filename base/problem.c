/* SPDX-License-Identifier: Apache-2.0 */
#include "base/problem.h"

#include <stdio.h>

#include "base/error.h"
#include "base/json_writer.h"

/* What comes after "urn:kedge:problem:", as the metaserver's own problems of that status have it,
 * where they have one alone; and the title, where the table of errors has none. */
static const struct status_text {
    int status;
    const char *type, *title;
} texts[] = {
    {400, "malformed", NULL},
    {401, "no-valid-token", NULL},
    {403, "forbidden", NULL},
    {404, "not-found", NULL},
    {405, "method-not-allowed", NULL},
    {408, "request-timeout", "request timed out"},
    {409, "conflict", NULL},
    {410, "gone", NULL},
    {411, "length-required", "a body needs its Content-Length"},
    {412, "changed", NULL},
    {413, "too-large", NULL},
    {414, "uri-too-long", "the URI is too long"},
    {415, "unsupported-media-type", NULL},
    {417, "expectation-failed", "the expectation is not known"},
    {429, "too-many-requests", "too many requests"},
    {431, "headers-too-large", "the headers are too large"},
    {501, "not-implemented", "the request uses what is not implemented"},
    {502, "senseless-answer", NULL},
    {503, "unavailable", NULL},
    {504, "late", NULL},
    {505, "version-not-supported", "the version of HTTP is not supported"},
    {507, "full", NULL},
};

static const struct status_text *find_text(int status)
{
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (texts[i].status == status)
            return &texts[i];
    return NULL;
}

static const char *type_of(int status)
{
    const struct status_text *t = find_text(status);
    return t != NULL ? t->type : "internal-error";
}

void base_problem_write(struct base_text *t, int status, const char *title, const char *detail)
{
    char type[64];
    snprintf(type, sizeof type, "urn:kedge:problem:%s", type_of(status));
    base_json_object(t, NULL);
    base_json_string(t, "type", type);
    base_json_string(t, "title", title);
    base_json_i64(t, "status", status);
    if (detail != NULL)
        base_json_string(t, "detail", detail);
    base_json_object_end(t);
}

const char *base_problem_title(int status)
{
    const struct status_text *t = find_text(status);
    return t != NULL && t->title != NULL ? t->title : base_error_of_http(status)->title;
}
