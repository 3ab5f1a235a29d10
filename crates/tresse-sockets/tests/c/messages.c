/* Messages in parts and pieces, those that are given up, those to everybody, and associations that end by themselves. */
#include "common.h"

static void set_int(int fd, int option, int value)
{
    CHECK(setsockopt(fd, IPPROTO_SCTP, option, &value, sizeof value) == 0);
}

static void subscribe(int fd, int type)
{
    struct sctp_event event = { SCTP_FUTURE_ASSOC, type, 1 };
    CHECK(setsockopt(fd, IPPROTO_SCTP, SCTP_EVENT, &event, sizeof event) == 0);
}

/* Reads with `room` bytes a time until MSG_EOR; answers the length, and checks that nothing else came in between. */
static long whole(int fd, int room, int stream, unsigned char fill)
{
    static unsigned char data[200000];
    long got = 0;
    for (;;) {
        struct iovec into = { data, room };
        char control[200];
        struct msghdr message = { .msg_iov = &into, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
        ssize_t count = recvmsg(fd, &message, 0);
        CHECK(count > 0 && !(message.msg_flags & MSG_NOTIFICATION));
        struct sctp_rcvinfo info;
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        CHECK(header && header->cmsg_type == SCTP_RCVINFO);
        memcpy(&info, CMSG_DATA(header), sizeof info);
        CHECK(info.rcv_sid == stream);
        for (ssize_t at = 0; at < count; at++)
            CHECK(data[at] == fill);
        got += count;
        if (message.msg_flags & MSG_EOR)
            return got;
    }
}

/* A message that the receive buffer cannot hold comes in parts, and others wait for its end, also where both sides interleave
 * their fragments. */
static void in_parts(void)
{
    static char block[60000];
    int waiting = listener(SOCK_STREAM, "127.0.0.1"), small = 16000;
    CHECK(setsockopt(waiting, SOL_SOCKET, SO_RCVBUF, &small, sizeof small) == 0);
    struct sctp_assoc_value on = { 0, 1 };
    CHECK(setsockopt(waiting, IPPROTO_SCTP, SCTP_INTERLEAVING_SUPPORTED, &on, sizeof on) == 0);
    set_int(waiting, SCTP_PARTIAL_DELIVERY_POINT, 3000);
    int near = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    CHECK(setsockopt(near, IPPROTO_SCTP, SCTP_INTERLEAVING_SUPPORTED, &on, sizeof on) == 0);
    on.assoc_value = SCTP_SS_RR;
    CHECK(setsockopt(near, IPPROTO_SCTP, SCTP_STREAM_SCHEDULER, &on, sizeof on) == 0);
    struct sockaddr_in name = name_of("127.0.0.1", port_of(waiting));
    CHECK(connect(near, NAME(name), sizeof name) == 0);
    int far = accept(waiting, NULL, NULL);
    CHECK(far >= 0);
    set_int(far, SCTP_RECVRCVINFO, 1);
    for (int round = 0; round < 3; round++) {
        memset(block, 'a', sizeof block);
        CHECK(sctp_sendmsg(near, block, 60000, NULL, 0, 0, 0, 1, 0, 0) == 60000);
        memset(block, 'b', sizeof block);
        CHECK(sctp_sendmsg(near, block, 4000, NULL, 0, 0, 0, 2, 0, 0) == 4000);
        wait_for(far, POLLIN);
        /* Either may be the first; the other comes behind its end. */
        struct iovec into = { block, 1 };
        char control[200];
        struct msghdr message = { .msg_iov = &into, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
        CHECK(recvmsg(far, &message, MSG_PEEK) == 1);
        int first = block[0];
        CHECK(whole(far, 700, first == 'a' ? 1 : 2, first) == (first == 'a' ? 60000 : 4000));
        CHECK(whole(far, 5000, first == 'a' ? 2 : 1, first == 'a' ? 'b' : 'a') == (first == 'a' ? 4000 : 60000));
    }
    CHECK(close(near) == 0 && close(far) == 0 && close(waiting) == 0);
}

/* SCTP_EXPLICIT_EOR: pieces on two streams become one message each. */
static void in_pieces(void)
{
    int ends[2];
    pair("127.0.0.1", ends);
    set_int(ends[0], SCTP_EXPLICIT_EOR, 1);
    set_int(ends[1], SCTP_RECVRCVINFO, 1);
    for (int piece = 0; piece < 10; piece++) {
        int last = piece == 9 ? SCTP_EOR : 0;
        CHECK(sctp_sendmsg(ends[0], "xxx", 3, NULL, 0, 0, last, 1, 0, 0) == 3);
        if (piece < 5)
            CHECK(sctp_sendmsg(ends[0], "yyyyy", 5, NULL, 0, 0, piece == 4 ? SCTP_EOR : 0, 2, 0, 0) == 5);
    }
    CHECK(whole(ends[1], 1000, 2, 'y') == 25);
    CHECK(whole(ends[1], 1000, 1, 'x') == 30);
    /* All pieces of a message have to fit the send buffer, and no other bound holds. */
    int size = 100000;
    static char piece[1 << 24];
    CHECK(setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size) == 0);
    CHECK(sctp_sendmsg(ends[0], piece, 60000, NULL, 0, 0, 0, 1, 0, 0) == 60000);
    FAILS(sctp_sendmsg(ends[0], piece, 40000, NULL, 0, 0, 0, 1, 0, 0), EMSGSIZE);
    CHECK(sctp_sendmsg(ends[0], piece, 39999, NULL, 0, 0, 0, 1, 0, 0) == 39999);
    CHECK(sctp_sendmsg(ends[0], piece, 1, NULL, 0, 0, SCTP_EOR, 1, 0, 0) == 1);
    CHECK(whole(ends[1], 200000, 1, 0) == 100000);
    size = 80 << 20;
    CHECK(setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size) == 0);
    for (int count = 0; count < 4; count++)
        CHECK(sctp_sendmsg(ends[0], piece, sizeof piece, NULL, 0, 0, 0, 1, 0, 0) == sizeof piece);
    FAILS(sctp_sendmsg(ends[0], piece, sizeof piece, NULL, 0, 0, 0, 1, 0, 0), EMSGSIZE);
    CHECK(sctp_sendmsg(ends[0], piece, sizeof piece - 1, NULL, 0, 0, 0, 1, 0, 0) == sizeof piece - 1);
    CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
}

