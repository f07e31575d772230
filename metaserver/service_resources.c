/* SPDX-License-Identifier: Apache-2.0 */
/* What operators set, kept in step with the store. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/log.h"
#include "window_targets.h"
#include "metaserver/resources_json.h"
#include "service_private.h"

#define BODY_BYTES 8192 /* more than a setting takes */

struct loading {
    struct kedge_service *s;
    struct kedge_fault fault;
    /* Pools of a store that is older than their numbers. */
    uint32_t numberless;
    bool those;    /* this time them alone */
    uint32_t anew; /* that have another number than the one that their name stands for */
    char name[KEDGE_POOLS_MAX][KEDGE_POOL_NAME_MAX + 1];
};

/* Like what kedge_json_write_stored() has made, or kedge_json_write_body() for the trail. */
static int decode_resource(const char *kind, const char *name, const char *body,
                           struct kedge_setting *out, struct kedge_fault *fault)
{
    enum kedge_setting_kind k;
    int status = kedge_setting_kind_parse(kind, &k);
    if (status != 0) {
        snprintf(fault->detail, sizeof fault->detail, "unknown kind");
        return status;
    }
    return kedge_json_setting_stored(k, name, body, out, fault);
}

/* Its name's number may be that of another, whose name comes before it. */
static int restore_numberless(struct loading *l, struct kedge_setting *pool)
{
    pool->pool.id = kedge_pool_free_id(l->s->settings, pool->name);
    int status = kedge_settings_restore(l->s->settings, pool, &l->fault);
    if (status == 0 && pool->pool.id != kedge_pool_id(pool->name))
        memcpy(l->name[l->anew++], pool->name, strlen(pool->name) + 1); /* it is valid */
    return status;
}

static int load_setting(void *user, const struct kedge_store_setting *stored)
{
    struct loading *l = user;
    struct kedge_setting setting;
    int status = decode_resource(stored->kind, stored->name, stored->body, &setting, &l->fault);
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
    const bool numberless = setting.kind == KEDGE_POOL && setting.pool.id == 0;
    if (l->those)
        return numberless ? restore_numberless(l, &setting) : 0;
    l->numberless += numberless;
    return numberless ? 0 : kedge_settings_restore(l->s->settings, &setting, &l->fault);
}

static int load_side(const struct kedge_store_change *stored, const char *body, bool *there,
                     struct kedge_setting *out, struct kedge_fault *fault)
{
    *there = body != NULL;
    return body == NULL ? 0 : decode_resource(stored->kind, stored->name, body, out, fault);
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

static int pass_change(void *user, const struct kedge_store_change *stored)
{
    (void)user, (void)stored;
    return 0;
}

/* Once those that have numbers are there. */
static int load_numberless(struct loading *l, struct kedge_errbuf *err)
{
    const struct kedge_store_visitor visitor = {load_setting, pass_change, l};
    l->those = true;
    return l->numberless > 0 ? kedge_store_load_settings(l->s->store, &visitor, err) : 0;
}

static const char *name_of_number(const struct kedge_service *s, uint16_t id)
{
    const struct kedge_setting *pool = kedge_settings_after(s->settings, KEDGE_POOL, "");
    while (pool != NULL && pool->pool.id != id)
        pool = kedge_settings_after(s->settings, KEDGE_POOL, pool->name);
    return pool != NULL ? pool->name : "";
}

/* Written down, since it is not to change when the pool goes whose number the name stands for. A
 * store that cannot be written is no reason not to start: then it is chosen again next time. */
static void keep_number(struct kedge_service *s, const char *name, uint64_t now)
{
    const struct kedge_setting *pool = kedge_settings_find(s->settings, KEDGE_POOL, name);
    const struct kedge_setting_match match = {.any = true};
    struct kedge_setting_change change;
    struct kedge_fault fault;
    struct kedge_errbuf err;
    kedge_log(KEDGE_LOG_WARN,
              "a pool of an older store has a number of its own now: the one that its name stands "
              "for is another pool's",
              "pool=%s number=%u instead_of=%u which_has=%s", name, (unsigned)pool->pool.id,
              (unsigned)kedge_pool_id(name), name_of_number(s, kedge_pool_id(name)));
    int status = kedge_settings_plan_put(s->settings, pool, &match, &change, &fault);
    KEDGE_ASSERT(status == 0); /* it is what is there */
    change.from.pool.id = 0;
    change.revision = change.to.revision = kedge_settings_revision(s->settings) + 1;
    change.time_ms = kedge_clock_wall_ms();
    snprintf(change.who, sizeof change.who, "kedge-metad");
    (void)kedge_service_change(s, &change, now, &err);
}

int kedge_service_load_settings(struct kedge_service *s, uint64_t now, struct kedge_errbuf *err)
{
    struct loading l = {.s = s};
    const struct kedge_store_visitor visitor = {load_setting, load_change, &l};
    err->text[0] = '\0';
    int status = kedge_store_load_settings(s->store, &visitor, err);
    if (status == 0)
        status = load_numberless(&l, err);
    uint64_t last = kedge_settings_revision(s->settings);
    if (status == 0 && last > 0 && kedge_settings_change_after(s->settings, last - 1) == NULL) {
        snprintf(l.fault.detail, sizeof l.fault.detail, "the trail lacks its last entry");
        status = -EINVAL;
    }
    for (uint32_t i = 0; i < l.anew && status == 0; i++)
        keep_number(s, l.name[i], now);
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
