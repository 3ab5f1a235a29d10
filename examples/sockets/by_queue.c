/* An application that feeds each stream by what waits on it: the program behind figure 6 of "Transmission Scheduling
 * Optimizations for Concurrent Multipath Transfer". Two streams are mapped to two paths. Fed in turn, both go as fast as the slower
 * path; fed by its queue, each goes as fast as its own.
 *
 *     cc -o by_queue by_queue.c $(pkg-config --cflags --libs tresse-sockets)
 *     ./by_queue server 7000 10.0.1.2 10.0.2.2
 *     ./by_queue client 7000 10 by_queue 10.0.1.1 10.0.2.1 10.0.1.2 10.0.2.2    # seconds; by_queue or in_turn; own, peer's
 *
 * Both ends print the bytes of each stream; the server says before that it listens.
 */
#define TRESSE_SOCKETS_PLAIN
#include <tresse_sctp.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STREAMS 2
/* A stream that has no more than LOW bytes waiting gets more, up to HIGH. */
#define LOW (16 * 1024)
#define HIGH (64 * 1024)

static char block[1400];

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

/* `count` names out of texts. */
static void names(struct sockaddr_in *into, char **texts, int count, int port)
{
    for (int at = 0; at < count; at++) {
        into[at] = (struct sockaddr_in) { .sin_family = AF_INET, .sin_port = htons(port) };
        if (inet_pton(AF_INET, texts[at], &into[at].sin_addr) != 1) {
            fprintf(stderr, "\"%s\": an IPv4 address is accepted\n", texts[at]);
            exit(2);
        }
    }
}

static void option(int fd, int name, const void *value, socklen_t size)
{
    if (setsockopt(fd, IPPROTO_SCTP, name, value, size) != 0)
        fail("setsockopt");
}

static void print(const long *bytes)
{
    for (int stream = 0; stream < STREAMS; stream++)
        printf("stream %d: %ld bytes\n", stream, bytes[stream]);
}

static void serve(int port, char **own)
{
    struct sockaddr_in here[2];
    long bytes[STREAMS] = { 0 };
    int waiting = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), on = 1;
    names(here, own, 2, port);
    if (sctp_bindx(waiting, (struct sockaddr *)here, 2, SCTP_BINDX_ADD_ADDR) != 0 || listen(waiting, 1) != 0)
        fail("listen");
    printf("listening\n");
    fflush(stdout);
    int fd = accept(waiting, NULL, NULL);
    if (fd < 0)
        fail("accept");
    option(fd, SCTP_RECVRCVINFO, &on, sizeof on);
    for (;;) {
        static char data[65536];
        struct sctp_rcvinfo info;
        socklen_t room = sizeof info;
        unsigned kind = 0;
        int flags = 0;
        struct iovec into = { data, sizeof data };
        int got = sctp_recvv(fd, &into, 1, NULL, NULL, &info, &room, &kind, &flags);
        if (got <= 0)
            break;
        if (kind == SCTP_RECVV_RCVINFO && info.rcv_sid < STREAMS)
            bytes[info.rcv_sid] += got;
    }
    print(bytes);
    /* The sockets live in this process: what they still have to say is said before it ends. */
    tresse_finish(5000);
}

/* Bytes that wait on each stream. */
static void waiting_on(int fd, uint32_t *unsent)
{
    char room[sizeof(struct sctp_tresse_stream_queue) + STREAMS * sizeof(uint32_t)] = { 0 };
    struct sctp_tresse_stream_queue *queue = (struct sctp_tresse_stream_queue *)room;
    socklen_t size = sizeof room;
    if (getsockopt(fd, IPPROTO_SCTP, SCTP_TRESSE_STREAM_QUEUE, queue, &size) != 0)
        fail("SCTP_TRESSE_STREAM_QUEUE");
    memcpy(unsent, queue->ssq_unsent_on, STREAMS * sizeof *unsent);
}