/* A message whose lifetime is over before it can be sent is given up, and the program is told. */
static void given_up(void)
{
    static char block[3000];
    int waiting = listener(SOCK_STREAM, "127.0.0.1"), small = 4096;
    CHECK(setsockopt(waiting, SOL_SOCKET, SO_RCVBUF, &small, sizeof small) == 0);
    int near = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    subscribe(near, SCTP_SEND_FAILED_EVENT);
    struct sockaddr_in name = name_of("127.0.0.1", port_of(waiting));
    CHECK(connect(near, NAME(name), sizeof name) == 0);
    int far = accept(waiting, NULL, NULL);
    /* The lifetime that sctp_sendmsg is given counts, and 0 is no limit, whatever the default is. */
    struct sctp_default_prinfo usual = { 0, 1, SCTP_PR_SCTP_TTL };
    CHECK(setsockopt(near, IPPROTO_SCTP, SCTP_DEFAULT_PRINFO, &usual, sizeof usual) == 0);
    /* The peer's window is full by these. */
    for (int count = 0; count < 5; count++)
        CHECK(sctp_sendmsg(near, block, 3000, NULL, 0, 0, 0, 0, 0, 0) == 3000);
    CHECK(sctp_sendmsg(near, block, 100, NULL, 0, htonl(6), SCTP_UNORDERED, 3, 20, 4321) == 100);
    usleep(40000);
    union sctp_notification got;
    long received = 0;
    while (received < 5 * 3000) {
        ssize_t count = recv(far, block, sizeof block, 0);
        CHECK(count > 0);
        received += count;
    }
    wait_for(near, POLLIN);
    CHECK(recv(near, &got, sizeof got, 0) >= 32);
    CHECK(got.sn_send_failed_event.ssf_type == SCTP_SEND_FAILED_EVENT);
    CHECK(got.sn_send_failed_event.ssf_flags == SCTP_DATA_UNSENT && got.sn_send_failed_event.ssfe_info.snd_sid == 3);
    CHECK(got.sn_send_failed_event.ssfe_info.snd_context == 4321 && got.sn_send_failed_event.ssfe_info.snd_ppid == htonl(6));
    CHECK(got.sn_send_failed_event.ssfe_info.snd_flags == SCTP_UNORDERED);
    struct sctp_prstatus status = { 0, 3, SCTP_PR_SCTP_TTL, 0, 0 };
    socklen_t len = sizeof status;
    CHECK(getsockopt(near, IPPROTO_SCTP, SCTP_PR_STREAM_STATUS, &status, &len) == 0);
    CHECK(status.sprstat_abandoned_unsent == 1 && status.sprstat_abandoned_sent == 0);
    CHECK(close(near) == 0 && close(far) == 0 && close(waiting) == 0);
}

