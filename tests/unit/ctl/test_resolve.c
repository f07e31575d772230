/* SPDX-License-Identifier: Apache-2.0 */
#include "../check_main.h"

#include <errno.h>
#include <string.h>

#include "ctl/options.h"

static struct base_errbuf err;
static struct ctl_servers servers;
static struct ctl_contexts contexts = {
    .path = "/c",
    .count = 2,
    .item = {{.name = "prod",
              .server = "http://prod:1",
              .token_file = "/prod.token",
              .agent_socket = "/prod.sock",
              .output = "json"},
             {.name = "dev", .token_file = "/dev.token"}},
};

/* What is not said is found for options that say this much. */
static struct ctl_options resolve(struct ctl_options o)
{
    err.text[0] = '\0';
    ck_assert_msg(ctl_options_resolve(&o, &contexts, &servers, &err) == 0, "%s", err.text);
    return o;
}
#define RESOLVE(...) resolve((struct ctl_options){__VA_ARGS__})

static void no_environment(void)
{
    static const char *const variables[] = {"KEDGE_SERVER", "KEDGE_TOKEN", "KEDGE_TOKEN_FILE",
                                            "KEDGE_AGENT_ADMIN", "KEDGE_CONTEXT"};
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        unsetenv(variables[i]);
    contexts.current[0] = '\0';
}

static void use(const char *name)
{
    snprintf(contexts.current, sizeof contexts.current, "%s", name);
}

START_TEST(without_anything_it_is_built_in)
{
    no_environment();
    setenv("KEDGE_AGENT_ADMIN", "", 1); /* as if it were not set */
    struct ctl_options o = RESOLVE(.server = NULL);
    ck_assert_str_eq(o.server, "unix:/run/kedge/metad.sock"); /* where nobody has to show a token */
    ck_assert_str_eq(o.agent_socket, CTL_DEFAULT_AGENT_SOCKET);
    ck_assert(o.token == NULL && o.token_file == NULL && !o.json && !o.wide);
}
END_TEST

START_TEST(the_current_context_goes_before_that)
{
    no_environment();
    use("prod");
    struct ctl_options o = RESOLVE(.server = NULL);
    ck_assert_str_eq(o.server, "http://prod:1");
    ck_assert_str_eq(o.agent_socket, "/prod.sock");
    ck_assert_str_eq(o.token_file, "/prod.token");
    ck_assert(o.json);
    use("dev");
    o = RESOLVE(.server = NULL);
    ck_assert_str_eq(o.server, CTL_DEFAULT_SERVER);
    ck_assert_str_eq(o.token_file, "/dev.token");
}
END_TEST

START_TEST(the_environment_goes_before_the_context)
{
    no_environment();
    use("dev");
    setenv("KEDGE_CONTEXT", "prod", 1);
    setenv("KEDGE_AGENT_ADMIN", "/env.sock", 1);
    setenv("KEDGE_TOKEN_FILE", "/env.token", 1);
    struct ctl_options o = RESOLVE(.server = NULL);
    ck_assert_str_eq(o.server, "http://prod:1");
    ck_assert_str_eq(o.agent_socket, "/env.sock");
    ck_assert_str_eq(o.token_file, "/env.token");
    setenv("KEDGE_TOKEN", "kedge_x", 1);
    o = RESOLVE(.server = NULL);
    ck_assert(o.token_file == NULL && strcmp(o.token, "kedge_x") == 0);
}
END_TEST

START_TEST(options_go_before_all)
{
    no_environment();
    use("prod");
    setenv("KEDGE_SERVER", "http://env:1", 1);
    setenv("KEDGE_TOKEN", "kedge_x", 1);
    struct ctl_options o =
        RESOLVE(.server = "http://o:1", .token_file = "/o", .agent_socket = "/s", .output = "wide");
    ck_assert_str_eq(o.server, "http://o:1");
    ck_assert_str_eq(o.agent_socket, "/s");
    ck_assert(o.token == NULL && strcmp(o.token_file, "/o") == 0);
    ck_assert(!o.json);
    ck_assert_str_eq(o.output, "wide");
}
END_TEST

START_TEST(a_contexts_token_goes_to_its_own_server_alone)
{
    no_environment();
    use("prod");
    struct ctl_options o = RESOLVE(.server = "http://o:1");
    ck_assert(o.token == NULL && o.token_file == NULL);
    ck_assert_str_eq(o.agent_socket, "/prod.sock");
    setenv("KEDGE_SERVER", "http://env:1", 1);
    o = RESOLVE(.server = NULL);
    ck_assert_str_eq(o.server, "http://env:1");
    ck_assert(o.token == NULL && o.token_file == NULL);
}
END_TEST

