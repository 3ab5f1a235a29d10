/* Many sockets, threads and event loops: `stress server PORT_FILE SOCKETS` answers every message, `stress client ADDRESS PORT
 * UDP_PORT SOCKETS` asks on every socket until each has had its answers, in order and none twice. */
#include "common.h"
#include <sys/resource.h>

#define ROUNDS 20
#define THREADS 4

static int each;
static int served;

static void *serve(void *given)
{
    int waiting = *(int *)given, loop = epoll_create1(0);
    struct epoll_event event = { .events = EPOLLIN, .data.fd = waiting };
    CHECK(epoll_ctl(loop, EPOLL_CTL_ADD, waiting, &event) == 0);
    while (__atomic_load_n(&served, __ATOMIC_SEQ_CST) < each * THREADS) {
        struct epoll_event events[64];
        int count = epoll_wait(loop, events, 64, 100);
        for (int at = 0; at < count; at++) {
            int fd = events[at].data.fd;
            if (fd == waiting) {
                int one = accept4(waiting, NULL, NULL, SOCK_NONBLOCK);
                if (one < 0) {
                    CHECK(errno == EAGAIN);
                    continue;
                }
                event.data.fd = one;
                CHECK(epoll_ctl(loop, EPOLL_CTL_ADD, one, &event) == 0);
                continue;
            }
            char data[2000];
            ssize_t got = recv(fd, data, sizeof data, 0);
            if (got < 0 && errno == EAGAIN)
                continue;
            CHECK(got >= 0);
            if (got > 0) {
                CHECK(send(fd, data, got, MSG_NOSIGNAL) == got);
                continue;
            }
            CHECK(epoll_ctl(loop, EPOLL_CTL_DEL, fd, NULL) == 0);
            CHECK(close(fd) == 0);
            __atomic_add_fetch(&served, 1, __ATOMIC_SEQ_CST);
        }
    }
    CHECK((close)(loop) == 0);
    return NULL;
}

static struct sockaddr_in peer;
static int udp_port;

struct asker {
    int fd, round;
};

static void ask(struct asker *one)
{
    char data[1000] = { 0 };
    memcpy(data, &one->round, sizeof one->round);
    CHECK(send(one->fd, data, 4 + (one->round * 97) % 900, 0) > 0);
}

static void *request(void *unused)
{
    (void)unused;
    int loop = epoll_create1(0), left = each;
    struct asker *askers = calloc(each, sizeof *askers);
    for (int at = 0; at < each; at++) {
        struct asker *one = &askers[at];
        one->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, IPPROTO_SCTP);
        CHECK(one->fd >= 0);
        struct sctp_udpencaps udp = { .sue_port = htons(udp_port) };
        CHECK(setsockopt(one->fd, IPPROTO_SCTP, SCTP_REMOTE_UDP_ENCAPS_PORT, &udp, sizeof udp) == 0);
        struct sctp_rtoinfo rto = { 0, 200, 1000, 100 };
        CHECK(setsockopt(one->fd, IPPROTO_SCTP, SCTP_RTOINFO, &rto, sizeof rto) == 0);
        FAILS(connect(one->fd, NAME(peer), sizeof peer), EINPROGRESS);
        struct epoll_event event = { .events = EPOLLOUT, .data.ptr = one };
        CHECK(epoll_ctl(loop, EPOLL_CTL_ADD, one->fd, &event) == 0);
    }
    while (left > 0) {
        struct epoll_event events[64];
        int count = epoll_wait(loop, events, 64, 1000);
        for (int at = 0; at < count; at++) {
            struct asker *one = events[at].data.ptr;
            if (events[at].events & EPOLLOUT) {
                int error = -1;
                socklen_t len = sizeof error;
                CHECK(getsockopt(one->fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0);
                errno = error;
                CHECK(error == 0);
                struct epoll_event event = { .events = EPOLLIN, .data.ptr = one };
                CHECK(epoll_ctl(loop, EPOLL_CTL_MOD, one->fd, &event) == 0);
                ask(one);
                continue;
            }
            char data[2000];
            ssize_t got = recv(one->fd, data, sizeof data, 0);
            if (got < 0 && errno == EAGAIN)
                continue;
            CHECK(got == 4 + (one->round * 97) % 900 && !memcmp(data, &one->round, sizeof one->round));
            if (++one->round < ROUNDS) {
                ask(one);
                continue;
            }
            CHECK(epoll_ctl(loop, EPOLL_CTL_DEL, one->fd, NULL) == 0);
            CHECK(close(one->fd) == 0);
            left--;
        }
    }
    free(askers);
    CHECK((close)(loop) == 0);
    return NULL;
}

int main(int count, char **words)
{
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = limit.rlim_max;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    CHECK(count >= 4);
    pthread_t threads[THREADS];
    int waiting = -1;
    if (!strcmp(words[1], "server")) {
        each = atoi(words[3]) / THREADS;
        waiting = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, IPPROTO_SCTP);
        struct sockaddr_in name = name_of("127.0.0.1", 0);
        struct sctp_rtoinfo rto = { 0, 200, 1000, 100 };
        CHECK(setsockopt(waiting, IPPROTO_SCTP, SCTP_RTOINFO, &rto, sizeof rto) == 0);
        CHECK(bind(waiting, NAME(name), sizeof name) == 0 && listen(waiting, 4096) == 0);
        FILE *file = fopen(words[2], "w");
        fprintf(file, "%d\n", port_of(waiting));
        fclose(file);
        for (int at = 0; at < THREADS; at++)
            CHECK(pthread_create(&threads[at], NULL, serve, &waiting) == 0);
    } else {
        CHECK(count == 6);
        peer = name_of(words[2], atoi(words[3]));
        udp_port = atoi(words[4]);
        each = atoi(words[5]) / THREADS;
        for (int at = 0; at < THREADS; at++)
            CHECK(pthread_create(&threads[at], NULL, request, NULL) == 0);
    }
    for (int at = 0; at < THREADS; at++)
        CHECK(pthread_join(threads[at], NULL) == 0);
    if (waiting >= 0)
        CHECK(close(waiting) == 0);
    /* A lost SHUTDOWN goes again: nobody would do that for a process that is gone. */
    tresse_finish(60000);
    return 0;
}
