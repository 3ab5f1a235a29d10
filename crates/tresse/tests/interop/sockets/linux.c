/* The peer's stack is the kernel's. What is the same for all peers of a machine, the UDP port among it, its start has
 * set (../linux/init.sh). */

#include "stack.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { BUFFER = 1 << 20 };

void stack_begin(int udp_port, const struct extensions *wanted) {
    (void)udp_port, (void)wanted;
}

static void say(int sock, int name, uint32_t value, const char *what) {
    struct sctp_assoc_value said = {.assoc_id = SCTP_FUTURE_ASSOC, .assoc_value = value};
    stack_option(sock, name, &said, sizeof said, what);
}

int stack_open(const struct extensions *wanted) {
    int sock = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), buffer = BUFFER;
    check(sock < 0, "socket");
    check(setsockopt(sock, SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof buffer), "SO_SNDBUFFORCE");
    check(setsockopt(sock, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof buffer), "SO_RCVBUFFORCE");
    say(sock, SCTP_ENABLE_STREAM_RESET, SCTP_ENABLE_STRRESET_MASK, "SCTP_ENABLE_STREAM_RESET");
    say(sock, SCTP_ECN_SUPPORTED, (uint32_t)wanted->ecn, "SCTP_ECN_SUPPORTED");
    if (wanted->interleaving) {
        int mixed = 2;
        stack_option(sock, SCTP_FRAGMENT_INTERLEAVE, &mixed, sizeof mixed, "SCTP_FRAGMENT_INTERLEAVE");
        say(sock, SCTP_INTERLEAVING_SUPPORTED, 1, "SCTP_INTERLEAVING_SUPPORTED");
    }
    return sock;
}

void stack_option(int sock, int name, const void *value, socklen_t len, const char *what) {
    check(setsockopt(sock, IPPROTO_SCTP, name, value, len), what);
}

int stack_bind(int sock, struct sockaddr_in *address, int how) {
    int name = how == SCTP_BINDX_ADD_ADDR ? SCTP_SOCKOPT_BINDX_ADD : SCTP_SOCKOPT_BINDX_REM;
    return setsockopt(sock, IPPROTO_SCTP, name, address, sizeof *address);
}

void stack_prefer(int sock, const struct sockaddr_in *address) {
    struct sctp_setpeerprim wish = {.sspp_assoc_id = SCTP_FUTURE_ASSOC};
    memcpy(&wish.sspp_addr, address, sizeof *address);
    stack_option(sock, SCTP_SET_PEER_PRIMARY_ADDR, &wish, sizeof wish, "SCTP_SET_PEER_PRIMARY_ADDR");
}

int stack_call(int sock, struct sockaddr_in *list, int count) {
    return setsockopt(sock, IPPROTO_SCTP, SCTP_SOCKOPT_CONNECTX, list, (socklen_t)((size_t)count * sizeof *list)) < 0;
}

int stack_listen(int sock) {
    return listen(sock, 1);
}

int stack_accept(int sock) {
    int accepted = accept(sock, NULL, NULL);
    check(accepted < 0, "accept");
    return accepted;
}

/* Appends what `type` names to the control data of `message`. */
static void put_control(struct msghdr *message, int type, const void *value, size_t len) {
    struct cmsghdr *head = (struct cmsghdr *)((char *)message->msg_control + message->msg_controllen);
    head->cmsg_level = IPPROTO_SCTP;
    head->cmsg_type = type;
    head->cmsg_len = CMSG_LEN(len);
    memcpy(CMSG_DATA(head), value, len);
    message->msg_controllen += CMSG_SPACE(len);
}

int stack_send(int sock, const void *bytes, size_t len, struct sctp_sndinfo info, struct reliability how) {
    _Alignas(struct cmsghdr) char
        control[CMSG_SPACE(sizeof(struct sctp_sndinfo)) + CMSG_SPACE(sizeof(struct sctp_prinfo))] = {0};
    struct iovec part = {.iov_base = (void *)bytes, .iov_len = len};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control};
    put_control(&message, SCTP_SNDINFO, &info, sizeof info);
    if (how.policy != SCTP_PR_SCTP_NONE) {
        struct sctp_prinfo partial = {.pr_policy = (uint16_t)how.policy, .pr_value = how.value};
        put_control(&message, SCTP_PRINFO, &partial, sizeof partial);
    }
    return sendmsg(sock, &message, MSG_NOSIGNAL) == (ssize_t)len;
}

ssize_t stack_receive(int sock, void *bytes, size_t size, struct sctp_rcvinfo *info, int *flags) {
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof *info) + CMSG_SPACE(sizeof(struct sctp_sndrcvinfo))];
    struct iovec part = {.iov_base = bytes, .iov_len = size};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t len = recvmsg(sock, &message, 0);
    *flags = message.msg_flags;
    if (len < 0 && errno == ENOTCONN) {
        /* What an end that this side has asked for looks like; another one would be named. */
        len = 0;
    }
    for (struct cmsghdr *head = CMSG_FIRSTHDR(&message); len > 0 && head != NULL; head = CMSG_NXTHDR(&message, head)) {
        if (head->cmsg_level == IPPROTO_SCTP && head->cmsg_type == SCTP_RCVINFO) {
            memcpy(info, CMSG_DATA(head), sizeof *info);
        }
    }
    return len;
}

int stack_shutdown(int sock) {
    return shutdown(sock, SHUT_WR);
}

void stack_abort(int sock) {
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    /* It may be closed already. */
    setsockopt(sock, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    /* Sockets for one association take no SCTP_ABORT. They end with one when they are closed, which this one is
     * when no thread reads from it any more. */
    _exit(0);
}

void stack_vanish(int sock) {
    /* An ABORT that is not in UDP gets nowhere. */
    struct sctp_udpencaps none = {.sue_port = 0};
    none.sue_address.ss_family = AF_INET;
    setsockopt(sock, IPPROTO_SCTP, SCTP_REMOTE_UDP_ENCAPS_PORT, &none, sizeof none);
    stack_abort(sock);
}

void stack_close(int sock) {
    close(sock);
}

void stack_end(void) {
}
