/* SPDX-License-Identifier: Apache-2.0 */
#include "metaserver/watch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/json_writer.h"
#include "metaserver/resources_json.h"
#include "metaserver/service.h"
#include "rest_private.h"
#include "metaserver/trail.h"

enum {
    EVENTS_PER_PIECE = 16,
    OF_NODE = 2, /* streams of one node's agent */
    CHAINS_LEAST = 16,
    DOCUMENT_BYTES = 1 << 20, /* more than the most tenants and windows take */
    PIECE_BYTES = 1 << 18,    /* more than what is said of one node and the pools takes, and than
                               * so many events */
};

static const char RENEW_LINE[] = "{\"renew\":true}\n", SOON_LINE[] = "{\"renew\":\"soon\"}\n";

/* The configuration as of one revision but for its end, shared by all that are being sent it. */
struct meta_watch_document {
    struct meta_service *s;
    unsigned users;
    uint64_t revision, window_targets;
    struct base_text text;
};

struct meta_watch {
    struct meta_service *s;
    void *token;
    bool trail;                                /* watches the trail; else the configuration */
    bool regions;                              /* or else the names of regions */
    uint64_t names;                            /* their version that its client has, if `known` */
    bool answers;                              /* and is the node's agent, which is sent queries */
    bool alone;                                /* and nothing of the configuration */
    bool superseded;                           /* by newer ones of that agent */
    bool renew;                                /* it is to be told to renew its lease now */
    bool soon;                                 /* and so are all, each at a moment of its own */
    bool known;                                /* the client has something */
    uint64_t revision;                         /* which is this */
    uint64_t window_targets;                   /* as the service had it then */
    char node[META_STORE_ID_BYTES];            /* of the configuration */
    struct meta_watch_filter filter;           /* of the trail */
    struct trail_place place;                  /* of what its client has of it */
    struct meta_watch_document *document;      /* that is being sent */
    struct base_text piece;                    /* of the trail, likewise; or the document's end */
    bool has_end;                              /* which is to follow */
    uint64_t beat_at;                          /* set_beat() */
    bool beats;                                /* it was silent until then, and is woken for it */
    char token_name[META_RESOURCE_NAME_BYTES]; /* that its client has shown; "": none */
    uint64_t token_revision, token_ends;       /* UINT64_MAX: it does not */
    LIST_ENTRY(meta_watch) link;
    LIST_ENTRY(meta_watch) by_reader; /* of the trail or of names */
    struct meta_watch *next_of_chain; /* of an agent: an older one */
    TAILQ_ENTRY(meta_watch) by_beat;
};

/* ---- streams of agents by their nodes: whoever looks for one looks at few, however many there are
 */

static struct meta_watch **find_chain(const struct meta_service *s, const char *node)
{
    const uint64_t seed = meta_directory_table(s->directory)->seed;
    uint64_t hash = 0;
    for (const char *c = node; *c != '\0'; c++)
        hash = base_hash_u64(hash ^ (unsigned char)*c, seed);
    return &s->watches.chain[hash & (s->watches.chains - 1)];
}

/* As many chains as streams at least. The newest of a chain stays its first. */
static int grow_chains(struct meta_service *s)
{
    struct meta_watch **old = s->watches.chain, *w, *next;
    const uint32_t count = s->watches.chains;
    if (s->agent_watches < count)
        return 0;
    struct meta_watch **grown = calloc(count > 0 ? 2 * (size_t)count : CHAINS_LEAST, sizeof *grown);
    if (grown == NULL)
        return count > 0 ? 0 : -ENOMEM;
    s->watches.chain = grown;
    s->watches.chains = count > 0 ? 2 * count : CHAINS_LEAST;
    for (uint32_t i = 0; i < count; i++) {
        struct meta_watch *oldest_first = NULL;
        for (w = old[i]; w != NULL; w = next) {
            next = w->next_of_chain;
            w->next_of_chain = oldest_first;
            oldest_first = w;
        }
        for (w = oldest_first; w != NULL; w = next) {
            struct meta_watch **chain = find_chain(s, w->node);
            next = w->next_of_chain;
            w->next_of_chain = *chain;
            *chain = w;
        }
    }
    free(old);
    return 0;
}

