/* SPDX-License-Identifier: Apache-2.0 */
#include "open_store.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json_writer.h"
#include "base/text.h"
#include "base/version.h"
#include "life.h"
#include "metaserver/store_etcd.h"

/* A port that is any is known to nobody yet. */
static bool has_url(const struct meta_config *config)
{
    const char *port = strrchr(config->listen, ':');
    return config->advertise[0] != '\0' || (port != NULL && strcmp(port, ":0") != 0);
}

/* What other metaservers and operators are told of this one. */
static void describe_self(const struct meta_config *config, struct base_text *out)
{
    char url[META_CONFIG_TEXT_BYTES + 8];
    const char *scheme = config->cert_file[0] != '\0' ? "https://" : "http://";
    snprintf(url, sizeof url, "%s%s", config->advertise[0] != '\0' ? "" : scheme,
             config->advertise[0] != '\0' ? config->advertise : config->listen);
    base_text_init(out, META_STORE_MEMBER_BYTES - 1);
    base_json_object(out, NULL);
    base_json_string(out, "version", base_version_text());
    if (has_url(config))
        base_json_string(out, "url", url);
    base_json_object_end(out);
}

/* What is set fits. A host's name is any text: what is no letter of an id is left out. */
static void name_member(const struct meta_config *config, char out[META_STORE_ID_BYTES])
{
    char host[META_STORE_ID_BYTES] = "";
    size_t n = 0;
    if (config->member[0] != '\0') {
        snprintf(out, META_STORE_ID_BYTES, "%.*s", META_STORE_ID_BYTES - 1, config->member);
        return;
    }
    (void)gethostname(host, sizeof host - 1);
    for (const char *c = host; *c != '\0'; c++) {
        const char low = *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
        const bool fits = (low >= 'a' && low <= 'z') || (low >= '0' && low <= '9') ||
                          (n > 0 && (low == '.' || low == '-'));
        if (fits)
            out[n++] = low;
    }
    out[n] = '\0';
    if (n == 0)
        snprintf(out, META_STORE_ID_BYTES, "metaserver");
}

void meta_daemon_describe(const struct meta_config *config, struct meta_store_member *out)
{
    struct base_text about;
    name_member(config, out->name);
    describe_self(config, &about);
    snprintf(out->about, sizeof out->about, "%s", about.error == 0 ? base_text_str(&about) : "{}");
    base_text_fini(&about);
}

/* This process, to its store and to its watch alike. */
static char life[META_STORE_ETCD_LIFE_BYTES], former[META_STORE_ETCD_FORMER_BYTES];

struct etcd_settings {
    struct meta_store_etcd_config config;
    struct meta_store_member self;
};

static int set_etcd(struct etcd_settings *s, const struct meta_config *config,
                    struct base_errbuf *err)
{
    const int status = life[0] == '\0' ? meta_store_etcd_draw(life, err) : 0;
    meta_daemon_describe(config, &s->self);
    s->config = (struct meta_store_etcd_config){
        .endpoints = config->store_endpoints,
        .prefix = config->store_prefix,
        .user = config->store_user,
        .password_file = config->store_password_file,
        .ca_file = config->store_ca,
        .cert_file = config->store_cert,
        .key_file = config->store_key,
        .member = s->self.name,
        .about = s->self.about,
        .life = life,
        .former = former,
    };
    return status;
}

int meta_daemon_begin_life(const struct meta_config *config, struct base_errbuf *err)
{
    return config->store_shared ? meta_life_begin(config->data_dir, life, former, err) : 0;
}

int meta_daemon_check_store(const struct meta_config *config, struct base_errbuf *err)
{
    struct etcd_settings s;
    if (!config->store_shared)
        return 0;
    const int status = set_etcd(&s, config, err);
    return status == 0 ? meta_store_etcd_check(&s.config, err) : status;
}

static int open_etcd(const struct meta_config *config, bool to_read, struct meta_store **out,
                     struct base_errbuf *err)
{
    struct etcd_settings s;
    const int status = set_etcd(&s, config, err);
    s.config.to_read = to_read;
    return status == 0 ? meta_store_etcd(&s.config, out, err) : status;
}

int meta_daemon_open_store(const struct meta_config *config, bool to_read, struct meta_store **out,
                           struct base_errbuf *err)
{
    char path[META_CONFIG_TEXT_BYTES + sizeof "/metad.db"];
    if (config->store_shared)
        return open_etcd(config, to_read, out, err);
    snprintf(path, sizeof path, "%s/metad.db", config->data_dir);
    return to_read ? meta_store_sqlite_reader(path, out, err) : meta_store_sqlite(path, out, err);
}

int meta_daemon_open_watch(const struct meta_config *config, struct meta_store_watch **out,
                           struct base_errbuf *err)
{
    struct etcd_settings s;
    *out = NULL;
    if (!config->store_shared)
        return 0;
    const int status = set_etcd(&s, config, err);
    return status == 0 ? meta_store_etcd_watch(&s.config, out, err) : status;
}
