/* SPDX-License-Identifier: Apache-2.0 */
/* rdmactl --help: of everything, of what one word is about, or of one command; made of the tables
 * of commands, options and resources. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json_writer.h"
#include "ctl/command_table.h"
#include "ctl/json.h"
#include "ctl/resources.h"

enum {
    LINE_CHARS = 100,
    LEFT_CHARS = 80,
    OPTION_CHARS = 30,
    KEY_CHARS = 25,
    TEXT_CHARS = 512,
    JSON_BYTES = 1 << 20
};

static const struct resource_table *find_keys(const char *kind)
{
    const struct resource_table *k = kind != NULL ? resource_table_find(kind) : NULL;
    return k == NULL || k->suffix[0] != '\0' ? NULL : k; /* nodes: set by verbs */
}

void ctl_keys_of(const char *kind, char *out, size_t size)
{
    const struct resource_table *k = find_keys(kind);
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; k != NULL && i < k->fields && used < size; i++)
        used +=
            (size_t)snprintf(out + used, size - used, "%s%s", i > 0 ? ", " : "", k->field[i].name);
}

/* ---- lines */

/* What something is called in a column of that width, and what it is, in as many lines as that
 * takes. */
static void print_entry(FILE *to, const char *left, size_t width, const char *text)
{
    const size_t indent = width + 2;
    const bool wider = strlen(left) >= width; /* and would run into what it is */
    size_t column = wider ? strlen(left) + 2 : indent;
    bool begins = !wider;
    fprintf(to, "  %-*s", (int)width, left);
    while (*text != '\0') {
        const size_t length = strcspn(text, " ");
        if (!begins && column + 1 + length > LINE_CHARS) {
            fprintf(to, "\n%*s", (int)indent, "");
            column = indent;
            begins = true;
        }
        column += length + !begins;
        fprintf(to, "%s%.*s", begins ? "" : " ", (int)length, text);
        begins = false;
        text += length + strspn(text + length, " ");
    }
    fputs("\n", to);
}

static void command_text(const struct ctl_command_row *c, char out[LEFT_CHARS])
{
    snprintf(out, LEFT_CHARS, "%s%s%s%s%s", c->word[0], c->word[1] != NULL ? " " : "",
             c->word[1] != NULL ? c->word[1] : "", c->arguments[0] != '\0' ? " " : "",
             c->arguments);
}

static bool is_of(const struct ctl_command_row *c, const char *word)
{
    return word == NULL || strcmp(c->word[0], word) == 0;
}

static void print_commands(const char *word, FILE *to)
{
    char left[LEFT_CHARS];
    size_t width = 0;
    for (size_t i = 0; i < ctl_command_count; i++) {
        command_text(&ctl_command_rows[i], left);
        if (is_of(&ctl_command_rows[i], word) && strlen(left) + 2 > width)
            width = strlen(left) + 2;
    }
    fputs("commands:\n", to);
    for (size_t i = 0; i < ctl_command_count; i++) {
        command_text(&ctl_command_rows[i], left);
        if (is_of(&ctl_command_rows[i], word))
            print_entry(to, left, width, ctl_command_rows[i].help);
    }
}

/* ---- options */

/* Whether it is for commands of this word, and not for all. */
static bool is_for(const struct ctl_option_row *o, const char *word)
{
    for (size_t i = 0; i < ctl_command_count; i++)
        if (is_of(&ctl_command_rows[i], word) && ctl_option_is_for(o, &ctl_command_rows[i], false))
            return true;
    return false;
}

/* Whether the row behind one says the same of other commands, of those that are asked for. */
static bool goes_on(const struct ctl_option_row *o, const char *word)
{
    const struct ctl_option_row *next = o + 1;
    return next < ctl_option_rows + ctl_option_count && strcmp(o->option, next->option) == 0 &&
           strcmp(o->help, next->help) == 0 && (word == NULL || is_for(next, word));
}

static void print_options(const char *word, FILE *to)
{
    bool any = false;
    for (size_t i = 0; i < ctl_option_count; i++) {
        char text[TEXT_CHARS];
        const struct ctl_option_row *o = &ctl_option_rows[i];
        if (word != NULL && !is_for(o, word))
            continue;
        size_t used = ctl_option_place(o, text, sizeof text);
        for (; goes_on(o, word) && used + 2 < sizeof text; i++) {
            used += (size_t)snprintf(text + used, sizeof text - used, "; ");
            used += ctl_option_place(++o, text + used, sizeof text - used);
        }
        snprintf(text + used, sizeof text - used, "%s%s", used > 0 ? ": " : "", o->help);
        fputs(any ? "" : "\noptions:\n", to);
        print_entry(to, o->option, OPTION_CHARS, text);
        any = true;
    }
}

/* ---- of one word */

static const struct ctl_word_row *find_word(const char *word)
{
    for (size_t i = 0; i < ctl_word_count; i++)
        if (strcmp(ctl_word_rows[i].word, word) == 0)
            return &ctl_word_rows[i];
    return NULL;
}

static void print_usage(const char *word, FILE *to)
{
    bool any = false;
    fprintf(to, "usage: rdmactl [OPTIONS] %s", word);
    for (size_t i = 0; i < ctl_command_count; i++) {
        const struct ctl_command_row *c = &ctl_command_rows[i];
        if (!is_of(c, word) || c->word[1] == NULL)
            continue;
        fprintf(to, "%s%s", any ? "|" : " ", c->word[1]);
        any = true;
    }
    fputs("\n\n", to);
}

