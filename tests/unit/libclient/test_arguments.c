/* SPDX-License-Identifier: Apache-2.0 */
/* What every function does with a pointer that is NULL: one rule (kedge.h), held against all
 * pointers of the headers' functions. */
#include <stdio.h>

#include "fake_lane.h"

enum { MOST = 128 };

struct fixture {
    struct fake_agent a;
    struct kedge_session *s;
    struct kedge_vqp *q;
    struct kedge_mr *mr;
    void *memory;
    uint32_t lkey;
    char seen[MOST][80]; /* "kedge_alloc addr" */
    unsigned seen_count;
};

static void setup(struct fixture *f)
{
    f->seen_count = 0;
    fake_agent_start(&f->a);
    f->a.attached.features = SCHEMA_FEATURE_MESSAGES;
    f->s = fake_agent_open(&f->a);
    ck_assert_int_eq(kedge_vqp_create(f->s, f, &f->q), 0);
    ck_assert_int_eq(kedge_alloc(f->s, 64, &f->memory, &f->lkey), 0);
    ck_assert_int_eq(kedge_reg_mr(f->s, f->memory, 64, 0, &f->mr), 0);
}

static void teardown(struct fixture *f)
{
    kedge_close(f->s);
    fake_agent_stop(&f->a);
}

static void remember(struct fixture *f, const char *function, const char *argument)
{
    ck_assert_uint_lt(f->seen_count, MOST);
    snprintf(f->seen[f->seen_count++], sizeof f->seen[0], "%s %s", function, argument);
}

static void said(struct fixture *f, const char *function, const char *argument)
{
    char want[100];
    snprintf(want, sizeof want, "%s: %s is NULL", function, argument);
    ck_assert_str_eq(kedge_last_error(), want);
    remember(f, function, argument);
}