/* SCTP_SENDALL, SCTP_AUTOCLOSE and SCTP_ABORT. */
static void everybody(void)
{
    int center = listener(SOCK_SEQPACKET, "127.0.0.1"), ends[3];
    subscribe(center, SCTP_ASSOC_CHANGE);
    char data[2000];
    sctp_assoc_t last = 0;
    for (int at = 0; at < 3; at++) {
        ends[at] = connected("127.0.0.1", port_of(center));
        union sctp_notification got;
        CHECK(recv(center, &got, sizeof got, 0) > 0 && got.sn_assoc_change.sac_state == SCTP_COMM_UP);
        last = got.sn_assoc_change.sac_assoc_id;
    }
    struct sctp_sndinfo info = { .snd_flags = SCTP_SENDALL };
    struct iovec all = { "all", 3 };
    CHECK(sctp_sendv(center, &all, 1, NULL, 0, &info, sizeof info, SCTP_SENDV_SNDINFO, 0) == 3);
    for (int at = 0; at < 3; at++)
        CHECK(recv(ends[at], data, sizeof data, 0) == 3);
    info = (struct sctp_sndinfo) { .snd_flags = SCTP_ABORT, .snd_assoc_id = last };
    CHECK(sctp_sendv(center, &all, 1, NULL, 0, &info, sizeof info, SCTP_SENDV_SNDINFO, 0) == 3);
    FAILS(recv(ends[2], data, sizeof data, 0), ECONNRESET);
    FAILS(recv(ends[2], data, sizeof data, 0), ENOTCONN);
    /* The others are idle for a second. Before, they had all the time that they needed. */
    set_int(center, SCTP_AUTOCLOSE, 1);
    CHECK(recv(ends[0], data, sizeof data, 0) == 0 && recv(ends[1], data, sizeof data, 0) == 0);
    int ended = 0, aborted = 0;
    while (ended < 2 || aborted < 1) {
        union sctp_notification got;
        CHECK(recv(center, &got, sizeof got, 0) > 0);
        ended += got.sn_assoc_change.sac_state == SCTP_SHUTDOWN_COMP;
        aborted += got.sn_assoc_change.sac_state == SCTP_COMM_LOST;
    }
    for (int at = 0; at < 3; at++)
        CHECK(close(ends[at]) == 0);
    CHECK(close(center) == 0);
}

/* What closing does to the peer. */
static void closing(void)
{
    int ends[2];
    char data[10];
    pair("127.0.0.1", ends);
    struct linger linger = { 1, 0 };
    CHECK(setsockopt(ends[0], SOL_SOCKET, SO_LINGER, &linger, sizeof linger) == 0);
    CHECK(close(ends[0]) == 0);
    FAILS(recv(ends[1], data, sizeof data, 0), ECONNRESET);
    CHECK(close(ends[1]) == 0);
    pair("127.0.0.1", ends);
    CHECK(send(ends[0], "unread", 6, 0) == 6);
    wait_for(ends[1], POLLIN);
    CHECK(close(ends[1]) == 0);
    FAILS(recv(ends[0], data, sizeof data, 0), ECONNRESET);
    FAILS(send(ends[0], "x", 1, MSG_NOSIGNAL), EPIPE);
    CHECK(close(ends[0]) == 0);
    pair("127.0.0.1", ends);
    for (int count = 0; count < 100; count++)
        CHECK(send(ends[0], "delivered", 9, 0) == 9);
    CHECK(close(ends[0]) == 0);
    for (int count = 0; count < 100; count++)
        CHECK(recv(ends[1], data, sizeof data, 0) == 9);
    CHECK(recv(ends[1], data, sizeof data, 0) == 0);
    CHECK(close(ends[1]) == 0);
}