START_TEST(a_context_that_is_an_option_stands_in_place_of_the_environment)
{
    no_environment();
    setenv("KEDGE_SERVER", "http://env:1", 1);
    setenv("KEDGE_TOKEN", "kedge_x", 1);
    setenv("KEDGE_AGENT_ADMIN", "/env.sock", 1);
    setenv("KEDGE_CONTEXT", "dev", 1);
    struct ctl_options o = RESOLVE(.context = "prod");
    ck_assert_str_eq(o.server, "http://prod:1");
    ck_assert_str_eq(o.agent_socket, "/prod.sock");
    ck_assert(o.token == NULL && strcmp(o.token_file, "/prod.token") == 0);
    o = RESOLVE(.context = "none");
    ck_assert_str_eq(o.server, CTL_DEFAULT_SERVER);
    ck_assert_str_eq(o.agent_socket, CTL_DEFAULT_AGENT_SOCKET);
    ck_assert(o.token == NULL && o.token_file == NULL);
}
END_TEST

START_TEST(none_is_no_context)
{
    no_environment();
    struct ctl_options o = {.command = CTL_STATUS};
    use("prod");
    ck_assert(!ctl_context_none(&o));
    ck_assert_str_eq(ctl_context_chosen(&o, &contexts), "prod");
    setenv("KEDGE_CONTEXT", "none", 1);
    ck_assert(ctl_context_none(&o));
    ck_assert_ptr_null(ctl_context_chosen(&o, &contexts));
    o.context = "dev";
    ck_assert(!ctl_context_none(&o));
    ck_assert_str_eq(ctl_context_chosen(&o, &contexts), "dev");
}
END_TEST

static void refused(struct ctl_options o, int status, const char *says)
{
    ck_assert_int_eq(ctl_options_resolve(&o, &contexts, &servers, &err), status);
    ck_assert_msg(strstr(err.text, says) != NULL, "\"%s\" lacks \"%s\"", err.text, says);
}

START_TEST(several_metaservers_are_a_list)
{
    no_environment();
    struct ctl_options o = RESOLVE(.server = "http://a:1,https://b , unix:/c");
    ck_assert_uint_eq(o.servers->count, 3);
    ck_assert_str_eq(o.servers->url[1], "https://b");
    ck_assert_str_eq(o.servers->url[2], "unix:/c");
    ck_assert_str_eq(ctl_server_asked(&o), "http://a:1");
    o.servers->at = 1;
    ck_assert_str_eq(ctl_server_asked(&o), "https://b");
    o.servers = NULL; /* as where one is asked that another has named */
    o.server = "http://d";
    ck_assert_str_eq(ctl_server_asked(&o), "http://d");
    ck_assert_int_eq(ctl_server_check("--server", "http://a,,http://b", &err), -EINVAL);
    ck_assert_int_eq(ctl_server_check("--server", "", &err), -EINVAL);
    ck_assert_int_eq(ctl_server_check("--server", "http://a,http://b/v1", &err), -EINVAL);
    ck_assert_int_eq(ctl_server_check("--server", "http://a:1 http://b:2", &err), -EINVAL);
    ck_assert_int_eq(ctl_server_check("--server",
                                      "unix:/1,unix:/2,unix:/3,unix:/4,unix:/5,unix:/6,"
                                      "unix:/7,unix:/8",
                                      &err),
                     0);
    ck_assert_int_eq(ctl_server_check("--server",
                                      "unix:/1,unix:/2,unix:/3,unix:/4,unix:/5,unix:/6,"
                                      "unix:/7,unix:/8,unix:/9",
                                      &err),
                     -EINVAL);
}
END_TEST

START_TEST(what_is_wrong_names_its_origin)
{
    no_environment();
    refused((struct ctl_options){.context = "x"}, -ENOENT, "\"x\", which --context names");
    use("y");
    refused((struct ctl_options){.context = NULL}, -ENOENT, "\"y\", which its \"current\" names");
    setenv("KEDGE_CONTEXT", "z", 1);
    refused((struct ctl_options){.context = NULL}, -ENOENT, "\"z\", which KEDGE_CONTEXT names");
    setenv("KEDGE_CONTEXT", "prod", 1);
    setenv("KEDGE_SERVER", "localhost", 1);
    refused((struct ctl_options){.context = NULL}, -EINVAL, "KEDGE_SERVER must be a URL");
    setenv("KEDGE_SERVER", "http://localhost:1/v1", 1);
    refused((struct ctl_options){.context = NULL}, -EINVAL, "KEDGE_SERVER must end where");
    setenv("KEDGE_SERVER", "https://proxy/kedge/", 1); /* a proxy's path is its own */
    ck_assert_str_eq(RESOLVE(.server = NULL).server, "https://proxy/kedge/");
}
END_TEST

#define TESTS(X)                                                                                   \
    X(without_anything_it_is_built_in)                                                             \
    X(the_current_context_goes_before_that)                                                        \
    X(the_environment_goes_before_the_context)                                                     \
    X(options_go_before_all)                                                                       \
    X(a_contexts_token_goes_to_its_own_server_alone)                                               \
    X(a_context_that_is_an_option_stands_in_place_of_the_environment)                              \
    X(none_is_no_context)                                                                          \
    X(several_metaservers_are_a_list)                                                              \
    X(what_is_wrong_names_its_origin)
KEDGE_CHECK_MAIN("ctl.resolve", TESTS)
