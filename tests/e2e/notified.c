/* SPDX-License-Identifier: Apache-2.0 */
/* A supervisor's ears: prints each line of what comes to a datagram socket, until it is killed.
 *
 *   kedge-notified PATH */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    char text[4096];
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (argc != 2 || strlen(argv[1]) >= sizeof at.sun_path) {
        fprintf(stderr, "usage: kedge-notified PATH\n");
        return 2;
    }
    memcpy(at.sun_path, argv[1], strlen(argv[1]));
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) != 0) {
        perror(argv[1]);
        return EXIT_FAILURE;
    }
    for (ssize_t n; (n = recv(fd, text, sizeof text - 1, 0)) >= 0;) {
        text[n] = '\0';
        printf("%s\n", text);
        fflush(stdout);
    }
    perror(argv[1]);
    return EXIT_FAILURE;
}