/* Several addresses on both sides. */
static void addresses(void)
{
    struct sockaddr_in own[2] = { name_of("127.0.0.1", 0), name_of("127.0.0.2", 0) };
    struct sockaddr_in other[2] = { name_of("127.0.0.3", 0), name_of("127.0.0.4", 0) };
    int near = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), far = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    CHECK(sctp_bindx(near, NAME(own[0]), 2, SCTP_BINDX_ADD_ADDR) == 0);
    CHECK(bind(far, NAME(other[0]), sizeof other[0]) == 0);
    FAILS(bind(far, NAME(other[0]), sizeof other[0]), EINVAL);
    CHECK(sctp_bindx(far, NAME(other[1]), 1, SCTP_BINDX_ADD_ADDR) == 0);
    CHECK(listen(far, 5) == 0);
    other[0].sin_port = other[1].sin_port = htons(port_of(far));
    sctp_assoc_t id = 0;
    CHECK(sctp_connectx(near, NAME(other[0]), 2, &id) == 0 && id >= 3);
    int one = accept(far, NULL, NULL);
    CHECK(one >= 0);
    struct sockaddr *names;
    CHECK(sctp_getpaddrs(near, id, &names) == 2);
    CHECK(sctp_freepaddrs(names) == 0);
    CHECK(sctp_getladdrs(one, 0, &names) == 2);
    CHECK(sctp_freeladdrs(names) == 0);
    CHECK(sctp_getpaddrs(one, 0, &names) == 2);
    struct sockaddr_in *second = (struct sockaddr_in *)names + 1;
    struct sctp_prim prim = { .ssp_assoc_id = 0 };
    memcpy(&prim.ssp_addr, second, sizeof *second);
    CHECK(setsockopt(one, IPPROTO_SCTP, SCTP_PRIMARY_ADDR, &prim, sizeof prim) == 0);
    memset(&prim, 0, sizeof prim);
    socklen_t len = sizeof prim;
    CHECK(getsockopt(one, IPPROTO_SCTP, SCTP_PRIMARY_ADDR, &prim, &len) == 0);
    CHECK(!memcmp(&((struct sockaddr_in *)&prim.ssp_addr)->sin_addr, &second->sin_addr, 4));
    CHECK(sctp_freepaddrs(names) == 0);
    /* An address joins and another one leaves while the association runs. */
    subscribe(one, SCTP_PEER_ADDR_CHANGE);
    struct sockaddr_in third = name_of("127.0.0.5", port_of(near));
    CHECK(sctp_bindx(near, NAME(third), 1, SCTP_BINDX_ADD_ADDR) == 0);
    union sctp_notification got;
    do
        CHECK(recv(one, &got, sizeof got, 0) == sizeof got.sn_paddr_change);
    while (got.sn_paddr_change.spc_state != SCTP_ADDR_ADDED);
    CHECK(((struct sockaddr_in *)&got.sn_paddr_change.spc_aaddr)->sin_addr.s_addr == third.sin_addr.s_addr);
    own[1].sin_port = third.sin_port;
    int heir = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    FAILS(bind(heir, NAME(own[1]), sizeof own[1]), EADDRINUSE);
    CHECK(sctp_bindx(near, NAME(own[1]), 1, SCTP_BINDX_REM_ADDR) == 0);
    do
        CHECK(recv(one, &got, sizeof got, 0) == sizeof got.sn_paddr_change);
    while (got.sn_paddr_change.spc_state != SCTP_ADDR_REMOVED);
    FAILS(sctp_bindx(near, NAME(own[1]), 1, SCTP_BINDX_REM_ADDR), EINVAL);
    FAILS(sctp_bindx(near, NAME(own[1]), 0, SCTP_BINDX_ADD_ADDR), EINVAL);
    /* It belongs to nobody once the peer's agreement has come. */
    while (bind(heir, NAME(own[1]), sizeof own[1]) != 0) {
        CHECK(errno == EADDRINUSE);
        usleep(1000);
    }
    CHECK(close(near) == 0 && close(one) == 0 && close(far) == 0 && close(heir) == 0);
}

