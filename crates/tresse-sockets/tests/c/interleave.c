/* SCTP_FRAGMENT_INTERLEAVE (RFC 6458, 8.1.20): what may come between the parts of a message that is handed out before it is
 * complete, and what becomes of the others when its rest does not come. */
#include "common.h"

#define LONG_MESSAGE 60000
#define PART 700

static char block[LONG_MESSAGE];

/* One part or message; fills in what it is of. */
static int part(int fd, struct sctp_rcvinfo *info)
{
    struct iovec into = { block, PART };
    char control[200];
    struct msghdr message = { .msg_iov = &into, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
    CHECK(recvmsg(fd, &message, 0) > 0);
    memset(info, 0, sizeof *info);
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (!(message.msg_flags & MSG_NOTIFICATION)) {
        CHECK(header && header->cmsg_type == SCTP_RCVINFO);
        memcpy(info, CMSG_DATA(header), sizeof *info);
    }
    return message.msg_flags & (MSG_EOR | MSG_NOTIFICATION);
}

/* A socket that holds less than a long message, and hands such a one out in parts. */
static int narrow(int level)
{
    int fd = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP), small = 16000, point = 3000, on = 1;
    struct sctp_assoc_value interleaves = { 0, 1 };
    struct sockaddr_in name = name_of("127.0.0.1", 0);
    CHECK(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small) == 0);
    CHECK(setsockopt(fd, IPPROTO_SCTP, SCTP_PARTIAL_DELIVERY_POINT, &point, sizeof point) == 0);
    CHECK(setsockopt(fd, IPPROTO_SCTP, SCTP_INTERLEAVING_SUPPORTED, &interleaves, sizeof interleaves) == 0);
    FAILS(setsockopt(fd, IPPROTO_SCTP, SCTP_FRAGMENT_INTERLEAVE, (int[]) { 2 }, sizeof(int)), EINVAL);
    CHECK(setsockopt(fd, IPPROTO_SCTP, SCTP_RECVRCVINFO, &on, sizeof on) == 0);
    CHECK(setsockopt(fd, IPPROTO_SCTP, SCTP_FRAGMENT_INTERLEAVE, &level, sizeof level) == 0);
    CHECK(bind(fd, NAME(name), sizeof name) == 0 && listen(fd, 5) == 0);
    return fd;
}

static int peer_of(int fd)
{
    int near = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    struct sctp_assoc_value both = { 0, 1 };
    struct sockaddr_in name = name_of("127.0.0.1", port_of(fd));
    CHECK(setsockopt(near, IPPROTO_SCTP, SCTP_INTERLEAVING_SUPPORTED, &both, sizeof both) == 0);
    both.assoc_value = SCTP_SS_RR;
    CHECK(setsockopt(near, IPPROTO_SCTP, SCTP_STREAM_SCHEDULER, &both, sizeof both) == 0);
    CHECK(connect(near, NAME(name), sizeof name) == 0);
    return near;
}

static void give(int fd, int stream, int length)
{
    static char data[LONG_MESSAGE];
    CHECK(sctp_sendmsg(fd, data, length, NULL, 0, 0, 0, stream, 0, 0) == length);
}

/* A long message and a short one of the same association, and a short one of another: counts the parts of others that come
 * before the end of the long one. */
static void level(int level, int *of_same, int *of_other)
{
    int fd = narrow(level), one = peer_of(fd), other = peer_of(fd), ends = 0, long_ended = 0;
    struct sctp_rcvinfo first, info;
    give(one, 1, LONG_MESSAGE);
    CHECK(part(fd, &first) == 0 && first.rcv_sid == 1);
    give(one, 2, 4000);
    give(other, 3, 500);
    arrived(other);
    *of_same = *of_other = 0;
    while (ends < 3) {
        int flags = part(fd, &info);
        if (!long_ended) {
            *of_same += info.rcv_assoc_id == first.rcv_assoc_id && info.rcv_sid == 2;
            *of_other += info.rcv_assoc_id != first.rcv_assoc_id;
        }
        ends += flags == MSG_EOR;
        long_ended |= flags == MSG_EOR && info.rcv_sid == 1;
    }
    CHECK(!ready(fd, POLLIN));
    CHECK(close(one) == 0 && close(other) == 0 && close(fd) == 0);
}

