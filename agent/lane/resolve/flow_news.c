/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve/flow_news.h"

#include "lane_state.h"
#include "resolve/endpoint.h"
#include "resolve/flow.h"

void lane_flow_notify(struct lane *l, struct flow *f)
{
    f->news_again = 1;
    if (f->news != NEWS_NONE || f->parked.count == 0)
        return;
    f->news = NEWS_COMES;
    TAILQ_INSERT_TAIL(&l->news, f, by_news);
    l->news_count++;
}

void lane_flow_take_news(struct lane *l, struct flow *f)
{
    if (f->news == NEWS_NONE)
        return;
    f->news = NEWS_NONE;
    TAILQ_REMOVE(&l->news, f, by_news);
    l->news_count--;
}

void lane_flows_notify(struct lane *l, uint32_t slot)
{
    struct flow *own = l->peers[slot].flow;
    for (struct flow *f = own; f != NULL; f = f->siblings)
        lane_flow_notify(l, f);
    for (struct flow *f = own != NULL ? own->twin : NULL; f != NULL; f = f->siblings)
        lane_flow_notify(l, f);
    if (l->quarantined.count == 0)
        return;
    for (struct flow *f = *quarantined_bucket(&l->quarantined, slot); f != NULL;
         f = f->next_quarantined)
        if (f->peer_slot == slot)
            lane_flow_notify(l, f);
}
