/* What a peer complains of: the test is the peer, at the UDP port that the program is given, and has SCTP port 7. */
#include "common.h"

int main(int count, char **words)
{
    CHECK(count == 2);
    int fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    struct sctp_udpencaps port = { .sue_port = htons(atoi(words[1])) };
    CHECK(setsockopt(fd, IPPROTO_SCTP, SCTP_REMOTE_UDP_ENCAPS_PORT, &port, sizeof port) == 0);
    struct sctp_event event = { SCTP_FUTURE_ASSOC, SCTP_REMOTE_ERROR, 1 };
    CHECK(setsockopt(fd, IPPROTO_SCTP, SCTP_EVENT, &event, sizeof event) == 0);
    struct sockaddr_in name = name_of("127.0.0.1", 7);
    CHECK(connect(fd, NAME(name), sizeof name) == 0);
    union sctp_notification got;
    struct iovec into = { &got, sizeof got };
    struct msghdr message = { .msg_iov = &into, .msg_iovlen = 1 };
    ssize_t length = recvmsg(fd, &message, 0);
    CHECK(length == 20 && message.msg_flags == (MSG_NOTIFICATION | MSG_EOR));
    CHECK(got.sn_remote_error.sre_type == SCTP_REMOTE_ERROR && got.sn_remote_error.sre_length == 20);
    /* Invalid stream identifier (RFC 9260, 3.3.10.1): the stream, and two bytes that mean nothing. */
    CHECK(ntohs(got.sn_remote_error.sre_error) == 1 && got.sn_remote_error.sre_assoc_id >= 3);
    CHECK(!memcmp(got.sn_remote_error.sre_data, "\x12\x34\0\0", 4));
    /* It ends nothing. */
    CHECK(send(fd, "bye", 3, 0) == 3);
    CHECK(close(fd) == 0);
    return 0;
}
