/* SPDX-License-Identifier: Apache-2.0 */
/* rdmactl version: of this program, and of the metaserver that it asks. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json_writer.h"
#include "base/version.h"
#include "ctl/commands.h"
#include "ctl/decode.h"
#include "ctl/fetch.h"
#include "ctl/json.h"

enum { OUTPUT_BYTES = 1 << 16 };

static void print_json(const struct http_result *server)
{
    struct base_text t;
    struct base_errbuf err;
    base_text_init(&t, OUTPUT_BYTES);
    ctl_json_begin(&t);
    base_json_object(&t, "client");
    base_json_string(&t, "version", KEDGE_VERSION);
    base_json_string(&t, "commit", base_version_commit());
    base_json_object_end(&t);
    base_json_raw(&t, "server", server != NULL ? server->body : "null");
    base_json_object_end(&t);
    (void)ctl_json_finish(&t, &err);
}

static void print_server(const struct ctl_options *o, const struct ctl_pairs *pairs)
{
    const char *version = ctl_pairs_find(pairs, "version");
    const char *commit = ctl_pairs_find(pairs, "commit");
    const bool known = commit != NULL && commit[0] != '\0' && strcmp(commit, "-") != 0;
    printf("server  %s%s%s%s at %s\n", version != NULL ? version : "unknown", known ? " (" : "",
           known ? commit : "", known ? ")" : "", ctl_server_asked(o));
}

int ctl_version(const struct ctl_options *o, struct base_errbuf *err)
{
    struct http_result result;
    struct ctl_pairs pairs;
    int status = ctl_fetch_server(o, "/version", &result, err);
    if (status == 0) {
        status = ctl_decode_pairs(result.body, result.body_length, &pairs, err);
        if (status != 0)
            http_result_fini(&result);
    }
    if (o->json)
        print_json(status == 0 ? &result : NULL);
    else
        printf("client  %s\n", base_version_text());
    if (status != 0)
        return status;
    if (!o->json)
        print_server(o, &pairs);
    ctl_pairs_fini(&pairs);
    http_result_fini(&result);
    return 0;
}
