/* SPDX-License-Identifier: Apache-2.0 */
#include "../check_main.h"

#include <errno.h>
#include <string.h>

#include "ctl/options.h"
#include "schema/resources.h"

static struct base_errbuf err;

/* Parses up to six words. */
static int parse(struct ctl_options *o, const char *const words[6])
{
    static char *argv[8]; /* which `words` points into */
    argv[0] = (char *)(uintptr_t) "rdmactl";
    int argc = 1;
    while (argc < 7 && words[argc - 1] != NULL) {
        argv[argc] = (char *)(uintptr_t)words[argc - 1];
        argc++;
    }
    argv[argc] = NULL;
    err.text[0] = '\0';
    return ctl_options_parse(argc, argv, o, &err);
}
#define PARSE(o, ...) parse(o, (const char *const[6]){__VA_ARGS__})

START_TEST(every_command_is_understood)
{
    struct ctl_options o;
    ck_assert_int_eq(PARSE(&o, "status"), 0);
    ck_assert_int_eq(o.command, CTL_STATUS);
    ck_assert_int_eq(PARSE(&o, "node", "list"), 0);
    ck_assert_int_eq(o.command, CTL_NODE_LIST);
    ck_assert_int_eq(PARSE(&o, "node", "get", "host-17"), 0);
    ck_assert_int_eq(o.command, CTL_NODE_GET);
    ck_assert_str_eq(o.id, "host-17");
    ck_assert_int_eq(PARSE(&o, "agent", "status"), 0);
    ck_assert_int_eq(o.command, CTL_AGENT_STATUS);
    ck_assert_int_eq(PARSE(&o, "doctor"), 0);
    ck_assert_int_eq(o.command, CTL_DOCTOR);
    ck_assert_int_eq(PARSE(&o, "window", "set", "w", "ops=5", "bytes=0", "-owide"), 0);
    ck_assert_int_eq(o.command, CTL_RESOURCE_SET);
    ck_assert_str_eq(o.kind, "window");
    ck_assert_str_eq(o.id, "w");
    ck_assert_uint_eq(o.word_count, 2);
    ck_assert_str_eq(o.words[0], "ops=5");
    ck_assert_str_eq(o.words[1], "bytes=0");
    ck_assert(o.wide && !o.json);
    ck_assert_int_eq(PARSE(&o, "tenant", "delete", "t"), 0);
    ck_assert_int_eq(o.command, CTL_RESOURCE_DELETE);
    ck_assert_int_eq(PARSE(&o, "tenant", "watch", "--revision", "12"), 0);
    ck_assert_int_eq(o.command, CTL_EVENT_WATCH);
    ck_assert(o.from_revision);
    ck_assert_uint_eq(o.revision, 12);
    ck_assert_int_eq(PARSE(&o, "node", "label", "n", "a=b", "c-"), 0);
    ck_assert_int_eq(o.command, CTL_NODE_LABEL);
    ck_assert_uint_eq(o.word_count, 2);
    ck_assert_int_eq(PARSE(&o, "node", "drain", "n", "--grace=30s", "--wait"), 0);
    ck_assert_int_eq(o.command, CTL_NODE_DRAIN);
    ck_assert_uint_eq(o.grace_ms, 30000);
    ck_assert(o.wait && o.grace_said);
    ck_assert_int_eq(PARSE(&o, "node", "drain", "n", "--grace", "0"), 0);
    ck_assert(o.grace_said && o.grace_ms == 0);
    ck_assert_int_eq(PARSE(&o, "node", "drain", "n"), 0);
    ck_assert(!o.grace_said);
    ck_assert_int_eq(PARSE(&o, "node", "cordon", "n", "--reason", "a disk"), 0);
    ck_assert_str_eq(o.reason, "a disk");
    ck_assert_int_eq(PARSE(&o, "node", "uncordon", "n"), 0);
    ck_assert_int_eq(o.command, CTL_NODE_UNCORDON);
    ck_assert_int_eq(PARSE(&o, "node", "list", "--label", "a=b,c=d"), 0);
    ck_assert_str_eq(o.label, "a=b,c=d");
    ck_assert_int_eq(PARSE(&o, "pool", "create", "p", "spares=0"), 0);
    ck_assert_int_eq(o.command, CTL_RESOURCE_CREATE);
    ck_assert_str_eq(o.kind, "pool");
    ck_assert_int_eq(PARSE(&o, "agent", "status", "--node", "n"), 0);
    ck_assert_str_eq(o.node, "n");
    ck_assert_int_eq(PARSE(&o, "lease", "revoke", "--node", "n", "1-00000001-1", "--force"), 0);
    ck_assert(strcmp(o.node, "n") == 0 && o.force && !o.all_nodes);
    ck_assert_int_eq(PARSE(&o, "worker", "list", "--all-nodes", "--tenant", "web"), 0);
    ck_assert(o.node == NULL && o.all_nodes);
    ck_assert_int_eq(PARSE(&o, "event", "watch"), 0);
    ck_assert_ptr_null(o.kind);
    ck_assert_int_eq(PARSE(&o, "apply", "-f", "-"), 0);
    ck_assert_uint_eq(o.files, 1);
    ck_assert_str_eq(o.file[0], "-");
    ck_assert_int_eq(PARSE(&o, "token", "create", "ci", "scope=reader"), 0);
    ck_assert_int_eq(o.command, CTL_RESOURCE_CREATE);
    ck_assert_str_eq(o.kind, "token");
    ck_assert_int_eq(PARSE(&o, "status", "--server", "unix:/run/kedge/metad.sock"), 0);
    ck_assert_str_eq(o.server, "unix:/run/kedge/metad.sock");
    ck_assert_int_eq(PARSE(&o, "status", "--server", "unix:relative"), -EINVAL);
}
END_TEST

