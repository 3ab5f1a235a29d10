/* The peer's stack is usrsctp, in this process. */

/* struct in_pktinfo */
#define _GNU_SOURCE
#include "stack.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { HOST_ADDRESSES = 32 };

/* RFC 8260 section 4.3.1; the library knows the option, its header does not name it. */
#ifndef SCTP_INTERLEAVING_SUPPORTED
#define SCTP_INTERLEAVING_SUPPORTED 0x00001206
#endif

/* Stands in for the C library's: the stack is to know the loopback addresses that this host has without
 * naming them at its interface, its own and those of tresse. */
int getifaddrs(struct ifaddrs **list) {
    static struct sockaddr_in addresses[HOST_ADDRESSES];
    *list = NULL;
    for (uint32_t i = 0; i < HOST_ADDRESSES; i++) {
        addresses[i].sin_family = AF_INET;
        addresses[i].sin_addr.s_addr = htonl(INADDR_LOOPBACK + i);
        struct ifaddrs *entry = calloc(1, sizeof *entry);
        check(entry == NULL, "calloc");
        entry->ifa_next = *list;
        entry->ifa_name = "lo";
        entry->ifa_flags = IFF_UP | IFF_RUNNING | IFF_LOOPBACK;
        entry->ifa_addr = (struct sockaddr *)&addresses[i];
        *list = entry;
    }
    return 0;
}

void freeifaddrs(struct ifaddrs *list) {
    while (list != NULL) {
        struct ifaddrs *next = list->ifa_next;
        free(list);
        list = next;
    }
}

/* Stands in for the C library's: the stack writes an IP header, steps over it and leaves the source to the system, which
 * takes any address of this host. The header is still there, right before what is sent: its source is asked for. */
ssize_t sendmsg(int descriptor, const struct msghdr *message, int flags) {
    const struct sockaddr_in *to = message->msg_name;
    const unsigned char *packet = message->msg_iovlen > 0 ? message->msg_iov[0].iov_base : NULL;
    if (packet == NULL || to == NULL || to->sin_family != AF_INET) {
        return syscall(SYS_sendmsg, descriptor, message, flags);
    }
    struct ip header;
    memcpy(&header, packet - sizeof(struct udphdr) - sizeof header, sizeof header);
    if (header.ip_v != IPVERSION || header.ip_p != IPPROTO_UDP || header.ip_dst.s_addr != to->sin_addr.s_addr) {
        return syscall(SYS_sendmsg, descriptor, message, flags);
    }
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(struct in_pktinfo))] = {0};
    struct msghdr from = *message;
    from.msg_control = control;
    from.msg_controllen = sizeof control;
    struct cmsghdr *said = CMSG_FIRSTHDR(&from);
    said->cmsg_level = IPPROTO_IP;
    said->cmsg_type = IP_PKTINFO;
    said->cmsg_len = CMSG_LEN(sizeof(struct in_pktinfo));
    struct in_pktinfo source = {.ipi_spec_dst = header.ip_src};
    memcpy(CMSG_DATA(said), &source, sizeof source);
    return syscall(SYS_sendmsg, descriptor, &from, flags);
}

void stack_begin(int udp_port, const struct extensions *wanted) {
    usrsctp_init((uint16_t)udp_port, NULL, NULL);
    usrsctp_sysctl_set_sctp_no_csum_on_loopback(0);
    usrsctp_sysctl_set_sctp_nrsack_enable((uint32_t)wanted->nr_sack);
    usrsctp_sysctl_set_sctp_cmt_on_off((uint32_t)wanted->cmt);
    usrsctp_sysctl_set_sctp_ecn_enable((uint32_t)wanted->ecn);
    usrsctp_sysctl_set_sctp_auto_asconf(0);
    usrsctp_sysctl_set_sctp_sendspace(1 << 20);
    usrsctp_sysctl_set_sctp_recvspace(1 << 20);
    /* Silent towards packets of others: with the right to, it hears raw IP too. */
    usrsctp_sysctl_set_sctp_blackhole(2);
    /* Losses are part of the tests, and so are hosts that stand still; longer timers would only make them long. Not
     * where it asks for changes of addresses, over links that lose nothing: it breaks down when a request's timer
     * expires (../cases/addresses.rs), and a busy machine answers after more than 100 ms now and then. */
    usrsctp_sysctl_set_sctp_rto_initial_default(wanted->addresses ? 10000 : 200);
    usrsctp_sysctl_set_sctp_rto_min_default(wanted->addresses ? 10000 : 100);
    usrsctp_sysctl_set_sctp_rto_max_default(wanted->addresses ? 60000 : 1000);
    usrsctp_sysctl_set_sctp_assoc_rtx_max_default(60);
    usrsctp_sysctl_set_sctp_path_rtx_max_default(2);
    usrsctp_sysctl_set_sctp_heartbeat_interval_default(1000);
}

