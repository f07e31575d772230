/* SPDX-License-Identifier: Apache-2.0 */
/* What operators set, and the trail of their changes, as rdmactl reads and writes them. Plain
 * structs; decode_resources.c alone knows that they are JSON. Any thread. */
#ifndef CTL_RESOURCES_H
#define CTL_RESOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "ctl/decode.h"
#include "ctl/options.h"
#include "schema/resources.h"

enum {
    CTL_VALUE_BYTES = 2304, /* 64 names of tenants fit */
    CTL_SECRET_BYTES = 128,
    CTL_BODY_BYTES = 65536,
};

enum { CTL_RESOURCE_PATH_BYTES = 512 };
/* "/v1/tenants/NAME". 0, or -EINVAL: that is no name. */
int ctl_resource_path(const struct resource_table *kind, const char *name,
                      char out[CTL_RESOURCE_PATH_BYTES], struct base_errbuf *err);

struct ctl_resource {
    char name[CTL_ID_BYTES];
    uint64_t revision;
    char
        *value[RESOURCE_FIELDS_MAX]; /* owned: as it is shown, of each key of its kind; "-": none */
    char secret[CTL_SECRET_BYTES];   /* of a token that was just made; else "" */
    char *json;                      /* owned: what the server said */
};

/* Owns its resources. */
struct ctl_resources {
    struct ctl_resource *item;
    size_t count;
};

/* One page: appends; next is the next page's cursor, "" at the end. 0, or -EBADMSG, -ENOMEM. */
int ctl_decode_resources(const struct resource_table *kind, const char *body, size_t bytes,
                         struct ctl_resources *all, char *next, size_t size,
                         struct base_errbuf *err);
void ctl_resources_fini(struct ctl_resources *all);
/* All pages, as the options narrow the list: appends. 0 or -errno; fini it in any case. */
int ctl_resources_fetch(const struct ctl_options *o, const struct resource_table *kind,
                        struct ctl_resources *all, struct base_errbuf *err);
/* One, the caller's to ctl_resource_fini(). */
int ctl_decode_resource(const struct resource_table *kind, const char *body, size_t bytes,
                        struct ctl_resource *out, struct base_errbuf *err);
void ctl_resource_fini(struct ctl_resource *resource);
/* What a field of it has, as it is shown; "" where it has nothing, or there is no such field. */
const char *ctl_resource_value(const struct resource_table *kind,
                               const struct ctl_resource *resource, const char *name);
/* -ENOENT, and the sentence for each kind of thing that has a list: what is more of it is put
 * behind. */
int ctl_no_such(const char *kind, const char *name, const char *more, struct base_errbuf *err);

/* What to PUT for `key=value` words: the resource of `body` (NULL: there is none yet) with those
 * changed; what else it has stays. *revision is that of body, 0 without. 0; -EINVAL: a word that is
 * no key of this kind, or a value that is no such; -EBADMSG; -ENOMEM. */
int ctl_edit_resource(const struct resource_table *kind, const char *body, size_t bytes,
                      const char *const *words, size_t count, struct base_text *out,
                      uint64_t *revision, struct base_errbuf *err);

/* Puts a secret into what ctl_edit_resource() has made. 0 or -ENOMEM. */
int ctl_add_secret(struct base_text *body, const char *secret, struct base_errbuf *err);
/* Takes it out of what is shown of a token that was just made. 0 or -ENOMEM. */
int ctl_hide_secret(struct ctl_resource *resource, struct base_errbuf *err);

/* One entry of the trail. */
struct ctl_event {
    uint64_t revision;
    char position[CTL_WORD_BYTES]; /* of one of a node's liveness; else "" */
    char time[CTL_WORD_BYTES], who[CTL_WORD_BYTES], kind[CTL_WORD_BYTES], name[CTL_ID_BYTES];
    char what[512]; /* "created with ...", "sessions: 3 -> 4", "deleted" */
    char *json;     /* owned */
};

int ctl_decode_event(const char *body, size_t bytes, struct ctl_event *out,
                     struct base_errbuf *err);
void ctl_event_fini(struct ctl_event *event);
/* The newest revision, which a page of the trail says beside its events, and the newest position
 * ("": it says none). 0 or -EBADMSG. */
int ctl_decode_revision(const char *body, size_t bytes, uint64_t *out,
                        char position[CTL_WORD_BYTES], struct base_errbuf *err);
/* One page, as ctl_decode_resources(): `each` is called with every event, borrowed. */
int ctl_decode_events(const char *body, size_t bytes,
                      void (*each)(void *user, const struct ctl_event *event), void *user,
                      char *next, size_t size, struct base_errbuf *err);

#endif