START_TEST(nothing_is_said_twice)
{
    struct ctl_options o;
    const struct {
        const char *words[6], *says;
    } wrong[] = {
        {{"tenant", "create", "x", "sessions=1", "sessions=2"},
         "sessions is said twice, as \"sessions=1\" and \"sessions=2\""},
        {{"node", "label", "n", "x=1", "y=1", "x=2"}, "x is said twice"},
        {{"node", "label", "n", "x=1", "x-"}, "x is said twice"},
        {{"context", "set", "c", "server=http://a", "server="}, "server is said twice"},
        {{"node", "list", "--label", "x=1,y=1,x=2"}, "--label says x twice"},
        {{"node", "list", "--label=x=1", "--label=y=1"}, "--label is said twice"},
        {{"lease", "list", "--tenant=a", "--tenant=b"}, "--tenant is said twice"},
        {{"lease", "list", "--node=a", "--node=b"}, "--node is said twice"},
        {{"pool", "set", "p", "--number=1", "--number=2"}, "--number is said twice"},
        {{"pool", "set", "p", "--mr-lease=1s", "--mr-lease=2s"}, "--mr-lease is said twice"},
        {{"node", "drain", "n", "--grace=1s", "--grace=2s"}, "--grace is said twice"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_int_eq(parse(&o, wrong[i].words), -EINVAL);
        ck_assert_msg(strstr(err.text, wrong[i].says) != NULL, "\"%s\" lacks \"%s\"", err.text,
                      wrong[i].says);
    }
    ck_assert_int_eq(PARSE(&o, "status", "--server=http://a", "--server=http://b"), 0);
    ck_assert_str_eq(o.server, "http://b");
    ck_assert_int_eq(PARSE(&o, "node", "list", "--label", "x=1,xy=1"), 0);
    ck_assert_int_eq(PARSE(&o, "apply", "-f", "a", "-f", "b"), 0);
    ck_assert_uint_eq(o.files, 2);
    ck_assert_str_eq(o.file[1], "b");
}
END_TEST

START_TEST(options_of_pools_stand_for_words)
{
    struct ctl_options o;
    struct ctl_field_words w;
    ck_assert_int_eq(PARSE(&o, "pool", "create", "gold"), 0); /* of all nodes, for nobody yet */
    ck_assert_uint_eq(o.word_count, 0);
    ck_assert_int_eq(ctl_field_words(&o, &w, &err), 0);
    ck_assert_uint_eq(w.count, 0);
    ck_assert_int_eq(PARSE(&o, "pool", "set", "gold", "--tenant=web", "--tenant=batch"), 0);
    ck_assert_int_eq(ctl_field_words(&o, &w, &err), 0);
    ck_assert_uint_eq(w.count, 1);
    ck_assert_str_eq(w.word[0], "tenants=web,batch");
    ck_assert_int_eq(
        PARSE(&o, "pool", "create", "gold", "--number=513", "--mr-lease=50ms", "--grace=30s"), 0);
    ck_assert_int_eq(ctl_field_words(&o, &w, &err), 0);
    ck_assert_uint_eq(w.count, 3);
    ck_assert_str_eq(w.word[0], "number=513");
    ck_assert_str_eq(w.word[1], "mr_lease_ms=50");
    ck_assert_str_eq(w.word[2], "grace_ms=30000");
    ck_assert_int_eq(PARSE(&o, "pool", "set", "gold", "--grace=0s"), 0); /* at once */
    ck_assert_int_eq(ctl_field_words(&o, &w, &err), 0);
    ck_assert_uint_eq(w.count, 1);
    ck_assert_str_eq(w.word[0], "grace_ms=0");
    ck_assert_int_eq(PARSE(&o, "pool", "set", "gold", "spares=3", "--mr-lease", "1s"), 0);
    ck_assert_uint_eq(o.word_count, 1);
    ck_assert_int_eq(PARSE(&o, "pool", "set", "gold", "--tenant=web,batch"), 0);
    ck_assert_int_eq(ctl_field_words(&o, &w, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "repeat it"));
}
END_TEST

START_TEST(a_pool_has_as_many_tenants_as_fit)
{
    struct ctl_options o = {.command = CTL_RESOURCE_SET, .kind = "pool"};
    struct ctl_field_words w;
    for (size_t i = 0; i < CTL_SAID_MAX; i++)
        o.said[i] = (struct ctl_said){"tenant", "a-name-of-thirty-one-letters-00"};
    o.said_count = RESOURCE_TENANTS_MAX;
    ck_assert_int_eq(ctl_field_words(&o, &w, &err), 0);
    ck_assert_uint_eq(strlen(w.word[0]), strlen("tenants=") + RESOURCE_TENANTS_MAX * 32 - 1);
    o.said_count = RESOURCE_TENANTS_MAX + 1;
    ck_assert_int_eq(ctl_field_words(&o, &w, &err), -EINVAL);
    ck_assert_ptr_nonnull(
        strstr(err.text, "--tenant is there 65 times: a pool has at most 64 ten"));
    o.said_count = CTL_SAID_MAX + 9; /* of which some are not kept */
    ck_assert_int_eq(ctl_field_words(&o, &w, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "--tenant is there 81 times"));
    o.said_count = RESOURCE_TENANTS_MAX;
    for (size_t i = 0; i < RESOURCE_TENANTS_MAX; i++)
        o.said[i].text = "a-name-of-many-more-than-thirty-one-letters";
    ck_assert_int_eq(ctl_field_words(&o, &w, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "a tenant's name has at most 31 characters"));
}
END_TEST

START_TEST(options_stand_anywhere)
{
    struct ctl_options o;
    ck_assert_int_eq(PARSE(&o, "-o", "json", "node", "list", "--server", "http://a:1"), 0);
    ck_assert(o.json);
    ck_assert_str_eq(o.server, "http://a:1");
    ck_assert_int_eq(PARSE(&o, "node", "-ojson", "get", "--agent-socket=/x", "id"), 0);
    ck_assert(o.json);
    ck_assert_str_eq(o.agent_socket, "/x");
    ck_assert_str_eq(o.id, "id");
    ck_assert_int_eq(PARSE(&o, "doctor", "--config", "/c", "--device=mlx5_0"), 0);
    ck_assert_str_eq(o.config, "/c");
    ck_assert_str_eq(o.device, "mlx5_0");
    ck_assert_ptr_null(o.provider);
}
END_TEST

START_TEST(what_is_not_said_is_left_to_be_found)
{
    struct ctl_options o;
    ck_assert_int_eq(PARSE(&o, "status"), 0);
    ck_assert(o.server == NULL && o.token_file == NULL && o.token == NULL);
    ck_assert(o.agent_socket == NULL && o.output == NULL && o.context == NULL);
    ck_assert_int_eq(PARSE(&o, "status", "--context", "prod"), 0);
    ck_assert_str_eq(o.context, "prod");
    ck_assert_int_eq(PARSE(&o, "context", "set", "prod", "server=http://a", "output=json"), 0);
    ck_assert_int_eq(o.command, CTL_CONTEXT_SET);
    ck_assert_str_eq(o.id, "prod");
    ck_assert_uint_eq(o.word_count, 2);
    ck_assert_int_eq(PARSE(&o, "context", "use", "prod"), 0);
    ck_assert_int_eq(o.command, CTL_CONTEXT_USE);
    ck_assert_int_eq(PARSE(&o, "context", "list", "--context", "prod"), 0);
    ck_assert_int_eq(o.command, CTL_CONTEXT_LIST);
}
END_TEST

START_TEST(wrong_command_lines_say_what_to_do)
{
    struct ctl_options o;
    const struct {
        const char *words[6];
        const char *says;
    } wrong[] = {
        {{NULL}, "name a command"},
        {{"frobnicate"}, "no command \"frobnicate\", but status, node, metaserver, agent, "},
        {{"backup", "x"}, "it is kedge-metad --config FILE backup FILE"},
        {{"node", "drain"}, "node drain needs an ID: see rdmactl node list"},
        {{"node", "frob"}, "node list"},
        {{"node", "get"}, "node get needs an ID"},
        {{"node"}, "node drain ID, or node delete ID"},
        {{"agent"}, "agent status"},
        {{"status", "now"}, "one word too many"},
        {{"status", "-o", "xml"}, "table, wide, json or yaml"},
        {{"status", "--server", "localhost"}, "URL"},
        {{"status", "--server"}, "--help"},
        {{"status", "--server", "unix:run/metad.sock"}, "absolute path, as in unix:/run/kedge"},
        {{"status", "--server", "http://127.0.0.1:1/v1"}, "without /v1 or a query"},
        {{"status", "--server", "https://meta.example/v1/"}, "without /v1 or a query"},
        {{"status", "--server", "http://meta?a=b"}, "without /v1 or a query"},
        {{"status", "--frob"}, "--help"},
        {{"status", "--config", "/c"}, "doctor alone"},
        {{"tenant"}, "tenant list, or tenant get NAME, or tenant create NAME"},
        {{"window", "frob"}, "window delete NAME"},
        {{"event", "get"}, "event list, or event watch"},
        {{"tenant", "get"}, "tenant get needs a NAME: see rdmactl tenant list"},
        {{"tenant", "create"}, "tenant create needs a name for it: see rdmactl tenant --help"},
        {{"tenant", "set"}, "tenant set needs"},
        {{"tenant", "set", "web"}, "KEY=VALUE"},
        {{"window", "delete", "w", "x"}, "one word too many"},
        {{"event", "list", "--revision", "4"}, "watch alone"},
        {{"event", "watch", "--revision", "-4"}, "must be a number"},
        {{"event", "list", "--position", "0-0"}, "watch alone"},
        {{"status", "--peer", "a:1/b"}, "--serve and --peer are for doctor alone"},
        {{"doctor", "--peer", "a:1/b", "--serve", "a:0"}, "--peer for the other one"},
        {{"node", "label", "n"}, "node label n needs"},
        {{"node", "get", "n", "--label", "a=b"}, "node list alone"},
        {{"node", "label", "n", "a=b", "--reason", "r"}, "node drain alone"},
        {{"node", "cordon", "n", "--wait"}, "node drain alone"},
        {{"node", "drain", "n", "--grace", "100us"}, "such as 30s"},
        {{"node", "drain", "n", "--grace", "soon"}, "such as 30s"},
        {{"apply"}, "needs a file"},
        {{"pool", "set", "p"}, "KEY=VALUE"},
        {{"pool", "get", "p", "--tenant", "web"}, "pool set"},
        {{"pool", "set", "p", "a=b", "--worker", "w"}, "workers and leases alone"},
        {{"pool", "create", "p", "--mr-lease", "5"}, "--mr-lease must be a duration"},
        {{"pool", "create", "p", "--grace", "100us"}, "--grace must be a duration"},
        {{"tenant", "set", "web", "--number", "5"}, "--number and --mr-lease are for pool"},
        {{"tenant", "set", "web", "--grace", "5s"}, "--grace is for node drain, pool create"},
        {{"lease", "revoke"}, "--worker ID, or --all"},
        {{"lease", "revoke", "1-00000000-1", "--worker", "1-00000000"}, "one word too many"},
        {{"lease", "revoke", "--tenant", "web", "x"}, "worker list --tenant web"},
        {{"lease", "list", "--force"}, "lease revoke alone"},
        {{"node", "list", "--worker", "w"}, "workers and leases alone"},
        {{"node", "list", "--node", "n"}, "worker, lease, region and agent status alone"},
        {{"lease", "get", "x", "--all-nodes"}, "worker list and lease list alone"},
        {{"lease", "list", "--all-nodes", "--node", "n"}, "without --node"},
        {{"worker", "revoke"}, "worker list, or worker get ID"},
        {{"status", "-f", "x"}, "--file is for apply; diff alone"},
        {{"context"}, "context list, or context get NAME"},
        {{"context", "set", "prod"}, "KEY=VALUE"},
        {{"context", "use", "prod", "--context", "dev"}, "names its context itself"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_int_eq(parse(&o, wrong[i].words), -EINVAL);
        ck_assert_msg(strstr(err.text, wrong[i].says) != NULL, "\"%s\" lacks \"%s\"", err.text,
                      wrong[i].says);
    }
}
END_TEST

START_TEST(what_is_missing_is_named)
{
    struct ctl_options o;
    ck_assert_int_eq(PARSE(&o, "apply", "a.yaml"), -EINVAL);
    ck_assert_str_eq(err.text, "apply takes files behind -f: apply -f a.yaml");
    ck_assert_int_eq(PARSE(&o, "tenant", "list", "--sort-by"), -EINVAL);
    ck_assert_str_eq(err.text, "--sort-by needs a value behind it: see rdmactl --help");
    ck_assert_int_eq(PARSE(&o, "tenant", "list", "--until", "x"), -EINVAL);
    ck_assert_str_eq(err.text, "\"--until\" is no option: see rdmactl --help");
}
END_TEST

#define TESTS(X)                                                                                   \
    X(every_command_is_understood)                                                                 \
    X(what_is_missing_is_named)                                                                    \
    X(nothing_is_said_twice)                                                                       \
    X(options_of_pools_stand_for_words)                                                            \
    X(a_pool_has_as_many_tenants_as_fit)                                                           \
    X(options_stand_anywhere)                                                                      \
    X(what_is_not_said_is_left_to_be_found)                                                        \
    X(wrong_command_lines_say_what_to_do)
KEDGE_CHECK_MAIN("ctl.options", TESTS)
