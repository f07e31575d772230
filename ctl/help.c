/* SPDX-License-Identifier: Apache-2.0 */
/* rdmactl --help: of everything, or of what one word is about. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ctl/options.h"
#include "ctl/resources.h"

void ctl_keys_of(const char *kind, char *out, size_t size)
{
    const struct resource_table *k = kind != NULL ? resource_table_find(kind) : NULL;
    size_t used = 0;
    out[0] = '\0';
    if (k == NULL || k->suffix[0] != '\0') /* nodes: set by verbs, and labels are no keys */
        return;
    for (size_t i = 0; i < k->fields && used < size; i++)
        used +=
            (size_t)snprintf(out + used, size - used, "%s%s", i > 0 ? ", " : "", k->field[i].name);
}

/* Whether a line of the help's commands begins with the word, or with it among others. */
static bool is_about(const char *line, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = line + 2;; at++) {
        const size_t own = strcspn(at, "| \n");
        if (own == length && strncmp(at, word, own) == 0)
            return true;
        at += own;
        if (*at != '|')
            return false;
    }
}

/* Lines of `rdmactl --help`: of commands, "  node list   what it does"; of options, "  --wait node
 * drain: what it does". Deeper ones go on with the one above. */
static bool goes_on(const char *line)
{
    return line[2] == ' ';
}

static const char *next_line(const char *line)
{
    return strchr(line, '\n') + 1;
}

/* Whether what stands before the colon of an option's line names the word, or is "watch", which the
 * word may have too. */
static bool is_said_of(const char *line, const char *word, bool watched)
{
    const size_t length = strcspn(line, "\n");
    const char *at = goes_on(line) ? line : memmem(line + 2, length - 2, "   ", 3);
    const char *colon = at != NULL ? memchr(at, ':', length - (size_t)(at - line)) : NULL;
    for (bool first = true; colon != NULL && at < colon; first = false) {
        at += strspn(at, " ,");
        const size_t own = strcspn(at, " ,:");
        if ((own == strlen(word) && strncmp(at, word, own) == 0) ||
            (watched && first && own == 5 && strncmp(at, "watch", own) == 0))
            return true;
        at += own;
    }
    return false;
}

static void print_lines(const char *line, const char *end, FILE *to)
{
    fprintf(to, "%.*s", (int)(end - line), line);
}

/* Those that are for this word's commands, and not for all. */
static void print_options(const char *word, bool watched, FILE *to)
{
    const char *line = next_line(strstr(ctl_help, "\noptions:\n") + 1), *next;
    const char *const end = strstr(line, "\n\n") + 1;
    bool any = false;
    for (; line < end; line = next) {
        bool about = is_said_of(line, word, watched);
        for (next = next_line(line); next < end && goes_on(next); next = next_line(next))
            about |= is_said_of(next, word, watched);
        if (!about)
            continue;
        fputs(any ? "" : "\noptions:\n", to);
        print_lines(line, next, to);
        any = true;
    }
}

static void print_keys(const char *word, FILE *to)
{
    const struct resource_table *kind = resource_table_find(word);
    if (kind == NULL || kind->suffix[0] != '\0')
        return;
    fputs("\nkeys:\n", to);
    for (size_t i = 0; i < kind->fields; i++)
        fprintf(to, "  %-25s %s\n", kind->field[i].name, kind->field[i].help);
}

int ctl_help_print(const char *word, FILE *to, struct base_errbuf *err)
{
    const char *line = next_line(strstr(ctl_help, "commands:\n")), *next;
    const char *const end = strstr(ctl_help, "\noptions:\n");
    bool any = false, watched = false;
    for (; word != NULL && line < end; line = next) {
        for (next = next_line(line); next < end && goes_on(next); next = next_line(next))
            ;
        if (!is_about(line, word))
            continue;
        fputs(any ? "" : "usage: rdmactl [OPTIONS] COMMAND\n\n", to);
        print_lines(line, next, to);
        any = true;
        watched |= memmem(line, strcspn(line, "\n"), " watch", strlen(" watch")) != NULL;
    }
    if (word == NULL) {
        fputs(ctl_help, to);
        return 0;
    }
    if (!any)
        return base_err(err, -EINVAL, "there is no command \"%.60s\": see rdmactl --help", word);
    print_keys(word, to);
    print_options(word, watched, to);
    fputs("\nrdmactl --help has the options of all commands, such as -o json; rdmactl(1) the "
          "whole.\n",
          to);
    return 0;
}
