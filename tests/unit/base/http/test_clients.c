/* SPDX-License-Identifier: Apache-2.0 */
/* What one address may take of a server. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/un.h>

#include "../../check_main.h"
#include "base/clock.h"
#include "clients.h"

static struct http_clients c;

static struct sockaddr_storage address(const char *text)
{
    struct sockaddr_storage out = {.ss_family = AF_INET};
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&out;
    struct sockaddr_in *v4 = (struct sockaddr_in *)&out;
    if (inet_pton(AF_INET, text, &v4->sin_addr) == 1)
        return out;
    out.ss_family = AF_INET6;
    ck_assert_int_eq(inet_pton(AF_INET6, text, &v6->sin6_addr), 1);
    return out;
}

static struct sockaddr_storage number(uint32_t n)
{
    struct sockaddr_storage out = {.ss_family = AF_INET};
    ((struct sockaddr_in *)&out)->sin_addr.s_addr = htonl(n);
    return out;
}

/* As the server does it. */
static struct http_client_entry *join(const struct sockaddr_storage *from)
{
    uint8_t key[16];
    return http_client_key(from, key) ? http_clients_connect(&c, key) : NULL;
}

static bool has_room(const struct sockaddr_storage *from)
{
    uint8_t key[16];
    return !http_client_key(from, key) || http_clients_has_room(&c, http_clients_find(&c, key));
}

static void begin(unsigned connections, unsigned per_second, unsigned burst, uint32_t room)
{
    c = (struct http_clients){
        .max_connections = connections, .per_second = per_second, .burst = burst};
    ck_assert_int_eq(http_clients_init(&c, room), 0);
}

START_TEST(each_address_has_as_many_connections_as_are_allowed)
{
    begin(2, 0, 0, 16);
    struct sockaddr_storage a = address("10.0.0.1"), b = address("fd00::1"),
                            mapped = address("::ffff:10.0.0.1");
    struct sockaddr_storage local = {.ss_family = AF_UNIX};
    struct http_client_entry *one = join(&a);
    ck_assert(has_room(&a));
    ck_assert_ptr_eq(join(&mapped), one);
    ck_assert(!has_room(&a) && !has_room(&mapped));
    ck_assert(has_room(&b));
    ck_assert_ptr_ne(join(&b), one);
    http_clients_disconnect(&c, one);
    ck_assert(has_room(&a));
    ck_assert(has_room(&local));
    ck_assert_ptr_null(join(&local));
    http_clients_disconnect(&c, NULL);
    ck_assert_uint_eq(http_clients_request(&c, NULL, 0), 0);
    http_clients_fini(&c);
}
END_TEST

START_TEST(the_addresses_of_one_network_of_ipv6_are_one_client)
{
    begin(2, 0, 0, 16);
    struct sockaddr_storage a = address("2001:db8::1"), b = address("2001:db8::ffff:1:2"),
                            other = address("2001:db8:0:1::1"), v4 = address("10.0.0.1"),
                            v4_too = address("10.0.0.2");
    struct http_client_entry *one = join(&a);
    ck_assert_ptr_eq(join(&b), one);
    ck_assert_ptr_ne(join(&other), one);
    ck_assert_ptr_ne(join(&v4), join(&v4_too));
    http_clients_fini(&c);
}
END_TEST

START_TEST(a_rate_is_held_after_a_burst)
{
    begin(0, 10, 5, 16);
    struct sockaddr_storage a = address("10.0.0.1"), b = address("10.0.0.2");
    struct http_client_entry *one = join(&a), *other = join(&b);
    uint64_t now = 1000 * BASE_NS_PER_S;
    for (int i = 0; i < 5; i++)
        ck_assert_uint_eq(http_clients_request(&c, one, now), 0);
    ck_assert_uint_eq(http_clients_request(&c, one, now), 1);
    ck_assert_uint_eq(http_clients_request(&c, other, now), 0);
    unsigned let_in = 0;
    for (int ms = 0; ms < 10000; ms++)
        let_in += http_clients_request(&c, one, now + (uint64_t)ms * BASE_NS_PER_MS) == 0;
    ck_assert_uint_eq(let_in, 99); /* ten seconds' worth */
    /* Who has no connection for a while is still known, and keeps what it owes. */
    http_clients_disconnect(&c, one);
    ck_assert_ptr_eq(join(&a), one);
    ck_assert_uint_eq(http_clients_request(&c, one, now + 9999 * BASE_NS_PER_MS), 1);
    for (int i = 0; i < 5; i++)
        ck_assert_uint_eq(http_clients_request(&c, one, now + 60 * BASE_NS_PER_S), 0);
    ck_assert_uint_eq(http_clients_request(&c, one, now + 60 * BASE_NS_PER_S), 1);
    http_clients_fini(&c);
}
END_TEST

