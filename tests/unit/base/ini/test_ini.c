/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../../check_main.h"
#include "base/ini.h"

static char heard[256];

static int hear(void *user, const char *section, const char *key, const char *value,
                struct base_errbuf *what)
{
    (void)user, (void)what;
    const size_t used = strlen(heard);
    if (key == NULL)
        snprintf(heard + used, sizeof heard - used, "[%s]", section);
    else
        snprintf(heard + used, sizeof heard - used, "%s=%s;", key, value);
    return 0;
}

static int read_bytes(const char *bytes, size_t length, struct base_errbuf *err)
{
    FILE *file = fmemopen((void *)(uintptr_t)bytes, length, "r");
    ck_assert_ptr_nonnull(file);
    heard[0] = '\0';
    const int status = base_ini_read_file(file, "f", hear, NULL, err);
    fclose(file);
    return status;
}

START_TEST(every_setting_is_heard_with_or_without_a_newline_behind_the_last)
{
    static const char text[] = "[a]\nx = 1\n\n; a comment\n[b]\r\ny = 2 3\nz =";
    struct base_errbuf err;
    ck_assert_int_eq(read_bytes(text, sizeof text - 1, &err), 0);
    ck_assert_str_eq(heard, "[a]x=1;[b]y=2 3;z=;");
}
END_TEST

/* As a file of which only the length reached the disk. */
START_TEST(a_file_of_zeros_is_not_taken_for_an_empty_one)
{
    static const char zeros[64], behind[] = "[a]\nx = 1\n\0\0\0",
                                 within[] = "[a]\nx = 1\0y\nz = 2\n";
    struct base_errbuf err;
    ck_assert_int_eq(read_bytes(zeros, sizeof zeros, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "f:1: "));
    ck_assert_int_eq(read_bytes(behind, sizeof behind - 1, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "f:3: "));
    ck_assert_int_eq(read_bytes(within, sizeof within - 1, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "f:2: "));
}
END_TEST

/* As some editors begin a file. A section is heard whether or not it has settings. */
START_TEST(a_byte_order_mark_before_the_first_line_is_none_of_it)
{
    static const char text[] = "\xef\xbb\xbf[a]\n[b]\nx = 1\n", alone[] = "\xef\xbb\xbf",
                      later[] = "[a]\n\xef\xbb\xbfx = 1\n";
    struct base_errbuf err;
    ck_assert_int_eq(read_bytes(text, sizeof text - 1, &err), 0);
    ck_assert_str_eq(heard, "[a][b]x=1;");
    ck_assert_int_eq(read_bytes(alone, sizeof alone - 1, &err), 0);
    ck_assert_str_eq(heard, "");
    ck_assert_int_eq(read_bytes(later, sizeof later - 1, &err), 0);
    ck_assert_str_eq(heard, "[a]\xef\xbb\xbfx=1;"); /* a setting that there is not */
}
END_TEST

#define TESTS(T)                                                                                   \
    T(every_setting_is_heard_with_or_without_a_newline_behind_the_last)                            \
    T(a_file_of_zeros_is_not_taken_for_an_empty_one)                                               \
    T(a_byte_order_mark_before_the_first_line_is_none_of_it)

KEDGE_CHECK_MAIN("base ini", TESTS)
