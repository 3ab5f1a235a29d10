/* A program for the kernel's SCTP: nothing here knows of tresse. The server is one thread, the client another, and the rest of
 * what a process does goes on beside them. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/sctp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static struct sockaddr_in at(const char *address, int port)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(port)};
    CHECK(inet_pton(AF_INET, address, &name.sin_addr) == 1);
    return name;
}

static int server;

/* Echoes what comes on every association until its peer has ended it. */
static void *serve(void *unused)
{
    (void)unused;
    for (int served = 0; served < 2; served++) {
        int fd = accept4(server, NULL, NULL, SOCK_CLOEXEC);
        CHECK(fd >= 0);
        int epoll = epoll_create1(EPOLL_CLOEXEC);
        struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
        CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0);
        for (;;) {
            char text[1000];
            int ready;
            do
                ready = epoll_wait(epoll, &event, 1, 90000);
            while (ready == -1 && errno == EINTR);
            CHECK(ready == 1);
            ssize_t got = read(fd, text, sizeof text);
            if (got <= 0)
                break;
            CHECK(send(fd, text, got, 0) == got);
        }
        close(epoll);
        CHECK(close(fd) == 0);
    }
    return NULL;
}

static int client(int port)
{
    int fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    CHECK(fd >= 0);
    struct sockaddr_in peer = at("127.0.0.1", port);
    CHECK(connect(fd, (struct sockaddr *)&peer, sizeof peer) == 0);
    return fd;
}

static void echo(int fd, const char *text)
{
    char back[100] = "";
    CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    CHECK(poll(&wait, 1, 90000) == 1);
    int there = 0;
    CHECK(ioctl(fd, FIONREAD, &there) == 0 && there == (int)strlen(text));
    CHECK(recv(fd, back, sizeof back, 0) == (ssize_t)strlen(text));
    CHECK(strcmp(back, text) == 0);
}

static void other_descriptors(void)
{
    int pair[2], pipes[2];
    char back[8] = "";
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
    CHECK(write(pair[0], "unix", 4) == 4 && read(pair[1], back, sizeof back) == 4);
    CHECK(pipe(pipes) == 0);
    CHECK(write(pipes[1], "pipe", 4) == 4 && read(pipes[0], back, sizeof back) == 4);
    int tcp = socket(AF_INET, SOCK_STREAM, 0), type = 0;
    socklen_t len = sizeof type;
    CHECK(tcp >= 0 && getsockopt(tcp, SOL_SOCKET, SO_PROTOCOL, &type, &len) == 0 && type == IPPROTO_TCP);
    /* Another thread may be given the number that was closed last; nobody is given one this high. */
    int high = fcntl(tcp, F_DUPFD, 900);
    CHECK(high >= 900 && close(high) == 0);
    CHECK(close(high) == -1 && errno == EBADF);
    CHECK(close(tcp) == 0 && close(pair[0]) == 0 && close(pair[1]) == 0);
    CHECK(close(pipes[0]) == 0 && close(pipes[1]) == 0);
}

static void duplicates(int fd)
{
    int copy = dup(fd), more = fcntl(fd, F_DUPFD_CLOEXEC, 100);
    CHECK(copy >= 0 && more >= 100);
    CHECK(fcntl(more, F_GETFD) == FD_CLOEXEC);
    echo(copy, "a copy");
    CHECK(close(copy) == 0);
    echo(more, "and another");
    /* Onto something else, and something else onto it. */
    int null = open("/dev/null", O_RDWR);
    CHECK(dup2(fd, null) == null);
    echo(null, "under an old number");
    int zero = open("/dev/zero", O_RDONLY);
    char byte = 1;
    CHECK(dup2(zero, null) == null && read(null, &byte, 1) == 1 && byte == 0);
    /* What cannot be copied replaces nothing. */
    CHECK(dup2(-1, more) == -1 && errno == EBADF);
    echo(more, "it is what it was");
    CHECK(close(null) == 0 && close(zero) == 0 && close(more) == 0);
    echo(fd, "the first is there still");
}

static void forked(int fd)
{
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        char back[10];
        if (write(fd, "child", 5) != 5 || read(fd, back, sizeof back) != 5)
            _exit(1);
        int own = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP), on = 1;
        if (own < 0 || setsockopt(own, IPPROTO_SCTP, SCTP_NODELAY, &on, sizeof on) != 0 || close(own) != 0)
            _exit(2);
        if (close(fd) != 0 || write(fd, "x", 1) != -1 || errno != EBADF)
            _exit(3);
        /* Of a program that it becomes it is a process like any other. */
        execl("/bin/sh", "sh", "-c", "exit 7", NULL);
        _exit(4);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    echo(fd, "the parent goes on");
    CHECK(system("exec 3>&- 4>&- 5>&- 6>&-; exit 0") == 0);
    echo(fd, "and also after system");
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    int port = atoi(argv[1]);
    other_descriptors();
    server = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    CHECK(server >= 0);
    struct sockaddr_in here = at("127.0.0.1", port), name;
    CHECK(bind(server, (struct sockaddr *)&here, sizeof here) == 0);
    CHECK(listen(server, 5) == 0);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, serve, NULL) == 0);

    int fd = client(port);
    socklen_t len = sizeof name;
    CHECK(getpeername(fd, (struct sockaddr *)&name, &len) == 0 && ntohs(name.sin_port) == port);
    echo(fd, "hello");
    other_descriptors();
    duplicates(fd);
    forked(fd);
    /* What cannot be is refused, and nothing is lost by it. */
    int file = open("/proc/self/exe", O_RDONLY);
    CHECK(sendfile(fd, file, NULL, 10) == -1 && errno == EINVAL);
    CHECK(splice(fd, NULL, file, NULL, 10, 0) == -1 && errno == EINVAL);
    CHECK(close(file) == 0);
    echo(fd, "in good order");
    /* Not blocking, by either call. */
    int on = 1;
    char byte;
    CHECK(ioctl(fd, FIONBIO, &on) == 0);
    CHECK(recv(fd, &byte, 1, 0) == -1 && errno == EAGAIN);
    CHECK(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK) == 0);
    echo(fd, "blocking again");

    /* The second association is open when the process ends: what it has sent arrives. */
    int last = client(port);
    /* The thread is given the number that is closed, for the second association: an empty range must be one out of its way. */
    int high = fcntl(fd, F_DUPFD, 900);
    CHECK(high >= 900 && close(fd) == 0);
    CHECK(close_range(high, high, 0) == 0);
    CHECK(close_range(high, high, 0) == 0);
    echo(last, "the last word");
    CHECK(close_range(last, last, 0) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(close(server) == 0);
    return 0;
}
