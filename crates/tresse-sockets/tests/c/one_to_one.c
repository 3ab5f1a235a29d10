/* One-to-one sockets: from `socket` to `close`, blocking and not, as a program for TCP would. */
#include "common.h"
#include <net/if.h>
#include <signal.h>
#include <sys/resource.h>

/* Programs ask any socket of IPv4 for the addresses of interfaces. */
static void addresses_of_interfaces(void)
{
    int fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    struct ifreq asked = { .ifr_name = "lo" };
    struct sockaddr_in name;
    CHECK(ioctl(fd, SIOCGIFADDR, &asked) == 0);
    memcpy(&name, &asked.ifr_addr, sizeof name);
    CHECK(name.sin_family == AF_INET && name.sin_addr.s_addr == htonl(INADDR_LOOPBACK));
    CHECK(ioctl(fd, SIOCGIFNETMASK, &asked) == 0);
    memcpy(&name, &asked.ifr_netmask, sizeof name);
    CHECK(name.sin_addr.s_addr == htonl(0xff000000));
    strcpy(asked.ifr_name, "no-such-0");
    FAILS(ioctl(fd, SIOCGIFADDR, &asked), ENODEV);
    CHECK(close(fd) == 0);
    fd = socket(AF_INET6, SOCK_STREAM, IPPROTO_SCTP);
    strcpy(asked.ifr_name, "lo");
    FAILS(ioctl(fd, SIOCGIFADDR, &asked), ENOTTY);
    CHECK(close(fd) == 0);
}

static void blocking(void)
{
    int waiting = listener(SOCK_STREAM, "127.0.0.1");
    CHECK(!ready(waiting, POLLIN));
    int near = connected("127.0.0.1", port_of(waiting));
    struct sockaddr_in name, peer;
    socklen_t len = sizeof peer;
    wait_for(waiting, POLLIN);
    int far = accept(waiting, NAME(peer), &len);
    CHECK(far >= 0 && len == sizeof peer);
    CHECK(ntohs(peer.sin_port) == port_of(near));
    CHECK(peer.sin_addr.s_addr == htonl(INADDR_LOOPBACK));
    len = sizeof name;
    CHECK(getpeername(near, NAME(name), &len) == 0);
    CHECK(ntohs(name.sin_port) == port_of(waiting));

    char text[100];
    CHECK(!ready(far, POLLIN) && ready(far, POLLOUT));
    CHECK(send(near, "hello", 5, 0) == 5);
    CHECK(write(near, "world!", 6) == 6);
    wait_for(far, POLLIN);
    int waits = 0;
    CHECK(ioctl(far, FIONREAD, &waits) == 0 && waits == 5);
    CHECK(recv(far, text, sizeof text, MSG_PEEK) == 5);
    CHECK(recv(far, text, sizeof text, 0) == 5 && !memcmp(text, "hello", 5));
    CHECK(read(far, text, 2) == 2 && !memcmp(text, "wo", 2));
    CHECK(read(far, text, sizeof text) == 4 && !memcmp(text, "rld!", 4));
    CHECK(!ready(far, POLLIN));
    FAILS(recv(far, text, sizeof text, MSG_DONTWAIT), EAGAIN);

    struct iovec parts[2] = { { "one ", 4 }, { "two", 3 } }, into[2] = { { text, 3 }, { text + 50, 50 } };
    CHECK(writev(far, parts, 2) == 7);
    CHECK(readv(near, into, 2) == 7 && !memcmp(text, "one", 3) && !memcmp(text + 50, " two", 4));

    CHECK(shutdown(near, SHUT_WR) == 0);
    CHECK(recv(far, text, sizeof text, 0) == 0);
    CHECK(recv(near, text, sizeof text, 0) == 0);
    FAILS(send(near, "late", 4, MSG_NOSIGNAL), EPIPE);
    CHECK(close(near) == 0 && close(far) == 0 && close(waiting) == 0);
    FAILS(send(near, "gone", 4, 0), EBADF);
    FAILS(close(near), EBADF);
}

