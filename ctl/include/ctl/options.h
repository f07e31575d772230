/* SPDX-License-Identifier: Apache-2.0 */
/* rdmactl's command line. Reads argv and the environment, prints nothing. One thread. */
#ifndef CTL_OPTIONS_H
#define CTL_OPTIONS_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "ctl/contexts.h"
#include "ctl/servers.h"

/* kedge-metad's admin socket, where root and its user need no token. */
#define CTL_DEFAULT_SERVER       "unix:/run/kedge/metad.sock"
#define CTL_DEFAULT_AGENT_SOCKET "/run/kedge/agent-admin.sock"

#define CTL_DEFAULT_CONFIG "/etc/kedge/agent.conf" /* of the agent, for doctor */

enum ctl_command {
    CTL_STATUS = 1,
    CTL_NODE_LIST,
    CTL_NODE_GET,
    CTL_NODE_LABEL,
    CTL_NODE_CORDON,
    CTL_NODE_UNCORDON,
    CTL_NODE_DRAIN,
    CTL_NODE_DELETE,
    CTL_METASERVER_LIST,
    CTL_AGENT_STATUS,
    CTL_DOCTOR,
    CTL_RESOURCE_LIST,
    CTL_RESOURCE_GET,
    CTL_RESOURCE_CREATE,
    CTL_RESOURCE_SET,
    CTL_RESOURCE_DELETE,
    CTL_EVENT_LIST,
    CTL_EVENT_WATCH,
    CTL_APPLY,
    CTL_DIFF,
    CTL_DESCRIBE,
    CTL_EXPLAIN,
    CTL_AGENT_ITEM_LIST,
    CTL_AGENT_ITEM_GET,
    CTL_LEASE_REVOKE,
    CTL_TOP,
    CTL_CHECK_PERF,
    CTL_CONTEXT_LIST,
    CTL_CONTEXT_GET,
    CTL_CONTEXT_USE,
    CTL_CONTEXT_SET,
    CTL_CONTEXT_DELETE,
    CTL_HELP,
    CTL_VERSION,     /* of this program and of the metaserver */
    CTL_OWN_VERSION, /* --version */
};

enum {
    CTL_EVENTS_MAX = 1000,
    CTL_FILES = 64,
    CTL_KIND_BYTES = 16,
    CTL_SAID_MAX = 72,       /* options of fields, on one command line */
    CTL_FIELD_OPTIONS = 8,   /* of one kind */
    CTL_FIELD_OPTION = 1000, /* to getopt: one that has no letter of its own */
    CTL_FIELD_WORD_BYTES = 2304
};

/* An option that sets a field of what is created or set, as it was said. */
struct ctl_said {
    const char *option; /* "mr-lease" */
    const char *text;
};

/* Strings are argv's, the environment's, the contexts', or literals. */
struct ctl_options {
    enum ctl_command command;
    const struct ctl_command_row *row; /* of the command; NULL: of --help and --version */
    const char *id;   /* of NODE_* but LIST, RESOURCE_* but LIST, AGENT_ITEM_GET, CONTEXT_* but
                       * LIST; of LEASE_REVOKE, or NULL: all of `worker`, or of all */
    const char *kind; /* of RESOURCE_*: "tenant", ...; of AGENT_ITEM_*: "lease", "worker"; of
                       * EVENT_*, or NULL: all */
    const char *const *words; /* of RESOURCE_CREATE and _SET, CONTEXT_SET: KEY=VALUE; of
                               * NODE_LABEL; of HELP: a command's; argv's */
    size_t word_count;
    struct ctl_said said[CTL_SAID_MAX]; /* of RESOURCE_CREATE and _SET */
    size_t said_count;                  /* as many as were said, also if they do not fit */
    const char *label;                  /* of NODE_LIST: KEY=VALUE,...; or NULL */
    const char *reason;                 /* of NODE_CORDON and _DRAIN; or NULL */
    bool grace_said;                    /* else for ever, or as it was */
    uint64_t grace_ms;                  /* of NODE_DRAIN and of a pool; 0: at once */
    bool wait;                          /* of NODE_DRAIN */
    bool dry_run;                       /* of APPLY */
    const char *file[CTL_FILES];        /* of APPLY; "-": standard input */
    size_t files;                       /* as many as were said, also if they do not fit */
    const char *scope;                  /* of RESOURCE_LIST of windows and tokens; or NULL */
    const char *uid;                    /* of RESOURCE_LIST of tenants: whose it is; or NULL */
    const char *of_kind;                /* of --kind, which is `kind` then */
    const char *name;                   /* of EVENT_*: of what is called so; or NULL */
    uint64_t interval_ms;               /* of TOP; 0: not said */
    bool watch;                         /* of lists: go on */
    const char *sort_by;                /* of lists: a member of their JSON; or NULL */
    const char *since;                  /* of EVENT_LIST: a duration or a time; or NULL */
    uint64_t limit;                     /* of EVENT_LIST: the newest; 0: all */
    bool from_revision;
    uint64_t revision;           /* of EVENT_WATCH: begin after this one */
    const char *position;        /* of EVENT_WATCH, likewise of nodes' events; NULL: from now on */
    size_t tenants;              /* how often --tenant was said */
    const char *tenant, *worker; /* of AGENT_ITEM_LIST, and tenant of RESOURCE_LIST of windows;
                                  * NULL: all. worker of LEASE_REVOKE: instead of an id */
    bool force;                  /* of LEASE_REVOKE */
    bool all;                    /* of LEASE_REVOKE: of all workers, instead of an id */
    const char *node;            /* of AGENT_ITEM_*, LEASE_REVOKE and AGENT_STATUS: through the
                                  * metaserver; NULL: of this host, or as the ids say */
    bool all_nodes;              /* of AGENT_ITEM_LIST, likewise */
    const char *secret_file;     /* of RESOURCE_CREATE and _SET of a token: its secret */
    const char *secret_out;      /* of RESOURCE_CREATE of a token: the file its secret goes to */
    const char *context;         /* of --context; or NULL */
    const char *server;          /* as it was said: a list of URLs, or of "unix:" and a path */
    struct ctl_servers *servers; /* what that says, once it is resolved; NULL: it is one */
    const char *token, *token_file;  /* what it is shown; at most one is not NULL */
    const char *cacert, *cert, *key; /* PEM files for https://; or NULL */
    bool allow_plain_tokens;         /* the token may go over plain HTTP to other hosts */
    const char *agent_socket;
    const char *config, *provider, *device; /* of DOCTOR; NULL: the agent's settings say */
    const char *peer, *serve;               /* of DOCTOR, or NULL; not both */
    const char *output;                     /* "table", "wide", "json" or "yaml"; NULL: not said */
    bool json, wide, yaml;                  /* what it says; json also with yaml */
};

