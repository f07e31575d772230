/* SPDX-License-Identifier: Apache-2.0 */
#include "etcd_client.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json_writer.h"
#include "base/random.h"
#include "etcd_client_private.h"

enum {
    TRY_MS = 1500,   /* of one endpoint, where there is another one */
    ASK_MS = 500,    /* the same when it is asked for the first time, and changes nothing */
    ASK_TIMES = 4,   /* but not less than so many times what answers have taken of late */
    PAUSE_MS = 10,   /* before all are asked again, doubled each time */
    PAUSES_GROW = 4, /* times */
    LEAST_MS = 300,  /* of the time, which is not begun with */
    SHUN_MS = 10000, /* an endpoint that failed is asked last for so long */
    TOKENS = 3,      /* that are asked for on behalf of one request */
};

int meta_etcd_client_new(const struct meta_store_etcd_config *config, struct meta_etcd_client **out,
                         struct base_errbuf *err)
{
    struct meta_etcd_client *c = calloc(1, sizeof *c);
    if (c == NULL || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        free(c);
        return base_err(err, -ENOMEM, "out of memory");
    }
    base_text_init(&c->unary.body, META_ETCD_ANSWER_BYTES);
    base_text_init(&c->stream.body, META_ETCD_LINE_BYTES);
    c->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    c->multi = curl_multi_init();
    int status = meta_etcd_read_settings(c, config, err);
    if (status == 0 && (c->stop_fd < 0 || c->multi == NULL))
        status = base_err(err, -ENOMEM, "no descriptor or no memory for a client of etcd");
    if (status != 0) {
        meta_etcd_client_free(c);
        return status;
    }
    *out = c;
    return 0;
}

void meta_etcd_client_free(struct meta_etcd_client *c)
{
    if (c == NULL)
        return;
    meta_etcd_transfer_fini(c, &c->unary);
    meta_etcd_transfer_fini(c, &c->stream);
    curl_multi_cleanup(c->multi);
    if (c->stop_fd >= 0)
        close(c->stop_fd);
    explicit_bzero(c->token, sizeof c->token);
    free(c);
    curl_global_cleanup();
}

void meta_etcd_forget_cluster(struct meta_etcd_client *c)
{
    c->cluster[0] = '\0';
}

const char *meta_etcd_endpoint(const struct meta_etcd_client *c)
{
    return c->url[c->good];
}

void meta_etcd_stop(struct meta_etcd_client *c)
{
    const uint64_t one = 1;
    atomic_store(&c->stopped, true);
    (void)!write(c->stop_fd, &one, sizeof one);
}

bool meta_etcd_stopped(const struct meta_etcd_client *c)
{
    return atomic_load(&c->stopped);
}

void meta_etcd_resume(struct meta_etcd_client *c)
{
    uint64_t count;
    (void)!read(c->stop_fd, &count, sizeof count);
    atomic_store(&c->stopped, false);
}

void meta_etcd_wait(struct meta_etcd_client *c, uint64_t wait_ns)
{
    const uint64_t end_ns = base_clock_ns() + wait_ns;
    for (uint64_t now = base_clock_ns(); now < end_ns; now = base_clock_ns()) {
        const uint64_t ms = (end_ns - now) / BASE_NS_PER_MS + 1;
        struct pollfd stop = {.fd = c->stop_fd, .events = POLLIN};
        if (meta_etcd_stopped(c))
            return;
        poll(&stop, 1, ms < 60000 ? (int)ms : 60000);
    }
}

/* One request to one endpoint. */
static enum meta_etcd_verdict try_endpoint(struct meta_etcd_client *c, uint32_t endpoint,
                                           const struct meta_etcd_call *call, uint64_t timeout_ns,
                                           json_t **out, int *status, struct base_errbuf *err)
{
    struct meta_etcd_transfer *t = &c->unary;
    enum meta_etcd_verdict verdict = META_ETCD_REFUSED;
    *status = meta_etcd_transfer_begin(c, t, c->url[endpoint], call->path, call->body, call->length,
                                       timeout_ns, META_ETCD_ANSWER_BYTES);
    if (*status != 0) {
        base_err(err, *status, "out of memory");
    } else if ((*status = meta_etcd_transfer_wait(c, t, UINT64_MAX)) != 0) {
        base_err(err, *status, "stopped");
    } else {
        verdict = meta_etcd_judge(c, t, endpoint, out, status, err);
    }
    meta_etcd_transfer_end(c, t);
    if (verdict == META_ETCD_DONE || verdict == META_ETCD_REFUSED || verdict == META_ETCD_TOKEN)
        c->failed_ns[endpoint] = 0;
    else
        c->failed_ns[endpoint] = base_clock_ns();
    return verdict;
}

