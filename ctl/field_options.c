/* SPDX-License-Identifier: Apache-2.0 */
/* Options that stand for words KEY=VALUE of what is created or set, by the rows of command_table.c
 * that say so. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "ctl/command_table.h"
#include "ctl/options.h"
#include "schema/resources.h"

/* The row by which the option sets a field: of that kind, or of any (NULL); or NULL. */
static const struct ctl_field_option_row *row_of(const char *option, const char *kind)
{
    for (size_t i = 0; i < ctl_field_option_count; i++) {
        const struct ctl_field_option_row *row = &ctl_field_option_rows[i];
        if (strcmp(row->option, option) == 0 && (kind == NULL || strcmp(row->kind, kind) == 0))
            return row;
    }
    return NULL;
}

bool ctl_option_sets_field(const char *option)
{
    return row_of(option, NULL) != NULL;
}

static bool edits_resource(const struct ctl_options *o)
{
    return o->command == CTL_RESOURCE_CREATE || o->command == CTL_RESOURCE_SET;
}

bool ctl_option_fits(const struct ctl_options *o, const char *option)
{
    return edits_resource(o) && row_of(option, o->kind) != NULL;
}

/* ---- options that do nothing but that */

/* Whether the help says nothing of it but for that kind. */
static bool is_field_alone(const struct ctl_field_option_row *row)
{
    const size_t length = strlen(row->option);
    for (size_t i = 0; i < ctl_option_count; i++) {
        const struct ctl_option_row *o = &ctl_option_rows[i];
        const char *name = strstr(o->option, "--") + 2;
        if (strncmp(name, row->option, length) == 0 && name[length] == ' ' &&
            (o->word == NULL || strcmp(o->word, row->kind) != 0))
            return false;
    }
    return true;
}

size_t ctl_field_options_add(struct option *out, size_t count, size_t room)
{
    for (size_t i = 0; i < ctl_field_option_count && count < room; i++)
        if (is_field_alone(&ctl_field_option_rows[i]))
            out[count++] = (struct option){ctl_field_option_rows[i].option, required_argument, NULL,
                                           CTL_FIELD_OPTION};
    return count;
}

static int refuse_elsewhere(const char *kind, struct base_errbuf *err)
{
    char all[256];
    size_t used = 0;
    for (size_t i = 0; i < ctl_field_option_count && used < sizeof all; i++) {
        const struct ctl_field_option_row *row = &ctl_field_option_rows[i];
        if (is_field_alone(row) && strcmp(row->kind, kind) == 0)
            used += (size_t)snprintf(all + used, sizeof all - used, "%s--%s",
                                     used > 0 ? " and " : "", row->option);
    }
    return base_err(err, -EINVAL, "%s are for %s create and %s set alone", all, kind, kind);
}

/* ---- their values */

static const struct resource_field *field_of(const struct ctl_field_option_row *row)
{
    return resource_field_find(resource_table_find(row->kind), row->field);
}

static bool is_period(const struct resource_field *f)
{
    return f->type == FIELD_PERIOD;
}

int ctl_duration_parse(const char *option, bool zero, const char *text, uint64_t *out_ms,
                       struct base_errbuf *err)
{
    uint64_t ns;
    if (base_parse_duration(text, &ns) != 0 || (ns < BASE_NS_PER_MS && !(zero && ns == 0)))
        return base_err(err, -EINVAL,
                        "--%s must be a duration such as 30s, of 1ms at least%s, not \"%.40s\"",
                        option, zero ? ", or 0" : "", text);
    *out_ms = ns / BASE_NS_PER_MS;
    return 0;
}

