/* SPDX-License-Identifier: Apache-2.0 */
#include "etcd_wire.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_writer.h"
#include "etcd_client_private.h"

void meta_etcd_bytes(struct base_text *t, const char *name, const char *text)
{
    const size_t length = strlen(text);
    char *encoded = malloc(BASE_BASE64_TEXT(length));
    if (encoded == NULL) {
        t->error = -ENOMEM;
        return;
    }
    base_base64_encode(BASE_BASE64, text, length, encoded);
    base_json_string(t, name, encoded);
    free(encoded);
}

/* 64 bits are a string, in JSON as protobuf has it. */
static void write_number(struct base_text *t, const char *name, uint64_t value)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRIu64, value);
    base_json_string(t, name, digits);
}

void meta_etcd_key_end(struct meta_etcd_key *out, const char *prefix)
{
    snprintf(out->text, sizeof out->text, "%s", prefix);
    out->text[strlen(out->text) - 1] = '/' + 1;
}

void meta_etcd_txn_init(struct meta_etcd_txn *t)
{
    *t = (struct meta_etcd_txn){.ops = 0};
    base_text_init(&t->compare, META_ETCD_TXN_BYTES);
    base_text_init(&t->success, META_ETCD_TXN_BYTES);
}

void meta_etcd_txn_reset(struct meta_etcd_txn *t)
{
    base_text_reset(&t->compare);
    base_text_reset(&t->success);
    t->compares = t->ops = t->grouped = t->deepest = 0;
}

bool meta_etcd_txn_fits(const struct meta_etcd_txn *t)
{
    return (t->compares > t->ops ? t->compares : t->ops) + t->deepest <= META_ETCD_OPS_MAX;
}

void meta_etcd_txn_fini(struct meta_etcd_txn *t)
{
    base_text_fini(&t->compare);
    base_text_fini(&t->success);
}

/* Between values there are commas, which the writer puts where a text does not begin. */
static void write_compare(struct base_text *t, const char *key, const char *target)
{
    base_json_object(t, NULL);
    meta_etcd_bytes(t, "key", key);
    base_json_string(t, "result", "EQUAL");
    base_json_string(t, "target", target);
}

void meta_etcd_compare(struct meta_etcd_txn *t, const char *key, uint64_t mod_revision)
{
    write_compare(&t->compare, key, "MOD");
    write_number(&t->compare, "mod_revision", mod_revision);
    base_json_object_end(&t->compare);
    t->compares++;
}

void meta_etcd_compare_range(struct meta_etcd_txn *t, const char *prefix, uint64_t revision)
{
    struct meta_etcd_key end;
    meta_etcd_key_end(&end, prefix);
    base_json_object(&t->compare, NULL);
    meta_etcd_bytes(&t->compare, "key", prefix);
    meta_etcd_bytes(&t->compare, "range_end", end.text);
    base_json_string(&t->compare, "result", "LESS");
    base_json_string(&t->compare, "target", "MOD");
    write_number(&t->compare, "mod_revision", revision + 1);
    base_json_object_end(&t->compare);
    t->compares++;
}

void meta_etcd_put(struct meta_etcd_txn *t, const char *key, const char *value, uint64_t lease)
{
    struct base_text *s = &t->success;
    base_json_object(s, NULL);
    base_json_object(s, "request_put");
    meta_etcd_bytes(s, "key", key);
    meta_etcd_bytes(s, "value", value);
    if (lease != 0)
        write_number(s, "lease", lease);
    base_json_object_end(s);
    base_json_object_end(s);
    t->ops++;
}

static void write_delete(struct base_text *s, const char *key, const char *end)
{
    base_json_object(s, NULL);
    base_json_object(s, "request_delete_range");
    meta_etcd_bytes(s, "key", key);
    if (end != NULL)
        meta_etcd_bytes(s, "range_end", end);
    base_json_object_end(s);
    base_json_object_end(s);
}

void meta_etcd_delete(struct meta_etcd_txn *t, const char *key)
{
    write_delete(&t->success, key, NULL);
    t->ops++;
}

