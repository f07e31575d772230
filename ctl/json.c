/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/json.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json_writer.h"
#include "ctl/yaml.h"

enum {
    LINE_BYTES = 4096,
    KEPT_BYTES = 1 << 28,
    ESCAPED_BYTES = 6 /* at most, for one byte that was there */
};

/* With -o yaml what is printed is kept until its line ends, and then shown as YAML. */
static bool as_yaml;
static struct base_text kept = {.max = KEPT_BYTES};

void ctl_json_as_yaml(void)
{
    as_yaml = true;
    base_text_init(&kept, KEPT_BYTES);
}

static void write_text(const char *text)
{
    if (as_yaml)
        base_text_append(&kept, text, strlen(text));
    else
        fputs(text, stdout);
}

static void end_line(void)
{
    if (!as_yaml) {
        puts("");
        return;
    }
    if (kept.error != 0 || ctl_yaml_print(base_text_str(&kept), stdout) != 0)
        fputs("rdmactl: the output is too large for YAML, or no JSON: say -o json\n", stderr);
    base_text_fini(&kept);
    base_text_init(&kept, KEPT_BYTES);
}

void ctl_json_put(const char *json)
{
    struct base_text t;
    base_text_init(&t, strlen(json) * ESCAPED_BYTES);
    if (base_text_plain_json(&t, json) == 0)
        write_text(base_text_str(&t));
    base_text_fini(&t);
}

/* The members of an object that is whole, behind those that t has. -EBADMSG: it is no object. */
static int append_members(struct base_text *t, const char *object, struct base_errbuf *err)
{
    size_t length = strlen(object);
    while (length > 0 && strchr(" \t\r\n", object[length - 1]) != NULL)
        length--;
    if (object[0] != '{' || length < 2)
        return base_err(err, -EBADMSG, "the answer is no JSON object: is this a Kedge server?");
    if (object[1] != '}')
        base_text_append(t, ",", 1);
    base_text_append(t, object + 1, length - 2);
    return 0;
}

static int print_object(const char *change, const char *kind, const char *object,
                        struct base_errbuf *err)
{
    struct base_text t;
    base_text_init(&t, strlen(object) + LINE_BYTES);
    ctl_json_begin(&t);
    if (change != NULL)
        base_json_string(&t, "change", change);
    if (kind != NULL)
        base_json_string(&t, "kind", kind);
    int status = append_members(&t, object, err);
    base_json_object_end(&t);
    if (status == 0)
        return ctl_json_finish(&t, err);
    base_text_fini(&t);
    return status;
}

int ctl_json_print(const char *object, struct base_errbuf *err)
{
    return print_object(NULL, NULL, object, err);
}

int ctl_json_print_of(const char *kind, const char *object, struct base_errbuf *err)
{
    return print_object(NULL, kind, object, err);
}

int ctl_json_print_change(const char *change, const char *kind, const char *object,
                          struct base_errbuf *err)
{
    return print_object(change, kind, object, err);
}

/* ---- lists */

/* As far as it is; frees it. */
static void print_part(struct base_text *t)
{
    ctl_json_put(base_text_str(t));
    base_text_fini(t);
}

void ctl_json_list(const char *key)
{
    struct base_text t;
    base_text_init(&t, LINE_BYTES);
    ctl_json_begin(&t);
    base_json_array(&t, key);
    print_part(&t);
}

void ctl_json_list_item(bool first, const char *json)
{
    if (!first)
        write_text(",");
    ctl_json_put(json);
}

int ctl_json_list_resource(bool first, const char *kind, const char *object,
                           struct base_errbuf *err)
{
    struct base_text t;
    base_text_init(&t, strlen(object) + LINE_BYTES);
    base_json_object(&t, NULL);
    base_json_string(&t, "kind", kind);
    int status = append_members(&t, object, err);
    base_json_object_end(&t);
    if (status == 0)
        ctl_json_list_item(first, base_text_str(&t));
    base_text_fini(&t);
    return status;
}

void ctl_json_list_end(void)
{
    write_text("]}");
    end_line();
}

void ctl_json_list_end_with(const char *key, const char *items)
{
    struct base_text t;
    base_text_init(&t, strlen(items) + LINE_BYTES);
    base_json_array(&t, key);
    base_text_append(&t, items, strlen(items));
    base_json_array_end(&t);
    base_json_object_end(&t);
    write_text("],");
    ctl_json_put(base_text_str(&t));
    end_line();
    base_text_fini(&t);
}

void ctl_json_list_end_more(const char *members)
{
    if (members[0] == '\0') {
        ctl_json_list_end();
        return;
    }
    write_text("],");
    ctl_json_put(members);
    write_text("}");
    end_line();
}

/* ---- objects */

void ctl_json_begin(struct base_text *t)
{
    base_json_object(t, NULL);
    base_json_u64(t, "format_version", CTL_FORMAT_VERSION);
}

int ctl_json_finish(struct base_text *t, struct base_errbuf *err)
{
    int status = t->error;
    if (status == 0) {
        ctl_json_put(base_text_str(t));
        end_line();
    } else {
        base_err(err, status, "the output is too large");
    }
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
