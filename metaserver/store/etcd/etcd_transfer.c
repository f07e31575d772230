/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "etcd_client_private.h"

enum {
    CONNECT_MS = 1000, /* a lost SYN is repeated after this: the next endpoint is quicker */
    KEEPALIVE_S = 5,
};

static size_t take_bytes(char *bytes, size_t one, size_t length, void *arg)
{
    struct meta_etcd_transfer *t = arg;
    (void)one; /* always 1 */
    return base_text_append(&t->body, bytes, length) == 0 ? length : CURL_WRITEFUNC_ERROR;
}

static size_t give_bytes(char *bytes, size_t one, size_t room, void *arg)
{
    struct meta_etcd_transfer *t = arg;
    const size_t left = t->length - t->sent, length = left < room ? left : room;
    (void)one; /* always 1 */
    memcpy(bytes, t->sends + t->sent, length);
    t->sent += length;
    return length;
}

/* For sending it again. */
static int refuse_rewind(void *arg, curl_off_t offset, int origin)
{
    (void)arg, (void)offset, (void)origin;
    return CURL_SEEKFUNC_FAIL;
}

static int set_body(struct meta_etcd_transfer *t, const char *body, size_t length, bool copy)
{
    CURLcode e = curl_easy_setopt(t->easy, CURLOPT_POST, 1L);
    e |= curl_easy_setopt(t->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)length);
    if (copy) {
        e |= curl_easy_setopt(t->easy, CURLOPT_COPYPOSTFIELDS, body);
    } else {
        t->sends = body;
        t->length = length;
        t->sent = 0;
        e |= curl_easy_setopt(t->easy, CURLOPT_READFUNCTION, give_bytes);
        e |= curl_easy_setopt(t->easy, CURLOPT_READDATA, t);
        e |= curl_easy_setopt(t->easy, CURLOPT_SEEKFUNCTION, refuse_rewind);
    }
    return e == CURLE_OK ? 0 : -ENOMEM;
}

static int add_header(struct meta_etcd_transfer *t, const char *line)
{
    struct curl_slist *longer = curl_slist_append(t->headers, line);
    if (longer == NULL)
        return -ENOMEM;
    t->headers = longer;
    return 0;
}

static int set_headers(const struct meta_etcd_client *c, struct meta_etcd_transfer *t)
{
    char line[META_ETCD_TOKEN_BYTES + 32];
    int status = add_header(t, "Content-Type: application/json");
    if (status == 0) /* libcurl waits a second for "100 Continue" before larger bodies */
        status = add_header(t, "Expect:");
    if (status == 0 && c->token[0] != '\0') {
        snprintf(line, sizeof line, "Authorization: %s", c->token);
        status = add_header(t, line);
        explicit_bzero(line, sizeof line);
    }
    if (status == 0 && curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, t->headers) != CURLE_OK)
        status = -ENOMEM;
    return status;
}

static int set_tls(const struct meta_etcd_client *c, CURL *easy)
{
    CURLcode e = CURLE_OK;
    if (c->ca_file[0] != '\0')
        e |= curl_easy_setopt(easy, CURLOPT_CAINFO, c->ca_file);
    if (c->cert_file[0] != '\0') {
        e |= curl_easy_setopt(easy, CURLOPT_SSLCERT, c->cert_file);
        e |= curl_easy_setopt(easy, CURLOPT_SSLKEY, c->key_file);
    }
    return e == CURLE_OK ? 0 : -ENOMEM;
}

