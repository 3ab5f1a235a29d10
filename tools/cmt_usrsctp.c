/* One side of a transfer over usrsctp with its CMT, for `make links`: SCTP over IP, between addresses of real interfaces.
 *
 *     cmt_usrsctp server A,B    prints what it got from one client in Mbit/s, without the first two seconds
 *     cmt_usrsctp client A,B SECONDS    sends to these addresses as fast as it can
 */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <usrsctp.h>

enum { PORT = 9000, MOST_ADDRESSES = 8, BUFFER = 4 << 20, MESSAGE = 1 << 16 };
/* As `--omit 2s` has it. */
static const double OMITTED = 2;

static void check(int failed, const char *what) {
    if (failed) {
        perror(what);
        exit(1);
    }
}

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

static int addresses(char *list, struct sockaddr_in *into) {
    int count = 0;
    for (char *one = strtok(list, ","); one != NULL && count < MOST_ADDRESSES; one = strtok(NULL, ",")) {
        into[count] = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(PORT)};
        check(inet_pton(AF_INET, one, &into[count].sin_addr) != 1, one);
        count++;
    }
    return count;
}

static void serve(struct socket *listener, struct sockaddr_in *own, int count) {
    for (int i = 0; i < count; i++) {
        check(usrsctp_bindx(listener, (struct sockaddr *)&own[i], 1, SCTP_BINDX_ADD_ADDR), "bindx");
    }
    check(usrsctp_listen(listener, 1), "listen");
    struct socket *client = usrsctp_accept(listener, NULL, NULL);
    check(client == NULL, "accept");
    static char bytes[MESSAGE];
    double begun = now(), since = begun + OMITTED, last = begun;
    uint64_t got = 0;
    for (;;) {
        int flags = 0;
        struct sctp_rcvinfo info;
        socklen_t length_of_info = sizeof info;
        unsigned kind = 0;
        ssize_t length = usrsctp_recvv(client, bytes, sizeof bytes, NULL, NULL, &info, &length_of_info, &kind, &flags);
        if (length <= 0) {
            break;
        }
        last = now();
        got += last >= since ? (uint64_t)length : 0;
    }
    printf("%.2f\n", (double)got * 8e-6 / (last - since));
}

static void call(struct socket *sock, struct sockaddr_in *peers, int count, double seconds) {
    check(usrsctp_connectx(sock, (struct sockaddr *)peers, count, NULL), "connectx");
    static char bytes[MESSAGE];
    struct sctp_sndinfo info = {0};
    for (double end = now() + seconds; now() < end;) {
        ssize_t sent = usrsctp_sendv(sock, bytes, sizeof bytes, NULL, 0, &info, sizeof info, SCTP_SENDV_SNDINFO, 0);
        check(sent < 0, "sendv");
    }
    /* What is still queued is not waited for. */
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    usrsctp_setsockopt(sock, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    usrsctp_close(sock);
    sleep(1);
}

int main(int argc, char **argv) {
    check(argc < 3, "usage: cmt_usrsctp server A,B | client A,B SECONDS");
    usrsctp_init(0, NULL, NULL);
    usrsctp_sysctl_set_sctp_cmt_on_off(1);
    usrsctp_sysctl_set_sctp_nrsack_enable(1);
    usrsctp_sysctl_set_sctp_buffer_splitting(3);
    usrsctp_sysctl_set_sctp_sendspace(BUFFER);
    usrsctp_sysctl_set_sctp_recvspace(BUFFER);
    struct sockaddr_in list[MOST_ADDRESSES];
    int count = addresses(argv[2], list);
    struct socket *sock = usrsctp_socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP, NULL, NULL, 0, NULL);
    check(sock == NULL, "socket");
    if (strcmp(argv[1], "server") == 0) {
        serve(sock, list, count);
    } else {
        call(sock, list, count, atof(argv[3]));
    }
    fflush(stdout);
    /* The library has threads of its own that nobody waits for. */
    _exit(0);
}