static void not_blocking(void)
{
    int waiting = listener(SOCK_STREAM, "127.0.0.1");
    CHECK(fcntl(waiting, F_SETFL, O_NONBLOCK) == 0);
    FAILS(accept(waiting, NULL, NULL), EAGAIN);
    int near = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, IPPROTO_SCTP);
    struct sockaddr_in name = name_of("127.0.0.1", port_of(waiting));
    CHECK(!ready(near, POLLOUT));
    FAILS(connect(near, NAME(name), sizeof name), EINPROGRESS);
    wait_for(near, POLLOUT);
    int error = -1;
    socklen_t len = sizeof error;
    CHECK(getsockopt(near, SOL_SOCKET, SO_ERROR, &error, &len) == 0 && error == 0);
    FAILS(connect(near, NAME(name), sizeof name), EISCONN);
    wait_for(waiting, POLLIN);
    int far = accept4(waiting, NULL, NULL, SOCK_NONBLOCK);
    CHECK(far >= 0);
    static char block[10000], into[10000];
    long sent = 0, received = 0;
    /* Until the peer's window and the own buffer are full. */
    do {
        ssize_t count;
        while ((count = send(near, block, sizeof block, 0)) > 0)
            sent += count;
        CHECK(count < 0 && errno == EAGAIN);
    } while (ready(near, POLLOUT));
    while (received < sent) {
        wait_for(far, POLLIN);
        ssize_t count = recv(far, into, sizeof into, 0);
        CHECK(count > 0);
        received += count;
    }
    wait_for(near, POLLOUT);
    FAILS(recv(far, into, sizeof into, 0), EAGAIN);
    CHECK(close(near) == 0);
    wait_for(far, POLLIN);
    CHECK(recv(far, into, sizeof into, 0) == 0);
    CHECK(close(far) == 0 && close(waiting) == 0);
}

static void refused(void)
{
    int spare = listener(SOCK_STREAM, "127.0.0.1");
    int port = port_of(spare);
    CHECK(close(spare) == 0);
    int near = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    struct sockaddr_in name = name_of("127.0.0.1", port);
    FAILS(connect(near, NAME(name), sizeof name), ECONNREFUSED);
    FAILS(send(near, "x", 1, MSG_NOSIGNAL), EPIPE);
    char text[1];
    FAILS(recv(near, text, 1, 0), ENOTCONN);
    CHECK(close(near) == 0);
}

/* A socket that is bound, and neither listens nor connects, has no association: its peers hear so at once. */
static void refused_by_a_bound_socket(void)
{
    int far = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), near = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    struct sockaddr_in name = name_of("127.0.0.1", 0);
    CHECK(bind(far, NAME(name), sizeof name) == 0);
    name = name_of("127.0.0.1", port_of(far));
    FAILS(connect(near, NAME(name), sizeof name), ECONNREFUSED);
    CHECK(listen(far, 1) == 0 && close(near) == 0);
    near = connected("127.0.0.1", port_of(far));
    CHECK(close(near) == 0 && close(far) == 0);
}

static void duplicates(void)
{
    int ends[2];
    pair("127.0.0.1", ends);
    int copy = dup(ends[0]);
    CHECK(copy >= 0 && copy != ends[0]);
    CHECK(close(ends[0]) == 0);
    CHECK(send(copy, "still", 5, 0) == 5);
    char text[10];
    CHECK(recv(ends[1], text, sizeof text, 0) == 5);
    int other = fcntl(copy, F_DUPFD_CLOEXEC, 100);
    CHECK(other >= 100 && (fcntl(other, F_GETFD) & FD_CLOEXEC));
    CHECK(dup2(copy, other) == other);
    CHECK(close(copy) == 0);
    CHECK(send(other, "there", 5, 0) == 5);
    CHECK(recv(ends[1], text, sizeof text, 0) == 5);
    CHECK(close(other) == 0);
    CHECK(recv(ends[1], text, sizeof text, 0) == 0);
    CHECK(close(ends[1]) == 0);
}

/* The port of a listener without connections is free when `close` returns. */
static void binds_again(void)
{
    for (int time = 0; time < 200; time++) {
        int fd = listener(SOCK_STREAM, "127.0.0.1");
        struct sockaddr_in name = name_of("127.0.0.1", port_of(fd));
        CHECK(close(fd) == 0);
        fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
        CHECK(fd >= 0 && bind(fd, NAME(name), sizeof name) == 0);
        CHECK(close(fd) == 0);
    }
}

/* A connection that `accept` has no descriptor for waits until there is one. */
static void without_descriptors(void)
{
    int waiting = listener(SOCK_STREAM, "127.0.0.1"), near = connected("127.0.0.1", port_of(waiting));
    wait_for(waiting, POLLIN);
    struct rlimit before, few;
    CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
    int highest = 0, filled[1024], count = 0;
    for (int fd = 0; fd < 1024; fd++)
        if ((fcntl)(fd, F_GETFD) >= 0)
            highest = fd;
    few = before;
    few.rlim_cur = highest + 1;
    CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
    while (count < 1024 && (filled[count] = (open)("/dev/null", O_RDONLY)) >= 0)
        count++;
    FAILS(accept(waiting, NULL, NULL), EMFILE);
    CHECK(ready(waiting, POLLIN));
    CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
    int far = accept(waiting, NULL, NULL);
    CHECK(far >= 0);
    char text[10];
    CHECK(send(near, "still", 5, 0) == 5 && recv(far, text, sizeof text, 0) == 5);
    while (count > 0)
        CHECK((close)(filled[--count]) == 0);
    CHECK(close(near) == 0 && close(far) == 0 && close(waiting) == 0);
}

