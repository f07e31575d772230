/* SPDX-License-Identifier: Apache-2.0 */
#include "inbox.h"

#include <stddef.h>

#include "process.h"

void play_inbox_init(struct play_inbox *inbox, struct play_process *process)
{
    *inbox = (struct play_inbox){.process = process};
    inbox->last = &inbox->first;
}

void play_inbox_put(struct play_inbox *inbox, struct play_post *post)
{
    if (post->queued)
        return;
    post->queued = true;
    post->next = NULL;
    post->link = inbox->last;
    *inbox->last = post;
    inbox->last = &post->next;
    play_process_wake(inbox->process);
}

void play_inbox_take_back(struct play_inbox *inbox, struct play_post *post)
{
    if (!post->queued)
        return;
    post->queued = false;
    *post->link = post->next;
    if (post->next != NULL)
        post->next->link = post->link;
    else
        inbox->last = post->link;
}

bool play_inbox_step(struct play_inbox *inbox, uint64_t until_ns)
{
    while (inbox->first == NULL) {
        if (play_now_ns() >= until_ns)
            return false;
        inbox->waits = true;
        (void)play_process_wait(until_ns);
        inbox->waits = false;
    }
    struct play_post *post = inbox->first;
    play_inbox_take_back(inbox, post);
    post->run(post->user);
    if (inbox->turned != NULL)
        inbox->turned(inbox->user);
    return true;
}
