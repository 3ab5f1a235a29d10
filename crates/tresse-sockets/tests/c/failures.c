/* What was not delivered when an association ended, and the numbers of messages that were. */
#include "common.h"

static void subscribe(int fd, int type)
{
    struct sctp_event event = { SCTP_FUTURE_ASSOC, type, 1 };
    CHECK(setsockopt(fd, IPPROTO_SCTP, SCTP_EVENT, &event, sizeof event) == 0);
}

/* An association whose peer takes a few messages, and reads none. */
static void narrow(int ends[2], int kind)
{
    int waiting = listener(SOCK_STREAM, "127.0.0.1"), small = 4096;
    CHECK(setsockopt(waiting, SOL_SOCKET, SO_RCVBUF, &small, sizeof small) == 0);
    ends[0] = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    subscribe(ends[0], kind);
    subscribe(ends[0], SCTP_ASSOC_CHANGE);
    struct sockaddr_in name = name_of("127.0.0.1", port_of(waiting));
    CHECK(connect(ends[0], NAME(name), sizeof name) == 0);
    CHECK((ends[1] = accept(waiting, NULL, NULL)) >= 0);
    CHECK(close(waiting) == 0);
    union sctp_notification got;
    CHECK(recv(ends[0], &got, sizeof got, 0) > 0 && got.sn_assoc_change.sac_state == SCTP_COMM_UP);
}

static char room[4000];

/* Waits until the peer has acknowledged something. */
static void acknowledged(int fd)
{
    struct sctp_tresse_stream_queue queue = { 0 };
    socklen_t len = sizeof queue;
    CHECK(getsockopt(fd, IPPROTO_SCTP, SCTP_TRESSE_STREAM_QUEUE, &queue, &len) == 0);
    for (unsigned all = 30 * 1000; queue.ssq_used >= all;) {
        struct timespec moment = { 0, 1000000 };
        nanosleep(&moment, NULL);
        len = sizeof queue;
        CHECK(getsockopt(fd, IPPROTO_SCTP, SCTP_TRESSE_STREAM_QUEUE, &queue, &len) == 0);
    }
}

/* Sends 30 messages of which few arrive, ends the association from afar, and hears of those in order. */
static void undelivered(int kind)
{
    int ends[2], unsent = 0, next = 0;
    narrow(ends, kind);
    for (int number = 0; number < 30; number++) {
        memset(room, 'a' + number % 26, 1000);
        int sent = sctp_sendmsg(ends[0], room, 1000, NULL, 0, htonl(5), number & 1 ? SCTP_UNORDERED : 0, 2, 0, 700 + number);
        CHECK(sent == 1000);
    }
    acknowledged(ends[0]);
    struct linger linger = { 1, 0 };
    CHECK(setsockopt(ends[1], SOL_SOCKET, SO_LINGER, &linger, sizeof linger) == 0 && close(ends[1]) == 0);
    for (;;) {
        union sctp_notification *got = (union sctp_notification *)room;
        ssize_t length = recv(ends[0], room, sizeof room, 0);
        CHECK(length > 0 && got->sn_header.sn_length == length);
        if (got->sn_header.sn_type == SCTP_ASSOC_CHANGE) {
            CHECK(got->sn_assoc_change.sac_state == SCTP_COMM_LOST && got->sn_assoc_change.sac_error == htons(12));
            break;
        }
        CHECK(got->sn_header.sn_type == kind);
        struct sctp_send_failed *old = &got->sn_send_failed;
        struct sctp_send_failed_event *new = &got->sn_send_failed_event;
        int is_old = kind == SCTP_SEND_FAILED, head = is_old ? sizeof *old : sizeof *new;
        /* Unordered ones may overtake, and no message is told of twice. */
        int context = is_old ? old->ssf_info.sinfo_context : new->ssfe_info.snd_context, number = context - 700;
        CHECK(number >= 0 && number < 30);
        CHECK((is_old ? old->ssf_info.sinfo_stream : new->ssfe_info.snd_sid) == 2);
        CHECK((is_old ? old->ssf_info.sinfo_ppid : new->ssfe_info.snd_ppid) == htonl(5));
        CHECK((is_old ? old->ssf_info.sinfo_flags : new->ssfe_info.snd_flags) == (number & 1 ? SCTP_UNORDERED : 0));
        CHECK((is_old ? old->ssf_assoc_id : new->ssf_assoc_id) >= 3);
        CHECK((is_old ? old->ssf_error : new->ssf_error) == htons(12));
        if ((is_old ? old->ssf_flags : new->ssf_flags) == SCTP_DATA_UNSENT) {
            unsent++;
            CHECK(length == head + 1000);
        }
        for (ssize_t at = head; at < length; at++)
            CHECK(room[at] == 'a' + number % 26);
        next++;
    }
    CHECK(unsent >= 20 && next < 30);
    FAILS(recv(ends[0], room, sizeof room, 0), ECONNRESET);
    CHECK(close(ends[0]) == 0);
}

