/* SPDX-License-Identifier: Apache-2.0 */
/* What operators set, kept in step with the store. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "destinations.h"
#include "metaserver/settings_json.h"
#include "service_private.h"

#define BODY_BYTES 8192 /* more than a setting takes */

struct loading {
    struct kedge_service *s;
    struct kedge_fault fault;
};

/* Like what kedge_json_write_stored() has made, or kedge_json_write_body() for the trail. */
static int decode(const char *kind, const char *name, const char *body, struct kedge_setting *out,
                  struct kedge_fault *fault)
{
    enum kedge_setting_kind k;
    int status = kedge_setting_kind_parse(kind, &k);
    if (status != 0) {
        snprintf(fault->detail, sizeof fault->detail, "unknown kind");
        return status;
    }
    return kedge_json_setting_stored(k, name, body, out, fault);
}

static int load_setting(void *user, const struct kedge_store_setting *stored)
{
    struct loading *l = user;
    struct kedge_setting setting;
    int status = decode(stored->kind, stored->name, stored->body, &setting, &l->fault);
    if (status != 0)
        return status;
    if (setting.kind >= KEDGE_SETTING_KINDS) {
        snprintf(l->fault.detail, sizeof l->fault.detail, "leases are no setting");
        return -EINVAL;
    }
    if (setting.kind == KEDGE_TOKEN && kedge_token_is_bare(&setting.token)) {
        snprintf(l->fault.detail, sizeof l->fault.detail, "token %.63s has no hash", setting.name);
        return -EINVAL;
    }
    setting.revision = stored->revision;
    return kedge_settings_restore(l->s->settings, &setting, &l->fault);
}

static int load_side(const struct kedge_store_change *stored, const char *body, bool *there,
                     struct kedge_setting *out, struct kedge_fault *fault)
{
    *there = body != NULL;
    return body == NULL ? 0 : decode(stored->kind, stored->name, body, out, fault);
}

static int load_change(void *user, const struct kedge_store_change *stored)
{
    struct loading *l = user;
    struct kedge_setting_change c = {.revision = stored->revision, .time_ms = stored->time_ms};
    int status = kedge_setting_kind_parse(stored->kind, &c.kind);
    snprintf(c.who, sizeof c.who, "%s", stored->who);
    snprintf(c.name, sizeof c.name, "%s", stored->name);
    if (status == 0)
        status = load_side(stored, stored->before, &c.had, &c.from, &l->fault);
    if (status == 0)
        status = load_side(stored, stored->after, &c.has, &c.to, &l->fault);
    if (status == 0)
        status = kedge_settings_restore_change(l->s->settings, &c);
    if (status != 0 && l->fault.detail[0] == '\0')
        snprintf(l->fault.detail, sizeof l->fault.detail,
                 "the trail has a gap at revision %" PRIu64, stored->revision);
    return status;
}

int kedge_service_load_settings(struct kedge_service *s, struct kedge_errbuf *err)
{
    struct loading l = {.s = s};
    const struct kedge_store_visitor visitor = {load_setting, load_change, &l};
    err->text[0] = '\0';
    int status = kedge_store_load_settings(s->store, &visitor, err);
    uint64_t last = kedge_settings_revision(s->settings);
    if (status == 0 && last > 0 && kedge_settings_change_after(s->settings, last - 1) == NULL) {
        snprintf(l.fault.detail, sizeof l.fault.detail, "the trail lacks its last entry");
        status = -EINVAL;
    }
    if (status == 0 || err->text[0] != '\0')
        return status;
    return kedge_err(
        err, status,
        "what the store holds of tenants, windows and tokens does not fit (%.64s: %.150s): "
        "restore it from a backup",
        l.fault.field, l.fault.detail);
}

static const char *body_of(struct kedge_text *text, bool there, const struct kedge_setting *setting)
{
    if (!there)
        return NULL;
    kedge_json_write_body(text, setting);
    return kedge_text_str(text);
}

static int write_change(struct kedge_service *s, const struct kedge_setting_change *change,
                        struct kedge_errbuf *err)
{
    struct kedge_text before, after, setting;
    kedge_text_init(&before, BODY_BYTES);
    kedge_text_init(&after, BODY_BYTES);
    kedge_text_init(&setting, BODY_BYTES);
    if (change->has)
        kedge_json_write_stored(&setting, &change->to);
    const struct kedge_store_change stored = {
        .revision = change->revision,
        .time_ms = change->time_ms,
        .who = change->who,
        .kind = kedge_setting_kind_name(change->kind),
        .name = change->name,
        .before = body_of(&before, change->had, &change->from),
        .after = body_of(&after, change->has, &change->to),
        .setting = change->has ? kedge_text_str(&setting) : NULL,
        .forget = kedge_settings_forgets(s->settings, change),
    };
    int status = before.error != 0 ? before.error : after.error != 0 ? after.error : setting.error;
    if (status != 0)
        kedge_err(err, status, "out of memory: try again");
    else
        status = kedge_store_change(s->store, &stored, err);
    kedge_text_fini(&before);
    kedge_text_fini(&after);
    kedge_text_fini(&setting);
    return status;
}

bool kedge_service_look_at_places(struct kedge_service *s)
{
    const uint64_t before = s->places;
    s->places = destinations_hash(s->settings, s->meta);
    return s->places != before;
}

int kedge_service_change(struct kedge_service *s, const struct kedge_setting_change *change,
                         uint64_t now, struct kedge_errbuf *err)
{
    if (change->revision == 0)
        return 0;
    if (write_change(s, change, err) != 0)
        return kedge_service_store_failed(s, "changing a setting", change->name, now, err);
    kedge_settings_apply(s->settings, change);
    s->count.changes++;
    kedge_log(KEDGE_LOG_INFO, "setting changed",
              "kind=%s name=%s revision=%" PRIu64 " what=%s who=\"%s\"",
              kedge_setting_kind_name(change->kind), change->name, change->revision,
              change->kind == KEDGE_LEASE ? "revoked"
              : !change->had              ? "created"
              : change->has               ? "replaced"
                                          : "deleted",
              change->who);
    (void)kedge_service_look_at_places(s);
    kedge_watches_wake(s);
    return 0;
}