static void *blocked_reader(void *fd)
{
    char text[10];
    CHECK(recv(*(int *)fd, text, sizeof text, 0) <= 0);
    return NULL;
}

static void *blocked_accept(void *fd)
{
    FAILS(accept(*(int *)fd, NULL, NULL), EBADF);
    return NULL;
}

/* As reading and writing do, `accept` says that its socket is closed. */
static void closed_while_accepting(void)
{
    int waiting = listener(SOCK_STREAM, "127.0.0.1"), fd = waiting;
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, blocked_accept, &fd) == 0);
    usleep(200000);
    CHECK(close(waiting) == 0 && pthread_join(thread, NULL) == 0);
}

/* The end of a call on what had the number before leaves the number alone. */
static void replaced(void)
{
    int first[2], second[2];
    pair("127.0.0.1", first);
    pair("127.0.0.1", second);
    /* Should the thread begin so late that it reads from the new one. */
    struct timeval limit = { 5, 0 };
    CHECK(setsockopt(second[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, blocked_reader, &first[0]) == 0);
    usleep(200000);
    CHECK(dup2(second[0], first[0]) == first[0]);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK((fcntl)(first[0], F_GETFD) >= 0);
    char text[10];
    CHECK(send(first[0], "new", 3, 0) == 3 && recv(second[1], text, sizeof text, 0) == 3);
    CHECK(close(first[0]) == 0);
    CHECK((fcntl)(first[0], F_GETFD) == -1);
    CHECK(send(second[0], "old", 3, 0) == 3 && recv(second[1], text, sizeof text, 0) == 3);
    CHECK(close(first[1]) == 0 && close(second[0]) == 0 && close(second[1]) == 0);
}

static void *bystander(void *released)
{
    char byte;
    CHECK((read)(*(int *)released, &byte, 1) == 0);
    return NULL;
}

/* SIGPIPE is for the thread that sends: another one, which has not blocked it, does not die of it. */
static void broken_pipe(void)
{
    int ends[2], pipes[2];
    char text[1];
    pair("127.0.0.1", ends);
    CHECK(pipe(pipes) == 0);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, bystander, &pipes[0]) == 0);
    sigset_t broken, before;
    CHECK(sigemptyset(&broken) == 0 && sigaddset(&broken, SIGPIPE) == 0);
    CHECK(pthread_sigmask(SIG_BLOCK, &broken, &before) == 0);
    CHECK(shutdown(ends[0], SHUT_WR) == 0);
    CHECK(recv(ends[1], text, sizeof text, 0) == 0 && recv(ends[0], text, sizeof text, 0) == 0);
    FAILS(send(ends[0], "late", 4, 0), EPIPE);
    struct timespec at_once = { 0, 0 };
    CHECK(sigtimedwait(&broken, NULL, &at_once) == SIGPIPE);
    CHECK(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
    CHECK((close)(pipes[1]) == 0 && pthread_join(thread, NULL) == 0 && (close)(pipes[0]) == 0);
    CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
}

static void *late_sender(void *fd)
{
    usleep(50000);
    CHECK(send(*(int *)fd, "late", 4, 0) == 4);
    return NULL;
}

static void event_loops(void)
{
    int ends[2];
    pair("127.0.0.1", ends);
    int loop = epoll_create1(0);
    struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data.fd = ends[1] };
    CHECK(epoll_ctl(loop, EPOLL_CTL_ADD, ends[1], &event) == 0);
    for (int round = 0; round < 20; round++) {
        CHECK(send(ends[0], "x", 1, 0) == 1);
        CHECK(epoll_wait(loop, &event, 1, 60000) == 1 && event.data.fd == ends[1]);
        char text[10];
        CHECK(recv(ends[1], text, sizeof text, MSG_DONTWAIT) == 1);
        FAILS(recv(ends[1], text, sizeof text, MSG_DONTWAIT), EAGAIN);
    }
    fd_set set;
    FD_ZERO(&set);
    FD_SET(ends[1], &set);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, late_sender, &ends[0]) == 0);
    CHECK(select(ends[1] + 1, &set, NULL, NULL, NULL) == 1);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK((close)(loop) == 0);
    CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
}

/* A socket has the lowest number that is free, and nothing of the library has one beside those of the program. */
static void lowest_numbers(void)
{
    int files[4], waiting, near, far;
    for (int at = 0; at < 4; at++)
        CHECK((files[at] = (open)("/dev/null", O_RDONLY)) >= 0);
    for (int at = 0; at < 4; at++)
        CHECK((close)(files[at]) == 0);
    CHECK((waiting = listener(SOCK_STREAM, "127.0.0.1")) == files[0]);
    CHECK((near = connected("127.0.0.1", port_of(waiting))) == files[1]);
    CHECK((far = accept(waiting, NULL, NULL)) == files[2]);
    CHECK((open)("/dev/null", O_RDONLY) == files[3] && (close)(files[3]) == 0);
    CHECK(close(near) == 0 && (open)("/dev/null", O_RDONLY) == files[1] && (close)(files[1]) == 0);
    CHECK(close(far) == 0 && close(waiting) == 0);
}

