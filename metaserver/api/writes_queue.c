/* SPDX-License-Identifier: Apache-2.0 */
#include "writes_queue.h"

void meta_writes_append(struct meta_writes *q, struct meta_write *w)
{
    w->next = NULL;
    *(q->last == NULL ? &q->first : &q->last->next) = w;
    q->last = w;
    q->count++;
    q->checks += w->kind->check;
    q->registrations += w->kind->gathers;
    q->names += w->kind->of_names;
}

void meta_writes_remove(struct meta_writes *q, struct meta_write *w, struct meta_write *before)
{
    *(before == NULL ? &q->first : &before->next) = w->next;
    if (q->last == w)
        q->last = before;
    q->count--;
    q->checks -= w->kind->check;
    q->registrations -= w->kind->gathers;
    q->names -= w->kind->of_names;
}

void meta_writes_move(struct meta_writes *q, struct meta_write *w, struct meta_write *before,
                      struct meta_write *to)
{
    if (before == to)
        return;
    before->next = w->next;
    if (q->last == w)
        q->last = before;
    w->next = to->next;
    to->next = w;
}