/* The token of our user, from this endpoint. */
static int renew_token(struct meta_etcd_client *c, uint32_t endpoint, uint64_t timeout_ns,
                       struct base_errbuf *err)
{
    char password[META_ETCD_SECRET_BYTES];
    struct base_text body;
    json_t *answer = NULL;
    int status = meta_etcd_read_password(c, password, err);
    c->token[0] = '\0';
    if (status != 0)
        return status;
    base_text_init(&body, 8 * META_ETCD_SECRET_BYTES);
    base_json_object(&body, NULL);
    base_json_string(&body, "name", c->user);
    base_json_string(&body, "password", password);
    base_json_object_end(&body);
    explicit_bzero(password, sizeof password);
    const struct meta_etcd_call call = {
        .path = "/v3/auth/authenticate", .body = base_text_str(&body), .length = body.length};
    const enum meta_etcd_verdict verdict =
        try_endpoint(c, endpoint, &call, timeout_ns, &answer, &status, err);
    if (body.data != NULL)
        explicit_bzero(body.data, body.capacity);
    base_text_fini(&body);
    const char *token = json_string_value(json_object_get(answer, "token"));
    if (verdict == META_ETCD_DONE && token != NULL && strlen(token) < sizeof c->token &&
        strpbrk(token, "\r\n") == NULL) {
        snprintf(c->token, sizeof c->token, "%s", token);
        status = 0;
    } else if (verdict == META_ETCD_DONE) {
        status = base_err(err, -EBADMSG, "etcd at %.200s gives no token that can be used",
                          c->url[endpoint]);
    } else if (strstr(err->text, "authentication is not enabled") != NULL) {
        status = 0; /* nothing has to be shown */
    }
    json_decref(answer);
    return status;
}

/* The request, with a token if one is wanted. */
static enum meta_etcd_verdict ask_endpoint(struct meta_etcd_client *c, uint32_t endpoint,
                                           const struct meta_etcd_call *call, uint64_t timeout_ns,
                                           json_t **out, int *status, struct base_errbuf *err)
{
    enum meta_etcd_verdict verdict = META_ETCD_TOKEN;
    const bool has_user = c->user[0] != '\0';
    for (int i = 0; i < TOKENS && verdict == META_ETCD_TOKEN; i++) {
        if (has_user && (c->token[0] == '\0' || i > 0)) {
            *status = renew_token(c, endpoint, timeout_ns, err);
            if (*status != 0)
                return *status == -EBUSY ? META_ETCD_NOT_DONE : META_ETCD_REFUSED;
        }
        verdict = try_endpoint(c, endpoint, call, timeout_ns, out, status, err);
        if (verdict == META_ETCD_TOKEN && !has_user)
            return META_ETCD_REFUSED;
    }
    return verdict == META_ETCD_TOKEN ? META_ETCD_REFUSED : verdict;
}

/* The endpoint to ask after i others of this round: the good one, then those that did not fail of
 * late, then the others. */
static uint32_t choose_endpoint(const struct meta_etcd_client *c, uint32_t asked, uint64_t now)
{
    for (int shunned = 0; shunned < 2; shunned++)
        for (uint32_t i = 0; i < c->count; i++) {
            const uint32_t endpoint = (c->good + i) % c->count;
            const bool fails = c->failed_ns[endpoint] != 0 &&
                               now - c->failed_ns[endpoint] < SHUN_MS * BASE_NS_PER_MS;
            if ((asked & 1u << endpoint) == 0 && fails == (shunned == 1))
                return endpoint;
        }
    return c->count;
}

/* A while that differs from client to client; false: it was stopped. */
static bool pause_calls(struct meta_etcd_client *c, unsigned rounds)
{
    uint16_t random = 0;
    const unsigned most = PAUSE_MS << (rounds < PAUSES_GROW ? rounds : PAUSES_GROW);
    (void)base_random_bytes(&random, sizeof random);
    meta_etcd_wait(c, (most / 2 + random % most) * BASE_NS_PER_MS);
    return !meta_etcd_stopped(c);
}

/* What is left of the time is not for one endpoint alone, and not for what is to be found out if it
 * is not known whether it was done. */
