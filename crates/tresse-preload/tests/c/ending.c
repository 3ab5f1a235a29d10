/* A program for the kernel's SCTP that exits while a peer has not read what was sent: its exit handler, registered before it has any
 * socket, sends something more, and the calls that its threads are in have no result until the process is gone. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/sctp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { MESSAGES = 30, SIZE = 10000 };

static int calling, full, idle, waiting, tells[2];
static char message[SIZE];

static int listener(int port, struct sockaddr_in *name)
{
    socklen_t len = sizeof *name;
    int fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    *name = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    CHECK(fd >= 0 && bind(fd, (struct sockaddr *)name, sizeof *name) == 0 && listen(fd, 10) == 0);
    CHECK(getsockname(fd, (struct sockaddr *)name, &len) == 0);
    return fd;
}

static int connected(struct sockaddr_in name)
{
    int fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&name, sizeof name) == 0);
    return fd;
}

static void say_goodbye(void)
{
    CHECK(send(calling, "goodbye", 7, 0) == 7);
    CHECK(write(tells[1], "e", 1) == 1);
}

static void *accepts(void *nothing)
{
    int got = accept(waiting, NULL, NULL);
    CHECK(write(tells[1], got < 0 ? "a" : "A", 1) == 1);
    return nothing;
}

static void *receives(void *nothing)
{
    char data[10];
    ssize_t got = recv(idle, data, sizeof data, 0);
    CHECK(write(tells[1], got < 0 ? "r" : "R", 1) == 1);
    return nothing;
}

/* Nobody reads it: at last there is no room. */
static void *sends(void *nothing)
{
    while (send(full, message, sizeof message, 0) == sizeof message)
        ;
    CHECK(write(tells[1], "s", 1) == 1);
    return nothing;
}

static void leave(struct sockaddr_in server)
{
    struct sockaddr_in own;
    void *(*all[])(void *) = { accepts, receives, sends };
    CHECK(atexit(say_goodbye) == 0);
    calling = connected(server);
    full = connected(server);
    idle = connected(server);
    waiting = listener(0, &own);
    for (int at = 0; at < 3; at++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, all[at], NULL) == 0);
    }
    for (int count = 0; count < MESSAGES; count++)
        CHECK(send(calling, message, sizeof message, 0) == sizeof message);
    struct pollfd has_room = { .fd = full, .events = POLLOUT };
    while (poll(&has_room, 1, 100) != 0)
        ;
    exit(0);
}

static size_t read_all(int fd, char *last, size_t room)
{
    static char data[SIZE];
    size_t sum = 0;
    ssize_t got;
    while ((got = recv(fd, data, sizeof data, 0)) > 0) {
        memcpy(last, data, (size_t)got < room ? (size_t)got : room);
        sum += got;
    }
    CHECK(got == 0);
    return sum;
}

int main(int argc, char **argv)
{
    struct sockaddr_in server;
    int ready[2], ends[3], status;
    char byte, last[7];
    CHECK(argc == 2 && pipe(tells) == 0 && pipe(ready) == 0);
    alarm(100);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK(read(ready[0], &server, sizeof server) == sizeof server);
        leave(server);
    }
    int at = listener(atoi(argv[1]), &server);
    CHECK(close(tells[1]) == 0 && write(ready[1], &server, sizeof server) == sizeof server);
    for (int count = 0; count < 3; count++)
        CHECK((ends[count] = accept(at, NULL, NULL)) >= 0);
    CHECK(read(tells[0], &byte, 1) == 1 && byte == 'e');
    /* It waits for what is not read, and its threads hear nothing of that. */
    struct pollfd told = { .fd = tells[0], .events = POLLIN };
    CHECK(poll(&told, 1, 500) == 0 && waitpid(child, &status, WNOHANG) == 0);
    CHECK(read_all(ends[0], last, sizeof last) == MESSAGES * SIZE + 7 && !memcmp(last, "goodbye", 7));
    read_all(ends[1], last, sizeof last);
    CHECK(read_all(ends[2], last, sizeof last) == 0);
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(read(tells[0], &byte, 1) == 0);
    return 0;
}
