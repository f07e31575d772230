/* SPDX-License-Identifier: Apache-2.0 */
/* A metaserver whose store takes its time. One for each test program. */
#ifndef TESTS_UNIT_METASERVER_SLOW_DISK_H
#define TESTS_UNIT_METASERVER_SLOW_DISK_H

#include "proxy_world.h"

#define NODE(incarnation, gid)                                                                     \
    "{\"incarnation\":" #incarnation ",\"endpoints\":[{\"gid\":\"fd00::" #gid "\",\"pool\":1,"     \
    "\"transports\":[\"dc\"],\"dct_number\":7,\"dc_key\":\"5be0cd19137e2179\",\"mtu\":4096}]}"

/* The disk stands still: what is asked from now on comes later, into reply[]. */
static inline void stop_disk(void)
{
    world.store.stands_still = true;
}

static inline void start_disk(void)
{
    world.store.stands_still = false;
    settle();
}

/* Asks, and finds that the answer comes later. */
static inline void ask_slowly(const char *method, const char *path, const char *json)
{
    ck_assert_int_eq(begin_to_ask(method, path, json), META_SERVICE_LATER);
    awaited = NULL;
}

/* Asks, and must be answered at once. */
static inline int ask_now(const char *method, const char *path, const char *json)
{
    const int status = begin_to_ask(method, path, json);
    ck_assert_int_ne(status, META_SERVICE_LATER);
    meta_service_advance(&s, now);
    return status;
}

static inline bool replied(int which, int status, const char *text)
{
    ck_assert_int_lt(which, replies);
    ck_assert_msg(reply[which].status == status && strstr(reply[which].text, text) != NULL,
                  "%d: %d %s", which, reply[which].status, reply[which].text);
    return true;
}

#endif