static uint64_t time_of_try(const struct meta_etcd_client *c, const struct meta_etcd_call *call,
                            unsigned rounds, uint64_t now)
{
    uint64_t most = call->deadline_ns - now, one = TRY_MS * BASE_NS_PER_MS;
    if (call->once || call->large)
        most /= 2;
    if (!call->once && rounds == 0 && !c->down && ASK_TIMES * c->usual_ns < one)
        one = ASK_TIMES * c->usual_ns < ASK_MS * BASE_NS_PER_MS ? ASK_MS * BASE_NS_PER_MS
                                                                : ASK_TIMES * c->usual_ns;
    if (!call->large && (c->count > 1 || c->down) && most > one)
        most = one;
    return most;
}

/* The longest that an answer has taken, of which an eighth is forgotten with each that is quicker.
 */
static void note_time(struct meta_etcd_client *c, uint64_t took_ns)
{
    c->usual_ns -= c->usual_ns / 8;
    if (c->usual_ns < took_ns)
        c->usual_ns = took_ns;
}

/* Of several that fail, the one that answers too late says more than one that is down: it lacks the
 * others. */
static void say_round(const struct meta_etcd_client *c, const struct base_errbuf *worst,
                      struct base_errbuf *err)
{
    if (c->count > 1 && worst->text[0] != '\0')
        base_err(err, 0,
                 "no endpoint of %u does it: %.300s (most of etcd's members have to run: "
                 "`etcdctl endpoint status --cluster`)",
                 c->count, worst->text);
}

/* Each endpoint once. */
static enum meta_etcd_verdict ask_round(struct meta_etcd_client *c,
                                        const struct meta_etcd_call *call, unsigned rounds,
                                        json_t **out, int *status, struct base_errbuf *err)
{
    enum meta_etcd_verdict verdict = META_ETCD_NOT_DONE;
    struct base_errbuf worst = {""};
    uint32_t asked = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        const uint64_t now = base_clock_ns();
        if (now >= call->deadline_ns || meta_etcd_stopped(c))
            break;
        const uint32_t endpoint = choose_endpoint(c, asked, now);
        verdict =
            ask_endpoint(c, endpoint, call, time_of_try(c, call, rounds, now), out, status, err);
        asked |= 1u << endpoint;
        if (verdict == META_ETCD_DONE || verdict == META_ETCD_REFUSED) {
            c->good = endpoint;
            note_time(c, base_clock_ns() - now);
            return verdict;
        }
        if (verdict == META_ETCD_NOT_KNOWN && call->once) {
            c->good = (endpoint + 1) % c->count;
            return verdict;
        }
        if (*status == -EBUSY && (worst.text[0] == '\0' || verdict == META_ETCD_NOT_KNOWN))
            worst = *err;
    }
    if (*status == -EBUSY)
        say_round(c, &worst, err);
    return verdict;
}

int meta_etcd_call(struct meta_etcd_client *c, const struct meta_etcd_call *call, json_t **out,
                   struct base_errbuf *err)
{
    enum meta_etcd_verdict verdict = META_ETCD_NOT_DONE;
    int status =
        base_err(err, -EBUSY, "etcd at %.200s has not answered in time", meta_etcd_endpoint(c));
    const bool was_down = c->down;
    for (unsigned rounds = 0; !meta_etcd_stopped(c); rounds++) {
        const struct base_errbuf before = *err;
        verdict = ask_round(c, call, rounds, out, &status, err);
        /* What the end of the time cut off says less than what was found until then. */
        if (rounds > 0 && status == -EBUSY && base_clock_ns() >= call->deadline_ns)
            *err = before;
        if (verdict == META_ETCD_DONE || verdict == META_ETCD_REFUSED) {
            c->down = false;
            return verdict == META_ETCD_DONE ? 0 : status;
        }
        if (status == -EXDEV || status == -EMSGSIZE || status == -EPROTO ||
            (verdict == META_ETCD_NOT_KNOWN && call->once))
            break;
        c->down = base_clock_ns() + LEAST_MS * BASE_NS_PER_MS >= call->deadline_ns;
        if (c->down || was_down || !pause_calls(c, rounds))
            break;
    }
    c->down |= was_down;
    if (meta_etcd_stopped(c))
        return base_err(err, -ECANCELED, "stopped");
    return verdict == META_ETCD_NOT_KNOWN && call->once ? -ETIMEDOUT : status;
}

/* ---- the stream */

