/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

const char ctl_help[] =
    "usage: rdmactl [OPTIONS] COMMAND\n"
    "\n"
    "commands:\n"
    "  status              the metaserver and the local agent, in short\n"
    "  node list           the nodes that the metaserver knows\n"
    "  node get ID         one of them, with its endpoints\n"
    "  agent status        the local agent: pools, sessions, VQPs, peers, memory\n"
    "  doctor              what this host can do, what is missing, and what to do about it\n"
    "\n"
    "options:\n"
    "  -o, --output table|json   (table)\n"
    "  --server URL              the metaserver ($KEDGE_SERVER, " CTL_DEFAULT_SERVER ")\n"
    "  --agent-socket PATH       the agent's admin socket ($KEDGE_AGENT_ADMIN,\n"
    "                            " CTL_DEFAULT_AGENT_SOCKET ")\n"
    "  --config FILE             doctor: the agent's settings (" CTL_DEFAULT_CONFIG ",\n"
    "                            if it is there)\n"
    "  --provider NAME, --device NAME\n"
    "                            doctor: try this one, whatever the settings say\n"
    "  -h, --help, --version\n"
    "\n"
    "Exits with 0; 1 an internal error, or something that doctor found broken; 2 a wrong command\n"
    "line or request; 3 no such thing; 4 not permitted; 5 a conflict; 6 a quota or a limit;\n"
    "7 nobody answers.\n";

static const struct option long_options[] = {
    {"output", required_argument, NULL, 'o'},
    {"server", required_argument, NULL, 's'},
    {"agent-socket", required_argument, NULL, 'a'},
    {"config", required_argument, NULL, 'c'},
    {"provider", required_argument, NULL, 'p'},
    {"device", required_argument, NULL, 'd'},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

static const struct {
    const char *word[2];
    bool takes_id;
    enum ctl_command command;
} commands[] = {
    {{"status", NULL}, false, CTL_STATUS}, {{"node", "list"}, false, CTL_NODE_LIST},
    {{"node", "get"}, true, CTL_NODE_GET}, {{"agent", "status"}, false, CTL_AGENT_STATUS},
    {{"doctor", NULL}, false, CTL_DOCTOR},
};

static int parse_command(int words, char **word, struct ctl_options *o, struct kedge_errbuf *err)
{
    if (words == 0)
        return kedge_err(err, -EINVAL, "name a command: status, node, agent or doctor");
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        int own = commands[i].word[1] == NULL ? 1 : 2;
        if (strcmp(word[0], commands[i].word[0]) != 0 ||
            (own == 2 && (words < 2 || strcmp(word[1], commands[i].word[1]) != 0)))
            continue;
        int wanted = own + (commands[i].takes_id ? 1 : 0);
        if (words < wanted)
            return kedge_err(err, -EINVAL, "node get needs the node's id: see rdmactl node list");
        if (words > wanted)
            return kedge_err(err, -EINVAL, "\"%.60s\" is one word too many", word[wanted]);
        o->command = commands[i].command;
        o->id = commands[i].takes_id ? word[own] : NULL;
        return 0;
    }
    if (strcmp(word[0], "node") == 0)
        return kedge_err(err, -EINVAL, "say rdmactl node list, or rdmactl node get ID");
    if (strcmp(word[0], "agent") == 0)
        return kedge_err(err, -EINVAL, "say rdmactl agent status");
    return kedge_err(err, -EINVAL, "there is no command \"%.60s\": see rdmactl --help", word[0]);
}

static const char *setting(const char *variable, const char *otherwise)
{
    const char *value = getenv(variable);
    return value != NULL && value[0] != '\0' ? value : otherwise;
}

int ctl_options_parse(int argc, char **argv, struct ctl_options *out, struct kedge_errbuf *err)
{
    struct ctl_options o = {.server = setting("KEDGE_SERVER", CTL_DEFAULT_SERVER),
                            .agent_socket = setting("KEDGE_AGENT_ADMIN", CTL_DEFAULT_AGENT_SOCKET)};
    int c;
    optind = 0; /* begin again, wherever the last call stopped */
    opterr = 0;
    while ((c = getopt_long(argc, argv, "o:h", long_options, NULL)) != -1)
        switch (c) {
        case 'o':
            if (strcmp(optarg, "json") != 0 && strcmp(optarg, "table") != 0)
                return kedge_err(err, -EINVAL, "--output must be table or json, not \"%.40s\"",
                                 optarg);
            o.json = strcmp(optarg, "json") == 0;
            break;
        case 's':
            o.server = optarg;
            break;
        case 'a':
            o.agent_socket = optarg;
            break;
        case 'c':
            o.config = optarg;
            break;
        case 'p':
            o.provider = optarg;
            break;
        case 'd':
            o.device = optarg;
            break;
        case 'h':
            o.command = CTL_HELP;
            *out = o;
            return 0;
        case 'V':
            o.command = CTL_VERSION;
            *out = o;
            return 0;
        default:
            return kedge_err(err, -EINVAL,
                             "\"%.60s\" is no option, or lacks its value: see rdmactl --help",
                             argv[optind - 1]);
        }
    if (strncmp(o.server, "http://", 7) != 0 && strncmp(o.server, "https://", 8) != 0)
        return kedge_err(err, -EINVAL,
                         "--server must be a URL such as " CTL_DEFAULT_SERVER ", not \"%.60s\"",
                         o.server);
    int status = parse_command(argc - optind, argv + optind, &o, err);
    if (status == 0 && o.command != CTL_DOCTOR &&
        (o.config != NULL || o.provider != NULL || o.device != NULL))
        return kedge_err(err, -EINVAL, "--config, --provider and --device are for doctor alone");
    if (status == 0)
        *out = o;
    return status;
}
