/* One-to-many sockets: associations that messages set up, notifications, ancillary data, peel-off. */
#include "common.h"

struct got {
    char data[2000];
    long len;
    int flags;
    struct sctp_rcvinfo info;
    struct sctp_nxtinfo next;
    int has_info, has_next;
    struct sockaddr_in from;
};

static struct got receive(int fd)
{
    struct got got = { .has_info = 0 };
    struct iovec into = { got.data, sizeof got.data };
    char control[200];
    struct msghdr message = { .msg_name = &got.from, .msg_namelen = sizeof got.from, .msg_iov = &into, .msg_iovlen = 1,
        .msg_control = control, .msg_controllen = sizeof control };
    got.len = recvmsg(fd, &message, 0);
    CHECK(got.len >= 0);
    got.flags = message.msg_flags;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
        CHECK(header->cmsg_level == IPPROTO_SCTP);
        if (header->cmsg_type == SCTP_RCVINFO) {
            memcpy(&got.info, CMSG_DATA(header), sizeof got.info);
            got.has_info = 1;
        } else if (header->cmsg_type == SCTP_NXTINFO) {
            memcpy(&got.next, CMSG_DATA(header), sizeof got.next);
            got.has_next = 1;
        }
    }
    return got;
}

static union sctp_notification *notification(struct got *got, int type)
{
    union sctp_notification *one = (union sctp_notification *)got->data;
    CHECK((got->flags & MSG_NOTIFICATION) && (got->flags & MSG_EOR));
    CHECK(one->sn_header.sn_type == type && one->sn_header.sn_length == got->len);
    return one;
}

/* What comes next but SCTP_SENDER_DRY_EVENT: that comes as often as everything was acknowledged before more was sent. */
static struct got receive_but_dry(int fd)
{
    struct got got;
    do
        got = receive(fd);
    while ((got.flags & MSG_NOTIFICATION)
        && ((union sctp_notification *)got.data)->sn_header.sn_type == SCTP_SENDER_DRY_EVENT);
    return got;
}

static void subscribe(int fd, int type)
{
    struct sctp_event event = { .se_assoc_id = SCTP_FUTURE_ASSOC, .se_type = type, .se_on = 1 };
    CHECK(setsockopt(fd, IPPROTO_SCTP, SCTP_EVENT, &event, sizeof event) == 0);
    event.se_on = 0;
    socklen_t len = sizeof event;
    CHECK(getsockopt(fd, IPPROTO_SCTP, SCTP_EVENT, &event, &len) == 0 && event.se_on == 1);
}

static int many(const char *address)
{
    int fd = listener(SOCK_SEQPACKET, address), on = 1;
    subscribe(fd, SCTP_ASSOC_CHANGE);
    subscribe(fd, SCTP_SHUTDOWN_EVENT);
    subscribe(fd, SCTP_SENDER_DRY_EVENT);
    CHECK(setsockopt(fd, IPPROTO_SCTP, SCTP_RECVRCVINFO, &on, sizeof on) == 0);
    CHECK(setsockopt(fd, IPPROTO_SCTP, SCTP_RECVNXTINFO, &on, sizeof on) == 0);
    return fd;
}

/* Of a notification that was read in part the rest goes along with its association, and nothing is cut off the next one. */
static void notification_in_part(void)
{
    int fd = listener(SOCK_SEQPACKET, "127.0.0.1");
    subscribe(fd, SCTP_ASSOC_CHANGE);
    int first = connected("127.0.0.1", port_of(fd));
    union { struct sctp_assoc_change change; char bytes[200]; } told;
    CHECK(recv(fd, told.bytes, 8, 0) == 8 && told.change.sac_type == SCTP_ASSOC_CHANGE);
    struct { struct sctp_assoc_ids head; sctp_assoc_t room[4]; } ids;
    socklen_t len = sizeof ids;
    CHECK(getsockopt(fd, IPPROTO_SCTP, SCTP_GET_ASSOC_ID_LIST, &ids, &len) == 0 && ids.head.gaids_number_of_ids == 1);
    int own = sctp_peeloff(fd, ids.head.gaids_assoc_id[0]);
    CHECK(own >= 0);
    long rest = recv(own, told.bytes + 8, sizeof told.bytes - 8, 0);
    CHECK(rest > 0 && told.change.sac_length == 8 + rest && told.change.sac_state == SCTP_COMM_UP);
    int second = connected("127.0.0.1", port_of(fd));
    struct got got = receive(fd);
    notification(&got, SCTP_ASSOC_CHANGE);
    CHECK(close(own) == 0 && close(first) == 0 && close(second) == 0 && close(fd) == 0);
}