static void leave_chain(struct meta_watch *w)
{
    struct meta_service *s = w->s;
    struct meta_watch **at = find_chain(s, w->node);
    while (*at != w)
        at = &(*at)->next_of_chain;
    *at = w->next_of_chain;
    if (s->agent_watches > 0)
        return;
    free(s->watches.chain);
    s->watches.chain = NULL;
    s->watches.chains = 0;
}

/* ---- beats */

/* All have as long, so that they are in the order in which they are due. */
static void set_beat(struct meta_watch *w, uint64_t now)
{
    w->beats = false;
    w->beat_at = now + META_WATCH_BEAT_NS;
    TAILQ_INSERT_TAIL(&w->s->beats, w, by_beat);
}

static void put_off_beat(struct meta_watch *w, uint64_t now)
{
    TAILQ_REMOVE(&w->s->beats, w, by_beat);
    set_beat(w, now);
}

/* ---- who begins */

static int add_watch(struct meta_service *s, bool answers, void *token, uint64_t now,
                     struct meta_watch **out)
{
    if (s->watch_count >= s->max_watches ||
        (!answers && s->reader_watches != 0 &&
         s->watch_count - s->agent_watches >= s->reader_watches))
        return -EAGAIN;
    if (answers && grow_chains(s) != 0)
        return -ENOMEM;
    struct meta_watch *w = calloc(1, sizeof *w);
    if (w == NULL)
        return -ENOMEM;
    w->s = s;
    w->token = token;
    w->answers = answers;
    base_text_init(&w->piece, PIECE_BYTES);
    if (s->watch_count == 0)
        TAILQ_INIT(&s->beats);
    set_beat(w, now);
    LIST_INSERT_HEAD(&s->watches.all, w, link);
    s->watch_count++;
    s->agent_watches += answers;
    *out = w;
    return 0;
}

/* An agent begins anew before its former stream is known to be dead, but not again and again. */
static void supersede_watches(struct meta_service *s, const char *node)
{
    int newer = 0;
    for (struct meta_watch *w = *find_chain(s, node); w != NULL; w = w->next_of_chain) {
        if (w->superseded || strcmp(w->node, node) != 0 || newer++ < OF_NODE)
            continue;
        w->superseded = true;
        s->wake(w->token);
    }
}

int meta_watch_configuration(struct meta_service *s, const char *node,
                             enum meta_watch_answers answers, bool known, uint64_t revision,
                             void *token, uint64_t now, struct meta_watch **out)
{
    struct meta_watch *w;
    int status = add_watch(s, answers != META_ANSWERS_NONE, token, now, &w);
    if (status != 0)
        return status;
    w->alone = answers == META_ANSWERS_ALONE;
    w->known = known;
    w->revision = revision;
    snprintf(w->node, sizeof w->node, "%s", node);
    if (w->answers) {
        w->renew = w->soon = now < s->hearing.ask_until_ns;
        struct meta_watch **chain = find_chain(s, node);
        w->next_of_chain = *chain;
        *chain = w;
        supersede_watches(s, node);
    }
    *out = w;
    return 0;
}

/* The newest comes first. */
struct meta_watch *meta_watch_of_agent(struct meta_service *s, const char *node)
{
    struct meta_watch *w = s->watches.chain != NULL ? *find_chain(s, node) : NULL;
    while (w != NULL && strcmp(w->node, node) != 0)
        w = w->next_of_chain;
    return w;
}

uint32_t meta_watch_followers(const struct meta_service *s)
{
    const struct meta_watch *w;
    uint32_t count = 0;
    LIST_FOREACH(w, &s->watches.all, link)
        count += w->answers && !w->alone && !w->superseded;
    return count;
}

void meta_watch_ask_renewal(struct meta_service *s, const char *node)
{
    struct meta_watch *w = meta_watch_of_agent(s, node);
    if (w == NULL)
        return;
    w->renew = true;
    w->soon = false;
    meta_watch_wake(w);
}

void meta_watches_ask_renewals(struct meta_service *s)
{
    struct meta_watch *w;
    LIST_FOREACH(w, &s->watches.all, link) {
        if (!w->answers)
            continue;
        w->soon = !w->renew || w->soon;
        w->renew = true;
        meta_watch_wake(w);
    }
}

int meta_watch_events(struct meta_service *s, const struct meta_watch_filter *filter,
                      uint64_t revision, uint64_t position, void *token, uint64_t now,
                      struct meta_watch **out)
{
    struct meta_watch *w;
    int status = add_watch(s, false, token, now, &w);
    if (status != 0)
        return status;
    LIST_INSERT_HEAD(&s->watches.readers, w, by_reader);
    w->trail = true;
    w->place = (struct trail_place){revision, position};
    w->filter = *filter;
    *out = w;
    return 0;
}

