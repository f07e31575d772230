/* SPDX-License-Identifier: Apache-2.0 */
/* rdmactl's commands and options, a row each: the command line is parsed by it, and --help is made
 * of it. No state; any thread. */
#ifndef CTL_COMMAND_TABLE_H
#define CTL_COMMAND_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "ctl/options.h"

/* WORDS: an id, and one or more; OR_NONE: an id, and any number; OR_WORKER: an id, unless --worker
 * or --all says whose; ANY: any number of them. */
enum ctl_takes {
    CTL_TAKES_NOTHING,
    CTL_TAKES_ID,
    CTL_TAKES_WORDS,
    CTL_TAKES_OR_NONE,
    CTL_TAKES_OR_WORKER,
    CTL_TAKES_ANY
};

struct ctl_command_row {
    const char *word[2]; /* the second may be NULL */
    enum ctl_takes takes;
    enum ctl_command command;
    const char *kind;      /* or NULL */
    const char *arguments; /* "NAME KEY=VALUE..."; "": none */
    const char *help;
    const char *example; /* a whole command line */
};
extern const struct ctl_command_row ctl_command_rows[];
extern const size_t ctl_command_count;
/* The row of the command that these words begin with; NULL: there is none. */
const struct ctl_command_row *ctl_command_find(const char *const *words, size_t count);

/* Of one first word. */
struct ctl_word_row {
    const char *word;
    const char *about; /* a sentence */
    const char *example;
};
extern const struct ctl_word_row ctl_word_rows[]; /* in the order of the commands */
extern const size_t ctl_word_count;

/* What an option does for some commands; one option may have several rows, which follow each
 * other. */
struct ctl_option_row {
    const char *option;   /* "--label KEY=VALUE,..." */
    const char *word;     /* the first one; NULL: whatever that is */
    const char *verbs[5]; /* the second one is one of these; none: whatever that is */
    const char *help;
};
extern const struct ctl_option_row ctl_option_rows[];
extern const size_t ctl_option_count;
/* Whether the row is for this command. for_all: also when it is for all commands. */
bool ctl_option_is_for(const struct ctl_option_row *row, const struct ctl_command_row *command,
                       bool for_all);
/* Whose it is, such as "node cordon, drain"; "": it is for all. Returns how long that is. */
size_t ctl_option_place(const struct ctl_option_row *row, char *out, size_t size);
/* 0 when the option of that name (without --) is for this command; -EINVAL, and whose it is. */
int ctl_option_check(const char *name, const struct ctl_command_row *command,
                     struct base_errbuf *err);

/* Of an option that sets a field of what is created or set, as KEY=VALUE would: once, or of a list
 * once for each. */
struct ctl_field_option_row {
    const char *option; /* "mr-lease" */
    const char *kind, *field;
};
extern const struct ctl_field_option_row ctl_field_option_rows[];
extern const size_t ctl_field_option_count;

#endif
