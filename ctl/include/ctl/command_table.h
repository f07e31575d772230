/* SPDX-License-Identifier: Apache-2.0 */
/* rdmactl's commands and options, a row each: the command line is parsed by it, and --help is made
 * of it. No state; any thread. */
#ifndef CTL_COMMAND_TABLE_H
#define CTL_COMMAND_TABLE_H

#include <stddef.h>

#include "ctl/options.h"

/* WORDS: an id, and one or more; OR_NONE: an id, and any number; OR_WORKER: an id, unless --worker
 * or --all says whose. */
enum ctl_takes {
    CTL_TAKES_NOTHING,
    CTL_TAKES_ID,
    CTL_TAKES_WORDS,
    CTL_TAKES_OR_NONE,
    CTL_TAKES_OR_WORKER
};

struct ctl_command_row {
    const char *word[2]; /* the second may be NULL */
    enum ctl_takes takes;
    enum ctl_command command;
    const char *kind;      /* or NULL */
    const char *arguments; /* "NAME KEY=VALUE..."; "": none */
    const char *help;
};
extern const struct ctl_command_row ctl_command_rows[];
extern const size_t ctl_command_count;

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

/* Of an option that sets a field of what is created or set, as KEY=VALUE would: once, or of a list
 * once for each. */
struct ctl_field_option_row {
    const char *option; /* "mr-lease" */
    const char *kind, *field;
};
extern const struct ctl_field_option_row ctl_field_option_rows[];
extern const size_t ctl_field_option_count;

#endif