void meta_etcd_delete_range(struct meta_etcd_txn *t, const char *key, const char *end)
{
    write_delete(&t->success, key, end);
    t->ops++;
}

void meta_etcd_group_begin(struct meta_etcd_txn *t)
{
    base_json_object(&t->success, NULL);
    base_json_object(&t->success, "request_txn");
    base_json_array(&t->success, "success");
    t->ops++;
    t->grouped = 0;
}

void meta_etcd_group_end(struct meta_etcd_txn *t)
{
    base_json_array_end(&t->success);
    base_json_object_end(&t->success);
    base_json_object_end(&t->success);
    if (t->deepest < t->grouped + 1)
        t->deepest = t->grouped + 1;
}

void meta_etcd_delete_if(struct meta_etcd_txn *t, const char *key, const char *value)
{
    struct base_text *s = &t->success;
    t->grouped++;
    base_json_object(s, NULL);
    base_json_object(s, "request_txn");
    base_json_array(s, "compare");
    write_compare(s, key, "VALUE");
    meta_etcd_bytes(s, "value", value);
    base_json_object_end(s);
    base_json_array_end(s);
    base_json_array(s, "success");
    write_delete(s, key, NULL);
    base_json_array_end(s);
    base_json_object_end(s);
    base_json_object_end(s);
}

void meta_etcd_range(struct meta_etcd_txn *t, const char *key)
{
    struct base_text *s = &t->success;
    struct meta_etcd_key end;
    base_json_object(s, NULL);
    base_json_object(s, "request_range");
    meta_etcd_bytes(s, "key", key);
    if (key[strlen(key) - 1] == '/') {
        meta_etcd_key_end(&end, key);
        meta_etcd_bytes(s, "range_end", end.text);
    }
    base_json_object_end(s);
    base_json_object_end(s);
    t->ops++;
}

void meta_etcd_range_newest(struct meta_etcd_txn *t, const char *prefix)
{
    struct base_text *s = &t->success;
    struct meta_etcd_key end;
    meta_etcd_key_end(&end, prefix);
    base_json_object(s, NULL);
    base_json_object(s, "request_range");
    meta_etcd_bytes(s, "key", prefix);
    meta_etcd_bytes(s, "range_end", end.text);
    base_json_string(s, "sort_order", "DESCEND");
    base_json_string(s, "sort_target", "MOD");
    write_number(s, "limit", 1);
    base_json_bool(s, "keys_only", true);
    base_json_object_end(s);
    base_json_object_end(s);
    t->ops++;
}

uint64_t meta_etcd_number(json_t *object, const char *name)
{
    json_t *value = meta_etcd_get(object, name);
    uint64_t number = 0;
    if (json_is_string(value))
        (void)base_parse_u64(json_string_value(value), 0, INT64_MAX, &number);
    else if (json_is_integer(value) && json_integer_value(value) > 0)
        number = (uint64_t)json_integer_value(value);
    return number;
}

int meta_etcd_txn_send(struct meta_etcd_client *c, const struct meta_etcd_txn *t,
                       uint64_t deadline_ns, bool once, struct meta_etcd_answer *out,
                       struct base_errbuf *err)
{
    struct base_text body;
    json_t *root = NULL;
    if (t->compare.error != 0 || t->success.error != 0)
        return base_err(err, t->compare.error != 0 ? t->compare.error : t->success.error,
                        "what is to be stored is too large, or there is no memory for it");
    base_text_init(&body, 2 * META_ETCD_TXN_BYTES + 64);
    base_json_object(&body, NULL);
    base_json_array(&body, "compare");
    base_text_append(&body, base_text_str(&t->compare), t->compare.length);
    base_json_array_end(&body);
    base_json_array(&body, "success");
    base_text_append(&body, base_text_str(&t->success), t->success.length);
    base_json_array_end(&body);
    base_json_object_end(&body);
    const struct meta_etcd_call call = {.path = "/v3/kv/txn",
                                        .body = base_text_str(&body),
                                        .length = body.length,
                                        .deadline_ns = deadline_ns,
                                        .once = once};
    int status = body.error != 0 ? base_err(err, body.error, "out of memory")
                                 : meta_etcd_call(c, &call, &root, err);
    base_text_fini(&body);
    if (status != 0)
        return status;
    *out = (struct meta_etcd_answer){
        .root = root,
        .succeeded = json_is_true(meta_etcd_get(root, "succeeded")),
        .revision = meta_etcd_number(json_object_get(root, "header"), "revision")};
    return 0;
}