int meta_watch_regions(struct meta_service *s, bool known, uint64_t version, void *token,
                       uint64_t now, struct meta_watch **out)
{
    struct meta_watch *w;
    int status = add_watch(s, false, token, now, &w);
    if (status != 0)
        return status;
    LIST_INSERT_HEAD(&s->watches.readers, w, by_reader);
    w->regions = true;
    s->region_watches++;
    w->known = known;
    w->names = version;
    *out = w;
    return 0;
}

void meta_watch_bind(struct meta_watch *w, const struct meta_resource *token, uint64_t wall_ms,
                     uint64_t now)
{
    uint64_t expires = token->token.expires;
    snprintf(w->token_name, sizeof w->token_name, "%s", token->name);
    w->token_revision = token->revision;
    w->token_ends = UINT64_MAX;
    if (expires != 0 && (expires - wall_ms) < (UINT64_MAX - now) / BASE_NS_PER_MS)
        w->token_ends = now + (expires - wall_ms) * BASE_NS_PER_MS;
}

static bool is_let_in(const struct meta_watch *w, uint64_t now)
{
    if (w->token_name[0] == '\0')
        return true;
    const struct meta_resource *token =
        meta_resources_find(w->s->resources, META_TOKEN, w->token_name);
    return token != NULL && token->revision == w->token_revision && now < w->token_ends;
}

static void release_document(struct meta_watch *w)
{
    struct meta_watch_document *d = w->document;
    w->document = NULL;
    if (d == NULL || --d->users > 0)
        return;
    if (d->s->document == d)
        d->s->document = NULL;
    base_text_fini(&d->text);
    free(d);
}

static void release_piece(struct meta_watch *w)
{
    release_document(w);
    base_text_fini(&w->piece);
    base_text_init(&w->piece, PIECE_BYTES);
    w->has_end = false;
}

void meta_watch_free(struct meta_watch *w)
{
    release_piece(w);
    meta_queries_lose(w->s, w);
    LIST_REMOVE(w, link);
    TAILQ_REMOVE(&w->s->beats, w, by_beat);
    w->s->watch_count--;
    w->s->agent_watches -= w->answers;
    w->s->region_watches -= w->regions;
    if (w->trail || w->regions)
        LIST_REMOVE(w, by_reader);
    if (w->answers)
        leave_chain(w);
    free(w);
}

/* The document as of now, with one more user; NULL: no memory. */
static struct meta_watch_document *present_document(struct meta_service *s)
{
    struct meta_watch_document *d = s->document;
    if (d != NULL && d->revision == meta_resources_revision(s->resources) &&
        d->window_targets == s->window_targets) {
        d->users++;
        return d;
    }
    d = calloc(1, sizeof *d);
    if (d == NULL)
        return NULL;
    *d = (struct meta_watch_document){.s = s,
                                      .users = 1,
                                      .revision = meta_resources_revision(s->resources),
                                      .window_targets = s->window_targets};
    base_text_init(&d->text, DOCUMENT_BYTES);
    meta_json_write_document(&d->text, s->resources, s->directory);
    if (d->text.error != 0) {
        base_text_fini(&d->text);
        free(d);
        return NULL;
    }
    s->document = d;
    return d;
}

static int next_configuration(struct meta_watch *w, const char **bytes, size_t *length)
{
    struct meta_node_view view;
    if (meta_directory_show(w->s->directory, w->node, 0, &view) != 0)
        return -ECANCELED;
    if (w->alone)
        return 0;
    if (w->known && w->revision == meta_resources_revision(w->s->resources) &&
        w->window_targets == w->s->window_targets)
        return 0;
    w->document = present_document(w->s);
    if (w->document == NULL)
        return -ENOMEM;
    /* Of the same revision, whatever happens until it is taken. */
    meta_json_write_document_end(&w->piece, w->s->resources, w->node);
    base_text_append(&w->piece, "\n", 1);
    if (w->piece.error != 0)
        return -ENOMEM;
    w->has_end = true;
    w->known = true;
    w->revision = w->document->revision;
    w->window_targets = w->document->window_targets;
    *bytes = w->document->text.data;
    *length = w->document->text.length;
    return 0;
}

