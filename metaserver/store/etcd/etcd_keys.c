/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/random.h"
#include "base/text.h"
#include "etcd_model.h"

static_assert(META_ETCD_PREFIX_BYTES + 32 + 3 * (META_STORE_ID_BYTES + META_STORE_NAME_BYTES) <=
                  META_ETCD_KEY_BYTES,
              "any name of a region is part of a key");

int meta_etcd_read_place(const struct meta_store_etcd_config *config, struct meta_etcd_place *out,
                         struct base_errbuf *err)
{
    const char *prefix = config->prefix != NULL && *config->prefix != '\0' ? config->prefix : "/";
    const size_t length = strlen(prefix);
    for (const char *p = prefix; *p != '\0'; p++)
        if (*p <= ' ' || *p > '~')
            return base_err(err, -EINVAL,
                            "the prefix of keys in etcd has other characters than "
                            "letters, digits and signs of ASCII");
    if (length + 2 > sizeof out->prefix)
        return base_err(err, -EINVAL, "the prefix of keys in etcd is longer than %zu characters",
                        sizeof out->prefix - 2);
    snprintf(out->prefix, sizeof out->prefix, "%s%s", prefix, prefix[length - 1] == '/' ? "" : "/");
    if (config->member == NULL || base_parse_name(config->member, META_STORE_ID_BYTES - 1) != 0)
        return base_err(err, -EINVAL,
                        "the metaserver's name among others of etcd is none of 1 to %d characters "
                        "of a-z, 0-9, '.' and '-'",
                        META_STORE_ID_BYTES - 1);
    snprintf(out->member, sizeof out->member, "%s", config->member);
    return 0;
}

int meta_etcd_draw(char out[META_ETCD_LIFE_BYTES], struct base_errbuf *err)
{
    uint8_t bytes[(META_ETCD_LIFE_BYTES - 1) / 2];
    const int status = base_random_bytes(bytes, sizeof bytes);
    if (status != 0)
        return base_err(err, status, "the kernel gives no random numbers");
    base_hex_encode(bytes, sizeof bytes, out);
    return 0;
}

int meta_store_etcd_draw(char out[META_STORE_ETCD_LIFE_BYTES], struct base_errbuf *err)
{
    return meta_etcd_draw(out, err);
}

int meta_etcd_take_lives(const struct meta_store_etcd_config *config, struct meta_etcd_lives *out,
                         struct base_errbuf *err)
{
    snprintf(out->former, sizeof out->former, "%s", config->former != NULL ? config->former : "");
    if (config->life == NULL)
        return meta_etcd_draw(out->own, err);
    snprintf(out->own, sizeof out->own, "%s", config->life);
    return 0;
}

bool meta_etcd_is_ours(const struct meta_etcd_lives *lives, const char *life)
{
    const size_t length = strlen(life);
    if (length == 0 || strcmp(lives->own, life) == 0)
        return length != 0;
    for (const char *at = lives->former; *at != '\0'; at += strspn(at, " ")) {
        const size_t word = strcspn(at, " ");
        if (word == length && memcmp(at, life, word) == 0)
            return true;
        at += word;
    }
    return false;
}

void meta_etcd_key(struct meta_etcd_key *out, const struct meta_etcd_place *p, const char *what,
                   const char *name)
{
    snprintf(out->text, sizeof out->text, "%s%s%s", p->prefix, what, name);
}

void meta_etcd_key_under(struct meta_etcd_key *out, const struct meta_etcd_place *p,
                         uint64_t generation, const char *under, const char *name)
{
    snprintf(out->text, sizeof out->text, "%s%" PRIu64 "/%s%s", p->prefix, generation, under, name);
}

void meta_etcd_key_endpoint(struct meta_etcd_key *out, const struct meta_etcd_place *p,
                            uint64_t generation, const struct meta_store_endpoint *e)
{
    char gid[33];
    base_hex_encode(e->gid, sizeof e->gid, gid);
    snprintf(out->text, sizeof out->text, "%s%" PRIu64 "/endpoints/%s/%u", p->prefix, generation,
             gid, e->pool);
}

void meta_etcd_key_trail(struct meta_etcd_key *out, const struct meta_etcd_place *p,
                         uint64_t generation, uint64_t revision)
{
    snprintf(out->text, sizeof out->text, "%s%" PRIu64 "/trail/%020" PRIu64, p->prefix, generation,
             revision);
}

/* What is no part of names as they usually are becomes %XX, so that '/' divides. */
static bool append_name(char *text, size_t room, const char *name)
{
    size_t used = strlen(text);
    for (; *name != '\0'; name++) {
        const unsigned char c = (unsigned char)*name;
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                           (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_';
        if (used + 4 > room)
            return false;
        used += (size_t)snprintf(text + used, room - used, plain ? "%c" : "%%%02X", c);
    }
    return true;
}

int meta_etcd_key_resource(struct meta_etcd_key *out, const struct meta_etcd_place *p,
                           uint64_t generation, const char *kind, const char *name,
                           struct base_errbuf *err)
{
    meta_etcd_key_under(out, p, generation, "resources/", "");
    if (append_name(out->text, sizeof out->text - 4, kind)) {
        snprintf(out->text + strlen(out->text), 2, "/");
        if (append_name(out->text, sizeof out->text, name))
            return 0;
    }
    return base_err(err, -EINVAL, "the name of a resource is too long for etcd's keys");
}

void meta_etcd_key_name(struct meta_etcd_key *out, const struct meta_etcd_place *p,
                        uint64_t generation, const struct meta_store_name *name)
{
    meta_etcd_key_under(out, p, generation, "names/", "");
    bool fits = append_name(out->text, sizeof out->text - 4, name->tenant);
    snprintf(out->text + strlen(out->text), 2, "/");
    fits &= append_name(out->text, sizeof out->text, name->name);
    BASE_ASSERT(fits);
}

bool meta_etcd_name_of(const char *part, char *out, size_t room)
{
    size_t used = 0;
    while (*part != '\0' && *part != '/') {
        uint8_t byte;
        const int length = base_percent_decode(part, &byte);
        if (length < 0 || byte == '\0' || used + 1 >= room)
            return false;
        out[used++] = (char)byte;
        part += length;
    }
    out[used] = '\0';
    return used > 0;
}