/* One message; 0 where there is no room. */
static int give(int fd, int stream, long *bytes)
{
    if (sctp_sendmsg(fd, block, sizeof block, NULL, 0, 0, 0, stream, 0, 0) < 0) {
        if (errno == EAGAIN)
            return 0;
        fail("sctp_sendmsg");
    }
    bytes[stream] += sizeof block;
    return 1;
}

/* Waits until a stream runs low, which makes the socket readable, or for a moment. */
static void wait_for_low(int fd)
{
    union sctp_notification told;
    struct pollfd one = { .fd = fd, .events = POLLIN };
    if (poll(&one, 1, 10) > 0)
        while (recv(fd, &told, sizeof told, 0) > 0)
            ;
}

static void by_queue(int fd, long *bytes)
{
    uint32_t unsent[STREAMS];
    waiting_on(fd, unsent);
    for (int stream = 0; stream < STREAMS; stream++)
        if (unsent[stream] <= LOW)
            for (; unsent[stream] < HIGH && give(fd, stream, bytes); unsent[stream] += sizeof block)
                ;
    wait_for_low(fd);
}

static void in_turn(int fd, long *bytes)
{
    static int stream;
    if (give(fd, stream, bytes)) {
        stream = (stream + 1) % STREAMS;
        return;
    }
    struct pollfd one = { .fd = fd, .events = POLLOUT };
    poll(&one, 1, 10);
}

static void send_for(int port, double seconds, int is_by_queue, char **addresses)
{
    struct sockaddr_in own[2], peer[2];
    long bytes[STREAMS] = { 0 };
    int fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), buffer = 1024 * 1024;
    struct sctp_assoc_value multipath = { SCTP_FUTURE_ASSOC, 1 };
    struct sctp_tresse_choice map = { SCTP_FUTURE_ASSOC, "fixed:0,1" };
    struct sctp_event event = { SCTP_FUTURE_ASSOC, SCTP_TRESSE_STREAM_LOW, 1 };
    names(own, addresses, 2, 0);
    names(peer, addresses + 2, 2, port);
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
    option(fd, SCTP_CMT_ON_OFF, &multipath, sizeof multipath);
    option(fd, SCTP_TRESSE_STREAM_MAP, &map, sizeof map);
    option(fd, SCTP_EVENT, &event, sizeof event);
    if (sctp_bindx(fd, (struct sockaddr *)own, 2, SCTP_BINDX_ADD_ADDR) != 0)
        fail("sctp_bindx");
    if (sctp_connectx(fd, (struct sockaddr *)peer, 2, NULL) != 0)
        fail("sctp_connectx");
    for (int stream = 0; stream < STREAMS; stream++) {
        struct sctp_tresse_low_water mark = { .slw_stream = stream, .slw_bytes = LOW };
        option(fd, SCTP_TRESSE_LOW_WATER, &mark, sizeof mark);
    }
    fcntl(fd, F_SETFL, O_NONBLOCK);
    for (double end = now() + seconds; now() < end;)
        if (is_by_queue)
            by_queue(fd, bytes);
        else
            in_turn(fd, bytes);
    /* What was accepted arrives before the end. */
    fcntl(fd, F_SETFL, 0);
    shutdown(fd, SHUT_WR);
    union sctp_notification told;
    while (recv(fd, &told, sizeof told, 0) > 0)
        ;
    print(bytes);
    tresse_finish(5000);
}

int main(int count, char **words)
{
    if (count == 5 && !strcmp(words[1], "server")) {
        serve(atoi(words[2]), words + 3);
        return 0;
    }
    if (count == 9 && !strcmp(words[1], "client")
        && (!strcmp(words[4], "by_queue") || !strcmp(words[4], "in_turn"))) {
        send_for(atoi(words[2]), atof(words[3]), !strcmp(words[4], "by_queue"), words + 5);
        return 0;
    }
    fprintf(stderr, "by_queue server PORT OWN OWN | by_queue client PORT SECONDS by_queue|in_turn OWN OWN PEER PEER\n");
    return 2;
}
