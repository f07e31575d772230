/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/news.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "ctl/fetch.h"
#include "ctl/resources.h"

enum { PATH_BYTES = 1024, LINE_BYTES = 1 << 20 };

struct ctl_news {
    struct http_client *client; /* NULL: there is no stream */
    struct ctl_target target;
    bool heard; /* of a change that nobody has been told of yet */
    bool over;
    bool of_list; /* and not of events */
    bool lost;    /* it is over, and may be gone on with at another metaserver */
    int status;   /* what it ended with */
    struct base_errbuf why;
};

static int on_line(void *user, const char *line, size_t length)
{
    struct ctl_news *n = user;
    (void)line;
    n->heard |= length > 0; /* an empty one is a heartbeat */
    return 0;
}

/* Lists have not always been watched: metaservers of before say that there is no such parameter. */
static int judge_refusal(struct ctl_news *n, const struct http_answer *a)
{
    const int status = ctl_judge("the metaserver", a->status, a->body, a->body_length, &n->why);
    const struct base_errbuf why = n->why;
    if (!n->of_list || (a->status != 400 && a->status != 404))
        return status;
    return base_err(&n->why, status,
                    "the metaserver does not say when this list changes, as of a version before "
                    "this one: list it without --watch (%.300s)",
                    why.text);
}

static void on_done(void *user, const struct http_answer *a)
{
    struct ctl_news *n = user;
    n->over = true;
    n->lost = a->status < 300 || ctl_is_for_another(a->status);
    if (a->status < 0)
        n->status =
            base_err(&n->why, a->status, "the metaserver cannot be watched: %.300s", a->why);
    else if (a->status >= 300)
        n->status = judge_refusal(n, a);
    else
        n->status = base_err(&n->why, -ECONNRESET, "the stream of changes has ended");
}

/* The stream's path, from where the trail is now. */
static int find_path(const struct ctl_options *o, const char *kinds, char path[PATH_BYTES],
                     struct base_errbuf *err)
{
    uint64_t revision;
    char position[CTL_WORD_BYTES];
    struct http_result result;
    if (kinds[0] == '/') {
        /* Of a list of nobody's life, of which each metaserver says at once that it is another. */
        snprintf(path, PATH_BYTES, "%s?watch=1&position=0000000000000000-0", kinds);
        return 0;
    }
    int status = ctl_fetch_server(o, "/v1/events?limit=1", &result, err);
    if (status != 0)
        return status;
    status = ctl_decode_revision(result.body, result.body_length, &revision, position, err);
    http_result_fini(&result);
    snprintf(path, PATH_BYTES, "/v1/events?watch=1&revision=%" PRIu64, revision);
    if (status == 0)
        status = ctl_add_query(path, PATH_BYTES, "kind", kinds, err);
    return status == 0 ? ctl_add_query(path, PATH_BYTES, "position",
                                       position[0] != '\0' ? position : NULL, err)
                       : status;
}

static int begin_stream(const struct ctl_options *o, const char *kinds, struct ctl_news *n,
                        struct base_errbuf *err)
{
    char path[PATH_BYTES];
    int status = find_path(o, kinds, path, err);
    n->of_list = kinds[0] == '/';
    if (status == 0)
        status = ctl_target_find(o, path, &n->target, err);
    if (status != 0)
        return status;
    struct http_call call = {.timeout_ms = UINT32_MAX,
                             .silence_timeout_ms = CTL_NEWS_SILENCE_MS,
                             .max_response_bytes = LINE_BYTES,
                             .on_line = on_line};
    ctl_aim(&call, &n->target);
    status = http_client_new(&n->client);
    if (status == 0)
        status = http_client_call(n->client, &call, on_done, n, NULL);
    return status == 0 ? 0
                       : base_err(err, status, "%.200s cannot be watched: %s", n->target.url,
                                  strerror(-status));
}

int ctl_news_open(const struct ctl_options *o, const char *kinds, struct ctl_news **out,
                  struct base_errbuf *err)
{
    struct ctl_news *n = calloc(1, sizeof *n);
    if (n == NULL)
        return base_err(err, -ENOMEM, "out of memory");
    const int status = kinds != NULL ? begin_stream(o, kinds, n, err) : 0;
    if (status == 0)
        *out = n;
    else
        ctl_news_close(n);
    return status;
}

/* Runs the stream for so long, or until it tells of something; true: it has. */
static bool run_stream(struct ctl_news *n, int timeout_ms, bool until_heard)
{
    const uint64_t end = base_clock_ns() + (uint64_t)timeout_ms * BASE_NS_PER_MS;
    for (uint64_t now = base_clock_ns(); now < end && !n->over && !(until_heard && n->heard);
         now = base_clock_ns()) {
        struct pollfd p = {.fd = n->client != NULL ? http_client_fd(n->client) : -1,
                           .events = POLLIN};
        (void)poll(&p, 1, (int)((end - now) / BASE_NS_PER_MS) + 1);
        if (n->client != NULL)
            http_client_run(n->client);
    }
    return n->heard;
}

int ctl_news_wait(struct ctl_news *news, struct base_errbuf *err)
{
    const int longest = news->client != NULL ? CTL_NEWS_LOOK_MS : CTL_NEWS_POLL_MS;
    if (run_stream(news, longest, true))
        (void)run_stream(news, CTL_NEWS_GATHER_MS, false);
    if (news->over && !news->heard) {
        *err = news->why;
        return news->status;
    }
    news->heard = false;
    return 0;
}

int ctl_news_again(const struct ctl_options *o, const char *kinds, struct ctl_news **news,
                   struct base_errbuf *err)
{
    struct ctl_news *next = NULL;
    const int was = (*news)->status;
    if (!(*news)->lost || !ctl_server_go_on(o, err->text))
        return was;
    const int status = ctl_news_open(o, kinds, &next, err);
    if (status != 0)
        return status;
    ctl_news_close(*news);
    *news = next;
    return 0;
}

void ctl_news_close(struct ctl_news *news)
{
    if (news->client != NULL)
        http_client_free(news->client);
    free(news);
}