static int set_options(const struct meta_etcd_client *c, struct meta_etcd_transfer *t,
                       uint64_t timeout_ns)
{
    CURL *easy = t->easy;
    const long ms = timeout_ns == 0 ? 0 : (long)(timeout_ns / BASE_NS_PER_MS) + 1;
    CURLcode e = CURLE_OK;
    e |= curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    e |= curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    e |= curl_easy_setopt(easy, CURLOPT_PROXY, ""); /* nor one from the environment */
    e |= curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    e |= curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L); /* no end waits for a name server */
    e |= curl_easy_setopt(easy, CURLOPT_USERAGENT, "kedge/" KEDGE_VERSION);
    e |= curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                          ms == 0 || ms > CONNECT_MS ? (long)CONNECT_MS : ms);
    e |= curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, ms);
    e |= curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    e |= curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, (long)KEEPALIVE_S);
    e |= curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, (long)KEEPALIVE_S);
    e |= curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, t->why);
    e |= curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_bytes);
    e |= curl_easy_setopt(easy, CURLOPT_WRITEDATA, t);
    e |= curl_easy_setopt(easy, CURLOPT_PRIVATE, t);
    return e == CURLE_OK ? set_tls(c, easy) : -ENOMEM;
}

int meta_etcd_transfer_begin(struct meta_etcd_client *c, struct meta_etcd_transfer *t,
                             const char *url, const char *path, const char *body, size_t length,
                             uint64_t timeout_ns, size_t max_bytes)
{
    char whole[META_ETCD_URL_BYTES + 64];
    meta_etcd_transfer_end(c, t);
    if (t->easy == NULL)
        t->easy = curl_easy_init();
    if (t->easy == NULL)
        return -ENOMEM;
    t->body.max = max_bytes;
    t->why[0] = '\0';
    t->over = false;
    snprintf(whole, sizeof whole, "%s%s", url, path);
    int status = set_options(c, t, timeout_ns);
    if (status == 0)
        status = set_headers(c, t);
    if (status == 0)
        status = set_body(t, body, length, t == &c->stream);
    if (status == 0 && (curl_easy_setopt(t->easy, CURLOPT_URL, whole) != CURLE_OK ||
                        curl_multi_add_handle(c->multi, t->easy) != CURLM_OK))
        status = -ENOMEM;
    t->added = status == 0;
    if (status != 0)
        meta_etcd_transfer_end(c, t);
    return status;
}

/* Notes which transfers are over. */
static void note_ends(struct meta_etcd_client *c)
{
    CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(c->multi, &left)) != NULL) {
        struct meta_etcd_transfer *t = NULL;
        if (message->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&t);
        t->over = true;
        t->code = message->data.result;
    }
}

int meta_etcd_transfer_wait(struct meta_etcd_client *c, struct meta_etcd_transfer *t,
                            uint64_t until_ns)
{
    const bool is_stream = t == &c->stream;
    const size_t had = t->body.length;
    for (;;) {
        struct curl_waitfd stop = {.fd = c->stop_fd, .events = CURL_WAIT_POLLIN};
        int running = 0;
        if (atomic_load(&c->stopped))
            return -ECANCELED;
        curl_multi_perform(c->multi, &running);
        note_ends(c);
        if (t->over)
            return 0;
        const uint64_t now = base_clock_ns();
        if (now >= until_ns || (is_stream && t->body.length > had))
            return -EAGAIN;
        const uint64_t ms = (until_ns - now) / BASE_NS_PER_MS + 1;
        curl_multi_poll(c->multi, &stop, 1, ms < 1000 ? (int)ms : 1000, NULL);
    }
}

void meta_etcd_transfer_end(struct meta_etcd_client *c, struct meta_etcd_transfer *t)
{
    if (t->added)
        curl_multi_remove_handle(c->multi, t->easy);
    t->added = false;
    if (t->easy != NULL)
        curl_easy_reset(t->easy); /* connections stay */
    curl_slist_free_all(t->headers);
    t->headers = NULL;
    base_text_reset(&t->body);
}

void meta_etcd_transfer_fini(struct meta_etcd_client *c, struct meta_etcd_transfer *t)
{
    meta_etcd_transfer_end(c, t);
    curl_easy_cleanup(t->easy);
    base_text_fini(&t->body);
}