stack_socket stack_open(const struct extensions *wanted) {
    stack_socket sock = usrsctp_socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP, NULL, NULL, 0, NULL);
    check(sock == NULL, "socket");
    struct sctp_assoc_value allowed = {.assoc_id = SCTP_FUTURE_ASSOC, .assoc_value = SCTP_ENABLE_VALUE_MASK};
    stack_option(sock, SCTP_ENABLE_STREAM_RESET, &allowed, sizeof allowed, "SCTP_ENABLE_STREAM_RESET");
    if (wanted->interleaving) {
        int mixed = 2;
        struct sctp_assoc_value yes = {.assoc_id = SCTP_FUTURE_ASSOC, .assoc_value = 1};
        stack_option(sock, SCTP_FRAGMENT_INTERLEAVE, &mixed, sizeof mixed, "SCTP_FRAGMENT_INTERLEAVE");
        stack_option(sock, SCTP_INTERLEAVING_SUPPORTED, &yes, sizeof yes, "SCTP_INTERLEAVING_SUPPORTED");
    }
    return sock;
}

void stack_option(stack_socket sock, int name, const void *value, socklen_t len, const char *what) {
    check(usrsctp_setsockopt(sock, IPPROTO_SCTP, name, value, len), what);
}

int stack_bind(stack_socket sock, struct sockaddr_in *address, int how) {
    return usrsctp_bindx(sock, (struct sockaddr *)address, 1, how);
}

void stack_prefer(stack_socket sock, const struct sockaddr_in *address) {
    struct sctp_setpeerprim wish = {.sspp_assoc_id = SCTP_FUTURE_ASSOC};
    memcpy(&wish.sspp_addr, address, sizeof *address);
    stack_option(sock, SCTP_SET_PEER_PRIMARY_ADDR, &wish, sizeof wish, "SCTP_SET_PEER_PRIMARY_ADDR");
}

int stack_call(stack_socket sock, struct sockaddr_in *list, int count) {
    return usrsctp_connectx(sock, (struct sockaddr *)list, count, NULL);
}

int stack_listen(stack_socket sock) {
    return usrsctp_listen(sock, 1);
}

stack_socket stack_accept(stack_socket sock) {
    stack_socket accepted = usrsctp_accept(sock, NULL, NULL);
    check(accepted == NULL, "accept");
    return accepted;
}

int stack_send(stack_socket sock, const void *bytes, size_t len, struct sctp_sndinfo info, struct reliability how) {
    struct sctp_sendv_spa said = {.sendv_flags = SCTP_SEND_SNDINFO_VALID, .sendv_sndinfo = info};
    if (how.policy != SCTP_PR_SCTP_NONE) {
        said.sendv_flags |= SCTP_SEND_PRINFO_VALID;
        said.sendv_prinfo.pr_policy = (uint16_t)how.policy;
        said.sendv_prinfo.pr_value = how.value;
    }
    return usrsctp_sendv(sock, bytes, len, NULL, 0, &said, sizeof said, SCTP_SENDV_SPA, 0) == (ssize_t)len;
}

ssize_t stack_receive(stack_socket sock, void *bytes, size_t size, struct sctp_rcvinfo *info, int *flags) {
    socklen_t info_len = sizeof *info, from_len = 0;
    unsigned int info_type = 0;
    return usrsctp_recvv(sock, bytes, size, NULL, &from_len, info, &info_len, &info_type, flags);
}

int stack_shutdown(stack_socket sock) {
    return usrsctp_shutdown(sock, SHUT_WR);
}

void stack_abort(stack_socket sock) {
    struct sctp_sndinfo info = {.snd_flags = SCTP_ABORT};
    usrsctp_sendv(sock, "", 0, NULL, 0, &info, sizeof info, SCTP_SENDV_SNDINFO, 0);
}

void stack_vanish(stack_socket sock) {
    (void)sock;
    _exit(0);
}

void stack_close(stack_socket sock) {
    usrsctp_close(sock);
}

void stack_end(void) {
    for (int tries = 0; usrsctp_finish() != 0 && tries < 20; tries++) {
        usleep(100000);
    }
}
