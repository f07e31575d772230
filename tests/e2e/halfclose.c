/* SPDX-License-Identifier: Apache-2.0 */
/* A client that closes its direction when it has sent what it had: kedge-halfclose PORT sends
 * standard input to 127.0.0.1, shuts its side down, and prints what comes back until the other side
 * closes. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static int copy(int from, int to)
{
    char bytes[4096];
    ssize_t n;
    while ((n = read(from, bytes, sizeof bytes)) > 0)
        if (write(to, bytes, (size_t)n) != n)
            return -1;
    return (int)n;
}

int main(int argc, char **argv)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (argc != 2) {
        fprintf(stderr, "usage: kedge-halfclose PORT\n");
        return 2;
    }
    to.sin_port = htons((uint16_t)strtoul(argv[1], NULL, 10));
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) != 0) {
        perror("kedge-halfclose");
        return 1;
    }
    if (copy(STDIN_FILENO, fd) != 0 || shutdown(fd, SHUT_WR) != 0)
        return 1;
    return copy(fd, STDOUT_FILENO) == 0 ? 0 : 1;
}
