/* SPDX-License-Identifier: Apache-2.0 */
/* What a file of contexts says. */
#include "ctl/contexts.h"

#include <errno.h>
#include <string.h>

#include "base/ini.h"
#include "base/printable.h"
#include "ctl/options.h"

_Static_assert(sizeof "context " - 1 + CTL_CONTEXT_NAME_BYTES - 1 <= BASE_INI_SECTION,
               "a longer section's name would be cut off");

static const char prefix[] = "context ";
const char *const ctl_context_keys[CTL_CONTEXT_KEYS] = {
    "server", "token_file", "agent_socket", "output",
    "cacert", "cert",       "key",          "allow_plain_tokens"};

/* ---- one context */

/* In the order of the keys. */
#define PLACE(member)                                                                              \
    {                                                                                              \
        offsetof(struct ctl_context, member), sizeof((struct ctl_context *)0)->member              \
    }
static const struct {
    size_t offset, size;
} places[CTL_CONTEXT_KEYS] = {
    PLACE(server), PLACE(token_file), PLACE(agent_socket), PLACE(output),
    PLACE(cacert), PLACE(cert),       PLACE(key),          PLACE(allow_plain_tokens)};

const char *ctl_context_value(const struct ctl_context *context, size_t key)
{
    return (const char *)context + places[key].offset;
}

/* ';' and what is not printable mean something else in the file, or nothing at all. */
static int check_text(const char *key, const char *value, struct base_errbuf *err)
{
    const size_t length = strlen(value);
    if (!base_is_printable(value) || strchr(value, ';') != NULL)
        return base_err(err, -EINVAL, "%s may not hold ';', ends of line and the like", key);
    if (length >= CTL_CONTEXT_VALUE_BYTES)
        return base_err(err, -EINVAL, "%s has at most %d bytes", key, CTL_CONTEXT_VALUE_BYTES - 1);
    if (length > 0 && (value[0] == ' ' || value[length - 1] == ' '))
        return base_err(err, -EINVAL, "%s may not begin or end with a blank", key);
    return 0;
}

static int check_value(const char *key, const char *value, struct base_errbuf *err)
{
    int status = check_text(key, value, err);
    if (status != 0 || value[0] == '\0')
        return status;
    if (strcmp(key, "server") == 0)
        return ctl_server_check(key, value, err);
    if (strcmp(key, "output") == 0)
        return ctl_output_check(key, value, err);
    if (strcmp(key, "allow_plain_tokens") == 0)
        return strcmp(value, "yes") == 0 || strcmp(value, "no") == 0
                   ? 0
                   : base_err(err, -EINVAL, "%s must be yes or no, not \"%.60s\"", key, value);
    return value[0] == '/'
               ? 0
               : base_err(err, -EINVAL, "%s must be an absolute path, not \"%.60s\"", key, value);
}

int ctl_context_set(struct ctl_context *context, const char *key, const char *value,
                    struct base_errbuf *err)
{
    for (size_t i = 0; i < CTL_CONTEXT_KEYS; i++) {
        if (strcmp(key, ctl_context_keys[i]) != 0)
            continue;
        int status = check_value(key, value, err);
        if (status == 0)
            snprintf((char *)context + places[i].offset, places[i].size, "%s", value);
        return status;
    }
    return base_err(err, -EINVAL,
                    "\"%.60s\" sets nothing of a context: there are server, token_file, "
                    "agent_socket, output, cacert, cert, key and allow_plain_tokens",
                    key);
}

int ctl_context_name_check(const char *name, struct base_errbuf *err)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";
    const size_t length = strlen(name);
    if (length > 0 && length < CTL_CONTEXT_NAME_BYTES && name[strspn(name, allowed)] == '\0' &&
        strcmp(name, CTL_NO_CONTEXT) != 0)
        return 0;
    return base_err(err, -EINVAL,
                    "\"%.60s\" is no context's name: it has 1 to %d of A-Z, a-z, 0-9, '.', '_' "
                    "and '-', and is not \"" CTL_NO_CONTEXT "\"",
                    name, CTL_CONTEXT_NAME_BYTES - 1);
}

