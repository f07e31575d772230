/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "ctl/command_table.h"
#include "ctl/nodes.h"

enum { COMMANDS_TEXT = 300 };

const struct option ctl_long_options[] = {
    {"output", required_argument, NULL, 'o'},
    {"context", required_argument, NULL, 'C'},
    {"server", required_argument, NULL, 's'},
    {"secret-file", required_argument, NULL, 'S'},
    {"secret-out", required_argument, NULL, 'U'},
    {"token-file", required_argument, NULL, 't'},
    {"cacert", required_argument, NULL, '1'},
    {"cert", required_argument, NULL, '2'},
    {"key", required_argument, NULL, '3'},
    {"allow-plain-tokens", no_argument, NULL, '4'},
    {"agent-socket", required_argument, NULL, 'a'},
    {"config", required_argument, NULL, 'c'},
    {"provider", required_argument, NULL, 'p'},
    {"device", required_argument, NULL, 'd'},
    {"serve", required_argument, NULL, 'e'},
    {"peer", required_argument, NULL, 'q'},
    {"revision", required_argument, NULL, 'r'},
    {"position", required_argument, NULL, 'P'},
    {"file", required_argument, NULL, 'f'},
    {"label", required_argument, NULL, 'l'},
    {"reason", required_argument, NULL, 'R'},
    {"grace", required_argument, NULL, 'g'},
    {"wait", no_argument, NULL, 'W'},
    {"dry-run", no_argument, NULL, 'y'},
    {"help", no_argument, NULL, 'h'},
    {"tenant", required_argument, NULL, 'T'},
    {"worker", required_argument, NULL, 'K'},
    {"interval", required_argument, NULL, 'I'},
    {"watch", no_argument, NULL, 'w'},
    {"sort-by", required_argument, NULL, 'B'},
    {"force", no_argument, NULL, 'F'},
    {"node", required_argument, NULL, 'N'},
    {"scope", required_argument, NULL, 'O'},
    {"uid", required_argument, NULL, 'u'},
    {"kind", required_argument, NULL, 'k'},
    {"name", required_argument, NULL, 'm'},
    {"since", required_argument, NULL, 'i'},
    {"limit", required_argument, NULL, 'M'},
    {"all", no_argument, NULL, 'E'},
    {"all-nodes", no_argument, NULL, 'A'},
    {"version", no_argument, NULL, 'V'},
};
#define LONG_OPTIONS (sizeof ctl_long_options / sizeof ctl_long_options[0])
const size_t ctl_long_option_count = LONG_OPTIONS;

static void list_commands(char out[COMMANDS_TEXT])
{
    size_t used = 0;
    for (size_t i = 0; i < ctl_word_count && used < COMMANDS_TEXT; i++)
        used += (size_t)snprintf(out + used, COMMANDS_TEXT - used, "%s%s",
                                 i == 0                    ? ""
                                 : i + 1 == ctl_word_count ? " or "
                                                           : ", ",
                                 ctl_word_rows[i].word);
}

int ctl_no_such_command(const char *word, struct base_errbuf *err)
{
    char words[COMMANDS_TEXT];
    list_commands(words);
    if (strcmp(word, "backup") == 0 || strcmp(word, "restore") == 0)
        return base_err(err, -EINVAL,
                        "there is no command \"%s\": on the metaserver's host, as its user, it is "
                        "kedge-metad --config FILE %s FILE",
                        word, word);
    return base_err(err, -EINVAL, "there is no command \"%.60s\", but %s: see rdmactl --help", word,
                    words);
}

/* What a command takes behind its words. */
static const char *name_of_thing(const struct ctl_command_row *c)
{
    return c->takes == CTL_TAKES_NOTHING ? ""
           : strcmp(c->word[0], "node") == 0 || strcmp(c->word[0], "worker") == 0 ||
                   strcmp(c->word[0], "lease") == 0
               ? " ID"
               : " NAME";
}

int ctl_no_such_verb(const char *word, struct base_errbuf *err)
{
    char verbs[400];
    size_t used = 0;
    for (size_t i = 0; i < ctl_command_count; i++)
        if (strcmp(word, ctl_command_rows[i].word[0]) == 0 && used < sizeof verbs)
            used += (size_t)snprintf(verbs + used, sizeof verbs - used, "%s%s %s%s",
                                     used > 0 ? ", or " : "", word, ctl_command_rows[i].word[1],
                                     name_of_thing(&ctl_command_rows[i]));
    if (used == 0)
        return ctl_no_such_command(word, err);
    return base_err(err, -EINVAL, "say rdmactl %s", verbs);
}

