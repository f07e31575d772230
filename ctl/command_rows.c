/* SPDX-License-Identifier: Apache-2.0 */
/* What the rows of command_table.c say of each other: which options are for which commands. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ctl/command_table.h"

enum { PLACES_TEXT = 300 };

const struct ctl_command_row *ctl_command_find(const char *const *words, size_t count)
{
    for (size_t i = 0; i < ctl_command_count && count > 0; i++) {
        const struct ctl_command_row *c = &ctl_command_rows[i];
        if (strcmp(words[0], c->word[0]) == 0 &&
            (c->word[1] == NULL || (count >= 2 && strcmp(words[1], c->word[1]) == 0)))
            return c;
    }
    return NULL;
}

bool ctl_option_is_for(const struct ctl_option_row *row, const struct ctl_command_row *command,
                       bool for_all)
{
    if (row->word == NULL && row->verbs[0] == NULL)
        return for_all;
    if (row->word != NULL && strcmp(row->word, command->word[0]) != 0)
        return false;
    /* Of any word: `region watch` is a list that goes on. */
    if (row->word == NULL && row->verbs[0] != NULL && strcmp(row->verbs[0], "watch") == 0)
        return command->command == CTL_EVENT_WATCH;
    for (size_t i = 0; row->verbs[i] != NULL; i++)
        if (command->word[1] != NULL && strcmp(row->verbs[i], command->word[1]) == 0)
            return true;
    return row->verbs[0] == NULL;
}

size_t ctl_option_place(const struct ctl_option_row *row, char *out, size_t size)
{
    size_t used = (size_t)snprintf(out, size, "%s", row->word != NULL ? row->word : "");
    for (size_t i = 0; row->verbs[i] != NULL && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%s",
                                 i > 0               ? ", "
                                 : row->word != NULL ? " "
                                                     : "",
                                 row->verbs[i]);
    return used;
}

/* "-o, --output table|wide|json|yaml" is output's. */
static bool is_called(const struct ctl_option_row *row, const char *name)
{
    const char *own = strstr(row->option, "--") + 2;
    const size_t length = strcspn(own, " ");
    return strlen(name) == length && strncmp(own, name, length) == 0;
}

int ctl_option_check(const char *name, const struct ctl_command_row *command,
                     struct base_errbuf *err)
{
    char places[PLACES_TEXT] = "";
    size_t used = 0;
    for (size_t i = 0; i < ctl_option_count; i++) {
        if (!is_called(&ctl_option_rows[i], name))
            continue;
        if (ctl_option_is_for(&ctl_option_rows[i], command, true))
            return 0;
        if (used + 2 < sizeof places) {
            used +=
                (size_t)snprintf(places + used, sizeof places - used, "%s", used > 0 ? "; " : "");
            used += ctl_option_place(&ctl_option_rows[i], places + used, sizeof places - used);
        }
    }
    return base_err(err, -EINVAL, "--%s is for %s alone", name, places);
}
