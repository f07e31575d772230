/* SPDX-License-Identifier: Apache-2.0 */
/* The main() of a unit test: TESTS names its test functions, X-macro style, so that none is
 * forgotten. */
#ifndef TESTS_UNIT_CHECK_MAIN_H
#define TESTS_UNIT_CHECK_MAIN_H

#include <check.h>
#include <stdlib.h>

#define KEDGE_CHECK_MAIN(suite_name, TESTS)                                                        \
    int main(void)                                                                                 \
    {                                                                                              \
        Suite *suite = suite_create(suite_name);                                                   \
        TCase *tcase = tcase_create(suite_name);                                                   \
        tcase_set_timeout(tcase, 400);                                                             \
        TESTS(KEDGE_ADD_TEST)                                                                      \
        suite_add_tcase(suite, tcase);                                                             \
        SRunner *runner = srunner_create(suite);                                                   \
        srunner_run_all(runner, CK_ENV);                                                           \
        int failed = srunner_ntests_failed(runner);                                                \
        srunner_free(runner);                                                                      \
        return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;                                          \
    }
#define KEDGE_ADD_TEST(test) tcase_add_test(tcase, test);

#endif