int ctl_field_options_check(const struct ctl_options *o, struct base_errbuf *err)
{
    uint64_t ms;
    for (size_t i = 0; i < o->said_count && i < CTL_SAID_MAX; i++) {
        const struct ctl_said *said = &o->said[i];
        const struct ctl_field_option_row *any = row_of(said->option, NULL);
        if (!ctl_option_fits(o, said->option)) {
            if (is_field_alone(any))
                return refuse_elsewhere(any->kind, err);
            continue; /* it is another command's, whose it is to check it */
        }
        const struct resource_field *f = field_of(row_of(said->option, o->kind));
        for (size_t k = 0; k < i && f->type != FIELD_REFERENCES; k++)
            if (strcmp(o->said[k].option, said->option) == 0)
                return base_err(err, -EINVAL, "--%s is said twice", said->option);
        if (is_period(f) &&
            ctl_duration_parse(said->option, f->min == 0, said->text, &ms, err) != 0)
            return -EINVAL;
    }
    return 0;
}

/* ---- words */

/* "tenants=web,batch", of an option for each. */
static int add_list(const struct ctl_options *o, const struct resource_field *f, const char *option,
                    char *text, struct base_errbuf *err)
{
    const struct resource_table *of = resource_table(f->of);
    size_t used = (size_t)snprintf(text, CTL_FIELD_WORD_BYTES, "%s", f->name), count = 0;
    for (size_t i = 0; i < o->said_count && i < CTL_SAID_MAX; i++) {
        const char *one = o->said[i].text;
        if (strcmp(o->said[i].option, option) != 0)
            continue;
        if (one[0] == '\0' || strchr(one, ',') != NULL)
            return base_err(err, -EINVAL, "--%s is one name, not \"%.60s\": repeat it", option,
                            one);
        if (used < CTL_FIELD_WORD_BYTES)
            used += (size_t)snprintf(text + used, CTL_FIELD_WORD_BYTES - used, "%s%s",
                                     count == 0 ? "=" : ",", one);
        count++;
    }
    count += o->said_count > CTL_SAID_MAX ? o->said_count - CTL_SAID_MAX : 0;
    if (count > RESOURCE_TENANTS_MAX)
        return base_err(err, -EINVAL, "--%s is there %zu times: a %s has at most %d %s", option,
                        count, o->kind, RESOURCE_TENANTS_MAX, of->plural);
    return used < CTL_FIELD_WORD_BYTES
               ? 0
               : base_err(err, -EINVAL, "--%s: a %s's %s has at most %" PRIu32 " characters",
                          option, of->name, of->called, of->name_max);
}

static const struct ctl_said *find_said(const struct ctl_options *o, const char *kind,
                                        const struct resource_field *f)
{
    for (size_t i = 0; i < o->said_count && i < CTL_SAID_MAX; i++) {
        const struct ctl_field_option_row *row = row_of(o->said[i].option, kind);
        if (row != NULL && strcmp(row->field, f->name) == 0)
            return &o->said[i];
    }
    return NULL;
}

int ctl_field_words(const struct ctl_options *o, struct ctl_field_words *out,
                    struct base_errbuf *err)
{
    const struct resource_table *kind = resource_table_find(o->kind);
    uint64_t ms = 0;
    out->count = 0;
    for (size_t i = 0; i < kind->fields && out->count < CTL_FIELD_OPTIONS; i++) {
        const struct resource_field *f = &kind->field[i];
        const struct ctl_said *said = find_said(o, kind->name, f);
        char *text = out->text[out->count];
        int status = 0;
        if (said == NULL)
            continue;
        if (f->type == FIELD_REFERENCES)
            status = add_list(o, f, said->option, text, err);
        else if (is_period(f))
            status = ctl_duration_parse(said->option, f->min == 0, said->text, &ms, err);
        if (status != 0)
            return status;
        if (is_period(f))
            snprintf(text, CTL_FIELD_WORD_BYTES, "%s=%" PRIu64, f->name, ms);
        else if (f->type != FIELD_REFERENCES)
            snprintf(text, CTL_FIELD_WORD_BYTES, "%s=%s", f->name, said->text);
        out->word[out->count++] = text;
    }
    return 0;
}
