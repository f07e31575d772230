/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of commands and options agree with each other and with what is parsed, and --help says
 * what is in them. */
#include "../check_main.h"

#include <errno.h>
#include <stdio.h>

#include "ctl/command_table.h"
#include "ctl/resources.h"

enum { WORDS_MAX = 16 };

static struct base_errbuf err;

static int parse(const char *line, struct ctl_options *out)
{
    static char text[256], *argv[WORDS_MAX + 1]; /* which *out borrows */
    char *rest;
    int argc = 0;
    ck_assert_uint_lt(strlen(line), sizeof text);
    snprintf(text, sizeof text, "%s", line);
    for (char *word = strtok_r(text, " ", &rest); word != NULL && argc < WORDS_MAX;
         word = strtok_r(NULL, " ", &rest))
        argv[argc++] = word;
    argv[argc] = NULL;
    return ctl_options_parse(argc, argv, out, &err);
}

static const struct ctl_command_row *find_command(const char *word, const char *verb)
{
    for (size_t i = 0; i < ctl_command_count; i++) {
        const struct ctl_command_row *c = &ctl_command_rows[i];
        const char *second = c->word[1] != NULL ? c->word[1] : "";
        if ((word == NULL || strcmp(c->word[0], word) == 0) &&
            (verb == NULL || strcmp(second, verb) == 0))
            return c;
    }
    return NULL;
}

START_TEST(each_example_is_a_command_line_of_its_word)
{
    for (size_t i = 0; i < ctl_word_count; i++) {
        const struct ctl_word_row *w = &ctl_word_rows[i];
        struct ctl_options o;
        struct base_text body;
        uint64_t revision;
        char head[64];
        snprintf(head, sizeof head, "rdmactl %s", w->word);
        ck_assert_msg(strncmp(w->example, head, strlen(head)) == 0, "%s", w->example);
        ck_assert_msg(parse(w->example, &o) == 0, "%s: %s", w->example, err.text);
        if (o.command != CTL_RESOURCE_CREATE && o.command != CTL_RESOURCE_SET)
            continue;
        base_text_init(&body, CTL_BODY_BYTES);
        ck_assert_msg(ctl_edit_resource(resource_table_find(o.kind), NULL, 0, o.words, o.word_count,
                                        &body, &revision, &err) == 0,
                      "%s: %s", w->example, err.text);
        base_text_fini(&body);
    }
}
END_TEST

START_TEST(each_word_has_commands_and_each_command_a_word)
{
    for (size_t i = 0; i < ctl_word_count; i++)
        ck_assert_msg(find_command(ctl_word_rows[i].word, NULL) != NULL, "%s",
                      ctl_word_rows[i].word);
    for (size_t i = 0; i < ctl_command_count; i++) {
        size_t n = 0;
        for (size_t k = 0; k < ctl_word_count; k++)
            n += strcmp(ctl_word_rows[k].word, ctl_command_rows[i].word[0]) == 0;
        ck_assert_msg(n == 1, "%s", ctl_command_rows[i].word[0]);
        ck_assert_msg(ctl_command_rows[i].help[0] != '\0', "%s", ctl_command_rows[i].word[0]);
    }
}
END_TEST

/* That it may not be said with `status` is another matter. */
START_TEST(each_option_of_the_help_is_one_and_is_said_of_commands_that_there_are)
{
    for (size_t i = 0; i < ctl_option_count; i++) {
        const struct ctl_option_row *row = &ctl_option_rows[i];
        struct ctl_options o;
        char line[128];
        const char *name = strstr(row->option, "--");
        ck_assert_ptr_nonnull(name);
        snprintf(line, sizeof line, "rdmactl %.*s%s status", (int)strcspn(name, " "), name,
                 name[strcspn(name, " ")] != '\0' ? " 1" : "");
        const int status = parse(line, &o);
        ck_assert_msg(status == 0 || strstr(err.text, "is no option") == NULL, "%s", err.text);
        ck_assert_msg(row->word == NULL || find_command(row->word, NULL) != NULL, "%s",
                      row->option);
        for (size_t k = 0; row->verbs[k] != NULL; k++)
            ck_assert_msg(find_command(row->word, row->verbs[k]) != NULL, "%s: %s", row->option,
                          row->verbs[k]);
    }
}
END_TEST

