/* What a peer fails to do with streams (RFC 6525, 4.4): the test is the peer, at the UDP port that the program is given, and
 * has SCTP port 7. It answers each request with "wrong SSN". */
#include "common.h"

static int fd;

/* Gives what was told, which has this length. */
static union sctp_notification told(int type, size_t length)
{
    union sctp_notification got;
    struct iovec into = { &got, sizeof got };
    struct msghdr message = { .msg_iov = &into, .msg_iovlen = 1 };
    CHECK(recvmsg(fd, &message, 0) == (ssize_t)length && message.msg_flags == (MSG_NOTIFICATION | MSG_EOR));
    CHECK(got.sn_header.sn_type == type && got.sn_header.sn_length == length);
    return got;
}

static void subscribe(int type)
{
    struct sctp_event event = { SCTP_FUTURE_ASSOC, type, 1 };
    CHECK(setsockopt(fd, IPPROTO_SCTP, SCTP_EVENT, &event, sizeof event) == 0);
}

int main(int count, char **words)
{
    CHECK(count == 2);
    fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    struct sctp_udpencaps port = { .sue_port = htons(atoi(words[1])) };
    CHECK(setsockopt(fd, IPPROTO_SCTP, SCTP_REMOTE_UDP_ENCAPS_PORT, &port, sizeof port) == 0);
    subscribe(SCTP_STREAM_RESET_EVENT);
    subscribe(SCTP_ASSOC_RESET_EVENT);
    subscribe(SCTP_STREAM_CHANGE_EVENT);
    struct sockaddr_in name = name_of("127.0.0.1", 7);
    CHECK(connect(fd, NAME(name), sizeof name) == 0);

    struct { struct sctp_reset_streams head; uint16_t list[1]; } reset = { { 0, SCTP_STREAM_RESET_OUTGOING, 1 }, { 4 } };
    CHECK(setsockopt(fd, IPPROTO_SCTP, SCTP_RESET_STREAMS, &reset, sizeof reset) == 0);
    union sctp_notification got = told(SCTP_STREAM_RESET_EVENT, sizeof got.sn_strreset_event + 2);
    CHECK(got.sn_strreset_event.strreset_flags == (SCTP_STREAM_RESET_OUTGOING_SSN | SCTP_STREAM_RESET_FAILED));
    CHECK(got.sn_strreset_event.strreset_stream_list[0] == 4);

    struct sctp_add_streams add = { .sas_outstrms = 5 };
    CHECK(setsockopt(fd, IPPROTO_SCTP, SCTP_ADD_STREAMS, &add, sizeof add) == 0);
    got = told(SCTP_STREAM_CHANGE_EVENT, sizeof got.sn_strchange_event);
    CHECK(got.sn_strchange_event.strchange_flags == SCTP_STREAM_CHANGE_FAILED);
    CHECK(got.sn_strchange_event.strchange_instrms == 10 && got.sn_strchange_event.strchange_outstrms == 10);

    sctp_assoc_t all = 0;
    CHECK(setsockopt(fd, IPPROTO_SCTP, SCTP_RESET_ASSOC, &all, sizeof all) == 0);
    got = told(SCTP_ASSOC_RESET_EVENT, sizeof got.sn_assocreset_event);
    CHECK(got.sn_assocreset_event.assocreset_flags == SCTP_ASSOC_RESET_FAILED);
    CHECK(got.sn_assocreset_event.assocreset_local_tsn == 0 && got.sn_assocreset_event.assocreset_remote_tsn == 0);

    /* It ends nothing. */
    CHECK(send(fd, "bye", 3, 0) == 3);
    CHECK(close(fd) == 0);
    tresse_finish(60000);
    return 0;
}