/* NULL is refused, with a sentence that names it. */
#define REFUSES(function, argument, answer, ...)                                                   \
    do {                                                                                           \
        ck_assert_int_eq((intptr_t)function(__VA_ARGS__), answer);                                 \
        said(f, #function, #argument);                                                             \
    } while (0)
/* Likewise of one that has no result. */
#define IGNORES(function, argument, ...)                                                           \
    do {                                                                                           \
        function(__VA_ARGS__);                                                                     \
        said(f, #function, #argument);                                                             \
    } while (0)
/* NULL means something. */
#define TAKES(function, argument) remember(f, #function, #argument)

static void walk_sessions(struct fixture *f)
{
    struct kedge_session *s = NULL;
    struct kedge_session_info info = {.session = 5};
    struct kedge_open_attr attr = {.socket = "/nonexistent/agent.sock"};
    REFUSES(kedge_open, out, -EINVAL, &attr, NULL);
    setenv("KEDGE_SOCKET", attr.socket, 1);
    ck_assert_int_eq(kedge_open(NULL, &s), -ENOENT);
    TAKES(kedge_open, attr);
    kedge_close(NULL);
    TAKES(kedge_close, s);
    IGNORES(kedge_session_query, s, NULL, &info);
    ck_assert_uint_eq(info.session, 5);
    IGNORES(kedge_session_query, out, f->s, NULL);
    REFUSES(kedge_session_status, s, -EINVAL, NULL);
    REFUSES(kedge_session_notices, s, -EINVAL, NULL);
}

static void walk_memory(struct fixture *f)
{
    struct kedge_mr *mr = NULL, *const none[] = {f->mr, NULL};
    struct kedge_remote remote;
    char text[KEDGE_TOKEN_MAX];
    const char *const text_list = text;
    uint32_t lkey;
    void *addr = NULL;
    REFUSES(kedge_alloc, s, -EINVAL, NULL, 64, &addr, &lkey);
    REFUSES(kedge_alloc, addr, -EINVAL, f->s, 64, NULL, &lkey);
    REFUSES(kedge_alloc, lkey, -EINVAL, f->s, 64, &addr, NULL);
    ck_assert_ptr_null(addr);
    IGNORES(kedge_free, s, NULL, f->memory);
    kedge_free(f->s, NULL);
    TAKES(kedge_free, addr);
    REFUSES(kedge_reg_mr, s, -EINVAL, NULL, f->memory, 64, 0, &mr);
    REFUSES(kedge_reg_mr, addr, -EINVAL, f->s, NULL, 64, 0, &mr);
    REFUSES(kedge_reg_mr, out, -EINVAL, f->s, f->memory, 64, 0, NULL);
    REFUSES(kedge_dereg_mr, mr, -EINVAL, NULL);
    REFUSES(kedge_dereg_mrs, mrs, -EINVAL, NULL, 3);
    REFUSES(kedge_dereg_mrs_begin, mrs, -EINVAL, NULL, 3);
    ck_assert_int_eq(kedge_dereg_mrs(NULL, 0), 0);
    ck_assert_int_eq(kedge_dereg_mrs_begin(NULL, 0), 0);
    ck_assert_int_eq(kedge_dereg_mrs(none, 2), -EINVAL);
    ck_assert_str_eq(kedge_last_error(), "kedge_dereg_mrs: mrs[1] is NULL, and no region");
    ck_assert_int_eq(kedge_dereg_mrs_begin(none, 2), -EINVAL);
    ck_assert_str_eq(kedge_last_error(), "kedge_dereg_mrs_begin: mrs[1] is NULL, and no region");
    REFUSES(kedge_dereg_mrs_wait, s, -EINVAL, NULL, 0);
    REFUSES(kedge_mr_status, mr, -EINVAL, NULL);
    REFUSES(kedge_mr_lkey, mr, 0, NULL);
    REFUSES(kedge_mr_rkey, mr, 0, NULL);
    REFUSES(kedge_mr_export, mr, -EINVAL, NULL, text, sizeof text);
    REFUSES(kedge_mr_export, text, -EINVAL, f->mr, NULL, sizeof text);
    REFUSES(kedge_publish, mr, -EINVAL, NULL, "x");
    REFUSES(kedge_publish, name, -EINVAL, f->mr, NULL);
    REFUSES(kedge_unpublish, mr, -EINVAL, NULL, "x");
    REFUSES(kedge_unpublish, name, -EINVAL, f->mr, NULL);
    REFUSES(kedge_publish_for, mr, -EINVAL, NULL, "x", "t");
    REFUSES(kedge_publish_for, name, -EINVAL, f->mr, NULL, "t");
    REFUSES(kedge_publish_for, tenant, -EINVAL, f->mr, "x", NULL);
    REFUSES(kedge_unpublish_for, mr, -EINVAL, NULL, "x", "t");
    REFUSES(kedge_unpublish_for, name, -EINVAL, f->mr, NULL, "t");
    REFUSES(kedge_unpublish_for, tenant, -EINVAL, f->mr, "x", NULL);
    REFUSES(kedge_import, s, -EINVAL, NULL, text, &remote);
    REFUSES(kedge_import, text, -EINVAL, f->s, NULL, &remote);
    REFUSES(kedge_import, out, -EINVAL, f->s, text, NULL);
    REFUSES(kedge_import_many, s, -EINVAL, NULL, &text_list, 1, &remote);
    REFUSES(kedge_import_many, texts, -EINVAL, f->s, NULL, 1, &remote);
    REFUSES(kedge_import_many, out, -EINVAL, f->s, &text_list, 1, NULL);
    REFUSES(kedge_unimport, s, -EINVAL, NULL, &remote);
    REFUSES(kedge_unimport, remote, -EINVAL, f->s, NULL);
    REFUSES(kedge_lookup, s, -EINVAL, NULL, "n", &remote);
    REFUSES(kedge_lookup, name, -EINVAL, f->s, NULL, &remote);
    REFUSES(kedge_lookup, out, -EINVAL, f->s, "n", NULL);
    REFUSES(kedge_lookup_of, s, -EINVAL, NULL, "t", "n", &remote);
    REFUSES(kedge_lookup_of, tenant, -EINVAL, f->s, NULL, "n", &remote);
    REFUSES(kedge_lookup_of, name, -EINVAL, f->s, "t", NULL, &remote);
    REFUSES(kedge_lookup_of, out, -EINVAL, f->s, "t", "n", NULL);
}

static void walk_queue_pairs(struct fixture *f)
{
    static const uint8_t gid[16] = {0xfd};
    struct kedge_vqp *q = NULL;
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_READ}, *bad;
    struct ibv_wc wc;
    REFUSES(kedge_vqp_create, s, -EINVAL, NULL, NULL, &q);
    REFUSES(kedge_vqp_create, out, -EINVAL, f->s, NULL, NULL);
    ck_assert_int_eq(kedge_vqp_create(f->s, NULL, &q), 0);
    TAKES(kedge_vqp_create, user);
    kedge_vqp_destroy(NULL);
    TAKES(kedge_vqp_destroy, q);
    REFUSES(kedge_vqp_num, q, 0, NULL);
    REFUSES(kedge_vqp_user, q, 0, NULL);
    REFUSES(kedge_vqp_find, s, 0, NULL, 0);
    REFUSES(kedge_connect, q, -EINVAL, NULL, gid);
    REFUSES(kedge_connect, gid, -EINVAL, f->q, NULL);
    REFUSES(kedge_connect_node, q, -EINVAL, NULL, "node-a");
    REFUSES(kedge_connect_node, name, -EINVAL, f->q, NULL);
    bad = NULL;
    REFUSES(kedge_post_send, q, -EINVAL, NULL, &wr, &bad);
    ck_assert_ptr_eq(bad, &wr);
    ck_assert_int_eq(kedge_post_send(NULL, &wr, NULL), -EINVAL);
    ck_assert_int_eq(kedge_post_send(f->q, &wr, NULL), -ENOTCONN);
    TAKES(kedge_post_send, bad);
    ck_assert_int_ge(schema_peers_put(f->a.peers, 0, gid, 1, 1), 0);
    ck_assert_int_eq(kedge_connect(f->q, gid), 0);
    ck_assert_int_eq(kedge_post_send(f->q, NULL, &bad), 0); /* a list without an element */
    TAKES(kedge_post_send, wr);
    REFUSES(kedge_poll, s, -EINVAL, NULL, 1, &wc);
    REFUSES(kedge_poll, wc, -EINVAL, f->s, 1, NULL);
    ck_assert_int_eq(kedge_poll(f->s, 0, NULL), 0);
    REFUSES(kedge_wait, s, -EINVAL, NULL, 0);
    REFUSES(kedge_wait_many, s, -EINVAL, NULL, 1, 0);
    REFUSES(kedge_fd, s, -EINVAL, NULL);
    REFUSES(kedge_arm, s, -EINVAL, NULL);
    REFUSES(kedge_never_sent, wc, 0, NULL);
}

static void walk_messages(struct fixture *f)
{
    static const uint8_t gid[16] = {0xfd};
    struct ibv_recv_wr wr = {.num_sge = 0}, *bad = NULL;
    struct kedge_msg msg;
    REFUSES(kedge_bind, q, -EINVAL, NULL, 1);
    REFUSES(kedge_connect_port, q, -EINVAL, NULL, gid, 1);
    REFUSES(kedge_connect_port, gid, -EINVAL, f->q, NULL, 1);
    REFUSES(kedge_connect_port_of, q, -EINVAL, NULL, gid, "t", 1);
    REFUSES(kedge_connect_port_of, gid, -EINVAL, f->q, NULL, "t", 1);
    REFUSES(kedge_connect_port_of, tenant, -EINVAL, f->q, gid, NULL, 1);
    REFUSES(kedge_port_grant, q, -EINVAL, NULL, "t");
    REFUSES(kedge_port_grant, tenant, -EINVAL, f->q, NULL);
    REFUSES(kedge_port_revoke, q, -EINVAL, NULL, "t");
    REFUSES(kedge_port_revoke, tenant, -EINVAL, f->q, NULL);
    REFUSES(kedge_tenant_number, tenant, 0, NULL);
    REFUSES(kedge_post_recv, q, -EINVAL, NULL, &wr, &bad);
    ck_assert_ptr_eq(bad, &wr);
    ck_assert_int_eq(kedge_post_recv(f->q, NULL, &bad), 0); /* a list without an element */
    TAKES(kedge_post_recv, wr);
    wr.num_sge = 1;
    ck_assert_int_eq(kedge_post_recv(f->q, &wr, NULL), -EINVAL);
    TAKES(kedge_post_recv, bad);
    REFUSES(kedge_pop_msgs, s, -EINVAL, NULL, 1, &msg);
    REFUSES(kedge_pop_msgs, msgs, -EINVAL, f->s, 1, NULL);
    ck_assert_int_eq(kedge_pop_msgs(f->s, 0, NULL), 0);
}

static bool was_seen(const struct fixture *f, const char *pointer)
{
    for (unsigned i = 0; i < f->seen_count; i++)
        if (strcmp(f->seen[i], pointer) == 0)
            return true;
    return false;
}

/* The last word of a declaration: a function's name, or a parameter's. */
static void last_word(const char *begin, size_t length, char out[40])
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz_0123456789";
    while (length > 0 && strchr(letters, begin[length - 1]) == NULL)
        length--;
    size_t first = length;
    while (first > 0 && strchr(letters, begin[first - 1]) != NULL)
        first--;
    ck_assert_uint_lt(length - first, 40);
    memcpy(out, begin + first, length - first);
    out[length - first] = '\0';
}