/* "--grace DURATION" of "pool". */
static bool is_in_help(const struct ctl_field_option_row *f)
{
    bool found = false;
    for (size_t i = 0; i < ctl_option_count; i++) {
        const struct ctl_option_row *row = &ctl_option_rows[i];
        const size_t length = strlen(f->option);
        found |= strncmp(row->option, "--", 2) == 0 &&
                 strncmp(row->option + 2, f->option, length) == 0 &&
                 row->option[2 + length] == ' ' && row->word != NULL &&
                 strcmp(row->word, f->kind) == 0;
    }
    return found;
}

START_TEST(each_option_of_a_field_is_in_the_help_and_sets_one_that_there_is)
{
    for (size_t i = 0; i < ctl_field_option_count; i++) {
        const struct ctl_field_option_row *f = &ctl_field_option_rows[i];
        const struct resource_table *kind = resource_table_find(f->kind);
        ck_assert_msg(kind != NULL && resource_field_find(kind, f->field) != NULL, "%s", f->field);
        ck_assert_msg(is_in_help(f), "--%s of a %s", f->option, f->kind);
    }
}
END_TEST

static const char *help_of_command(const char *word, const char *verb)
{
    static char text[1 << 16];
    FILE *file = tmpfile();
    ck_assert_ptr_nonnull(file);
    const size_t count = word == NULL ? 0 : verb == NULL ? 1 : 2;
    ck_assert_msg(ctl_help_print((const char *const[]){word, verb}, count, file, &err) == 0, "%s",
                  err.text);
    rewind(file);
    const size_t length = fread(text, 1, sizeof text - 1, file);
    text[length] = '\0';
    fclose(file);
    return text;
}

static const char *help_of(const char *word)
{
    return help_of_command(word, NULL);
}

START_TEST(the_help_of_a_word_has_its_commands_and_keys_and_no_others)
{
    for (size_t i = 0; i < ctl_word_count; i++) {
        const char *word = ctl_word_rows[i].word, *text = help_of(word);
        const struct resource_table *kind = resource_table_find(word);
        char line[128];
        for (size_t k = 0; k < ctl_command_count; k++) {
            const struct ctl_command_row *c = &ctl_command_rows[k];
            const char *verb = c->word[1] != NULL ? c->word[1] : "";
            snprintf(line, sizeof line, "\n  %s%s%s ", c->word[0], verb[0] != '\0' ? " " : "",
                     verb);
            ck_assert_msg((strstr(text, line) != NULL) == (strcmp(c->word[0], word) == 0), "%s: %s",
                          word, line);
        }
        for (size_t k = 0; kind != NULL && k < kind->fields; k++) {
            const struct resource_field *f = &kind->field[k];
            char words[RESOURCE_MUST_BYTES] = "";
            if (f->words != NULL)
                resource_words_text(f->words, "", words);
            snprintf(line, sizeof line, "\n  %-25s %s%s%s\n", f->name, words,
                     f->words != NULL ? ": " : "", f->help);
            ck_assert_msg(strstr(text, line) != NULL, "%s lacks %s", word, line);
        }
        ck_assert_ptr_nonnull(strstr(text, ctl_word_rows[i].about));
        ck_assert_ptr_nonnull(strstr(text, ctl_word_rows[i].example));
    }
    ck_assert_int_eq(ctl_help_print((const char *const[]){"planet"}, 1, stdout, &err), -EINVAL);
}
END_TEST

/* Also where the name is wider than its column. */
START_TEST(between_an_option_and_what_it_is_there_is_a_blank)
{
    const char *text = help_of_command(NULL, NULL);
    for (size_t i = 0; i < ctl_option_count; i++) {
        char line[128];
        snprintf(line, sizeof line, "\n  %s ", ctl_option_rows[i].option);
        ck_assert_msg(strstr(text, line) != NULL, "%s", ctl_option_rows[i].option);
    }
}
END_TEST

