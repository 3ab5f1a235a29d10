/* Calls that have to wait, of one-to-many sockets: connecting without turning in circles, and messages to all of which each comes
 * once. */
#define _GNU_SOURCE
#include "common.h"
#include <sys/time.h>

static long microseconds_of_thread(void)
{
    struct timespec used;
    CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used) == 0);
    return used.tv_sec * 1000000L + used.tv_nsec / 1000;
}

/* Nobody answers. The call sleeps until its time is over: what it uses of the processor is a small part of that. */
static void unanswered(void)
{
    int fd = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP), silent = (socket)(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in name = name_of("127.0.0.1", 0), nobody = name_of("127.0.0.1", 7);
    socklen_t len = sizeof name;
    CHECK((bind)(silent, NAME(name), sizeof name) == 0 && (getsockname)(silent, NAME(name), &len) == 0);
    struct sctp_udpencaps udp = { .sue_port = name.sin_port };
    if (setsockopt(fd, IPPROTO_SCTP, SCTP_REMOTE_UDP_ENCAPS_PORT, &udp, sizeof udp) != 0)
        nobody = name_of("192.0.2.1", 7); /* Over raw IP: an address of nobody (RFC 5737). */
    struct timeval limit = { 0, 800000 };
    CHECK(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) == 0);
    long before = microseconds_of_thread();
    FAILS(connect(fd, NAME(nobody), sizeof nobody), EINPROGRESS);
    CHECK(microseconds_of_thread() - before < 200000);
    CHECK(close(fd) == 0);
    /* Five INITs with timeouts of 100 ms. Those of RTO.Initial would take 31 s. */
    fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    (void)setsockopt(fd, IPPROTO_SCTP, SCTP_REMOTE_UDP_ENCAPS_PORT, &udp, sizeof udp);
    struct sctp_initmsg init = { .sinit_max_attempts = 4, .sinit_max_init_timeo = 100 };
    CHECK(setsockopt(fd, IPPROTO_SCTP, SCTP_INITMSG, &init, sizeof init) == 0);
    limit.tv_sec = 30;
    CHECK(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) == 0);
    FAILS(connect(fd, NAME(nobody), sizeof nobody), ETIMEDOUT);
    CHECK(close(fd) == 0 && (close)(silent) == 0);
}

/* It succeeds, is refused, and goes on beside an association that exists. */
static void answered(void)
{
    int far = listener(SOCK_SEQPACKET, "127.0.0.1"), other = listener(SOCK_STREAM, "127.0.0.1");
    int near = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP), spare = listener(SOCK_STREAM, "127.0.0.1");
    struct sockaddr_in name = name_of("127.0.0.1", port_of(far)), gone = name_of("127.0.0.1", port_of(spare));
    sctp_assoc_t id = 0;
    CHECK(connect(near, NAME(name), sizeof name) == 0);
    FAILS(connect(near, NAME(name), sizeof name), EISCONN);
    name = name_of("127.0.0.1", port_of(other));
    CHECK(sctp_connectx(near, NAME(name), 1, &id) == 0 && id >= 3);
    CHECK(close(spare) == 0);
    FAILS(connect(near, NAME(gone), sizeof gone), ECONNREFUSED);
    unsigned count = 0;
    socklen_t len = sizeof count;
    CHECK(getsockopt(near, IPPROTO_SCTP, SCTP_GET_ASSOC_NUMBER, &count, &len) == 0 && count == 2);
    CHECK(close(near) == 0 && close(far) == 0 && close(other) == 0);
}

#define ENDS 3
#define SLOW 1
#define MESSAGES 200

static char block[1000];

/* Takes what has come, each message once and in its turn. */
static void take(int fd, int *next)
{
    int number;
    while (recv(fd, block, sizeof block, MSG_DONTWAIT) == sizeof block) {
        memcpy(&number, block, sizeof number);
        CHECK(number == *next);
        ++*next;
    }
    CHECK(errno == EAGAIN);
}

