/* A program for the kernel's SCTP whose signal handler writes to a pipe and to a socket, and whose handlers for forks write to the
 * pipe and raise the signal. Those that were registered before it has any socket cannot use one, later ones can. A call that never
 * comes back ends it by SIGALRM. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/sctp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static int ends[2], near = -1;
static volatile sig_atomic_t handled;

static void on_signal(int number)
{
    int before = errno;
    struct pollfd one = { .fd = ends[1], .events = POLLOUT };
    (void)number;
    if (poll(&one, 1, 0) == 1 && write(ends[1], "h", 1) == 1)
        handled++;
    int copy = fcntl(ends[0], F_DUPFD, 0);
    if (copy >= 0)
        close(copy);
    if (near >= 0 && send(near, "from a handler", 14, MSG_DONTWAIT) != 14)
        abort();
    errno = before;
}

static void mark(const char *text)
{
    CHECK(write(ends[1], text, 1) == 1 && raise(SIGUSR1) == 0);
    if (near < 0)
        return;
    CHECK(send(near, "too early", 9, 0) == -1 && errno == EDEADLK);
    CHECK(socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP) == -1 && errno == EDEADLK);
    CHECK(dup(near) == -1 && errno == EDEADLK);
}

static void before_fork(void) { mark("b"); }
static void in_parent(void) { mark("p"); }
static void in_child(void) { mark("c"); }
static void sends(void) { CHECK(near < 0 || send(near, "of a fork", 9, 0) == 9); }

static int count_of(const char *text, ssize_t len, char what)
{
    int count = 0;
    for (ssize_t at = 0; at < len; at++)
        count += text[at] == what;
    return count;
}

/* Changes the table again and again. */
static void *opens_and_closes(void *stop)
{
    while (!*(volatile int *)stop) {
        int fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
        CHECK(fd >= 0 && close(fd) == 0);
    }
    return NULL;
}

/* Signals come at any moment of calls on descriptors that are no sockets of SCTP. */
static void many_signals(void)
{
    volatile int stop = 0;
    pthread_t other;
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    CHECK(pthread_sigmask(SIG_BLOCK, &signals, NULL) == 0);
    CHECK(pthread_create(&other, NULL, opens_and_closes, (void *)&stop) == 0);
    CHECK(pthread_sigmask(SIG_UNBLOCK, &signals, NULL) == 0);
    timer_t timer;
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
    CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    struct itimerspec often = { { 0, 100000 }, { 0, 100000 } };
    CHECK(timer_settime(timer, 0, &often, NULL) == 0);
    char text[1000];
    for (handled = 0; handled < 2000;) {
        ssize_t len = read(ends[0], text, sizeof text);
        CHECK(len > 0 || errno == EAGAIN || errno == EINTR);
    }
    CHECK(timer_delete(timer) == 0);
    stop = 1;
    CHECK(pthread_join(other, NULL) == 0);
    while (read(ends[0], text, sizeof text) > 0)
        ;
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    alarm(60);
    CHECK(pipe2(ends, O_NONBLOCK) == 0);
    CHECK(pthread_atfork(before_fork, in_parent, in_child) == 0);
    struct sigaction action = { .sa_handler = on_signal };
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    many_signals();

    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1]))};
    CHECK(inet_pton(AF_INET, "127.0.0.1", &name.sin_addr) == 1);
    int waiting = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), calling = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    CHECK(bind(waiting, (struct sockaddr *)&name, sizeof name) == 0 && listen(waiting, 1) == 0);
    CHECK(connect(calling, (struct sockaddr *)&name, sizeof name) == 0);
    int far = accept(waiting, NULL, NULL);
    CHECK(far >= 0);
    CHECK(pthread_atfork(sends, sends, sends) == 0);
    near = calling;
    handled = 0;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0)
        _exit(handled == 1 ? 0 : 1);
    int status;
    while (waitpid(child, &status, 0) != child)
        CHECK(errno == EINTR);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(handled == 1);

    /* The signals of the handlers before and after the fork in the parent have become one. */
    char text[100];
    ssize_t len = read(ends[0], text, sizeof text);
    CHECK(len == 5 && count_of(text, len, 'b') == 1 && count_of(text, len, 'p') == 1 && count_of(text, len, 'c') == 1);
    CHECK(count_of(text, len, 'h') == 2);
    int of_signals = 0, of_forks = 0;
    while (of_signals + of_forks < 5) {
        len = recv(far, text, sizeof text, 0);
        of_signals += len == 14 && !memcmp(text, "from a handler", 14);
        of_forks += len == 9 && !memcmp(text, "of a fork", 9);
    }
    CHECK(of_signals == 2 && of_forks == 3);
    /* The library may fork once more while the process ends, after it has closed the sockets. */
    near = -1;
    return 0;
}