/* Each in one line, which the completion reads. */
static void print_keys(const char *word, FILE *to)
{
    const struct resource_table *kind = resource_table_find(word);
    if (kind == NULL)
        return;
    fputs(find_keys(word) != NULL ? "\nkeys:\n" : "\nin files for rdmactl apply:\n", to);
    for (size_t i = 0; i < kind->fields; i++) {
        const struct resource_field *f = &kind->field[i];
        char words[RESOURCE_MUST_BYTES] = "";
        if (f->words != NULL)
            resource_words_text(f->words, "", words);
        fprintf(to, "  %-*s %s%s%s\n", KEY_CHARS, f->name, words, f->words != NULL ? ": " : "",
                f->help);
    }
}

static void print_word(const struct ctl_word_row *w, FILE *to)
{
    print_usage(w->word, to);
    fprintf(to, "%s\n\n", w->about);
    print_commands(w->word, to);
    print_keys(w->word, to);
    fprintf(to, "\nexample:\n  %s\n", w->example);
    print_options(w->word, to);
    fputs("\nrdmactl --help has the options of all commands, such as -o json; rdmactl(1) the "
          "whole.\n",
          to);
}

static void print_all(FILE *to)
{
    fputs("usage: rdmactl [OPTIONS] COMMAND\n\n", to);
    print_commands(NULL, to);
    print_options(NULL, to);
    fputs("\n"
          "rdmactl WORD --help has more of the commands that begin with it, and what can be set;\n"
          "rdmactl help of one command too, as in rdmactl help node drain.\n"
          "\n"
          "Exits with 0; 1 an internal error, or something that doctor found broken; 2 a wrong "
          "command\n"
          "line or request; 3 no such thing; 4 not permitted; 5 a conflict; 6 a quota or a limit;\n"
          "7 nobody answers.\n",
          to);
}

/* ---- of one command */

static bool sets_keys(const struct ctl_command_row *c)
{
    return c->command == CTL_RESOURCE_CREATE || c->command == CTL_RESOURCE_SET;
}

static void print_command(const struct ctl_command_row *c, FILE *to)
{
    char text[LEFT_CHARS];
    bool any = false;
    command_text(c, text);
    fprintf(to, "usage: rdmactl [OPTIONS] %s\n\n%s %s: %s\n", text, c->word[0],
            c->word[1] != NULL ? c->word[1] : "", c->help);
    if (sets_keys(c))
        print_keys(c->word[0], to);
    fprintf(to, "\nexample:\n  %s\n", c->example);
    for (size_t i = 0; i < ctl_option_count; i++) {
        if (!ctl_option_is_for(&ctl_option_rows[i], c, false))
            continue;
        fputs(any ? "" : "\noptions:\n", to);
        print_entry(to, ctl_option_rows[i].option, OPTION_CHARS, ctl_option_rows[i].help);
        any = true;
    }
    fprintf(to,
            "\nrdmactl %s --help has all that begins with this word, rdmactl --help the options of "
            "all\ncommands, such as -o json; rdmactl(1) the whole.\n",
            c->word[0]);
}

int ctl_help_print(const char *const *words, size_t count, FILE *to, struct base_errbuf *err)
{
    const struct ctl_word_row *w = count > 0 ? find_word(words[0]) : NULL;
    const struct ctl_command_row *c = count > 1 ? ctl_command_find(words, count) : NULL;
    if (count > 0 && w == NULL)
        return ctl_no_such_command(words[0], err);
    if (count > 1 && c == NULL)
        return ctl_no_such_verb(words[0], err);
    if (c != NULL && c->word[1] != NULL)
        print_command(c, to);
    else if (w != NULL)
        print_word(w, to);
    else
        print_all(to);
    return 0;
}

int ctl_help_json(struct base_errbuf *err)
{
    struct base_text t;
    char text[TEXT_CHARS];
    base_text_init(&t, JSON_BYTES);
    ctl_json_begin(&t);
    base_json_array(&t, "commands");
    for (size_t i = 0; i < ctl_command_count; i++) {
        const struct ctl_command_row *c = &ctl_command_rows[i];
        snprintf(text, sizeof text, "%s%s%s", c->word[0], c->word[1] != NULL ? " " : "",
                 c->word[1] != NULL ? c->word[1] : "");
        base_json_object(&t, NULL);
        base_json_string(&t, "command", text);
        base_json_string(&t, "arguments", c->arguments);
        base_json_string(&t, "help", c->help);
        base_json_string(&t, "example", c->example);
        base_json_object_end(&t);
    }
    base_json_array_end(&t);
    base_json_array(&t, "options");
    for (size_t i = 0; i < ctl_option_count; i++) {
        (void)ctl_option_place(&ctl_option_rows[i], text, sizeof text);
        base_json_object(&t, NULL);
        base_json_string(&t, "option", ctl_option_rows[i].option);
        base_json_string(&t, "of", text);
        base_json_string(&t, "help", ctl_option_rows[i].help);
        base_json_object_end(&t);
    }
    base_json_array_end(&t);
    base_json_object_end(&t);
    return ctl_json_finish(&t, err);
}
