/* A server that goes into the background after it has bound its socket, in each of the ways that servers do, and takes along an
 * association. `background WAY PORT LOG` serves one client and ends; `background client PORT LOG` is that. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"

static struct sockaddr_in at(int port)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    return name;
}

static int client(int port)
{
    struct sockaddr_in name = at(port);
    int fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&name, sizeof name) == 0);
    return fd;
}

static void say(int from, int to, const char *words)
{
    char back[100];
    CHECK(send(from, words, strlen(words), 0) == (ssize_t)strlen(words));
    CHECK(recv(to, back, sizeof back, 0) == (ssize_t)strlen(words) && !memcmp(back, words, strlen(words)));
}

/* What a server does by itself where there is no daemon(3). */
static void leave(void (*end)(int))
{
    pid_t child = fork();
    CHECK(child >= 0);
    if (child > 0)
        end(0);
    CHECK(setsid() >= 0);
}

static const char *log_file;

static void background(const char *way)
{
    if (!strcmp(way, "daemon"))
        CHECK(daemon(0, 0) == 0);
    if (!strcmp(way, "exit"))
        leave(exit);
    if (!strcmp(way, "_exit"))
        leave(_exit);
    if (!strcmp(way, "twice")) {
        leave(_exit);
        leave(_exit);
    }
    int null = open("/dev/null", O_RDWR), said = open(log_file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(null >= 0 && dup2(null, 0) == 0 && dup2(null, 1) == 1 && close(null) == 0);
    CHECK(said >= 0 && dup2(said, 2) == 2 && close(said) == 0);
}

int main(int count, char **words)
{
    CHECK(count == 4);
    log_file = words[3];
    int port = atoi(words[2]);
    alarm(100);
    if (!strcmp(words[1], "client")) {
        int fd = client(port);
        say(fd, fd, "is there anybody?");
        CHECK(close(fd) == 0);
        printf("served\n");
        return 0;
    }
    struct sockaddr_in here = at(port);
    int server = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    CHECK(server >= 0 && bind(server, (struct sockaddr *)&here, sizeof here) == 0 && listen(server, 5) == 0);
    int near = client(port), far = accept(server, NULL, NULL), before = getpid();
    CHECK(far >= 0);
    say(near, far, "before");
    background(words[1]);
    alarm(100);
    CHECK(getpid() != before);
    say(near, far, "after");
    say(far, near, "and back");
    int one = accept(server, NULL, NULL);
    char data[100];
    ssize_t got;
    CHECK(one >= 0);
    while ((got = recv(one, data, sizeof data, 0)) > 0)
        CHECK(send(one, data, got, 0) == got);
    CHECK(close(one) == 0 && close(near) == 0 && close(far) == 0 && close(server) == 0);
    return 0;
}
