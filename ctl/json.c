/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/json.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json_writer.h"

enum { LINE_BYTES = 4096 };

/* With a member before its own. */
static int print_with(const char *first, const char *object, struct base_errbuf *err)
{
    size_t length = strlen(object);
    while (length > 0 && strchr(" \t\r\n", object[length - 1]) != NULL)
        length--;
    if (object[0] != '{' || length < 2)
        return base_err(err, -EBADMSG, "the answer is no JSON object: is this a Kedge server?");
    printf("{" CTL_FORMAT "%s%s%.*s\n", first, object[1] == '}' ? "" : ",", (int)length - 1,
           object + 1);
    return 0;
}

int ctl_json_print(const char *object, struct base_errbuf *err)
{
    return print_with("", object, err);
}

int ctl_json_print_of(const char *kind, const char *object, struct base_errbuf *err)
{
    char member[64];
    snprintf(member, sizeof member, ",\"kind\":\"%.40s\"", kind);
    return print_with(member, object, err);
}

void ctl_json_begin(struct base_text *t)
{
    base_json_object(t, NULL);
    base_text_append(t, CTL_FORMAT, sizeof CTL_FORMAT - 1);
}

int ctl_json_finish(struct base_text *t, struct base_errbuf *err)
{
    int status = t->error;
    if (status == 0)
        puts(base_text_str(t));
    else
        base_err(err, status, "the output is too large");
    base_text_fini(t);
    return status;
}

int ctl_json_deleted(const char *kind, const char *name, struct base_errbuf *err)
{
    struct base_text t;
    base_text_init(&t, LINE_BYTES);
    ctl_json_begin(&t);
    base_json_string(&t, "kind", kind);
    base_json_string(&t, "name", name);
    base_json_bool(&t, "deleted", true);
    base_json_object_end(&t);
    return ctl_json_finish(&t, err);
}