static void next_end(struct meta_watch *w, const char **bytes, size_t *length)
{
    release_document(w);
    w->has_end = false;
    *bytes = w->piece.data;
    *length = w->piece.length;
}

static int next_events(struct meta_watch *w, const char **bytes, size_t *length)
{
    const struct meta_service *s = w->s;
    struct trail_entry entry;
    if (!meta_trail_has(s->resources, s->liveness, &w->filter, &w->place))
        return -ECANCELED;
    for (int count = 0;
         count < EVENTS_PER_PIECE &&
         meta_trail_next(s->resources, s->liveness, &w->filter, NULL, &w->place, &entry);
         count++) {
        meta_trail_write(&w->piece, s->liveness, &entry);
        base_text_append(&w->piece, "\n", 1);
    }
    *bytes = w->piece.data;
    *length = w->piece.length;
    return w->piece.error;
}

/* However many changes there were. */
static int next_regions(struct meta_watch *w, const char **bytes, size_t *length)
{
    const struct meta_service *s = w->s;
    char position[TRAIL_POSITION_BYTES];
    if (s->names == NULL)
        return -ECANCELED;
    if (w->known && w->names == meta_names_version(s->names))
        return 0;
    w->known = true;
    w->names = meta_names_version(s->names);
    meta_rest_names_position(s, position);
    base_json_object(&w->piece, NULL);
    base_json_string(&w->piece, "position", position);
    base_json_object_end(&w->piece);
    base_text_append(&w->piece, "\n", 1);
    *bytes = w->piece.data;
    *length = w->piece.length;
    return w->piece.error;
}

int meta_watch_next(struct meta_watch *w, uint64_t now, const char **bytes, size_t *length)
{
    *length = 0;
    if (w->superseded || !is_let_in(w, now))
        return -ECANCELED;
    if (w->has_end) {
        next_end(w, bytes, length);
        return 0;
    }
    release_piece(w);
    if (w->renew) {
        w->renew = false;
        *bytes = w->soon ? SOON_LINE : RENEW_LINE;
        *length = strlen(*bytes);
        put_off_beat(w, now);
        return 0;
    }
    if (w->answers && meta_queries_next(w->s, w, &w->piece)) {
        *bytes = w->piece.data;
        *length = w->piece.length;
        put_off_beat(w, now);
        return w->piece.error;
    }
    int status = w->trail     ? next_events(w, bytes, length)
                 : w->regions ? next_regions(w, bytes, length)
                              : next_configuration(w, bytes, length);
    if (status != 0)
        return status;
    if (*length == 0 && (w->beats || now >= w->beat_at)) {
        *bytes = "\n";
        *length = 1;
    }
    if (*length > 0)
        put_off_beat(w, now);
    return 0;
}

void meta_watch_wake(struct meta_watch *w)
{
    w->s->wake(w->token);
}

void meta_watches_wake(struct meta_service *s)
{
    struct meta_watch *w;
    LIST_FOREACH(w, &s->watches.all, link)
        s->wake(w->token);
}

static uint64_t newest_position(const struct meta_service *s)
{
    return s->liveness != NULL ? meta_liveness_newest(s->liveness) : 0;
}

/* What workers name and take back wakes nobody where nobody watches that: 0. */
static uint64_t names_version(const struct meta_service *s)
{
    return s->names != NULL && s->region_watches > 0 ? meta_names_version(s->names) : 0;
}

uint64_t meta_watches_due(const struct meta_service *s)
{
    if (s->watch_count == 0)
        return UINT64_MAX;
    if (s->told_names != names_version(s))
        return 0;
    return s->told_position != newest_position(s) ? 0 : TAILQ_FIRST(&s->beats)->beat_at;
}

/* One that is woken for its silence is due again so much later, whether it says something by then
 * or its client takes nothing. */
void meta_watches_beat(struct meta_service *s, uint64_t now)
{
    struct meta_watch *w;
    const uint64_t newest = newest_position(s), names = names_version(s);
    while ((w = TAILQ_FIRST(&s->beats)) != NULL && now >= w->beat_at) {
        put_off_beat(w, now);
        w->beats = true;
        s->wake(w->token);
    }
    if (s->told_position != newest || s->told_names != names)
        LIST_FOREACH(w, &s->watches.readers, by_reader)
            if ((w->trail && w->place.position < newest) || (w->regions && w->names != names))
                s->wake(w->token);
    s->told_position = newest;
    s->told_names = names;
}