/* The peer of a message that is handed out in parts goes away: the program is told, and the others have their turn. */
static void rest_that_does_not_come(int with_parts)
{
    int fd = narrow(0), one = peer_of(fd), other = peer_of(fd), aborted = 0, flags;
    struct sctp_event event = { SCTP_ALL_ASSOC, SCTP_PARTIAL_DELIVERY_EVENT, 1 };
    struct sctp_rcvinfo first, info;
    struct linger linger = { 1, 0 };
    CHECK(setsockopt(fd, IPPROTO_SCTP, SCTP_EVENT, &event, sizeof event) == 0);
    give(one, 1, LONG_MESSAGE);
    CHECK(part(fd, &first) == 0 && first.rcv_sid == 1);
    give(other, 3, 500);
    arrived(other);
    if (!with_parts) {
        /* All that the buffer held is read: what has come of the other one is not shown before this message has its end. */
        while (part(fd, &info) == 0 && info.rcv_cumtsn < first.rcv_cumtsn + 5)
            CHECK(info.rcv_assoc_id == first.rcv_assoc_id);
    }
    CHECK(setsockopt(one, SOL_SOCKET, SO_LINGER, &linger, sizeof linger) == 0 && close(one) == 0);
    while ((flags = part(fd, &info)) != MSG_EOR) {
        if (flags & MSG_NOTIFICATION) {
            struct sctp_pdapi_event *told = (struct sctp_pdapi_event *)block;
            CHECK(told->pdapi_type == SCTP_PARTIAL_DELIVERY_EVENT && told->pdapi_indication == SCTP_PARTIAL_DELIVERY_ABORTED);
            CHECK(told->pdapi_stream == 1 && told->pdapi_assoc_id == first.rcv_assoc_id && !aborted);
            aborted = 1;
        } else {
            CHECK(info.rcv_assoc_id == first.rcv_assoc_id && info.rcv_sid == 1 && !aborted);
        }
    }
    CHECK(info.rcv_assoc_id != first.rcv_assoc_id && info.rcv_sid == 3);
    if (!aborted) {
        CHECK(part(fd, &info) == (MSG_EOR | MSG_NOTIFICATION));
        CHECK(((struct sctp_pdapi_event *)block)->pdapi_type == SCTP_PARTIAL_DELIVERY_EVENT);
    }
    CHECK(!ready(fd, POLLIN) && close(other) == 0 && close(fd) == 0);
}

/* The lifetime of a message ends when parts of it were read: that is told before anything else is shown, as the program would
 * take it for the rest. */
static void given_up_by_the_sender(void)
{
    int fd = narrow(0), one = peer_of(fd), flags;
    static char data[LONG_MESSAGE];
    struct sctp_event event = { SCTP_ALL_ASSOC, SCTP_PARTIAL_DELIVERY_EVENT, 1 };
    struct sctp_rcvinfo info;
    CHECK(setsockopt(fd, IPPROTO_SCTP, SCTP_EVENT, &event, sizeof event) == 0);
    event.se_type = SCTP_SEND_FAILED_EVENT;
    CHECK(setsockopt(one, IPPROTO_SCTP, SCTP_EVENT, &event, sizeof event) == 0);
    CHECK(sctp_sendmsg(one, data, LONG_MESSAGE, NULL, 0, 0, SCTP_PR_SCTP_TTL, 1, 2000, 0) == LONG_MESSAGE);
    for (int reads = 0; reads < 10; reads++)
        CHECK(part(fd, &info) == 0 && info.rcv_sid == 1);
    give(one, 2, 100);
    CHECK(recv(one, block, sizeof block, 0) > 0 && ((struct sctp_send_failed_event *)block)->ssf_type == SCTP_SEND_FAILED_EVENT);
    /* Room for the other one, behind the parts. */
    for (int reads = 0; reads < 10; reads++)
        CHECK(part(fd, &info) == 0 && info.rcv_sid == 1);
    arrived(one);
    while ((flags = part(fd, &info)) == 0)
        CHECK(info.rcv_sid == 1);
    CHECK(flags == (MSG_EOR | MSG_NOTIFICATION) && ((struct sctp_pdapi_event *)block)->pdapi_stream == 1);
    CHECK(part(fd, &info) == MSG_EOR && info.rcv_sid == 2);
    CHECK(!ready(fd, POLLIN) && close(one) == 0 && close(fd) == 0);
}

int main(void)
{
    int of_same, of_other;
    level(0, &of_same, &of_other);
    CHECK(of_same == 0 && of_other == 0);
    level(1, &of_same, &of_other);
    CHECK(of_same == 0 && of_other > 0);
    level(2, &of_same, &of_other);
    CHECK(of_same > 0 && of_other > 0);
    rest_that_does_not_come(1);
    rest_that_does_not_come(0);
    given_up_by_the_sender();
    return 0;
}