START_TEST(the_help_says_that_several_metaservers_may_be_given)
{
    ck_assert_ptr_nonnull(strstr(help_of_command(NULL, NULL), "\n  --server URL,... "));
}
END_TEST

START_TEST(the_help_of_a_word_has_the_options_of_its_commands_alone)
{
    const char *text = help_of("lease");
    ck_assert_ptr_nonnull(strstr(text, "\n  --force  "));
    ck_assert_ptr_null(strstr(text, "--reason"));
    ck_assert_ptr_null(strstr(text, "--revision"));
    ck_assert_ptr_null(strstr(help_of("region"), "--revision"));
    ck_assert_ptr_null(strstr(help_of("region"), "--name"));
    ck_assert_ptr_nonnull(strstr(help_of("region"), "\n  --tenant NAME  "));
    ck_assert_ptr_nonnull(strstr(help_of("pool"), "\n  --revision NUMBER  "));
    text = help_of("event");
    ck_assert_ptr_nonnull(strstr(text, "\n  --limit NUMBER  "));
    ck_assert_ptr_nonnull(strstr(text, " event list; watch: of what is called so\n"));
    text = help_of(NULL);
    for (size_t i = 0; i < ctl_option_count; i++)
        ck_assert_ptr_nonnull(strstr(text, ctl_option_rows[i].option));
}
END_TEST

/* As far as its words are; what it is of need not be there. */
START_TEST(each_command_has_an_example_that_is_one_of_it)
{
    for (size_t i = 0; i < ctl_command_count; i++) {
        const struct ctl_command_row *c = &ctl_command_rows[i];
        struct ctl_options o;
        char head[64];
        snprintf(head, sizeof head, "rdmactl %s%s%s", c->word[0], c->word[1] != NULL ? " " : "",
                 c->word[1] != NULL ? c->word[1] : "");
        ck_assert_msg(strncmp(c->example, head, strlen(head)) == 0, "%s: %s", head, c->example);
        ck_assert_msg(parse(c->example, &o) == 0, "%s: %s", c->example, err.text);
        ck_assert_ptr_eq(o.row, c);
    }
}
END_TEST

START_TEST(the_help_of_a_command_has_what_it_takes_and_an_example)
{
    for (size_t i = 0; i < ctl_command_count; i++) {
        const struct ctl_command_row *c = &ctl_command_rows[i];
        const char *text = help_of_command(c->word[0], c->word[1]);
        ck_assert_msg(c->word[1] == NULL || strstr(text, c->example) != NULL, "%s", text);
        ck_assert(c->word[1] == NULL || strstr(text, c->help) != NULL);
        for (size_t k = 0; c->word[1] != NULL && k < ctl_option_count; k++) {
            char line[96];
            snprintf(line, sizeof line, "\n  %s ", ctl_option_rows[k].option);
            if (ctl_option_is_for(&ctl_option_rows[k], c, false))
                ck_assert_msg(strstr(text, line) != NULL, "%s lacks %s", text, line);
        }
    }
    const char *text = help_of_command("node", "cordon");
    ck_assert(strstr(text, "--reason TEXT") != NULL && strstr(text, "--grace") == NULL);
    ck_assert_ptr_nonnull(strstr(help_of_command("pool", "set"), "\nkeys:\n  nodes "));
    ck_assert_ptr_null(strstr(help_of_command("pool", "get"), "\nkeys:"));
    ck_assert_int_eq(ctl_help_print((const char *const[]){"node", "fly"}, 2, stdout, &err),
                     -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "say rdmactl node list"));
}
END_TEST

START_TEST(help_is_asked_for_in_three_ways)
{
    struct ctl_options o;
    static const char *const lines[] = {"rdmactl help node drain", "rdmactl node drain --help",
                                        "rdmactl -h node drain host-17 --grace 0"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        ck_assert_int_eq(parse(lines[i], &o), 0);
        ck_assert_int_eq(o.command, CTL_HELP);
        ck_assert_uint_ge(o.word_count, 2);
        ck_assert_str_eq(o.words[0], "node");
        ck_assert_str_eq(o.words[1], "drain");
    }
    ck_assert_int_eq(parse("rdmactl help", &o), 0);
    ck_assert_uint_eq(o.word_count, 0);
}
END_TEST

