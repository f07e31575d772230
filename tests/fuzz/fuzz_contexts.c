/* SPDX-License-Identifier: Apache-2.0 */
/* A file of contexts: what is believed ends its texts, keeps to the bounds, and reads back the same
 * after it was written; what is refused is so with the file's name. */
#include <stdint.h>
#include <string.h>

#include "base/assert.h"
#include "ctl/contexts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TEXT_BYTES = CTL_CONTEXTS_MAX * 2048 };

static int parse(const void *text, size_t size, struct ctl_contexts *out, struct base_errbuf *err)
{
    FILE *file = fmemopen((void *)(uintptr_t)text, size, "r");
    BASE_ASSERT(file != NULL);
    int status = ctl_contexts_parse(file, "/file", out, err);
    fclose(file);
    return status;
}

static void check(struct ctl_contexts *c)
{
    BASE_ASSERT(c->count <= CTL_CONTEXTS_MAX);
    for (size_t i = 0; i < c->count; i++) {
        BASE_ASSERT(ctl_context_name_check(c->item[i].name, NULL) == 0);
        BASE_ASSERT(ctl_contexts_find(c, c->item[i].name) == &c->item[i]);
        for (size_t k = 0; k < CTL_CONTEXT_KEYS; k++) {
            struct ctl_context copy = {.name = ""};
            const char *value = ctl_context_value(&c->item[i], k);
            BASE_ASSERT(ctl_context_set(&copy, ctl_context_keys[k], value, NULL) == 0);
        }
    }
}

static void check_reads_back(const struct ctl_contexts *c)
{
    static char text[TEXT_BYTES];
    static struct ctl_contexts again;
    FILE *file = fmemopen(text, sizeof text, "w");
    BASE_ASSERT(file != NULL && ctl_contexts_print(c, file) == 0);
    fclose(file);
    BASE_ASSERT(parse(text, strlen(text), &again, NULL) == 0);
    BASE_ASSERT(strcmp(again.current, c->current) == 0 && again.count == c->count);
    for (size_t i = 0; i < c->count; i++) {
        BASE_ASSERT(strcmp(again.item[i].name, c->item[i].name) == 0);
        for (size_t k = 0; k < CTL_CONTEXT_KEYS; k++)
            BASE_ASSERT(strcmp(ctl_context_value(&again.item[i], k),
                               ctl_context_value(&c->item[i], k)) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct ctl_contexts contexts;
    struct base_errbuf err = {.text = ""};
    if (size == 0)
        return 0;
    if (parse(data, size, &contexts, &err) == 0) {
        check(&contexts);
        check_reads_back(&contexts);
    } else {
        BASE_ASSERT(strncmp(err.text, "/file:", 6) == 0);
    }
    return 0;
}