static int ask_for_keys(const struct ctl_command_row *c, const char *name, struct base_errbuf *err)
{
    char keys[300];
    ctl_keys_of(c->kind, keys, sizeof keys);
    return base_err(err, -EINVAL, "%s %s %.60s needs what to set, as KEY=VALUE%s%s", c->word[0],
                    c->word[1], name, keys[0] != '\0' ? ": of " : "", keys);
}

static int take_words(const struct ctl_command_row *c, int words, char **word,
                      struct ctl_options *o, struct base_errbuf *err)
{
    const bool none = c->takes == CTL_TAKES_NOTHING || c->takes == CTL_TAKES_ANY ||
                      (c->takes == CTL_TAKES_OR_WORKER && (o->worker != NULL || o->all));
    int own = c->word[1] == NULL ? 1 : 2, wanted = own + (none ? 0 : 1);
    if (words < wanted && c->takes == CTL_TAKES_OR_WORKER)
        return base_err(err, -EINVAL,
                        "%s %s needs a lease's id, or --worker ID, or --all: see rdmactl %s list",
                        c->word[0], c->word[1], c->word[0]);
    if (words < wanted && c->word[1] != NULL && strcmp(c->word[1], "create") == 0)
        return base_err(err, -EINVAL, "%s create needs a name for it: see rdmactl %s --help",
                        c->word[0], c->word[0]);
    if (words < wanted && c->word[1] == NULL)
        return base_err(err, -EINVAL, "%s needs a %s: see rdmactl %s --help", c->word[0],
                        c->arguments, c->word[0]);
    if (words < wanted)
        return base_err(err, -EINVAL, "%s %s needs a%s: see rdmactl %s list", c->word[0],
                        c->word[1], strcmp(name_of_thing(c), " ID") == 0 ? "n ID" : " NAME",
                        c->command == CTL_DESCRIBE ? c->kind : c->word[0]);
    if (c->takes == CTL_TAKES_WORDS && words == wanted && o->said_count == 0)
        return ask_for_keys(c, word[own], err);
    if (c->takes != CTL_TAKES_WORDS && c->takes != CTL_TAKES_OR_NONE && c->takes != CTL_TAKES_ANY &&
        words > wanted && (c->command == CTL_APPLY || c->command == CTL_DIFF))
        return base_err(err, -EINVAL, "%s takes files behind -f: %s -f %.60s", c->word[0],
                        c->word[0], word[wanted]);
    if (c->takes != CTL_TAKES_WORDS && c->takes != CTL_TAKES_OR_NONE && c->takes != CTL_TAKES_ANY &&
        words > wanted)
        return base_err(err, -EINVAL, "\"%.60s\" is one word too many", word[wanted]);
    o->row = c;
    o->command = c->command;
    o->watch |= c->command == CTL_AGENT_ITEM_LIST && strcmp(c->word[1], "watch") == 0;
    o->kind = c->kind;
    o->id = none ? NULL : word[own];
    o->words = (const char *const *)word + wanted;
    o->word_count = (size_t)(words - wanted);
    return 0;
}

static int ask_for_command(struct base_errbuf *err)
{
    char words[COMMANDS_TEXT];
    list_commands(words);
    return base_err(err, -EINVAL, "name a command: %s", words);
}

static int parse_command(int words, char **word, struct ctl_options *o, struct base_errbuf *err)
{
    if (words == 0)
        return ask_for_command(err);
    const struct ctl_command_row *c = ctl_command_find((const char *const *)word, (size_t)words);
    return c != NULL ? take_words(c, words, word, o, err) : ctl_no_such_verb(word[0], err);
}

static bool lists_kind(const struct ctl_options *o, const char *kind)
{
    return o->command == CTL_RESOURCE_LIST && strcmp(o->kind, kind) == 0;
}

