/* Signal handlers while calls wait: with SA_RESTART these go on, unless a timeout is set, and without it they end with EINTR, as
 * signal(7) says of sockets. */
#include "common.h"
#include <signal.h>
#include <sys/time.h>

enum { WAITS = 5 };

static volatile sig_atomic_t handled;
static pthread_t waiting_thread;
static void (*act)(void);

static void on_signal(int number)
{
    (void)number;
    handled++;
}

static void take_signals(int flags)
{
    struct sigaction action = { .sa_handler = on_signal, .sa_flags = flags };
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    handled = 0;
}

/* Interrupts the waiting thread until its handler has run several times, and then lets it have what it waits for. */
static void *interrupts(void *nothing)
{
    struct timespec moment = { 0, 20000000 };
    while (handled < WAITS) {
        nanosleep(&moment, NULL);
        CHECK(pthread_kill(waiting_thread, SIGUSR1) == 0);
    }
    nanosleep(&moment, NULL);
    act();
    return nothing;
}

static pthread_t begin(void (*then)(void))
{
    pthread_t other;
    waiting_thread = pthread_self();
    act = then;
    CHECK(pthread_create(&other, NULL, interrupts, NULL) == 0);
    return other;
}

static void end(pthread_t other)
{
    CHECK(handled >= WAITS && pthread_join(other, NULL) == 0);
}

static int ends[2], far, near;
static char message[1000];

static void sends(void) { CHECK(send(ends[1], "x", 1, 0) == 1); }
static void reads(void)
{
    while (recv(ends[1], message, sizeof message, MSG_DONTWAIT) > 0)
        ;
}
static void calls(void)
{
    near = connected("127.0.0.1", port_of(far));
}
static void nothing(void) { }

/* Fills the buffers of a one-to-one socket, and sends one message more. */
static ssize_t send_more(void)
{
    struct pollfd one = { .fd = ends[0], .events = POLLOUT };
    do {
        while (send(ends[0], message, sizeof message, MSG_DONTWAIT) == sizeof message)
            ;
        CHECK(errno == EAGAIN);
    } while (poll(&one, 1, 300) == 1);
    return send(ends[0], message, sizeof message, 0);
}

static void in_a_process(void)
{
    char byte;
    take_signals(SA_RESTART);
    pthread_t other = begin(sends);
    CHECK(recv(ends[0], &byte, 1, 0) == 1);
    end(other);
    handled = 0;
    other = begin(reads);
    CHECK(send_more() == sizeof message);
    end(other);
}

int main(void)
{
    int small = 6000, accepted;
    far = listener(SOCK_STREAM, "127.0.0.1");
    CHECK(setsockopt(far, SOL_SOCKET, SO_RCVBUF, &small, sizeof small) == 0);
    ends[0] = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    CHECK(setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small) == 0);
    struct sockaddr_in name = name_of("127.0.0.1", port_of(far));
    CHECK(connect(ends[0], NAME(name), sizeof name) == 0);
    CHECK((ends[1] = accept(far, NULL, NULL)) >= 0);

    in_a_process();
    handled = 0;
    pthread_t other = begin(calls);
    CHECK((accepted = accept(far, NULL, NULL)) >= 0);
    end(other);
    CHECK(close(accepted) == 0 && close(near) == 0);

    /* A timeout ends that. */
    char byte;
    struct timeval limit = { 60, 0 };
    CHECK(setsockopt(ends[0], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) == 0);
    CHECK(setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0);
    handled = 0;
    other = begin(nothing);
    FAILS(send_more(), EINTR);
    while (handled < WAITS)
        FAILS(recv(ends[0], &byte, 1, 0), EINTR);
    end(other);
    limit.tv_sec = 0;
    CHECK(setsockopt(ends[0], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) == 0);
    CHECK(setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0);

    /* So does a handler without SA_RESTART. */
    take_signals(0);
    other = begin(nothing);
    FAILS(send(ends[0], message, sizeof message, 0), EINTR);
    while (handled < WAITS)
        FAILS(recv(ends[0], &byte, 1, 0), EINTR);
    end(other);
    reads();
    CHECK(close(ends[0]) == 0 && close(ends[1]) == 0 && close(far) == 0);
    return 0;
}
