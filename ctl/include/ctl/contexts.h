/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts: names for where rdmactl goes, in a file of the user's. Plain structs, one thread.
 *
 * The file is believed as far as where tokens are sent, so that one which anybody else could have
 * written is refused. It is written anew as a whole, beside the old one, and then renamed. */
#ifndef CTL_CONTEXTS_H
#define CTL_CONTEXTS_H

#include <stddef.h>
#include <stdio.h>

#include "base/error.h"

/* Stands for no context at all, so that none can have this name. */
#define CTL_NO_CONTEXT "none"

enum {
    CTL_CONTEXTS_MAX = 64,
    CTL_CONTEXT_NAME_BYTES = 41, /* so that "context NAME" is a section's name that stays whole */
    CTL_CONTEXT_VALUE_BYTES = 512,
    CTL_CONTEXTS_PATH_BYTES = 1024,
};

/* "": not said. */
struct ctl_context {
    char name[CTL_CONTEXT_NAME_BYTES];
    char server[CTL_CONTEXT_VALUE_BYTES];     /* URLs, or "unix:" and a path */
    char token_file[CTL_CONTEXT_VALUE_BYTES]; /* an absolute path */
    char agent_socket[CTL_CONTEXT_VALUE_BYTES];
    char cacert[CTL_CONTEXT_VALUE_BYTES], cert[CTL_CONTEXT_VALUE_BYTES];
    char key[CTL_CONTEXT_VALUE_BYTES]; /* absolute paths, for https:// */
    char allow_plain_tokens[8];        /* "yes" or "no" */
    char output[8];                    /* "table", "wide", "json" or "yaml" */
};

struct ctl_contexts {
    char path[CTL_CONTEXTS_PATH_BYTES];   /* "": there is no place for a file */
    char current[CTL_CONTEXT_NAME_BYTES]; /* "": none. It need not be one of them */
    size_t count;
    struct ctl_context item[CTL_CONTEXTS_MAX];
};

/* The keys of a context. */
enum { CTL_CONTEXT_KEYS = 8 };
extern const char *const ctl_context_keys[CTL_CONTEXT_KEYS];
/* The value of one of them, borrowed; "" if it is not said. */
const char *ctl_context_value(const struct ctl_context *context, size_t key);
/* Sets one ("": takes it away). 0; or -EINVAL and what it has to be. */
int ctl_context_set(struct ctl_context *context, const char *key, const char *value,
                    struct base_errbuf *err);
/* 0; or -EINVAL and what a name is. */
int ctl_context_name_check(const char *name, struct base_errbuf *err);

/* Borrowed; NULL: there is none of that name. */
struct ctl_context *ctl_contexts_find(struct ctl_contexts *contexts, const char *name);

/* What an open file says. path is copied. 0, or -EINVAL and a sentence with the file and the line.
 */
int ctl_contexts_parse(FILE *file, const char *path, struct ctl_contexts *out,
                       struct base_errbuf *err);
/* In the form that parse reads. 0 or -errno. */
int ctl_contexts_print(const struct ctl_contexts *contexts, FILE *file);

/* The user's file: none is as an empty one. 0; -EACCES: others could have written it; -EINVAL and
 * further ones of the file. */
int ctl_contexts_read(struct ctl_contexts *out, struct base_errbuf *err);
/* Reads it, has it edited, and writes it, with the directories that are missing; two at a time come
 * one after the other. What edit() returns if that is not 0, with nothing written; -errno. */
int ctl_contexts_change(int (*edit)(void *user, struct ctl_contexts *contexts,
                                    struct base_errbuf *err),
                        void *user, struct base_errbuf *err);

#endif