/* Those that are parsed, each with a value of its own to getopt: its letter, where it has one. */
extern const struct option ctl_long_options[];
extern const size_t ctl_long_option_count;

/* Options may stand before, between and after the command's words. What they do not say of server,
 * token, agent_socket and output is NULL. 0, or -EINVAL. */
int ctl_options_parse(int argc, char **argv, struct ctl_options *out, struct base_errbuf *err);
/* Fills that in: from the environment, the context that is chosen, or built-in. With --context the
 * environment says nothing. contexts and servers are borrowed as long as *o is used; servers are
 * filled in. 0; -ENOENT: there is no such context; -EINVAL. */
int ctl_options_resolve(struct ctl_options *o, struct ctl_contexts *contexts,
                        struct ctl_servers *servers, struct base_errbuf *err);
/* Borrowed: of the metaservers the one that is asked, as it was said. */
const char *ctl_server_asked(const struct ctl_options *o);
/* The name of the context that --context, the environment or the file chooses; NULL: none. */
const char *ctl_context_chosen(const struct ctl_options *o, const struct ctl_contexts *contexts);
/* Whether --context or the environment says that there is none: then no file need be read. */
bool ctl_context_none(const struct ctl_options *o);
void ctl_options_output(struct ctl_options *o, const char *output);
/* 0; or -EINVAL and a sentence that begins with what the value is of. */
int ctl_output_check(const char *of, const char *output, struct base_errbuf *err);

/* Whether an option of that name sets a field of some kind. */
bool ctl_option_sets_field(const char *option);
/* Whether the command makes or changes a resource with a field that the option sets. */
bool ctl_option_fits(const struct ctl_options *o, const char *option);
/* Appends the options that do nothing but that. Returns how many there are now, up to room. */
size_t ctl_field_options_add(struct option *out, size_t count, size_t room);
/* Whether those that were said fit the command, and are said once. 0 or -EINVAL. */
int ctl_field_options_check(const struct ctl_options *o, struct base_errbuf *err);
/* Milliseconds of a duration. zero: it may be 0. 0 or -EINVAL. */
int ctl_duration_parse(const char *option, bool zero, const char *text, uint64_t *out_ms,
                       struct base_errbuf *err);

/* What those options say, as words KEY=VALUE. */
struct ctl_field_words {
    char text[CTL_FIELD_OPTIONS][CTL_FIELD_WORD_BYTES];
    const char *word[CTL_FIELD_OPTIONS];
    size_t count;
};
/* Of a command that makes or changes a resource. 0 and *out, whose words are its own; -EINVAL: a
 * value is none, or there is no room for them. */
int ctl_field_words(const struct ctl_options *o, struct ctl_field_words *out,
                    struct base_errbuf *err);

/* 0; or -EINVAL: two of the words have the same key. */
int ctl_words_check(const char *const *words, size_t count, struct base_errbuf *err);
/* Likewise of labels with commas between them; `of`: what the sentence begins with. */
int ctl_list_check(const char *of, const char *list, struct base_errbuf *err);

/* --help of one command, such as "node", "list"; of what one word is about, such as "pool": its
 * commands, what can be set, an example, the options that are for it and not for all; of everything
 * when there is no word. Words behind those of a command are as if they were not there. 0, or
 * -EINVAL: no command begins so. */
int ctl_help_print(const char *const *words, size_t count, FILE *to, struct base_errbuf *err);
/* The tables of commands and options, as JSON to standard output. */
int ctl_help_json(struct base_errbuf *err);
/* The keys of a kind that operators set, with commas; "" if it is none. */
void ctl_keys_of(const char *kind, char *out, size_t size);
/* -EINVAL, and which commands there are. */
int ctl_no_such_command(const char *word, struct base_errbuf *err);
/* -EINVAL, and which second words the first one has. */
int ctl_no_such_verb(const char *word, struct base_errbuf *err);

#endif
