/* SPDX-License-Identifier: Apache-2.0 */
#include "metaserver/watch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "metaserver/service.h"
#include "metaserver/resources_json.h"
#include "trail.h"

enum {
    EVENTS_PER_PIECE = 16,
    OF_NODE = 2,              /* streams of one node's agent */
    DOCUMENT_BYTES = 1 << 20, /* more than the most tenants and windows take */
    PIECE_BYTES = 1 << 18,    /* more than what is said of one node and the pools takes, and than
                               * so many events */
};

/* The configuration as of one revision but for its end, shared by all that are being sent it. */
struct kedge_watch_document {
    struct kedge_service *s;
    unsigned users;
    uint64_t revision, places;
    struct kedge_text text;
};

struct kedge_watch {
    struct kedge_service *s;
    void *token;
    bool trail;                            /* watches the trail; else the configuration */
    bool answers;                          /* and is the node's agent, which is asked questions */
    bool superseded;                       /* by newer ones of that agent */
    bool known;                            /* the client has something */
    uint64_t revision;                     /* which is this */
    uint64_t places;                       /* as the service had it then */
    char node[KEDGE_STORE_ID_BYTES];       /* of the configuration */
    struct kedge_watch_filter filter;      /* of the trail */
    struct trail_place place;              /* of what its client has of it */
    struct kedge_watch_document *document; /* that is being sent */
    struct kedge_text piece;               /* of the trail, likewise; or the document's end */
    bool has_end;                          /* which is to follow */
    uint64_t beat_at;
    char token_name[KEDGE_SETTING_NAME_BYTES]; /* that its client has shown; "": none */
    uint64_t token_revision, token_ends;       /* UINT64_MAX: it does not */
    LIST_ENTRY(kedge_watch) link;
};

static int add_watch(struct kedge_service *s, bool answers, void *token, uint64_t now,
                     struct kedge_watch **out)
{
    if (s->watch_count >= s->max_watches ||
        (!answers && s->reader_watches != 0 &&
         s->watch_count - s->agent_watches >= s->reader_watches))
        return -EAGAIN;
    struct kedge_watch *w = calloc(1, sizeof *w);
    if (w == NULL)
        return -ENOMEM;
    w->s = s;
    w->token = token;
    w->answers = answers;
    w->beat_at = now + KEDGE_WATCH_BEAT_NS;
    kedge_text_init(&w->piece, PIECE_BYTES);
    LIST_INSERT_HEAD(&s->watches, w, link);
    s->watch_count++;
    s->agent_watches += answers;
    *out = w;
    return 0;
}

/* An agent begins anew before its former stream is known to be dead, but not again and again. */
static void supersede_watches(struct kedge_service *s, const char *node)
{
    struct kedge_watch *w;
    int newer = 0;
    LIST_FOREACH(w, &s->watches, link) {
        if (!w->answers || w->superseded || strcmp(w->node, node) != 0 || newer++ < OF_NODE)
            continue;
        w->superseded = true;
        s->wake(w->token);
    }
}

int kedge_watch_configuration(struct kedge_service *s, const char *node, bool answers, bool known,
                              uint64_t revision, void *token, uint64_t now,
                              struct kedge_watch **out)
{
    struct kedge_watch *w;
    int status = add_watch(s, answers, token, now, &w);
    if (status != 0)
        return status;
    w->known = known;
    w->revision = revision;
    snprintf(w->node, sizeof w->node, "%s", node);
    if (answers)
        supersede_watches(s, node);
    *out = w;
    return 0;
}

/* The newest comes first. */
struct kedge_watch *kedge_watch_of_agent(struct kedge_service *s, const char *node)
{
    struct kedge_watch *w;
    LIST_FOREACH(w, &s->watches, link) {
        if (w->answers && strcmp(w->node, node) == 0)
            return w;
    }
    return NULL;
}

int kedge_watch_events(struct kedge_service *s, const struct kedge_watch_filter *filter,
                       uint64_t revision, uint64_t position, void *token, uint64_t now,
                       struct kedge_watch **out)
{
    struct kedge_watch *w;
    int status = add_watch(s, false, token, now, &w);
    if (status != 0)
        return status;
    w->trail = true;
    w->place = (struct trail_place){revision, position};
    w->filter = *filter;
    *out = w;
    return 0;
}

void kedge_watch_bind(struct kedge_watch *w, const struct kedge_setting *token, uint64_t wall_ms,
                      uint64_t now)
{
    uint64_t expires = token->token.expires_ms;
    snprintf(w->token_name, sizeof w->token_name, "%s", token->name);
    w->token_revision = token->revision;
    w->token_ends = UINT64_MAX;
    if (expires != 0 && (expires - wall_ms) < (UINT64_MAX - now) / KEDGE_NS_PER_MS)
        w->token_ends = now + (expires - wall_ms) * KEDGE_NS_PER_MS;
}

static bool is_let_in(const struct kedge_watch *w, uint64_t now)
{
    if (w->token_name[0] == '\0')
        return true;
    const struct kedge_setting *token =
        kedge_settings_find(w->s->settings, KEDGE_TOKEN, w->token_name);
    return token != NULL && token->revision == w->token_revision && now < w->token_ends;
}

