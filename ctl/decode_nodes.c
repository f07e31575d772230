/* SPDX-License-Identifier: Apache-2.0 */
/* What operators say of a node: edited, as the REST interface wants it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ctl/nodes.h"
#include "decode_private.h"

/* "zone=a" sets, "zone-" takes away. */
static int edit_label(json_t *labels, const char *word, struct base_errbuf *err)
{
    char key[CTL_WORD_BYTES];
    size_t length = strcspn(word, "="), end = strlen(word);
    bool sets = word[length] == '=';
    if (!sets && end > 0 && word[end - 1] == '-')
        length = end - 1;
    else if (!sets)
        length = 0;
    if (length == 0 || length >= sizeof key)
        return base_err(err, -EINVAL,
                        "\"%.60s\" is no label: say KEY=VALUE to set one, KEY- to take it away",
                        word);
    memcpy(key, word, length);
    key[length] = '\0';
    if (!sets)
        (void)json_object_del(labels, key);
    else if (json_object_set_new(labels, key, json_string(word + length + 1)) != 0)
        return base_err(err, -EINVAL, "the label %.60s is not UTF-8", key);
    return 0;
}

static int edit_labels(json_t *root, const struct ctl_node_edit *edit, struct base_errbuf *err)
{
    int status = 0;
    json_t *labels = json_object_get(root, "labels");
    if (!json_is_object(labels)) {
        labels = json_object();
        json_object_set_new(root, "labels", labels);
    }
    for (size_t i = 0; i < edit->word_count && status == 0; i++)
        status = edit_label(labels, edit->words[i], err);
    return status;
}

/* What is not said stays as it is: a drain goes on, with its grace and its reason, until the node
 * is uncordoned. */
static int edit_state(json_t *root, const struct ctl_node_edit *edit, struct base_errbuf *err)
{
    const bool takes = edit->what == CTL_NODE_UNCORDON;
    const bool was_cordoned = json_is_true(json_object_get(root, "cordoned"));
    const bool was_draining = json_is_true(json_object_get(root, "draining"));
    const bool drains = edit->what == CTL_NODE_DRAIN || (!takes && was_draining);
    json_object_set_new(root, "cordoned", json_boolean(!takes));
    json_object_set_new(root, "draining", json_boolean(drains));
    if (!was_draining || takes)
        json_object_del(root, "grace_ms");
    if (takes)
        json_object_del(root, "reason");
    else if (!edit->reason_said && was_cordoned && json_object_get(root, "reason") != NULL)
        ; /* who cordons once more without a word leaves what was said first */
    else if (json_object_set_new(root, "reason", json_string(edit->reason)) != 0)
        return base_err(err, -EINVAL, "--reason is not UTF-8");
    if (edit->what == CTL_NODE_DRAIN && edit->grace_said)
        json_object_set_new(root, "grace_ms", json_integer((json_int_t)edit->grace_ms));
    return 0;
}

int ctl_edit_node(const char *body, size_t bytes, const struct ctl_node_edit *edit,
                  struct base_text *out, uint64_t *revision, bool *drains, struct base_errbuf *err)
{
    json_t *root;
    int status = ctl_json_body(body, bytes, &root, revision, err);
    if (status != 0)
        return status;
    status =
        edit->what == CTL_NODE_LABEL ? edit_labels(root, edit, err) : edit_state(root, edit, err);
    if (status == 0)
        status = ctl_json_dump(root, out, err);
    if (status == 0)
        *drains = json_is_true(json_object_get(root, "draining"));
    json_decref(root);
    return status;
}
