/* One side of a measurement on usrsctp, in UDP on loopback, with its defaults but for the initial path size, which is
 * that of tresse. `serve STACK WORKERS` and `send STACK WORKERS PORT BYTES COUNT MESSAGES` as in ../child.rs; one association. */

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <usrsctp.h>

enum { SCTP_PORT = 7, ROOM = 1 << 18 };

static atomic_ulong received;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void *answer(void *unused) {
    char line[16];
    while (fgets(line, sizeof line, stdin) != NULL) {
        struct timespec cpu;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
        printf("%lu %llu 0 1\n", atomic_load(&received), cpu.tv_sec * 1000000000ULL + (unsigned long long)cpu.tv_nsec);
        fflush(stdout);
    }
    _exit(0);
    return unused;
}

static struct socket *open_socket(void) {
    struct socket *sock = usrsctp_socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP, NULL, NULL, 0, NULL);
    if (sock == NULL) {
        fail("usrsctp_socket");
    }
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    own.sin_port = htons(0);
    if (usrsctp_bind(sock, (struct sockaddr *)&own, sizeof own) < 0) {
        fail("usrsctp_bind");
    }
    return sock;
}

static void serve(uint16_t udp_port) {
    struct socket *sock = usrsctp_socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP, NULL, NULL, 0, NULL);
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    own.sin_port = htons(SCTP_PORT);
    if (sock == NULL || usrsctp_bind(sock, (struct sockaddr *)&own, sizeof own) < 0 || usrsctp_listen(sock, 1) < 0) {
        fail("listen");
    }
    printf("ready %d\n", udp_port);
    fflush(stdout);
    struct socket *peer = usrsctp_accept(sock, NULL, NULL);
    if (peer == NULL) {
        fail("usrsctp_accept");
    }
    char *room = malloc(ROOM);
    for (;;) {
        struct sctp_rcvinfo info;
        struct sockaddr_in from;
        socklen_t from_len = sizeof from, info_len = sizeof info;
        unsigned int type = 0;
        int flags = 0;
        ssize_t got = usrsctp_recvv(peer, room, ROOM, (struct sockaddr *)&from, &from_len, &info, &info_len, &type, &flags);
        if (got <= 0) {
            return;
        }
        atomic_fetch_add(&received, (unsigned long)got);
    }
}

static void *fill(void *argument) {
    struct socket *sock = ((void **)argument)[0];
    size_t length = (size_t)((void **)argument)[1];
    char *message = malloc(length);
    memset(message, 0x5a, length);
    struct sctp_sndinfo info = {.snd_sid = 1};
    while (usrsctp_sendv(sock, message, length, NULL, 0, &info, sizeof info, SCTP_SENDV_SNDINFO, 0) >= 0 ||
           errno == EWOULDBLOCK) {
    }
    return NULL;
}

int main(int count, char **words) {
    int sender = count == 8 && strcmp(words[1], "send") == 0;
    uint16_t udp_port = (uint16_t)(20000 + getpid() % 40000);
    usrsctp_init(udp_port, NULL, NULL);
    usrsctp_sysctl_set_sctp_blackhole(2);
    usrsctp_sysctl_set_sctp_no_csum_on_loopback(0);
    usrsctp_sysctl_set_sctp_ecn_enable(0);
    pthread_t thread;
    if (!sender) {
        pthread_create(&thread, NULL, answer, NULL);
        serve(udp_port);
        return 1;
    }
    struct socket *sock = open_socket();
    struct sctp_udpencaps encapsulation = {.sue_address.ss_family = AF_INET, .sue_port = htons((uint16_t)atoi(words[4]))};
    usrsctp_setsockopt(sock, IPPROTO_SCTP, SCTP_REMOTE_UDP_ENCAPS_PORT, &encapsulation, sizeof encapsulation);
    struct sockaddr_in peer = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    peer.sin_port = htons(SCTP_PORT);
    if (usrsctp_connect(sock, (struct sockaddr *)&peer, sizeof peer) < 0) {
        fail("usrsctp_connect");
    }
    puts("ready");
    fflush(stdout);
    void *argument[] = {sock, (void *)strtoul(words[5], NULL, 10)};
    pthread_create(&thread, NULL, fill, argument);
    answer(NULL);
}