/* The letter of "-o, --output"; 0: it has none. */
static char letter_of(const char *option)
{
    return option[0] == '-' && option[1] != '-' ? option[1] : '\0';
}

START_TEST(no_letter_is_that_of_two_options)
{
    for (size_t i = 0; i < ctl_option_count; i++)
        for (size_t k = 0; k < i; k++) {
            const char *a = ctl_option_rows[i].option, *b = ctl_option_rows[k].option;
            if (letter_of(a) != '\0' && letter_of(a) == letter_of(b))
                ck_assert_str_eq(a, b);
        }
    for (size_t i = 0; i < ctl_long_option_count; i++)
        for (size_t k = 0; k < i; k++) {
            const struct option *a = &ctl_long_options[i], *b = &ctl_long_options[k];
            ck_assert_msg(a->val != b->val, "--%s and --%s", a->name, b->name);
            ck_assert_str_ne(a->name, b->name);
        }
}
END_TEST

START_TEST(each_option_that_is_parsed_is_in_the_help_with_its_letter)
{
    for (size_t i = 0; i < ctl_long_option_count; i++) {
        const struct option *o = &ctl_long_options[i];
        size_t found = 0;
        for (size_t k = 0; k < ctl_option_count; k++) {
            const char *text = ctl_option_rows[k].option, *name = strstr(text, "--") + 2;
            const size_t length = strcspn(name, " ");
            if (length != strlen(o->name) || strncmp(name, o->name, length) != 0)
                continue;
            found++;
            ck_assert_msg((name[length] == ' ') == (o->has_arg == required_argument), "%s", text);
            ck_assert_msg(letter_of(text) == '\0' || letter_of(text) == o->val, "%s", text);
        }
        ck_assert_msg(found > 0, "--%s", o->name);
    }
}
END_TEST

START_TEST(an_option_of_other_commands_says_whose_it_is)
{
    const char *words[] = {"status"};
    const struct ctl_command_row *status = ctl_command_find(words, 1);
    ck_assert_int_eq(ctl_option_check("output", status, &err), 0);
    ck_assert_int_eq(ctl_option_check("limit", status, &err), -EINVAL);
    ck_assert_str_eq(err.text, "--limit is for event list alone");
    ck_assert_int_eq(ctl_option_check("scope", status, &err), -EINVAL);
    ck_assert_str_eq(err.text, "--scope is for window list; token list alone");
}
END_TEST

START_TEST(no_line_of_the_help_is_too_long)
{
    for (const char *at = help_of(NULL); *at != '\0'; at += strcspn(at, "\n") + 1)
        ck_assert_msg(strcspn(at, "\n") <= 100, "%.*s", (int)strcspn(at, "\n"), at);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(each_example_is_a_command_line_of_its_word)                                                  \
    T(each_word_has_commands_and_each_command_a_word)                                              \
    T(each_option_of_the_help_is_one_and_is_said_of_commands_that_there_are)                       \
    T(each_option_of_a_field_is_in_the_help_and_sets_one_that_there_is)                            \
    T(the_help_of_a_word_has_its_commands_and_keys_and_no_others)                                  \
    T(between_an_option_and_what_it_is_there_is_a_blank)                                           \
    T(the_help_says_that_several_metaservers_may_be_given)                                         \
    T(the_help_of_a_word_has_the_options_of_its_commands_alone)                                    \
    T(each_command_has_an_example_that_is_one_of_it)                                               \
    T(the_help_of_a_command_has_what_it_takes_and_an_example)                                      \
    T(help_is_asked_for_in_three_ways)                                                             \
    T(no_letter_is_that_of_two_options)                                                            \
    T(each_option_that_is_parsed_is_in_the_help_with_its_letter)                                   \
    T(an_option_of_other_commands_says_whose_it_is)                                                \
    T(no_line_of_the_help_is_too_long)
KEDGE_CHECK_MAIN("ctl help", TESTS)