/* ---- the file */

struct ctl_context *ctl_contexts_find(struct ctl_contexts *contexts, const char *name)
{
    for (size_t i = 0; i < contexts->count; i++)
        if (strcmp(contexts->item[i].name, name) == 0)
            return &contexts->item[i];
    return NULL;
}

/* The one of a section, made if it is new. NULL: *what says why there is none. */
static struct ctl_context *of_section(struct ctl_contexts *all, const char *section,
                                      struct base_errbuf *what)
{
    const char *name = section + sizeof prefix - 1;
    if (strncmp(section, prefix, sizeof prefix - 1) != 0) {
        base_err(what, 0, "there are [rdmactl] and [context NAME], not [%.60s]", section);
        return NULL;
    }
    if (ctl_context_name_check(name, what) != 0)
        return NULL;
    struct ctl_context *c = ctl_contexts_find(all, name);
    if (c != NULL)
        return c;
    if (all->count == CTL_CONTEXTS_MAX) {
        base_err(what, 0, "there are %d contexts at most", CTL_CONTEXTS_MAX);
        return NULL;
    }
    c = &all->item[all->count++];
    *c = (struct ctl_context){.name = ""};
    snprintf(c->name, sizeof c->name, "%s", name);
    return c;
}

static int take_current(struct ctl_contexts *all, const char *key, const char *value,
                        struct base_errbuf *what)
{
    if (strcmp(key, "current") != 0)
        return base_err(what, -EINVAL, "[rdmactl] has current, not \"%.60s\"", key);
    if (all->current[0] != '\0')
        return base_err(what, -EINVAL, "current is said twice");
    int status = ctl_context_name_check(value, what);
    if (status == 0)
        snprintf(all->current, sizeof all->current, "%s", value);
    return status;
}

static int take_line(void *user, const char *section, const char *key, const char *value,
                     struct base_errbuf *what)
{
    struct ctl_contexts *all = user;
    if (strcmp(section, "rdmactl") == 0)
        return key == NULL ? 0 : take_current(all, key, value, what);
    struct ctl_context *c = of_section(all, section, what);
    if (c == NULL)
        return -EINVAL;
    if (key == NULL)
        return 0;
    for (size_t i = 0; i < CTL_CONTEXT_KEYS; i++)
        if (strcmp(key, ctl_context_keys[i]) == 0 && ctl_context_value(c, i)[0] != '\0')
            return base_err(what, -EINVAL, "%s of %s is said twice, or in two lines", key, c->name);
    return value[0] != '\0' ? ctl_context_set(c, key, value, what)
                            : base_err(what, -EINVAL, "%.60s has no value", key);
}

int ctl_contexts_parse(FILE *file, const char *path, struct ctl_contexts *out,
                       struct base_errbuf *err)
{
    out->current[0] = '\0';
    out->count = 0;
    snprintf(out->path, sizeof out->path, "%s", path);
    return base_ini_read_file(file, path, take_line, out, err);
}

int ctl_contexts_print(const struct ctl_contexts *contexts, FILE *file)
{
    fputs("# Written by `rdmactl context`, which keeps no comments: see rdmactl(1).\n", file);
    if (contexts->current[0] != '\0')
        fprintf(file, "[rdmactl]\ncurrent = %s\n", contexts->current);
    for (size_t i = 0; i < contexts->count; i++) {
        const struct ctl_context *c = &contexts->item[i];
        fprintf(file, "\n[%s%s]\n", prefix, c->name);
        for (size_t k = 0; k < CTL_CONTEXT_KEYS; k++)
            if (ctl_context_value(c, k)[0] != '\0')
                fprintf(file, "%s = %s\n", ctl_context_keys[k], ctl_context_value(c, k));
    }
    return fflush(file) == 0 && !ferror(file) ? 0 : -EIO;
}