static void version_6(void)
{
    int far = socket(AF_INET6, SOCK_STREAM, IPPROTO_SCTP), near = socket(AF_INET6, SOCK_STREAM, IPPROTO_SCTP);
    struct sockaddr_in6 name = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT }, peer;
    if (bind(far, NAME(name), sizeof name) != 0) {
        CHECK(errno == EADDRNOTAVAIL || errno == EAFNOSUPPORT);
        fprintf(stderr, "skipped: no IPv6 here\n");
        return;
    }
    CHECK(listen(far, 1) == 0);
    socklen_t len = sizeof name;
    CHECK(getsockname(far, NAME(name), &len) == 0 && len == sizeof name);
    CHECK(connect(near, NAME(name), sizeof name) == 0);
    len = sizeof peer;
    int one = accept(far, NAME(peer), &len);
    CHECK(one >= 0 && len == sizeof peer && peer.sin6_family == AF_INET6);
    CHECK(send(near, "six", 3, 0) == 3);
    char data[10];
    CHECK(recv(one, data, sizeof data, 0) == 3);
    CHECK(close(near) == 0 && close(far) == 0 && close(one) == 0);
}

/* A message is there, and whole, although what comes with it has no place or too little of it. */
static void no_room_beside(void)
{
    int ends[2], on = 1;
    char text[10], control[CMSG_SPACE(sizeof(struct sctp_rcvinfo))];
    struct iovec into = { text, sizeof text };
    struct msghdr message = { .msg_iov = &into, .msg_iovlen = 1, .msg_controllen = 64 };
    struct sctp_sndinfo info = { .snd_sid = 3 };
    pair("127.0.0.1", ends);
    CHECK(setsockopt(ends[1], IPPROTO_SCTP, SCTP_RECVRCVINFO, &on, sizeof on) == 0);
    for (int turn = 0; turn < 2; turn++) {
        struct iovec data = { "whole", 5 };
        CHECK(sctp_sendv(ends[0], &data, 1, NULL, 0, &info, sizeof info, SCTP_SENDV_SNDINFO, 0) == 5);
    }
    CHECK(recvmsg(ends[1], &message, 0) == 5 && !memcmp(text, "whole", 5));
    CHECK(message.msg_flags == (MSG_EOR | MSG_CTRUNC) && message.msg_controllen == 0);
    message.msg_control = control;
    message.msg_controllen = CMSG_LEN(2);
    CHECK(recvmsg(ends[1], &message, 0) == 5 && message.msg_flags == (MSG_EOR | MSG_CTRUNC));
    struct cmsghdr *first = CMSG_FIRSTHDR(&message);
    CHECK(message.msg_controllen == CMSG_LEN(2) && first->cmsg_len == CMSG_LEN(2) && first->cmsg_type == SCTP_RCVINFO);
    CHECK(((struct sctp_rcvinfo *)CMSG_DATA(first))->rcv_sid == 3);
    CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
}

/* Lengths that no memory has are refused before it is looked at, and nothing is sent. */
static void wrong_lengths(void)
{
    int ends[2];
    char text[10];
    pair("127.0.0.1", ends);
    size_t beyond = (size_t)1 << 41;
    struct iovec negative = { text, (size_t)-1 }, large = { text, beyond };
    struct iovec together[2] = { { text, PTRDIFF_MAX }, { text, PTRDIFF_MAX } };
    struct msghdr message = { .msg_iov = &negative, .msg_iovlen = 1 };
    FAILS(sendmsg(ends[0], &message, 0), EINVAL);
    FAILS(recvmsg(ends[1], &message, MSG_DONTWAIT), EINVAL);
    FAILS(writev(ends[0], &negative, 1), EINVAL);
    message.msg_iov = &large;
    FAILS(sendmsg(ends[0], &message, 0), EMSGSIZE);
    FAILS(writev(ends[0], together, 2), EMSGSIZE);
    FAILS(send(ends[0], text, beyond, 0), EMSGSIZE);
    FAILS(send(ends[0], text, 0x7fffffff, 0), EMSGSIZE);
    FAILS(sctp_sendmsg(ends[0], text, (size_t)-1, NULL, 0, 0, 0, 0, 0, 0), EMSGSIZE);
    FAILS(sctp_sendv(ends[0], &large, 1, NULL, 0, NULL, 0, SCTP_SENDV_NOINFO, 0), EMSGSIZE);
    FAILS(sctp_send(ends[0], text, beyond, NULL, 0), EMSGSIZE);
    CHECK(send(ends[0], "short", 5, 0) == 5 && recv(ends[1], text, sizeof text, 0) == 5);
    CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
}

int main(void)
{
    in_parts();
    in_pieces();
    given_up();
    everybody();
    closing();
    addresses();
    version_6();
    no_room_beside();
    wrong_lengths();
    return 0;
}
