/* A program that includes the library's header before those of the system. */
#define TRESSE_SOCKETS_PLAIN
#include "tresse_sctp.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define CHECK(condition) do { if (!(condition)) { \
    fprintf(stderr, "%s:%d: not so: %s (errno %d, %s)\n", __FILE__, __LINE__, #condition, errno, strerror(errno)); \
    exit(1); } } while (0)

int main(int count, char **words)
{
    struct sockaddr_in name = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof name;
    int server = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), client = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    CHECK(server >= 0 && client >= 0);
    CHECK(bind(server, (struct sockaddr *)&name, len) == 0 && listen(server, 1) == 0);
    CHECK(getsockname(server, (struct sockaddr *)&name, &len) == 0);
    CHECK(connect(client, (struct sockaddr *)&name, len) == 0);
    int accepted = accept(server, NULL, NULL);
    CHECK(accepted >= 0);

    /* The compiler must not know the length: it checks those that it knows itself. */
    char text[16];
    size_t room = sizeof text - (size_t)count;
    CHECK(words[0] != NULL && write(client, "hello", 5) == 5);
    CHECK(read(accepted, text, room) == 5 && memcmp(text, "hello", 5) == 0);
    int waiting = -1;
    CHECK(ioctl(accepted, FIONREAD, &waiting) == 0 && waiting == 0);
    CHECK(fcntl(accepted, F_SETFL, O_NONBLOCK) == 0 && (fcntl(accepted, F_GETFL) & O_NONBLOCK) != 0);
    CHECK(read(accepted, text, room) == -1 && errno == EAGAIN);
    int twin = dup(accepted);
    CHECK(twin >= 0 && close(accepted) == 0 && close(twin) == 0 && close(client) == 0 && close(server) == 0);
    return 0;
}
