/* SPDX-License-Identifier: Apache-2.0 */
/* What is odd about a resource that was taken as it is: it names what is not there (yet), which may
 * be meant, or a slip. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ctl/fetch.h"
#include "ctl/nodes.h"
#include "ctl/notes.h"

enum { NAME_BYTES = 128 };

/* One of `text`'s words between commas: what is behind it, or NULL. */
static const char *next_word(const char *text, char out[NAME_BYTES])
{
    const size_t length = strcspn(text, ",");
    snprintf(out, NAME_BYTES, "%.*s", (int)length, text);
    return text[length] != '\0' ? text + length + 1 : NULL;
}

static bool is_word_of(const char *words, const char *wanted)
{
    char word[NAME_BYTES];
    for (const char *at = words; at != NULL;) {
        at = next_word(at, word);
        if (strcmp(word, wanted) == 0)
            return true;
    }
    return false;
}

static bool is_selected(const struct ctl_node *node, const char *selector)
{
    char label[NAME_BYTES];
    for (const char *at = selector; at != NULL;) {
        at = next_word(at, label);
        if (!is_word_of(node->labels, label))
            return false;
    }
    return true;
}

static void note_selector(const struct ctl_options *o, const char *selector)
{
    struct ctl_nodes nodes = {.node = NULL};
    struct base_errbuf err;
    size_t count = 0;
    if (strcmp(selector, "-") == 0 || strcmp(selector, "all") == 0 ||
        ctl_nodes_fetch(o, &nodes, &err) != 0)
        return;
    for (size_t i = 0; i < nodes.count; i++)
        count += is_selected(&nodes.node[i], selector);
    if (count == 0)
        fprintf(stderr, "note: no node has the labels %s: rdmactl node label NODE gives them\n",
                selector);
    ctl_nodes_fini(&nodes);
}

static void note_tenants(const struct ctl_options *o, const char *tenants)
{
    const struct resource_table *kind = resource_table_find("tenant");
    char name[NAME_BYTES], path[CTL_RESOURCE_PATH_BYTES];
    for (const char *at = strcmp(tenants, "-") != 0 ? tenants : NULL; at != NULL;) {
        struct http_result result;
        struct base_errbuf err;
        at = next_word(at, name);
        if (ctl_resource_path(kind, name, path, &err) != 0)
            continue;
        const int status = ctl_fetch_server(o, path, &result, &err);
        if (status == 0)
            http_result_fini(&result);
        else if (status == -ENOENT)
            fprintf(stderr,
                    "note: the metaserver knows no tenant %s: rdmactl tenant create %s makes it, "
                    "unless agents' own files have it\n",
                    name, name);
    }
}

void ctl_resource_notes(const struct ctl_options *o, const struct resource_table *kind,
                        const struct ctl_resource *resource)
{
    for (size_t i = 0; i < kind->fields; i++) {
        const char *key = kind->field[i].name, *value = resource->value[i];
        if (strcmp(key, "tenants") == 0 || strcmp(key, "tenant") == 0)
            note_tenants(o, value);
        else if (kind->field[i].type == FIELD_SELECTOR)
            note_selector(o, value);
    }
}
