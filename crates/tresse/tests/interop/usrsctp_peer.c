/* A plain SCTP peer on usrsctp, for interoperability tests: an echo server or a generating client.
 *
 *   usrsctp_peer server UDP_PORT SCTP_PORT NR_SACK ADDRESS...
 *   usrsctp_peer client UDP_PORT PEER_UDP_PORT PEER_SCTP_PORT NR_SACK COUNT STREAMS PEER_ADDRESS...
 *
 * The server answers every message on its stream, in its kind and with its PPID, until the peer shuts
 * down. The client sends COUNT messages of the lengths and contents that `content` gives, every third
 * unordered, and shuts down. Both print one line with the number of messages and bytes, and exit 0. */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <usrsctp.h>

enum { LONGEST = 1 << 20, MOST_ADDRESSES = 8 };

static unsigned char message[LONGEST];

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void check(int failed, const char *what) {
    if (failed) {
        fail(what);
    }
}

static int number(const char *text) {
    return (int)strtol(text, NULL, 10);
}

/* Length of message `i`; the Rust side has the same rule. */
static size_t length(uint32_t i) {
    return 4 + (i * 7919u) % 20000u;
}

static void content(uint32_t i, size_t len) {
    for (size_t j = 0; j < len; j++) {
        message[j] = (unsigned char)(j < 4 ? i >> (24 - 8 * j) : j * 31 + i * 7);
    }
}

static void set_up(int udp_port, int nr_sack) {
    usrsctp_init((uint16_t)udp_port, NULL, NULL);
    usrsctp_sysctl_set_sctp_no_csum_on_loopback(0);
    usrsctp_sysctl_set_sctp_nrsack_enable((uint32_t)nr_sack);
    usrsctp_sysctl_set_sctp_ecn_enable(0);
    usrsctp_sysctl_set_sctp_cmt_on_off((uint32_t)nr_sack);
    usrsctp_sysctl_set_sctp_sendspace(1 << 20);
    usrsctp_sysctl_set_sctp_recvspace(1 << 20);
}

static struct socket *open_socket(void) {
    struct socket *sock = usrsctp_socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP, NULL, NULL, 0, NULL);
    check(sock == NULL, "socket");
    int on = 1;
    check(usrsctp_setsockopt(sock, IPPROTO_SCTP, SCTP_RECVRCVINFO, &on, sizeof on), "SCTP_RECVRCVINFO");
    check(usrsctp_setsockopt(sock, IPPROTO_SCTP, SCTP_NODELAY, &on, sizeof on), "SCTP_NODELAY");
    struct sctp_initmsg init = {.sinit_num_ostreams = 16, .sinit_max_instreams = 16};
    check(usrsctp_setsockopt(sock, IPPROTO_SCTP, SCTP_INITMSG, &init, sizeof init), "SCTP_INITMSG");
    return sock;
}

static int addresses(struct sockaddr_in *out, int port, int count, char **texts) {
    for (int i = 0; i < count; i++) {
        memset(&out[i], 0, sizeof out[i]);
        out[i].sin_family = AF_INET;
        out[i].sin_port = htons((uint16_t)port);
        check(inet_pton(AF_INET, texts[i], &out[i].sin_addr) != 1, texts[i]);
    }
    return count;
}

static void send_message(struct socket *sock, size_t len, uint16_t stream, uint32_t ppid, int unordered) {
    struct sctp_sndinfo info = {.snd_sid = stream, .snd_ppid = ppid, .snd_flags = unordered ? SCTP_UNORDERED : 0};
    ssize_t sent = usrsctp_sendv(sock, message, len, NULL, 0, &info, sizeof info, SCTP_SENDV_SNDINFO, 0);
    check(sent != (ssize_t)len, "sendv");
}

static void report(const char *what, unsigned long messages, unsigned long bytes) {
    printf("%s %lu messages %lu bytes\n", what, messages, bytes);
    fflush(stdout);
}

static void echo(struct socket *sock) {
    unsigned long messages = 0, bytes = 0;
    size_t have = 0;
    for (;;) {
        struct sctp_rcvinfo info;
        socklen_t info_len = sizeof info, from_len = 0;
        unsigned int info_type = 0;
        int flags = 0;
        ssize_t got = usrsctp_recvv(sock, message + have, LONGEST - have, NULL, &from_len, &info, &info_len,
                                    &info_type, &flags);
        if (got <= 0) {
            break;
        }
        have += (size_t)got;
        if (!(flags & MSG_EOR)) {
            continue;
        }
        messages++;
        bytes += have;
        send_message(sock, have, info.rcv_sid, info.rcv_ppid, info.rcv_flags & SCTP_UNORDERED);
        have = 0;
    }
    report("echoed", messages, bytes);
}

static void serve(int argc, char **argv) {
    set_up(number(argv[2]), number(argv[4]));
    struct socket *sock = open_socket();
    struct sockaddr_in own[MOST_ADDRESSES];
    int count = addresses(own, number(argv[3]), argc - 5, argv + 5);
    for (int i = 0; i < count; i++) {
        check(usrsctp_bindx(sock, (struct sockaddr *)&own[i], 1, SCTP_BINDX_ADD_ADDR), "bindx");
    }
    check(usrsctp_listen(sock, 1), "listen");
    printf("listening\n");
    fflush(stdout);
    struct socket *accepted = usrsctp_accept(sock, NULL, NULL);
    check(accepted == NULL, "accept");
    echo(accepted);
    usrsctp_close(accepted);
    usrsctp_close(sock);
}

static void generate(int argc, char **argv) {
    set_up(number(argv[2]), number(argv[5]));
    struct socket *sock = open_socket();
    struct sctp_udpencaps encapsulation;
    memset(&encapsulation, 0, sizeof encapsulation);
    encapsulation.sue_address.ss_family = AF_INET;
    encapsulation.sue_port = htons((uint16_t)number(argv[3]));
    check(usrsctp_setsockopt(sock, IPPROTO_SCTP, SCTP_REMOTE_UDP_ENCAPS_PORT, &encapsulation,
                             sizeof encapsulation),
          "SCTP_REMOTE_UDP_ENCAPS_PORT");
    struct sockaddr_in peers[MOST_ADDRESSES];
    int count = addresses(peers, number(argv[4]), argc - 8, argv + 8);
    check(usrsctp_connectx(sock, (struct sockaddr *)peers, count, NULL), "connectx");
    uint32_t messages = (uint32_t)number(argv[6]);
    uint32_t streams = (uint32_t)number(argv[7]);
    unsigned long bytes = 0;
    for (uint32_t i = 0; i < messages; i++) {
        size_t len = length(i);
        content(i, len);
        send_message(sock, len, (uint16_t)(i % streams), htonl(i), i % 3 == 2);
        bytes += len;
    }
    check(usrsctp_shutdown(sock, SHUT_WR), "shutdown");
    echo(sock); /* until the peer has shut down too */
    report("sent", messages, bytes);
    usrsctp_close(sock);
}

int main(int argc, char **argv) {
    if (argc >= 6 && strcmp(argv[1], "server") == 0) {
        serve(argc, argv);
    } else if (argc >= 9 && strcmp(argv[1], "client") == 0) {
        generate(argc, argv);
    } else {
        fprintf(stderr, "usage: see the head of usrsctp_peer.c\n");
        return 2;
    }
    for (int tries = 0; usrsctp_finish() != 0 && tries < 20; tries++) {
        usleep(100000);
    }
    return 0;
}