/* Options that narrow what is listed or watched. */
static int check_filters(const struct ctl_options *o, struct base_errbuf *err)
{
    const bool events = o->command == CTL_EVENT_LIST || o->command == CTL_EVENT_WATCH;
    if (o->scope != NULL && !lists_kind(o, "window") && !lists_kind(o, "token"))
        return base_err(err, -EINVAL, "--scope is for window list and token list alone");
    if (o->uid != NULL && !lists_kind(o, "tenant"))
        return base_err(err, -EINVAL, "--uid is for tenant list alone");
    if (o->of_kind != NULL && (!events || o->kind != NULL))
        return base_err(err, -EINVAL, "--kind is for event list and event watch alone");
    if (o->name != NULL && !events)
        return base_err(err, -EINVAL, "--name is for event list and watch alone");
    if (o->limit != 0 && o->command != CTL_EVENT_LIST)
        return base_err(err, -EINVAL, "--limit is for event list alone");
    return 0;
}

static int check_secret(const struct ctl_options *o, struct base_errbuf *err)
{
    if (o->secret_file != NULL &&
        (o->kind == NULL || strcmp(o->kind, "token") != 0 ||
         (o->command != CTL_RESOURCE_CREATE && o->command != CTL_RESOURCE_SET)))
        return base_err(err, -EINVAL, "--secret-file is for token create and token set alone");
    if (o->secret_out != NULL &&
        (o->command != CTL_RESOURCE_CREATE || strcmp(o->kind, "token") != 0))
        return base_err(err, -EINVAL, "--secret-out is for token create alone");
    if (o->secret_out != NULL && o->secret_file != NULL)
        return base_err(err, -EINVAL,
                        "--secret-out is for a secret that is new, and --secret-file has one");
    return 0;
}

/* Options that only some commands have. */
static int check_options(const struct ctl_options *o, struct base_errbuf *err)
{
    if (o->command != CTL_DOCTOR && (o->config != NULL || o->provider != NULL || o->device != NULL))
        return base_err(err, -EINVAL, "--config, --provider and --device are for doctor alone");
    if (o->command != CTL_DOCTOR && (o->peer != NULL || o->serve != NULL))
        return base_err(err, -EINVAL, "--serve and --peer are for doctor alone");
    if (o->peer != NULL && o->serve != NULL)
        return base_err(err, -EINVAL, "--serve is for one node, and --peer for the other one");
    if (o->command != CTL_LEASE_REVOKE && o->force)
        return base_err(err, -EINVAL, "--force is for lease revoke alone");
    if (o->all && (o->command != CTL_LEASE_REVOKE || o->worker != NULL))
        return base_err(err, -EINVAL, "--all is for lease revoke alone, without --worker");
    const bool tenant = ctl_option_fits(o, "tenant");
    if (o->command != CTL_LEASE_REVOKE && o->command != CTL_AGENT_ITEM_LIST &&
        (o->worker != NULL || (o->tenant != NULL && !tenant && !lists_kind(o, "window"))))
        return base_err(err, -EINVAL,
                        "--worker is for workers and leases alone, --tenant for those, window "
                        "list, pool create and pool set");
    if (o->command == CTL_LEASE_REVOKE && o->tenant != NULL)
        return base_err(err, -EINVAL,
                        "leases are revoked one by one, or a worker's at a time: see rdmactl "
                        "worker list --tenant %.60s",
                        o->tenant);
    if (o->node != NULL && o->command != CTL_AGENT_ITEM_LIST && o->command != CTL_AGENT_ITEM_GET &&
        o->command != CTL_LEASE_REVOKE && o->command != CTL_AGENT_STATUS &&
        o->command != CTL_DESCRIBE)
        return base_err(err, -EINVAL, "--node is for worker, lease, region and agent status alone");
    if (o->all_nodes && (o->command != CTL_AGENT_ITEM_LIST || o->node != NULL || o->worker != NULL))
        return base_err(err, -EINVAL,
                        "--all-nodes is for worker list and lease list alone, without --node and "
                        "--worker");
    if (o->command != CTL_EVENT_WATCH && (o->from_revision || o->position != NULL))
        return base_err(
            err, -EINVAL,
            "--revision and --position are for tenant watch and the like, and event watch alone");
    if (o->tenants > 1 && !tenant)
        return base_err(err, -EINVAL, "--tenant is said twice");
    if (o->label != NULL && ctl_list_check("--label", o->label, err) != 0)
        return -EINVAL;
    if (o->command != CTL_NODE_LIST && o->label != NULL)
        return base_err(err, -EINVAL, "--label is for node list alone");
    if (o->command != CTL_NODE_CORDON && o->command != CTL_NODE_DRAIN && o->reason != NULL)
        return base_err(err, -EINVAL, "--reason is for node cordon and node drain alone");
    if (o->reason != NULL && strlen(o->reason) >= CTL_REASON_BYTES)
        return base_err(err, -EINVAL, "--reason has at most %d bytes", CTL_REASON_BYTES - 1);
    if ((o->command == CTL_CONTEXT_GET || o->command == CTL_CONTEXT_USE ||
         o->command == CTL_CONTEXT_SET || o->command == CTL_CONTEXT_DELETE) &&
        o->context != NULL)
        return base_err(err, -EINVAL, "--context is not for this: it names its context itself");
    if (o->command != CTL_NODE_DRAIN && o->wait)
        return base_err(err, -EINVAL, "--wait is for node drain alone");
    if (o->command != CTL_NODE_DRAIN && !ctl_option_fits(o, "grace") && o->grace_said)
        return base_err(err, -EINVAL, "--grace is for node drain, pool create and pool set alone");
    if (o->files > CTL_FILES)
        return base_err(err, -EINVAL, "--file is there %zu times: at most %d files are taken",
                        o->files, CTL_FILES);
    if ((o->command == CTL_APPLY || o->command == CTL_DIFF) && o->files == 0)
        return base_err(err, -EINVAL, "%s needs a file: -f FILE, or -f - for standard input",
                        o->row->word[0]);
    return 0;
}