/* Binds a socket to what another one has just given back, or is about to. */
static void bound_at_last(int fd, struct sockaddr_in name)
{
    while (bind(fd, NAME(name), sizeof name) != 0) {
        CHECK(errno == EADDRINUSE);
        usleep(1000);
    }
}

/* Addresses that join a bound socket are its own until they leave, or it is closed. */
static void further_addresses(void)
{
    int fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), other = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    struct sockaddr_in first = name_of("127.0.0.2", 0);
    CHECK(bind(fd, NAME(first), sizeof first) == 0);
    int port = port_of(fd);
    struct sockaddr_in second = name_of("127.0.0.3", port), more[2] = { name_of("127.0.0.4", port), second };
    CHECK(sctp_bindx(fd, NAME(second), 1, SCTP_BINDX_ADD_ADDR) == 0 && listen(fd, 1) == 0);
    first.sin_port = second.sin_port;
    FAILS(bind(other, NAME(second), sizeof second), EADDRINUSE);
    CHECK(bind(other, NAME(more[0]), sizeof *more) == 0);
    FAILS(sctp_bindx(other, NAME(second), 1, SCTP_BINDX_ADD_ADDR), EADDRINUSE);
    CHECK(sctp_bindx(fd, NAME(second), 1, SCTP_BINDX_REM_ADDR) == 0);
    CHECK(sctp_bindx(other, NAME(second), 1, SCTP_BINDX_ADD_ADDR) == 0 && listen(other, 1) == 0);
    struct timeval limit = { 60, 0 };
    int near = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    CHECK(setsockopt(near, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) == 0);
    CHECK(connect(near, NAME(second), sizeof second) == 0);
    int far = accept(other, NULL, NULL);
    CHECK(far >= 0 && close(near) == 0 && close(far) == 0);
    CHECK(close(fd) == 0 && close(other) == 0);
    fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    other = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    bound_at_last(fd, first);
    bound_at_last(other, second);
    CHECK(close(fd) == 0 && close(other) == 0);
}

/* Addresses that a socket cannot have, and peers that cannot be one, are refused, whether it is bound or not. */
static void addresses_that_do_not_fit(void)
{
    int fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), on = 1;
    struct sockaddr_in name = name_of("127.0.0.2", 0), twice[2] = { name_of("127.0.0.3", 0), name_of("127.0.0.3", 0) };
    struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
    FAILS(sctp_bindx(fd, NAME(six), 1, SCTP_BINDX_ADD_ADDR), EINVAL);
    FAILS(sctp_bindx(fd, NAME(twice[0]), 2, SCTP_BINDX_ADD_ADDR), EINVAL);
    CHECK(bind(fd, NAME(name), sizeof name) == 0);
    FAILS(sctp_bindx(fd, NAME(six), 1, SCTP_BINDX_ADD_ADDR), EINVAL);
    FAILS(sctp_bindx(fd, NAME(twice[0]), 2, SCTP_BINDX_ADD_ADDR), EINVAL);
    struct sockaddr *names;
    CHECK(sctp_getladdrs(fd, 0, &names) == 1 && sctp_freeladdrs(names) == 0);
    twice[0].sin_port = htons(7);
    twice[1].sin_port = htons(8);
    FAILS(sctp_connectx(fd, NAME(twice[0]), 2, NULL), EINVAL);
    CHECK(close(fd) == 0);
    fd = socket(AF_INET6, SOCK_STREAM, IPPROTO_SCTP);
    CHECK(setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) == 0);
    /* Some hosts have no IPv6. */
    if (bind(fd, NAME(six), sizeof six) == 0)
        FAILS(sctp_bindx(fd, NAME(name), 1, SCTP_BINDX_ADD_ADDR), EINVAL);
    CHECK(close(fd) == 0);
}

int main(void)
{
    lowest_numbers();
    addresses_of_interfaces();
    further_addresses();
    addresses_that_do_not_fit();
    blocking();
    not_blocking();
    refused();
    refused_by_a_bound_socket();
    binds_again();
    duplicates();
    /* valgrind hands out descriptors beyond a lowered limit, and then calls them invalid. */
    const char *preloaded = getenv("LD_PRELOAD");
    if (!preloaded || !strstr(preloaded, "vgpreload"))
        without_descriptors();
    replaced();
    closed_while_accepting();
    broken_pipe();
    event_loops();
    return 0;
}