/* Of the prototype at `at`: how many pointers it has, each of which was seen. */
static unsigned look_at_prototype(const struct fixture *f, const char *at)
{
    char function[40], name[40], pointer[80];
    unsigned pointers = 0;
    const char *open = strchr(at, '('), *end = strchr(at, ')');
    ck_assert(open != NULL && end != NULL);
    last_word(at, (size_t)(open - at), function);
    for (const char *from = open + 1; from < end;) {
        const size_t rest = (size_t)(end - from), to_comma = strcspn(from, ","),
                     length = to_comma < rest ? to_comma : rest, bare = strcspn(from, "[,)");
        if (memchr(from, '*', length) != NULL || memchr(from, '[', length) != NULL) {
            last_word(from, bare, name);
            snprintf(pointer, sizeof pointer, "%s %s", function, name);
            ck_assert_msg(was_seen(f, pointer), "nobody tried %s", pointer);
            pointers++;
        }
        from += length + 1;
    }
    return pointers;
}

/* How many pointers its functions have. */
static unsigned look_at_header(const struct fixture *f, const char *path)
{
    static char header[64 * 1024];
    unsigned pointers = 0;
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    header[fread(header, 1, sizeof header - 1, file)] = '\0';
    ck_assert_int_ne(feof(file), 0);
    fclose(file);
    for (const char *at = strstr(header, "\nKEDGE_API "); at != NULL;
         at = strstr(at + 1, "\nKEDGE_API "))
        pointers += look_at_prototype(f, at);
    return pointers;
}

