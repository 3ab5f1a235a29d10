/* A program for the kernel's SCTP whose signal handlers end what they interrupt: they close the socket that a call waits on or
 * works with, jump out of it, or end the process. Whatever does not come back ends by SIGALRM. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/sctp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static struct sockaddr_in here;
static volatile sig_atomic_t to_close;
static sigjmp_buf place;

static void on_signal(void (*act)(int), int microseconds)
{
    struct sigaction action = { .sa_handler = act };
    struct itimerval once = { .it_value.tv_usec = microseconds };
    CHECK(sigaction(SIGVTALRM, &action, NULL) == 0 && sigaction(SIGUSR1, &action, NULL) == 0);
    CHECK(setitimer(ITIMER_VIRTUAL, &once, NULL) == 0);
}

static void closes(int number) { (void)number; CHECK(close(to_close) == 0); }
static void jumps(int number) { (void)number; siglongjmp(place, 1); }
static void ends(int number) { (void)number; exit(0); }

/* The signal that interrupts a wait, once the thread sleeps. */
static void *interrupts(void *thread)
{
    usleep(100000);
    CHECK(pthread_kill(*(pthread_t *)thread, SIGUSR1) == 0);
    return NULL;
}

static pthread_t interrupted_by(void (*act)(int))
{
    static pthread_t self;
    pthread_t other;
    self = pthread_self();
    on_signal(act, 0);
    CHECK(pthread_create(&other, NULL, interrupts, &self) == 0);
    return other;
}

static int listener(void)
{
    int fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    CHECK(fd >= 0);
    /* A port is free a moment after its last socket is closed. */
    while (bind(fd, (struct sockaddr *)&here, sizeof here) != 0)
        CHECK(errno == EADDRINUSE);
    CHECK(listen(fd, 10) == 0);
    return fd;
}

static void pair(int both[2])
{
    int waiting = listener();
    CHECK((both[0] = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP)) >= 0);
    CHECK(connect(both[0], (struct sockaddr *)&here, sizeof here) == 0);
    CHECK((both[1] = accept(waiting, NULL, NULL)) >= 0 && close(waiting) == 0);
}

/* The number is free afterwards, and so is the port. */
static void closed_while_waited_on(void)
{
    char byte;
    int waiting = listener();
    to_close = waiting;
    pthread_t other = interrupted_by(closes);
    CHECK(accept(waiting, NULL, NULL) == -1 && (errno == EINTR || errno == EBADF));
    CHECK(pthread_join(other, NULL) == 0);
    CHECK(open("/dev/zero", O_RDONLY) == waiting && read(waiting, &byte, 1) == 1 && close(waiting) == 0);
    CHECK(close(listener()) == 0);
}

/* It is at work nearly all the time. */
static void closed_while_at_work(void)
{
    char text[100] = "";
    for (int round = 0; round < 20; round++) {
        int both[2];
        pair(both);
        to_close = both[0];
        on_signal(closes, 1000 + 100 * round);
        do {
            recv(both[1], text, sizeof text, MSG_DONTWAIT);
        } while (send(both[0], text, sizeof text, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof text || errno == EAGAIN);
        CHECK(errno == EBADF);
        CHECK(fcntl(both[0], F_GETFD) == -1 && errno == EBADF);
        CHECK(close(both[1]) == 0);
    }
}

static void left_by_a_jump(void)
{
    char text[100];
    int both[2];
    pair(both);
    if (sigsetjmp(place, 1) == 0) {
        interrupted_by(jumps);
        recv(both[1], text, sizeof text, 0);
        CHECK(!"it waits for ever");
    }
    CHECK(send(both[0], "afterwards", 10, 0) == 10);
    CHECK(recv(both[1], text, sizeof text, 0) == 10 && !memcmp(text, "afterwards", 10));
    CHECK(close(both[0]) == 0 && recv(both[1], text, sizeof text, 0) == 0 && close(both[1]) == 0);
}

/* At one moment or another the handler finds the thread with a lock of the library. */
static void ended_at_work(int round)
{
    static char text[100];
    int both[2];
    here.sin_port = 0;
    alarm(60);
    int waiting = listener();
    socklen_t len = sizeof here;
    CHECK(getsockname(waiting, (struct sockaddr *)&here, &len) == 0);
    CHECK((both[0] = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP)) >= 0);
    CHECK(connect(both[0], (struct sockaddr *)&here, sizeof here) == 0);
    on_signal(ends, 3000 + 500 * round);
    for (;;)
        send(both[0], text, sizeof text, MSG_DONTWAIT);
}

int main(int argc, char **argv)
{
    int status;
    CHECK(argc == 2);
    here = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(atoi(argv[1])) };
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setenv("TRESSE_EXIT_WAIT", "500", 1);
    for (int round = 0; round < 10; round++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0)
            ended_at_work(round);
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    alarm(60);
    closed_while_waited_on();
    closed_while_at_work();
    left_by_a_jump();
    return 0;
}