int meta_etcd_stream_open(struct meta_etcd_client *c, const char *path, const char *body,
                          struct base_errbuf *err)
{
    meta_etcd_stream_close(c);
    c->stream_endpoint = c->good;
    const int status = meta_etcd_transfer_begin(c, &c->stream, c->url[c->good], path, body,
                                                strlen(body), 0, META_ETCD_LINE_BYTES);
    return status == 0 ? 0 : base_err(err, status, "out of memory");
}

void meta_etcd_stream_close(struct meta_etcd_client *c)
{
    meta_etcd_transfer_end(c, &c->stream);
    c->stream_used = c->stream_whole = 0;
}

bool meta_etcd_stream_is_elsewhere(const struct meta_etcd_client *c)
{
    return c->stream_endpoint != c->good;
}

/* What is left of the body begins at its beginning again. */
static void drop_used(struct meta_etcd_client *c)
{
    struct base_text *t = &c->stream.body;
    if (c->stream_used == 0)
        return;
    memmove(t->data, t->data + c->stream_used, t->length - c->stream_used + 1);
    t->length -= c->stream_used;
    c->stream_used = 0;
}

/* The stream is over: why. */
static int say_end(struct meta_etcd_client *c, struct base_errbuf *err)
{
    json_t *root = NULL;
    int status = -EBUSY;
    const enum meta_etcd_verdict verdict =
        meta_etcd_judge(c, &c->stream, c->stream_endpoint, &root, &status, err);
    json_decref(root);
    if (verdict == META_ETCD_TOKEN)
        c->token[0] = '\0';
    if (verdict == META_ETCD_DONE || status == -EBADMSG) /* a bare close, or in between */
        return base_err(err, -EBUSY, "etcd at %.200s has ended the watch",
                        c->url[c->stream_endpoint]);
    return status;
}

/* What a line has as its "result". An error ends the stream; in 3.4 it is called otherwise than in
 * 3.6, and when the stream was refused it stands alone. */
static int take_line(struct meta_etcd_client *c, const char *line, size_t length, json_t **out,
                     struct base_errbuf *err)
{
    const char *url = c->url[c->stream_endpoint];
    json_error_t error;
    json_t *root = json_loadb(line, length, JSON_REJECT_DUPLICATES, &error);
    json_t *result = json_object_get(root, "result"), *said = json_object_get(root, "error");
    const char *message = json_string_value(json_object_get(said, "message"));
    int status = 0;
    if (json_is_object(result)) {
        if (meta_etcd_check_cluster(c, url, result, &status, err)) {
            *out = json_incref(result);
            status = 1;
        }
    } else if (message != NULL || json_object_get(root, "message") != NULL) {
        json_t *code = meta_etcd_get(said, "grpc_code");
        if (message == NULL)
            message = json_string_value(json_object_get(root, "message"));
        if (code == NULL)
            code = json_object_get(json_is_object(said) ? said : root, "code");
        if (message == NULL)
            message = "";
        if (meta_etcd_judge_error(url, json_integer_value(code), message, &status, err) ==
            META_ETCD_TOKEN)
            c->token[0] = '\0';
    } else {
        status = base_err(err, -EBADMSG, "a watch of etcd at %.200s gives what is none", url);
    }
    json_decref(root);
    return status;
}

int meta_etcd_stream_next(struct meta_etcd_client *c, uint64_t wait_ns, json_t **out,
                          struct base_errbuf *err)
{
    struct meta_etcd_transfer *t = &c->stream;
    const uint64_t until_ns = base_clock_ns() + wait_ns;
    if (!t->added)
        return base_err(err, -EBUSY, "there is no watch");
    for (;;) {
        char *line = t->body.data != NULL ? t->body.data + c->stream_used : NULL;
        const size_t left = t->body.length - c->stream_used, seen = c->stream_whole;
        char *end = line != NULL ? memchr(line + seen, '\n', left - seen) : NULL;
        c->stream_whole = end == NULL ? left : 0;
        if (end != NULL) {
            c->stream_used += (size_t)(end - line) + 1;
            if (end == line)
                continue;
            return take_line(c, line, (size_t)(end - line), out, err);
        }
        drop_used(c);
        if (t->over)
            return say_end(c, err);
        const int status = meta_etcd_transfer_wait(c, t, until_ns);
        if (status == -ECANCELED)
            return base_err(err, status, "stopped");
        if (status == -EAGAIN && base_clock_ns() >= until_ns)
            return 0;
    }
}