START_TEST(every_pointer_of_every_function_may_be_null_and_is_refused_by_name_or_means_something)
{
    static struct fixture fixture;
    struct fixture *f = &fixture;
    unsigned pointers = 0;
    setup(f);
    walk_sessions(f);
    walk_memory(f);
    walk_queue_pairs(f);
    walk_messages(f);
    pointers += look_at_header(f, KEDGE_SOURCE_DIR "/libclient/include/kedge.h");
    pointers += look_at_header(f, KEDGE_SOURCE_DIR "/libclient/include/kedge_msg.h");
    ck_assert_uint_eq(pointers, f->seen_count);
    teardown(f);
}
END_TEST

START_TEST(regions_of_two_sessions_are_refused_and_it_is_said_which_is_which)
{
    static struct fixture f, other;
    setup(&f);
    setup(&other);
    struct kedge_mr *const mixed[] = {f.mr, other.mr};
    ck_assert_int_eq(kedge_dereg_mrs(mixed, 2), -EINVAL);
    ck_assert_str_eq(kedge_last_error(),
                     "kedge_dereg_mrs: mrs[1] is of another session than mrs[0]: give back those "
                     "of one session at a time");
    ck_assert_int_eq(kedge_dereg_mr(f.mr), 0);
    ck_assert_int_eq(kedge_dereg_mr(other.mr), 0);
    teardown(&f);
    teardown(&other);
}
END_TEST

START_TEST(a_path_that_no_socket_can_have_is_refused_with_the_number_that_holds)
{
    char path[120];
    struct kedge_session *s;
    struct kedge_open_attr attr = {.socket = path};
    for (size_t length = 107; length <= 109; length++) {
        memset(path, 'x', length);
        path[0] = '/';
        path[length] = '\0';
        ck_assert_int_eq(kedge_open(&attr, &s), length == 107 ? -ENOENT : -EINVAL);
        if (length > 107)
            ck_assert_ptr_nonnull(strstr(kedge_last_error(), "at most 107 are possible"));
    }
    path[0] = '\0';
    setenv("KEDGE_SOCKET", "/nonexistent/other.sock", 1);
    ck_assert_int_eq(kedge_open(&attr, &s), -EINVAL);
    ck_assert_str_eq(kedge_last_error(), "the socket's path is empty: name one, or NULL");
}
END_TEST