START_TEST(who_may_ask_once_in_long_is_told_for_how_long)
{
    begin(0, 1, 3, 16);
    struct sockaddr_storage a = address("10.0.0.1");
    struct http_client_entry *one = join(&a);
    for (int i = 0; i < 3; i++)
        ck_assert_uint_eq(http_clients_request(&c, one, BASE_NS_PER_S), 0);
    ck_assert_uint_eq(http_clients_request(&c, one, BASE_NS_PER_S), 2);
    ck_assert_uint_eq(http_clients_request(&c, one, BASE_NS_PER_S * 3 / 2), 1);
    ck_assert_uint_eq(http_clients_request(&c, one, BASE_NS_PER_S * 2), 0);
    http_clients_fini(&c);
}
END_TEST

START_TEST(what_requests_take_is_within_a_part_of_the_time_on_average)
{
    uint64_t whole = 0, now = 5 * BASE_NS_PER_S, spent = 0;
    http_spend(&whole, 0, BASE_NS_PER_S, now); /* no bound */
    ck_assert_uint_eq(whole, 0);
    for (; http_time_left(whole, now) == 0; spent += 10 * BASE_NS_PER_MS)
        http_spend(&whole, 25, 10 * BASE_NS_PER_MS, now);
    ck_assert_uint_eq(spent, 510 * BASE_NS_PER_MS); /* a quarter of 2 s, and what went beyond it */
    ck_assert_uint_eq(http_time_left(whole, now), 1);
    for (uint64_t ms = 0; ms < 10000; ms++) /* who always asks as soon as he may */
        if (http_time_left(whole, now + ms * BASE_NS_PER_MS) == 0) {
            http_spend(&whole, 25, 10 * BASE_NS_PER_MS, now + ms * BASE_NS_PER_MS);
            spent += 10 * BASE_NS_PER_MS;
        }
    ck_assert_uint_eq(spent, 3000 * BASE_NS_PER_MS);                 /* and a quarter of 10 s */
    http_spend(&whole, 25, BASE_NS_PER_S, now + 10 * BASE_NS_PER_S); /* one that took long */
    ck_assert_uint_eq(http_time_left(whole, now + 10 * BASE_NS_PER_S), 5);
    ck_assert_uint_eq(http_time_left(whole, now + 16 * BASE_NS_PER_S), 0);
}
END_TEST

START_TEST(many_addresses_take_no_more_memory)
{
    enum { ROOM = 64, CONNECTED = 48 };
    struct http_client_entry *held[CONNECTED];
    begin(1, 10, 1, ROOM);
    for (uint32_t i = 0; i < CONNECTED; i++) {
        struct sockaddr_storage from = number(i);
        held[i] = join(&from);
    }
    for (uint32_t i = 1000; i < 100000; i++) {
        struct sockaddr_storage from = number(i);
        struct http_client_entry *e = join(&from);
        ck_assert_uint_eq(http_clients_request(&c, e, BASE_NS_PER_S), 0);
        ck_assert_uint_eq(http_clients_request(&c, e, BASE_NS_PER_S), 1);
        http_clients_disconnect(&c, e);
    }
    ck_assert_uint_eq(c.used, ROOM);
    for (uint32_t i = 0; i < CONNECTED; i++) { /* none of them was forgotten */
        struct sockaddr_storage from = number(i);
        ck_assert(!has_room(&from));
        ck_assert_uint_eq(held[i]->connections, 1);
        http_clients_disconnect(&c, held[i]);
        ck_assert(has_room(&from));
    }
    http_clients_fini(&c);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(each_address_has_as_many_connections_as_are_allowed)                                         \
    T(the_addresses_of_one_network_of_ipv6_are_one_client)                                         \
    T(a_rate_is_held_after_a_burst)                                                                \
    T(what_requests_take_is_within_a_part_of_the_time_on_average)                                  \
    T(who_may_ask_once_in_long_is_told_for_how_long)                                               \
    T(many_addresses_take_no_more_memory)
KEDGE_CHECK_MAIN("base.http.clients", TESTS)
