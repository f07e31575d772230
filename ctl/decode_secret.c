/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/resources.h"

int ctl_add_secret(struct base_text *body, const char *secret, struct base_errbuf *err)
{
    json_t *root = json_loadb(base_text_str(body), body->length, 0, NULL);
    int set = json_object_set_new(root, "secret", json_string(secret));
    char *text = set == 0 ? json_dumps(root, JSON_COMPACT) : NULL;
    base_text_reset(body);
    if (text != NULL)
        base_text_append(body, text, strlen(text));
    int status = text != NULL ? body->error : -ENOMEM;
    free(text);
    json_decref(root);
    return status == 0 ? 0 : base_err(err, status, "out of memory");
}

int ctl_hide_secret(struct ctl_resource *resource, struct base_errbuf *err)
{
    json_t *root = json_loads(resource->json, 0, NULL);
    (void)json_object_del(root, "secret");
    char *text = root != NULL ? json_dumps(root, JSON_COMPACT) : NULL;
    json_decref(root);
    if (text == NULL)
        return base_err(err, -ENOMEM, "out of memory");
    free(resource->json);
    resource->json = text;
    explicit_bzero(resource->secret, sizeof resource->secret);
    return 0;
}
