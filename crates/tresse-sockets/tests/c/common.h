/* What the programs of the tests share. Each fails with a line that says where. */
#define TRESSE_SOCKETS_PLAIN
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>
#include <arpa/inet.h>
#include "tresse_sctp.h"

#define CHECK(condition) do { if (!(condition)) { \
    fprintf(stderr, "%s:%d: not so: %s (errno %d, %s)\n", __FILE__, __LINE__, #condition, errno, strerror(errno)); \
    exit(1); } } while (0)
/* That a call fails with this number. */
#define FAILS(call, number) do { errno = 0; long got_ = (long)(call); if (got_ != -1 || errno != (number)) { \
    fprintf(stderr, "%s:%d: %s gave %ld and errno %d (%s), not %s\n", __FILE__, __LINE__, #call, got_, errno, \
        strerror(errno), #number); exit(1); } } while (0)

static inline struct sockaddr_in name_of(const char *address, int port)
{
    struct sockaddr_in name = { .sin_family = AF_INET, .sin_port = htons(port) };
    CHECK(inet_pton(AF_INET, address, &name.sin_addr) == 1);
    return name;
}

#define NAME(name) ((struct sockaddr *)&(name))

static inline int port_of(int fd)
{
    struct sockaddr_in name;
    socklen_t len = sizeof name;
    CHECK(getsockname(fd, NAME(name), &len) == 0 && len == sizeof name);
    return ntohs(name.sin_port);
}

/* A socket on `address`, on a port that is free; it listens. */
static inline int listener(int type, const char *address)
{
    int fd = socket(AF_INET, type, IPPROTO_SCTP);
    CHECK(fd >= 0);
    struct sockaddr_in name = name_of(address, 0);
    CHECK(bind(fd, NAME(name), sizeof name) == 0);
    CHECK(listen(fd, 100) == 0);
    return fd;
}

/* A one-to-one socket that is connected to `port` on `address`. */
static inline int connected(const char *address, int port)
{
    int fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    CHECK(fd >= 0);
    struct sockaddr_in name = name_of(address, port);
    CHECK(connect(fd, NAME(name), sizeof name) == 0);
    return fd;
}

/* Both ends of an association on `address`, with one-to-one sockets. */
static inline void pair(const char *address, int ends[2])
{
    int waiting = listener(SOCK_STREAM, address);
    ends[0] = connected(address, port_of(waiting));
    ends[1] = accept(waiting, NULL, NULL);
    CHECK(ends[1] >= 0);
    CHECK(close(waiting) == 0);
}

static inline int ready(int fd, short events)
{
    struct pollfd one = { .fd = fd, .events = events };
    CHECK(poll(&one, 1, 0) >= 0);
    return one.revents & events;
}

static inline void wait_for(int fd, short events)
{
    struct pollfd one = { .fd = fd, .events = events };
    int got;
    while ((got = poll(&one, 1, 100000)) < 0 && errno == EINTR)
        ;
    CHECK(got == 1 && (one.revents & events));
}

/* Waits until the peer has acknowledged everything: all of it is there to be read. */
static inline void arrived(int fd)
{
    struct sctp_tresse_stream_queue queue = { .ssq_used = 1 };
    while (queue.ssq_used > 0) {
        struct timespec moment = { 0, 1000000 };
        socklen_t len = sizeof queue;
        nanosleep(&moment, NULL);
        CHECK(getsockopt(fd, IPPROTO_SCTP, SCTP_TRESSE_STREAM_QUEUE, &queue, &len) == 0);
    }
}

/* A one-to-many socket and its associations with two peers, whose names and sockets these are. All buffers are small, and no message
 * waits for more than 30 s. */
static inline int with_two_peers(struct sockaddr_in names[2], int ends[2])
{
    int center = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP), small = 6000;
    struct timeval limit = { 30, 0 };
    CHECK(setsockopt(center, SOL_SOCKET, SO_SNDBUF, &small, sizeof small) == 0);
    CHECK(setsockopt(center, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) == 0);
    for (int at = 0; at < 2; at++) {
        int waiting = listener(SOCK_STREAM, "127.0.0.1");
        CHECK(setsockopt(waiting, SOL_SOCKET, SO_RCVBUF, &small, sizeof small) == 0);
        names[at] = name_of("127.0.0.1", port_of(waiting));
        CHECK(connect(center, NAME(names[at]), sizeof names[at]) == 0);
        CHECK((ends[at] = accept(waiting, NULL, NULL)) >= 0 && close(waiting) == 0);
    }
    return center;
}

/* Sends to a peer that reads nothing until its receive buffer is full, and then the send buffer. */
static inline void fill(int fd, struct sockaddr_in peer)
{
    static char message[1000];
    struct pollfd one = { .fd = fd, .events = POLLOUT };
    do {
        while (sendto(fd, message, sizeof message, MSG_DONTWAIT, NAME(peer), sizeof peer) == sizeof message)
            ;
        CHECK(errno == EAGAIN);
    } while (poll(&one, 1, 300) == 1);
}