/* Bytes in base64, which may be left out; NULL: none, or a NUL is among them. */
static char *decode_bytes(json_t *object, const char *name)
{
    json_t *value = json_object_get(object, name);
    const char *text = value == NULL ? "" : json_string_value(value);
    if (text == NULL)
        return NULL;
    const size_t length = json_string_length(value), room = length / 4 * 3 + 1;
    size_t used = 0;
    char *bytes = malloc(room);
    if (bytes == NULL ||
        base_base64_decode(BASE_BASE64, text, length, bytes, room - 1, &used) != 0 ||
        memchr(bytes, '\0', used) != NULL) {
        free(bytes);
        return NULL;
    }
    bytes[used] = '\0';
    return bytes;
}

bool meta_etcd_kv_read(json_t *json, struct meta_etcd_kv *out)
{
    *out = (struct meta_etcd_kv){.key = decode_bytes(json, "key"),
                                 .value = decode_bytes(json, "value"),
                                 .mod_revision = meta_etcd_number(json, "mod_revision"),
                                 .lease = meta_etcd_number(json, "lease")};
    if (out->key != NULL && out->value != NULL && out->mod_revision > 0)
        return true;
    meta_etcd_kv_fini(out);
    return false;
}

void meta_etcd_kv_fini(struct meta_etcd_kv *kv)
{
    free(kv->key);
    free(kv->value);
    *kv = (struct meta_etcd_kv){.key = NULL};
}

json_t *meta_etcd_answer_kvs(const struct meta_etcd_answer *answer, size_t i)
{
    json_t *all = meta_etcd_get(answer->root, "responses");
    json_t *range = meta_etcd_get(json_array_get(all, i), "response_range");
    return meta_etcd_get(range, "kvs");
}

int meta_etcd_answer_kv(const struct meta_etcd_answer *answer, size_t i, struct meta_etcd_kv *out)
{
    json_t *all = meta_etcd_get(answer->root, "responses");
    json_t *range = meta_etcd_get(json_array_get(all, i), "response_range");
    json_t *first = json_array_get(meta_etcd_get(range, "kvs"), 0);
    *out = (struct meta_etcd_kv){.key = NULL};
    if (range == NULL)
        return -EBADMSG;
    if (first == NULL)
        return 0;
    return meta_etcd_kv_read(first, out) ? 1 : -EBADMSG;
}

int meta_etcd_range_send(struct meta_etcd_client *c, const struct meta_etcd_page *page,
                         uint64_t deadline_ns, json_t **out, struct base_errbuf *err)
{
    struct base_text body;
    base_text_init(&body, 8 * META_ETCD_KEY_BYTES);
    base_json_object(&body, NULL);
    meta_etcd_bytes(&body, "key", page->key);
    meta_etcd_bytes(&body, "range_end", page->end);
    write_number(&body, "limit", page->limit);
    if (page->revision != 0)
        write_number(&body, "revision", page->revision);
    if (page->keys_only)
        base_json_bool(&body, "keys_only", true);
    base_json_object_end(&body);
    const struct meta_etcd_call call = {.path = "/v3/kv/range",
                                        .body = base_text_str(&body),
                                        .length = body.length,
                                        .deadline_ns = deadline_ns,
                                        .large = true};
    const int status = body.error != 0 ? base_err(err, body.error, "out of memory")
                                       : meta_etcd_call(c, &call, out, err);
    base_text_fini(&body);
    return status;
}
