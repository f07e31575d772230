/* SPDX-License-Identifier: Apache-2.0 */
/* A real etcd of one member, for tests: begun when the first one asks for it, on ports that are
 * free and in a directory of its own, and killed at the end of the process, however it ends. */
#ifndef TESTS_UNIT_METASERVER_STORE_ETCD_PROCESS_H
#define TESTS_UNIT_METASERVER_STORE_ETCD_PROCESS_H

#include <arpa/inet.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../check_main.h"
#include "metaserver/store_etcd.h"

struct etcd_process {
    pid_t pid, owner; /* pid 0: it does not run */
    char dir[64], url[64];
    int port;
};

static struct etcd_process etcd_process;

/* A port that nobody has just now. */
static inline int etcd_free_port(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof a;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&a, &length), 0);
    close(fd);
    return ntohs(a.sin_port);
}

/* Whether there is an etcd; if not, that is said once a process. */
static inline bool etcd_is_there(const char *what)
{
    static bool said;
    const char *path = getenv("PATH");
    while (path != NULL && *path != '\0') {
        const int length = (int)strcspn(path, ":");
        char file[512];
        snprintf(file, sizeof file, "%.*s/etcd", length, path);
        if (access(file, X_OK) == 0)
            return true;
        path += length + (path[length] == ':');
    }
    if (!said)
        printf("skip: %s: there is no etcd (Debian's etcd-server)\n", what);
    fflush(stdout);
    said = true;
    return false;
}

static inline int etcd_unlink_one(const char *path, const struct stat *st, int flag, struct FTW *at)
{
    (void)st, (void)flag, (void)at;
    return remove(path);
}

static inline void etcd_kill(void)
{
    if (etcd_process.pid == 0 || etcd_process.owner != getpid())
        return;
    kill(etcd_process.pid, SIGKILL);
    waitpid(etcd_process.pid, NULL, 0);
    etcd_process.pid = 0;
}

static inline void etcd_end(void)
{
    if (etcd_process.owner != getpid())
        return;
    etcd_kill();
    nftw(etcd_process.dir, etcd_unlink_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline void etcd_exec(int client, int peer)
{
    char data[96], log[96], urls[64], peers[64], cluster[80];
    snprintf(data, sizeof data, "%s/data", etcd_process.dir);
    snprintf(log, sizeof log, "%s/log", etcd_process.dir);
    snprintf(urls, sizeof urls, "http://127.0.0.1:%d", client);
    snprintf(peers, sizeof peers, "http://127.0.0.1:%d", peer);
    snprintf(cluster, sizeof cluster, "default=%s", peers);
    const int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(fd, 1);
    dup2(fd, 2);
    execlp("etcd", "etcd", "--data-dir", data, "--listen-client-urls", urls,
           "--advertise-client-urls", urls, "--listen-peer-urls", peers,
           "--initial-advertise-peer-urls", peers, "--initial-cluster", cluster,
           "--unsafe-no-fsync", "--heartbeat-interval", "20", "--election-timeout", "200",
           "--logger", "zap", "--log-level", "warn", NULL);
    _exit(127);
}

/* Starts it, or starts it again on what it has stored; its port stays. */
static inline void etcd_start(void)
{
    const pid_t owner = getpid();
    const int peer = etcd_free_port();
    if (etcd_process.port == 0)
        etcd_process.port = etcd_free_port();
    snprintf(etcd_process.url, sizeof etcd_process.url, "http://127.0.0.1:%d", etcd_process.port);
    etcd_process.pid = fork();
    if (etcd_process.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != owner)
            _exit(1);
        etcd_exec(etcd_process.port, peer);
    }
    ck_assert_int_gt(etcd_process.pid, 0);
}

/* Its URL. It answers. */
static inline const char *etcd_url(void)
{
    if (etcd_process.owner == getpid() && etcd_process.pid != 0)
        return etcd_process.url;
    etcd_process = (struct etcd_process){.owner = getpid()};
    snprintf(etcd_process.dir, sizeof etcd_process.dir, "/tmp/kedge-etcd-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(etcd_process.dir));
    atexit(etcd_end);
    etcd_start();
    for (int i = 0; i < 60; i++) {
        struct meta_store *store = NULL;
        struct base_errbuf err = {""};
        const struct meta_store_etcd_config config = {
            .endpoints = etcd_process.url, .prefix = "/starts/", .member = "first"};
        ck_assert_int_eq(meta_store_etcd(&config, &store, &err), 0);
        const int status = meta_store_commit(store, &(struct meta_store_txn){.compare = false},
                                             &(struct meta_store_outcome){.status = 0});
        meta_store_close(store);
        if (status == 0 || status == -EIO) /* which says that nobody has a store there */
            return etcd_process.url;
        if (waitpid(etcd_process.pid, NULL, WNOHANG) == etcd_process.pid) {
            etcd_process.port = 0; /* somebody was quicker to take a port */
            etcd_start();
        }
    }
    ck_abort_msg("etcd does not answer: see %s/log", etcd_process.dir);
}

#endif