/* What SCTP_INIT says is for the association that its message sets up, and for no other. */
static void set_up_with_streams(void)
{
    int far = listener(SOCK_SEQPACKET, "127.0.0.1"), other = listener(SOCK_SEQPACKET, "127.0.0.1");
    int near = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP);
    struct sockaddr_in names[2] = { name_of("127.0.0.1", port_of(far)), name_of("127.0.0.1", port_of(other)) };
    struct sctp_initmsg init = { 4, 5, 6, 700 }, usual;
    char control[CMSG_SPACE(sizeof init)], text[10];
    struct iovec data = { "first", 5 };
    struct msghdr message = { .msg_name = &names[0], .msg_namelen = sizeof names[0], .msg_iov = &data, .msg_iovlen = 1,
        .msg_control = control, .msg_controllen = sizeof control };
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = IPPROTO_SCTP;
    header->cmsg_type = SCTP_INIT;
    header->cmsg_len = CMSG_LEN(sizeof init);
    memcpy(CMSG_DATA(header), &init, sizeof init);
    CHECK(sendmsg(near, &message, 0) == 5);
    socklen_t len = sizeof usual;
    CHECK(getsockopt(near, IPPROTO_SCTP, SCTP_INITMSG, &usual, &len) == 0);
    CHECK(usual.sinit_num_ostreams == 10 && usual.sinit_max_attempts == 8 && usual.sinit_max_init_timeo == 0);
    CHECK(sendto(near, "second", 6, 0, NAME(names[1]), sizeof names[1]) == 6);
    CHECK(recv(far, text, sizeof text, 0) == 5 && recv(other, text, sizeof text, 0) == 6);
    for (int at = 0; at < 2; at++) {
        struct { struct sctp_assoc_ids head; sctp_assoc_t room[4]; } ids;
        int fd = at ? other : far;
        len = sizeof ids;
        CHECK(getsockopt(fd, IPPROTO_SCTP, SCTP_GET_ASSOC_ID_LIST, &ids, &len) == 0);
        struct sctp_status status = { .sstat_assoc_id = ids.head.gaids_assoc_id[0] };
        len = sizeof status;
        CHECK(getsockopt(fd, IPPROTO_SCTP, SCTP_STATUS, &status, &len) == 0);
        CHECK(status.sstat_instrms == (at ? 10 : 4) && status.sstat_outstrms == (at ? 10 : 5));
    }
    CHECK(close(near) == 0 && close(far) == 0 && close(other) == 0);
}

/* A message that is refused sets nothing up. */
static void refused_at_once(void)
{
    static const int types[2] = { SOCK_STREAM, SOCK_SEQPACKET };
    int far = listener(SOCK_STREAM, "127.0.0.1"), on = 1;
    static char block[100000];
    struct sockaddr_in name = name_of("127.0.0.1", port_of(far));
    for (int at = 0; at < 2; at++) {
        int near = socket(AF_INET, types[at], IPPROTO_SCTP);
        FAILS(sctp_sendmsg(near, "x", 1, NAME(name), sizeof name, 0, 0, 5000, 0, 0), EINVAL);
        CHECK(setsockopt(near, IPPROTO_SCTP, SCTP_DISABLE_FRAGMENTS, &on, sizeof on) == 0);
        FAILS(sctp_sendmsg(near, block, sizeof block, NAME(name), sizeof name, 0, 0, 0, 0, 0), EMSGSIZE);
        CHECK(connect(near, NAME(name), sizeof name) == 0);
        CHECK(close(near) == 0);
    }
    CHECK(close(far) == 0);
}

/* Accepted sockets, and those that were peeled off, have the timeouts of their parents. */
static void timeouts_of_parents(void)
{
    static const int types[2] = { SOCK_STREAM, SOCK_SEQPACKET }, options[2] = { SO_RCVTIMEO, SO_SNDTIMEO };
    for (int at = 0; at < 2; at++) {
        int far = listener(types[at], "127.0.0.1");
        for (int which = 0; which < 2; which++) {
            struct timeval limit = { 7 + which, 0 };
            CHECK(setsockopt(far, SOL_SOCKET, options[which], &limit, sizeof limit) == 0);
        }
        subscribe(far, SCTP_ASSOC_CHANGE);
        int near = connected("127.0.0.1", port_of(far)), own;
        if (types[at] == SOCK_STREAM) {
            own = accept(far, NULL, NULL);
        } else {
            struct got got = receive(far);
            own = sctp_peeloff(far, notification(&got, SCTP_ASSOC_CHANGE)->sn_assoc_change.sac_assoc_id);
        }
        CHECK(own >= 0);
        for (int which = 0; which < 2; which++) {
            struct timeval limit;
            socklen_t len = sizeof limit;
            CHECK(getsockopt(own, SOL_SOCKET, options[which], &limit, &len) == 0 && limit.tv_sec == 7 + which);
        }
        CHECK(close(own) == 0 && close(near) == 0 && close(far) == 0);
    }
}