/* SCTP_SENDALL where the one in the middle has no room: the call is made again until it succeeds, and nobody has anything twice. */
static void everybody(int not_blocking)
{
    int center = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP), small = 6000, ends[ENDS], next[ENDS] = { 0 };
    CHECK(setsockopt(center, SOL_SOCKET, SO_SNDBUF, &small, sizeof small) == 0);
    for (int at = 0; at < ENDS; at++) {
        int waiting = listener(SOCK_STREAM, "127.0.0.1");
        if (at == SLOW)
            CHECK(setsockopt(waiting, SOL_SOCKET, SO_RCVBUF, &small, sizeof small) == 0);
        struct sockaddr_in name = name_of("127.0.0.1", port_of(waiting));
        CHECK(connect(center, NAME(name), sizeof name) == 0);
        CHECK((ends[at] = accept(waiting, NULL, NULL)) >= 0 && close(waiting) == 0);
    }
    CHECK(!not_blocking || fcntl(center, F_SETFL, O_NONBLOCK) == 0);
    struct timeval limit = { 0, 20000 };
    CHECK(setsockopt(center, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) == 0);
    struct sctp_sndinfo info = { .snd_flags = SCTP_SENDALL, .snd_sid = 3 };
    static char message[1000];
    struct iovec all = { message, sizeof message };
    int refused = 0;
    for (int number = 0; number < MESSAGES;) {
        memcpy(message, &number, sizeof number);
        int sent = sctp_sendv(center, &all, 1, NULL, 0, &info, sizeof info, SCTP_SENDV_SNDINFO, 0);
        CHECK(sent == sizeof message || (sent == -1 && errno == EAGAIN));
        number += sent > 0;
        refused += sent < 0;
        for (int at = 0; at < ENDS; at++)
            if (at != SLOW || sent < 0)
                take(ends[at], &next[at]);
        if (sent < 0 && not_blocking)
            wait_for(center, POLLOUT);
    }
    CHECK(refused > 0);
    for (int at = 0; at < ENDS; at++)
        while (next[at] < MESSAGES) {
            wait_for(ends[at], POLLIN);
            take(ends[at], &next[at]);
        }
    info.snd_sid = 999;
    FAILS(sctp_sendv(center, &all, 1, NULL, 0, &info, sizeof info, SCTP_SENDV_SNDINFO, 0), EINVAL);
    for (int at = 0; at < ENDS; at++)
        CHECK(!ready(ends[at], POLLIN) && close(ends[at]) == 0);
    CHECK(close(center) == 0);
}

static void *reads_all(void *end)
{
    static char got[1000];
    for (int number = 0; number < MESSAGES; number++)
        CHECK(recv(*(int *)end, got, sizeof got, 0) == sizeof got);
    return NULL;
}

/* One peer reads nothing, and its send buffer is full. Messages to another one wait for nothing but that one's. */
static void one_slow_peer(void)
{
    int ends[2];
    struct sockaddr_in names[2];
    int center = with_two_peers(names, ends);
    static char message[1000];
    fill(center, names[0]);
    pthread_t reader;
    CHECK(pthread_create(&reader, NULL, reads_all, &ends[1]) == 0);
    for (int number = 0; number < MESSAGES; number++)
        CHECK(sendto(center, message, sizeof message, 0, NAME(names[1]), sizeof *names) == sizeof message);
    CHECK(pthread_join(reader, NULL) == 0);
    CHECK(close(ends[0]) == 0 && close(ends[1]) == 0 && close(center) == 0);
}

static void *sends_slowly(void *end)
{
    for (int number = 0; number < 3; number++) {
        usleep(30000);
        CHECK(send(*(int *)end, "slow", 4, 0) == 4);
    }
    return NULL;
}

/* recvmmsg waits for all messages, unless its flag, its limit or the end of the association says otherwise. */
static void several_at_once(void)
{
    int ends[2];
    char texts[4][10];
    struct iovec parts[4];
    struct mmsghdr all[4];
    memset(all, 0, sizeof all);
    for (int at = 0; at < 4; at++) {
        parts[at] = (struct iovec) { texts[at], sizeof texts[at] };
        all[at].msg_hdr = (struct msghdr) { .msg_iov = &parts[at], .msg_iovlen = 1 };
    }
    pair("127.0.0.1", ends);
    pthread_t sender;
    CHECK(pthread_create(&sender, NULL, sends_slowly, &ends[0]) == 0);
    CHECK(recvmmsg(ends[1], all, 3, 0, NULL) == 3 && all[2].msg_len == 4);
    CHECK(pthread_join(sender, NULL) == 0);
    for (int number = 0; number < 4; number++)
        CHECK(send(ends[0], "there", 5, 0) == 5);
    arrived(ends[0]);
    struct timespec limit = { 0, 0 };
    CHECK(recvmmsg(ends[1], all, 3, 0, &limit) == 1 && limit.tv_sec == 0 && limit.tv_nsec == 0);
    limit = (struct timespec) { 100000, 0 };
    CHECK(recvmmsg(ends[1], all, 2, 0, &limit) == 2 && limit.tv_sec > 0 && limit.tv_sec < 100000);
    CHECK(recvmmsg(ends[1], all, 3, MSG_WAITFORONE, NULL) == 1);
    limit.tv_nsec = 1000000000;
    FAILS(recvmmsg(ends[1], all, 3, 0, &limit), EINVAL);
    /* The next call reports the error. */
    CHECK(send(ends[0], "last", 4, 0) == 4);
    arrived(ends[0]);
    struct linger linger = { 1, 0 };
    CHECK(setsockopt(ends[0], SOL_SOCKET, SO_LINGER, &linger, sizeof linger) == 0 && close(ends[0]) == 0);
    wait_for(ends[1], POLLHUP);
    CHECK(recvmmsg(ends[1], all, 3, 0, NULL) == 1 && all[0].msg_len == 4);
    FAILS(recvmmsg(ends[1], all, 3, 0, NULL), ECONNRESET);
    FAILS(recv(ends[1], texts[0], 10, 0), ENOTCONN);
    CHECK(close(ends[1]) == 0);
}

int main(void)
{
    several_at_once();
    one_slow_peer();
    unanswered();
    answered();
    everybody(1);
    everybody(0);
    return 0;
}
