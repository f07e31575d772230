/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of faults as text: what an operator may write, and that the man page names all of it. */
#include <errno.h>

#include "../man_page.h"
#include "base/error.h"
#include "fabric/fault.h"

enum { NAMES = 64, NAME = 32 };

/* The names of a plan's settings, each once. */
struct names {
    char name[NAMES][NAME];
    size_t count;
};

START_TEST(a_plan_is_read_as_an_operator_writes_it)
{
    static const char *const wrong[] = {"loss",      "loss=5",    "loss=101%",    "loss=-1%",
                                        "lost=5%",   "seed=x",    "loss=5%%",     "=",
                                        "loss=nan%", "deadlines", "deadlines=on", "reset=on"};
    struct base_errbuf must = {""};
    struct fault_plan plan;
    const char *right = "loss=5%, seed=7,completion_error = 0.01%";
    ck_assert_int_eq(fault_plan_parse(right, &plan, &must), 0);
    ck_assert_uint_eq(plan.loss_ppm, 50000);
    ck_assert_uint_eq(plan.completion_error_ppm, 100);
    ck_assert_uint_eq(plan.seed, 7);
    ck_assert_uint_eq(plan.post_error_ppm + plan.control_error_ppm, 0);
    ck_assert(!plan.no_deadlines);
    ck_assert_int_eq(fault_plan_parse("seed=7, deadlines = off", &plan, &must), 0);
    ck_assert(plan.no_deadlines);
    ck_assert(!plan.resets_are_final);
    ck_assert_int_eq(fault_plan_parse("reset=final, timeout=9", &plan, &must), 0);
    ck_assert(plan.resets_are_final && plan.timeout == 9);
    ck_assert_int_eq(fault_plan_parse("destroy_error=100%, drain=2000", &plan, &must), 0);
    ck_assert_uint_eq(plan.destroy_error_ppm, 1000000);
    ck_assert_uint_eq(plan.drain_ns, 2000000000ull);
    ck_assert_int_eq(fault_plan_parse("stuck=30%", &plan, &must), 0);
    ck_assert_uint_eq(plan.stuck_ppm, 300000);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_int_eq(fault_plan_parse(wrong[i], &plan, &must), -EINVAL);
}
END_TEST

static bool has_name(const struct names *n, const char *name)
{
    for (size_t i = 0; i < n->count; i++)
        if (strcmp(n->name[i], name) == 0)
            return true;
    return false;
}

static void copy_word(char to[NAME], const char *begin, size_t length)
{
    ck_assert_uint_lt(length, NAME);
    memcpy(to, begin, length);
    to[length] = '\0';
}

static void add_name(struct names *n, const char name[NAME])
{
    if (has_name(n, name))
        return;
    ck_assert_uint_lt(n->count, NAMES);
    memcpy(n->name[n->count++], name, NAME);
}

/* value: as the page has it, or "" where it has none or a word for it (GID, MS). */
static bool is_taken(const char *name, const char *value)
{
    static const char *const values[] = {"5%", "7", "fe80::1", "/tmp/there"};
    struct base_errbuf must = {""};
    struct fault_plan plan;
    char text[2 * NAME];
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        snprintf(text, sizeof text, "%s=%s", name, value[0] != '\0' ? value : values[i]);
        if (fault_plan_parse(text, &plan, &must) == 0)
            return true;
    }
    return false;
}

/* A word behind .Cm: NAME, NAME=VALUE, or NAME= with .Ar's word for the value behind it. */
static void check_word(struct names *n, const char *word, size_t length)
{
    const char *equals = memchr(word, '=', length);
    const size_t name_length = equals != NULL ? (size_t)(equals - word) : length;
    char name[NAME], value[NAME] = "";
    copy_word(name, word, name_length);
    if (equals != NULL && (equals[1] < 'A' || equals[1] > 'Z'))
        copy_word(value, equals + 1, length - name_length - 1);
    ck_assert_msg(is_taken(name, value), "kedge-agent.conf.5 has %.*s, which no plan can have",
                  (int)length, word);
    add_name(n, name);
}

static void check_page(struct names *n)
{
    char *page = read_source("docs/man/kedge-agent.conf.5");
    char *section = cut_page_section(page, "\n.Ss Section fabric\n");
    char *item = cut_item(section, "fault");
    ck_assert_ptr_nonnull(item);
    for (char *line = strstr(item, "\n.Cm "); line != NULL; line = strstr(line, "\n.Cm ")) {
        line += strlen("\n.Cm ");
        for (size_t length = 0; *line != '\n' && *line != '\0'; line += length) {
            line += strspn(line, " ,;");
            length = strcspn(line, " \n");
            if (length == 2 && strncmp(line, "Ns", 2) == 0) /* and what stands for the value */
                length = strcspn(line, "\n");
            else if (length > 0)
                check_word(n, line, length);
        }
    }
    free(item);
    free(section);
    free(page);
}

START_TEST(a_plan_can_have_all_that_the_man_page_names)
{
    struct names page = {.count = 0};
    check_page(&page);
    ck_assert(has_name(&page, "stuck") && has_name(&page, "cut") && has_name(&page, "timeout"));
    ck_assert_uint_gt(page.count, 30);
}
END_TEST

START_TEST(the_man_page_names_all_that_a_plan_can_have)
{
    static const char row[] = "ROW(\"";
    struct names page = {.count = 0}, parser = {.count = 0};
    char name[NAME], *source = read_source("fabric/fault/plan.c");
    check_page(&page);
    for (const char *at = strstr(source, row); at != NULL; at = strstr(at, row)) {
        at += strlen(row);
        copy_word(name, at, strcspn(at, "\""));
        add_name(&parser, name);
    }
    ck_assert_uint_gt(parser.count, 30);
    for (size_t i = 0; i < parser.count; i++)
        ck_assert_msg(has_name(&page, parser.name[i]), "kedge-agent.conf.5 does not name %s",
                      parser.name[i]);
    ck_assert_uint_eq(page.count, parser.count);
    free(source);
}
END_TEST

#define TESTS(X)                                                                                   \
    X(a_plan_is_read_as_an_operator_writes_it)                                                     \
    X(a_plan_can_have_all_that_the_man_page_names)                                                 \
    X(the_man_page_names_all_that_a_plan_can_have)

KEDGE_CHECK_MAIN("fault_text", TESTS)