/* A peer's address says which association an option is for, if the association ID does not. */
static void options_by_address(void)
{
    int far = listener(SOCK_SEQPACKET, "127.0.0.1"), near = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP);
    struct sockaddr_in name = name_of("127.0.0.1", port_of(far)), other = name_of("127.0.0.1", 9);
    CHECK(connect(near, NAME(name), sizeof name) == 0);
    struct sctp_paddrparams paths = { .spp_pathmtu = 0 };
    struct sctp_paddrthlds limits = { .spt_pathmaxrxt = 0 };
    struct sctp_prim prim = { .ssp_assoc_id = 0 };
    socklen_t len = sizeof paths, short_len = sizeof limits;
    memcpy(&paths.spp_address, &name, sizeof name);
    memcpy(&limits.spt_address, &name, sizeof name);
    memcpy(&prim.ssp_addr, &name, sizeof name);
    CHECK(getsockopt(near, IPPROTO_SCTP, SCTP_PEER_ADDR_PARAMS, &paths, &len) == 0 && paths.spp_pathmtu > 500);
    CHECK(getsockopt(near, IPPROTO_SCTP, SCTP_PEER_ADDR_THLDS, &limits, &short_len) == 0 && limits.spt_pathmaxrxt > 0);
    CHECK(setsockopt(near, IPPROTO_SCTP, SCTP_PRIMARY_ADDR, &prim, sizeof prim) == 0);
    paths.spp_assoc_id = limits.spt_assoc_id = 0;
    memcpy(&paths.spp_address, &other, sizeof other);
    memcpy(&limits.spt_address, &other, sizeof other);
    memcpy(&prim.ssp_addr, &other, sizeof other);
    FAILS(getsockopt(near, IPPROTO_SCTP, SCTP_PEER_ADDR_PARAMS, &paths, &len), EINVAL);
    FAILS(getsockopt(near, IPPROTO_SCTP, SCTP_PEER_ADDR_THLDS, &limits, &short_len), EINVAL);
    FAILS(setsockopt(near, IPPROTO_SCTP, SCTP_PRIMARY_ADDR, &prim, sizeof prim), EINVAL);
    CHECK(close(near) == 0 && close(far) == 0);
}

