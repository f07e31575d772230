/* SPDX-License-Identifier: Apache-2.0 */
/* That something has changed: by the metaserver's stream of events, or as time goes by. One thread.
 */
#ifndef CTL_NEWS_H
#define CTL_NEWS_H

#include "ctl/options.h"

enum {
    CTL_NEWS_POLL_MS = 2000,    /* where nothing tells of changes */
    CTL_NEWS_LOOK_MS = 10000,   /* where events do, but not of all: of nodes not what they report */
    CTL_NEWS_GATHER_MS = 100,   /* changes that come together are one */
    CTL_NEWS_SILENCE_MS = 15000 /* five heartbeats */
};

struct ctl_news;

/* Of events of these kinds from now on, or of a list that can be watched ("/v1/regions"); kinds
 * NULL: there are none, and time alone tells. 0 or -errno. */
int ctl_news_open(const struct ctl_options *o, const char *kinds, struct ctl_news **out,
                  struct base_errbuf *err);
/* Until something may have changed. 0; or -errno, -ECONNRESET when the stream has ended. */
int ctl_news_wait(struct ctl_news *news, struct base_errbuf *err);
/* After that, of several metaservers: in *news another one's, where the last one has ended its
 * stream and none has refused it. 0; what ctl_news_wait() has returned; or -errno. *err says why it
 * has ended, and then why there is none now. */
int ctl_news_again(const struct ctl_options *o, const char *kinds, struct ctl_news **news,
                   struct base_errbuf *err);
void ctl_news_close(struct ctl_news *news);

#endif