static int take_output(const char *name, struct ctl_options *o, struct base_errbuf *err)
{
    ctl_options_output(o, name);
    return ctl_output_check("--output", name, err);
}

static const char *name_of(int option)
{
    for (size_t i = 0; i < LONG_OPTIONS; i++)
        if (ctl_long_options[i].val == option)
            return ctl_long_options[i].name;
    return "";
}

/* Where to go may be said again, as behind an alias: the last holds. Of all else it would be a
 * mistake. --tenant is judged when it is known whether the command takes several. */
static bool may_repeat(int option)
{
    return strchr("staCT1234", option) != NULL;
}

/* Options that are a text. -ENOENT: it is none of them; -EINVAL. */
static int take_text(int option, const char *text, struct ctl_options *o, struct base_errbuf *err)
{
    const struct {
        int option;
        const char **to;
    } texts[] = {
        {'s', &o->server},       {'t', &o->token_file}, {'T', &o->tenant},      {'K', &o->worker},
        {'a', &o->agent_socket}, {'c', &o->config},     {'p', &o->provider},    {'d', &o->device},
        {'l', &o->label},        {'R', &o->reason},     {'S', &o->secret_file}, {'C', &o->context},
        {'N', &o->node},         {'O', &o->scope},      {'u', &o->uid},         {'k', &o->of_kind},
        {'m', &o->name},         {'P', &o->position},   {'e', &o->serve},       {'q', &o->peer},
        {'U', &o->secret_out},   {'i', &o->since},      {'B', &o->sort_by},     {'1', &o->cacert},
        {'2', &o->cert},         {'3', &o->key}};
    if (option == 'f') {
        if (o->files++ < CTL_FILES)
            o->file[o->files - 1] = text;
        return 0;
    }
    o->tenants += option == 'T';
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (texts[i].option == option) {
            if (*texts[i].to != NULL && !may_repeat(option))
                return base_err(err, -EINVAL, "--%s is said twice", name_of(option));
            *texts[i].to = text;
            return 0;
        }
    return -ENOENT;
}

/* What it is of is seen when the command is known. */
static void note_field(const char *name, const char *text, struct ctl_options *o)
{
    if (ctl_option_sets_field(name) && o->said_count++ < CTL_SAID_MAX)
        o->said[o->said_count - 1] = (struct ctl_said){name, text};
}

/* Options that are said by being there. False: it is none of them. */
static bool take_flag(int option, struct ctl_options *o)
{
    const struct {
        int option;
        bool *to;
    } flags[] = {
        {'F', &o->force},   {'E', &o->all},   {'A', &o->all_nodes},         {'W', &o->wait},
        {'y', &o->dry_run}, {'w', &o->watch}, {'4', &o->allow_plain_tokens}};
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        if (flags[i].option == option)
            return *flags[i].to = true;
    return false;
}