int main(void)
{
    refused_at_once();
    timeouts_of_parents();
    options_by_address();
    notification_in_part();
    int near = many("127.0.0.1"), far = many("127.0.0.1");
    struct sockaddr_in name = name_of("127.0.0.1", port_of(far));
    /* The first message sets the association up. */
    CHECK(sctp_sendmsg(near, "first", 5, NAME(name), sizeof name, htonl(7), 0, 3, 0, 0) == 5);
    CHECK(sctp_sendmsg(near, "second", 6, NAME(name), sizeof name, htonl(8), SCTP_UNORDERED, 4, 0, 99) == 6);
    struct got got = receive(near); /* Nobody is dry before there is an association. */
    union sctp_notification *one = notification(&got, SCTP_ASSOC_CHANGE);
    CHECK(one->sn_assoc_change.sac_state == SCTP_COMM_UP && one->sn_assoc_change.sac_outbound_streams == 10);
    sctp_assoc_t near_id = one->sn_assoc_change.sac_assoc_id;
    CHECK(near_id >= 3);
    got = receive(far);
    one = notification(&got, SCTP_ASSOC_CHANGE);
    CHECK(one->sn_assoc_change.sac_state == SCTP_COMM_UP);
    sctp_assoc_t far_id = one->sn_assoc_change.sac_assoc_id;
    struct got first = receive_but_dry(far), second = receive_but_dry(far);
    if (first.info.rcv_sid == 4) {
        got = first;
        first = second;
        second = got;
    }
    CHECK(first.len == 5 && !memcmp(first.data, "first", 5) && first.has_info);
    CHECK(first.info.rcv_sid == 3 && first.info.rcv_ppid == htonl(7) && first.info.rcv_assoc_id == far_id);
    CHECK(first.info.rcv_flags == 0 && ntohs(first.from.sin_port) == port_of(near));
    CHECK(second.info.rcv_sid == 4 && second.info.rcv_flags == SCTP_UNORDERED && second.info.rcv_ppid == htonl(8));
    got = receive(near);
    notification(&got, SCTP_SENDER_DRY_EVENT);

    /* By the number alone, and with ancillary data. */
    struct sctp_sndinfo info = { .snd_sid = 1, .snd_ppid = htonl(5), .snd_assoc_id = far_id };
    struct iovec parts[2] = { { "ba", 2 }, { "ck", 2 } };
    CHECK(sctp_sendv(far, parts, 2, NULL, 0, &info, sizeof info, SCTP_SENDV_SNDINFO, 0) == 4);
    char control[CMSG_SPACE(sizeof info)] = { 0 };
    struct msghdr message = { .msg_iov = parts, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    *header = (struct cmsghdr) { .cmsg_len = CMSG_LEN(sizeof info), .cmsg_level = IPPROTO_SCTP, .cmsg_type = SCTP_SNDINFO };
    info.snd_sid = 2;
    memcpy(CMSG_DATA(header), &info, sizeof info);
    CHECK(sendmsg(far, &message, 0) == 2);
    struct iovec into = { got.data, sizeof got.data };
    struct sctp_recvv_rn both;
    socklen_t from_len = sizeof got.from, info_len = sizeof both;
    unsigned kind = 0;
    int flags = 0;
    int count_of_bytes;
    do {
        info_len = sizeof both;
        count_of_bytes = sctp_recvv(near, &into, 1, NAME(got.from), &from_len, &both, &info_len, &kind, &flags);
    } while ((flags & MSG_NOTIFICATION)
        && ((union sctp_notification *)got.data)->sn_header.sn_type == SCTP_SENDER_DRY_EVENT);
    CHECK(count_of_bytes == 4);
    CHECK((kind == SCTP_RECVV_RN || kind == SCTP_RECVV_RCVINFO) && both.recvv_rcvinfo.rcv_sid == 1 && (flags & MSG_EOR));
    got = receive_but_dry(near);
    CHECK(got.len == 2 && got.info.rcv_sid == 2 && got.info.rcv_assoc_id == near_id);
    info.snd_assoc_id = 12345678;
    CHECK(sctp_sendv(far, parts, 1, NULL, 0, &info, sizeof info, SCTP_SENDV_SNDINFO, 0) == -1);

    /* What there is. */
    unsigned count = 0;
    socklen_t len = sizeof count;
    CHECK(getsockopt(far, IPPROTO_SCTP, SCTP_GET_ASSOC_NUMBER, &count, &len) == 0 && count == 1);
    struct sockaddr *names = NULL;
    CHECK(sctp_getpaddrs(near, near_id, &names) == 1);
    CHECK(((struct sockaddr_in *)names)->sin_port == name.sin_port);
    sctp_freepaddrs(names);
    CHECK(sctp_getladdrs(near, near_id, &names) == 1);
    sctp_freeladdrs(names);

    /* Peeled off, it is a socket of its own, and what waits goes along. */
    CHECK(sctp_sendmsg(near, "waits", 5, NAME(name), sizeof name, 0, 0, 0, 0, 0) == 5);
    wait_for(far, POLLIN);
    int own = sctp_peeloff(far, far_id);
    CHECK(own >= 0);
    got = receive_but_dry(own);
    CHECK(got.len == 5 && !ready(far, POLLIN));
    CHECK(send(own, "mine", 4, 0) == 4);
    got = receive_but_dry(near);
    CHECK(got.len == 4);
    FAILS(sctp_peeloff(far, far_id), EINVAL);

    /* The end, asked for with a message. */
    CHECK(sctp_sendmsg(near, "end", 3, NAME(name), sizeof name, 0, SCTP_EOF, 0, 0, 0) == 3);
    got = receive_but_dry(own);
    CHECK(got.len == 3);
    got = receive_but_dry(own);
    notification(&got, SCTP_SHUTDOWN_EVENT);
    got = receive_but_dry(near);
    one = notification(&got, SCTP_ASSOC_CHANGE);
    CHECK(one->sn_assoc_change.sac_state == SCTP_SHUTDOWN_COMP);
    /* The peer says nothing more; that it has acknowledged the end may come before this is read, or after. */
    got = receive_but_dry(own);
    if (got.len > 0) {
        one = notification(&got, SCTP_ASSOC_CHANGE);
        CHECK(one->sn_assoc_change.sac_state == SCTP_SHUTDOWN_COMP);
        got = receive(own);
    }
    CHECK(got.len == 0);
    CHECK(close(own) == 0 && close(near) == 0 && close(far) == 0);
    set_up_with_streams();
    return 0;
}