static void release_document(struct kedge_watch *w)
{
    struct kedge_watch_document *d = w->document;
    w->document = NULL;
    if (d == NULL || --d->users > 0)
        return;
    if (d->s->document == d)
        d->s->document = NULL;
    kedge_text_fini(&d->text);
    free(d);
}

static void release_piece(struct kedge_watch *w)
{
    release_document(w);
    kedge_text_fini(&w->piece);
    kedge_text_init(&w->piece, PIECE_BYTES);
    w->has_end = false;
}

void kedge_watch_free(struct kedge_watch *w)
{
    release_piece(w);
    kedge_asks_lose(w->s, w);
    LIST_REMOVE(w, link);
    w->s->watch_count--;
    w->s->agent_watches -= w->answers;
    free(w);
}

/* The document as of now, with one more user; NULL: no memory. */
static struct kedge_watch_document *present_document(struct kedge_service *s)
{
    struct kedge_watch_document *d = s->document;
    if (d != NULL && d->revision == kedge_settings_revision(s->settings) &&
        d->places == s->places) {
        d->users++;
        return d;
    }
    d = calloc(1, sizeof *d);
    if (d == NULL)
        return NULL;
    *d = (struct kedge_watch_document){
        .s = s, .users = 1, .revision = kedge_settings_revision(s->settings), .places = s->places};
    kedge_text_init(&d->text, DOCUMENT_BYTES);
    kedge_json_write_document(&d->text, s->settings, s->meta);
    if (d->text.error != 0) {
        kedge_text_fini(&d->text);
        free(d);
        return NULL;
    }
    s->document = d;
    return d;
}

static int next_configuration(struct kedge_watch *w, const char **bytes, size_t *length)
{
    struct kedge_meta_view view;
    if (kedge_meta_show(w->s->meta, w->node, 0, &view) != 0)
        return -ECANCELED;
    if (w->known && w->revision == kedge_settings_revision(w->s->settings) &&
        w->places == w->s->places)
        return 0;
    w->document = present_document(w->s);
    if (w->document == NULL)
        return -ENOMEM;
    /* Of the same revision, whatever happens until it is taken. */
    kedge_json_write_document_end(&w->piece, w->s->settings, w->node);
    kedge_text_append(&w->piece, "\n", 1);
    if (w->piece.error != 0)
        return -ENOMEM;
    w->has_end = true;
    w->known = true;
    w->revision = w->document->revision;
    w->places = w->document->places;
    *bytes = w->document->text.data;
    *length = w->document->text.length;
    return 0;
}

static void next_end(struct kedge_watch *w, const char **bytes, size_t *length)
{
    release_document(w);
    w->has_end = false;
    *bytes = w->piece.data;
    *length = w->piece.length;
}

static int next_events(struct kedge_watch *w, const char **bytes, size_t *length)
{
    const struct kedge_service *s = w->s;
    struct trail_entry entry;
    if (!trail_has(s->settings, s->liveness, &w->filter, &w->place))
        return -ECANCELED;
    for (int count = 0; count < EVENTS_PER_PIECE &&
                        trail_next(s->settings, s->liveness, &w->filter, &w->place, &entry);
         count++) {
        trail_write(&w->piece, s->liveness, &entry);
        kedge_text_append(&w->piece, "\n", 1);
    }
    *bytes = w->piece.data;
    *length = w->piece.length;
    return w->piece.error;
}

int kedge_watch_next(struct kedge_watch *w, uint64_t now, const char **bytes, size_t *length)
{
    *length = 0;
    if (w->superseded || !is_let_in(w, now))
        return -ECANCELED;
    if (w->has_end) {
        next_end(w, bytes, length);
        return 0;
    }
    release_piece(w);
    if (w->answers && kedge_asks_next(w->s, w, &w->piece)) {
        *bytes = w->piece.data;
        *length = w->piece.length;
        w->beat_at = now + KEDGE_WATCH_BEAT_NS;
        return w->piece.error;
    }
    int status = w->trail ? next_events(w, bytes, length) : next_configuration(w, bytes, length);
    if (status != 0)
        return status;
    if (*length == 0 && now >= w->beat_at) {
        *bytes = "\n";
        *length = 1;
    }
    if (*length > 0)
        w->beat_at = now + KEDGE_WATCH_BEAT_NS;
    return 0;
}

void kedge_watch_wake(struct kedge_watch *w)
{
    w->s->wake(w->token);
}

void kedge_watches_wake(struct kedge_service *s)
{
    struct kedge_watch *w;
    LIST_FOREACH(w, &s->watches, link)
        s->wake(w->token);
}

void kedge_watches_beat(struct kedge_service *s, uint64_t now)
{
    struct kedge_watch *w;
    const uint64_t newest = s->liveness != NULL ? kedge_liveness_newest(s->liveness) : 0;
    LIST_FOREACH(w, &s->watches, link) {
        if (now >= w->beat_at || (w->trail && w->place.position < newest))
            s->wake(w->token);
    }
}