/* As take_text(), of all. */
static int take_option(int option, struct ctl_options *o, struct base_errbuf *err)
{
    if (take_flag(option, o))
        return 0;
    switch (option) {
    case 'o':
        return take_output(optarg, o, err);
    case 'r':
        o->from_revision = true;
        if (base_parse_u64(optarg, 0, UINT64_MAX, &o->revision) != 0)
            return base_err(err, -EINVAL, "--revision must be a number, not \"%.40s\"", optarg);
        return 0;
    case 'M':
        if (base_parse_u64(optarg, 1, CTL_EVENTS_MAX, &o->limit) != 0)
            return base_err(err, -EINVAL, "--limit must be a number from 1 to %d, not \"%.40s\"",
                            CTL_EVENTS_MAX, optarg);
        return 0;
    case 'I':
        return ctl_duration_parse("interval", false, optarg, &o->interval_ms, err);
    case 'g':
        if (o->grace_said)
            return base_err(err, -EINVAL, "--grace is said twice");
        o->grace_said = true;
        return ctl_duration_parse("grace", true, optarg, &o->grace_ms, err);
    case CTL_FIELD_OPTION:
        return 0;
    default:
        return take_text(option, optarg, o, err);
    }
}

int ctl_options_parse(int argc, char **argv, struct ctl_options *out, struct base_errbuf *err)
{
    struct ctl_options o = {.server = NULL};
    struct option all[LONG_OPTIONS + CTL_FIELD_OPTIONS + 1] = {{NULL, 0, NULL, 0}};
    bool help = false, said[LONG_OPTIONS] = {false};
    int c, status, index = 0;
    memcpy(all, ctl_long_options, sizeof ctl_long_options);
    (void)ctl_field_options_add(all, LONG_OPTIONS, LONG_OPTIONS + CTL_FIELD_OPTIONS);
    optind = 0; /* begin again, wherever the last call stopped */
    opterr = 0;
    while ((c = getopt_long(argc, argv, ":o:f:hw", all, &index)) != -1) {
        if (c == 'V') {
            *out = (struct ctl_options){.command = CTL_OWN_VERSION};
            return 0;
        }
        help |= c == 'h';
        if (help) /* what else is said does not matter */
            continue;
        for (size_t i = 0; i < LONG_OPTIONS; i++)
            said[i] |= ctl_long_options[i].val == c;
        if (c == CTL_FIELD_OPTION || strlen(name_of(c)) > 0)
            note_field(c == CTL_FIELD_OPTION ? all[index].name : name_of(c), optarg, &o);
        status = take_option(c, &o, err);
        if (status == -ENOENT && c == ':')
            status = base_err(err, -EINVAL, "%.60s needs a value behind it: see rdmactl --help",
                              argv[optind - 1]);
        else if (status == -ENOENT)
            status = base_err(err, -EINVAL, "\"%.60s\" is no option: see rdmactl --help",
                              argv[optind - 1]);
        if (status != 0)
            return status;
    }
    if (help) {
        *out = (struct ctl_options){.command = CTL_HELP,
                                    .words = (const char *const *)argv + optind,
                                    .word_count = (size_t)(argc - optind)};
        return 0;
    }
    status = o.server != NULL ? ctl_server_check("--server", o.server, err) : 0;
    if (status == 0)
        status = parse_command(argc - optind, argv + optind, &o, err);
    if (status == 0)
        status = ctl_field_options_check(&o, err);
    if (status == 0)
        status = check_options(&o, err);
    if (status == 0)
        status = check_filters(&o, err);
    if (status == 0)
        status = check_secret(&o, err);
    for (size_t i = 0; i < LONG_OPTIONS && status == 0; i++)
        if (said[i])
            status = ctl_option_check(ctl_long_options[i].name, o.row, err);
    if (status == 0 && o.command != CTL_HELP)
        status = ctl_words_check(o.words, o.word_count, err);
    if (status != 0)
        return status;
    if (o.of_kind != NULL)
        o.kind = o.of_kind;
    *out = o;
    return 0;
}