START_TEST(a_socket_that_is_not_for_workers_or_not_for_this_one_is_named_as_that)
{
    char dir[] = "/tmp/kedge-test-XXXXXX", path[64];
    struct kedge_session *s;
    struct sockaddr_un u = {.sun_family = AF_UNIX};
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/admin.sock", dir);
    memcpy(u.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&u, sizeof u), 0);
    ck_assert_int_eq(listen(fd, 1), 0);
    setenv("KEDGE_SOCKET", path, 1);
    ck_assert_int_eq(kedge_open(NULL, &s), -EPROTOTYPE);
    ck_assert_ptr_nonnull(strstr(kedge_last_error(), "no socket that workers attach to"));
    if (geteuid() == 0 && seteuid(65534) == 0) { /* in this test's own process */
        ck_assert_int_eq(kedge_open(NULL, &s), -EACCES);
        ck_assert_ptr_nonnull(
            strstr(kedge_last_error(), "cannot be opened by uid 65534: Permission denied"));
        const struct kedge_open_attr blank = {.token = "secret\n"}; /* which nobody has seen */
        ck_assert_int_eq(kedge_open(&blank, &s), -EACCES);
        ck_assert_ptr_null(strstr(kedge_last_error(), "token"));
        ck_assert_int_eq(seteuid(0), 0);
    } else {
        puts("skip: what a worker is told that may not open the socket (only root can be one)");
    }
    setenv("KEDGE_SOCKET", "", 1); /* is none */
    ck_assert_int_lt(kedge_open(NULL, &s), 0);
    ck_assert_ptr_nonnull(strstr(kedge_last_error(), KEDGE_DEFAULT_SOCKET));
    close(fd);
    unlink(path);
    rmdir(dir);
}
END_TEST

START_TEST(a_token_with_a_newline_behind_it_is_refused_as_that)
{
    static struct fixture f;
    struct kedge_mr *mr;
    struct kedge_remote remote;
    char text[KEDGE_TOKEN_MAX + 1];
    setup(&f);
    f.a.reply = (struct schema_reply){.value = {5}};
    fake_agent_answer(&f.a);
    ck_assert_int_eq(kedge_reg_mr(f.s, f.memory, 64, IBV_ACCESS_REMOTE_READ, &mr), 0);
    (void)fake_agent_asked(&f.a);
    ck_assert_int_eq(kedge_mr_export(mr, text, sizeof text), 0);
    memcpy(text + strlen(text), "\n", 2);
    ck_assert_int_eq(kedge_import(f.s, text, &remote), -EINVAL);
    ck_assert_ptr_nonnull(strstr(kedge_last_error(), "such as a newline: cut it off"));
    ck_assert_int_eq(kedge_import(f.s, "rubbish\n", &remote), -EINVAL);
    ck_assert_ptr_nonnull(strstr(kedge_last_error(), "no region's token"));
    teardown(&f);
    /* And a tenant's, which the agent refuses. */
    struct kedge_open_attr attr = {.token = "secret\n"};
    struct kedge_session *s = NULL;
    fake_agent_start(&f.a);
    attr.socket = f.a.path;
    f.a.error.status = -EACCES;
    snprintf(f.a.error.text, sizeof f.a.error.text, "no tenant has this token");
    ck_assert_int_eq(pthread_create(&f.a.thread, NULL, fake_agent_serve_attach, &f.a), 0);
    ck_assert_int_eq(kedge_open(&attr, &s), -EACCES);
    pthread_join(f.a.thread, NULL);
    ck_assert_str_eq(kedge_last_error(), "no tenant has this token (the token that was shown ends "
                                         "with a blank or a newline)");
    fake_agent_stop(&f.a);
}
END_TEST

START_TEST(a_status_without_a_sentence_is_said_with_its_number)
{
    ck_assert_ptr_nonnull(strstr(kedge_wc_status_str(IBV_WC_MW_BIND_ERR), "status 6,"));
    ck_assert_ptr_nonnull(strstr(kedge_wc_status_str((enum ibv_wc_status)99), "status 99,"));
}
END_TEST

#define TESTS(T)                                                                                   \
    T(every_pointer_of_every_function_may_be_null_and_is_refused_by_name_or_means_something)       \
    T(regions_of_two_sessions_are_refused_and_it_is_said_which_is_which)                           \
    T(a_path_that_no_socket_can_have_is_refused_with_the_number_that_holds)                        \
    T(a_socket_that_is_not_for_workers_or_not_for_this_one_is_named_as_that)                       \
    T(a_token_with_a_newline_behind_it_is_refused_as_that)                                         \
    T(a_status_without_a_sentence_is_said_with_its_number)
KEDGE_CHECK_MAIN("libclient arguments", TESTS)
