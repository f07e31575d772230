/* SPDX-License-Identifier: Apache-2.0 */
/* rdmactl --help: of everything, or of what one word is about. */
#include <stdio.h>
#include <string.h>

#include "ctl/options.h"
#include "ctl/settings.h"

void ctl_keys_of(const char *kind, char *out, size_t size)
{
    const struct ctl_kind *k = kind != NULL ? ctl_kind_find(kind) : NULL;
    size_t used = 0;
    out[0] = '\0';
    if (k == NULL || k->suffix[0] != '\0') /* nodes: set by verbs, and labels are no keys */
        return;
    for (size_t i = 0; i < k->keys && used < size; i++)
        used +=
            (size_t)snprintf(out + used, size - used, "%s%s", i > 0 ? ", " : "", k->key[i].name);
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

void ctl_help_print(const char *word, FILE *to)
{
    const char *line = strstr(ctl_help, "commands:\n"), *end = strstr(ctl_help, "\noptions:\n");
    char keys[300];
    bool about = false, any = false;
    for (line = strchr(line, '\n') + 1; word != NULL && line < end; line = strchr(line, '\n') + 1) {
        if (line[2] != ' ') /* not more of the line before */
            about = is_about(line, word);
        if (about)
            fprintf(to, "%s%.*s\n", any ? "" : "usage: rdmactl [OPTIONS] COMMAND\n\n",
                    (int)strcspn(line, "\n"), line);
        any |= about;
    }
    if (!any) {
        fputs(ctl_help, to);
        return;
    }
    ctl_keys_of(word, keys, sizeof keys);
    if (keys[0] != '\0')
        fprintf(to, "\nkeys: %s\n", keys);
    fputs("\nrdmactl --help has the options, rdmactl(1) the whole.\n", to);
}