/* TSNs of messages follow each other, and the cumulative one is never behind. */
static void numbers(void)
{
    int ends[2], on = 1;
    unsigned last = 0;
    pair("127.0.0.1", ends);
    CHECK(setsockopt(ends[1], IPPROTO_SCTP, SCTP_RECVRCVINFO, &on, sizeof on) == 0);
    for (int count = 0; count < 50; count++)
        CHECK(send(ends[0], "numbered", 8, 0) == 8);
    for (int count = 0; count < 50; count++) {
        struct sctp_rcvinfo info;
        struct sockaddr_in from;
        socklen_t from_len = sizeof from, info_len = sizeof info;
        unsigned kind;
        int flags = 0;
        struct iovec into = { room, sizeof room };
        CHECK(sctp_recvv(ends[1], &into, 1, NAME(from), &from_len, &info, &info_len, &kind, &flags) == 8);
        CHECK(kind == SCTP_RECVV_RCVINFO && flags == MSG_EOR);
        CHECK(count == 0 || info.rcv_tsn == last + 1);
        CHECK(info.rcv_cumtsn - info.rcv_tsn < 50u - count);
        last = info.rcv_tsn;
    }
    CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
}

/* A name that is said to be as long as the largest, with anything behind it, is that name. */
static void long_names(void)
{
    int far = listener(SOCK_SEQPACKET, "127.0.0.1"), near = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP);
    struct sockaddr_storage name;
    memset(&name, 0x55, sizeof name);
    struct sockaddr_in short_name = name_of("127.0.0.1", port_of(far));
    memcpy(&name, &short_name, sizeof short_name);
    struct iovec data = { "name", 4 };
    struct msghdr message = { .msg_name = &name, .msg_namelen = sizeof name, .msg_iov = &data, .msg_iovlen = 1 };
    CHECK(sendmsg(near, &message, 0) == 4);
    CHECK(sendto(near, "name", 4, 0, NAME(name), sizeof name) == 4);
    CHECK(sctp_sendmsg(near, "name", 4, NAME(name), sizeof name, 0, 0, 0, 0, 0) == 4);
    for (int count = 0; count < 3; count++)
        CHECK(recv(far, room, sizeof room, 0) == 4);
    CHECK(close(near) == 0 && close(far) == 0);
}

/* Of several addresses that sctp_sendv has, only the first needs a port. */
static void port_of_the_first(void)
{
    int far = listener(SOCK_SEQPACKET, "127.0.0.1"), near = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP);
    struct sockaddr_in names[2] = { name_of("127.0.0.1", port_of(far)), name_of("127.0.0.2", 0) };
    struct iovec data = { "name", 4 };
    CHECK(sctp_sendv(near, &data, 1, NAME(names[0]), 2, NULL, 0, SCTP_SENDV_NOINFO, 0) == 4);
    CHECK(recv(far, room, sizeof room, 0) == 4);
    CHECK(close(near) == 0 && close(far) == 0);
}

int main(void)
{
    undelivered(SCTP_SEND_FAILED_EVENT);
    undelivered(SCTP_SEND_FAILED);
    numbers();
    long_names();
    port_of_the_first();
    return 0;
}
