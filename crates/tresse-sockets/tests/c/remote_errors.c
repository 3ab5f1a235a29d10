/* What a peer complains of again and again while nobody reads: the test is the peer, at the UDP port that the program is given, and
 * has SCTP port 7. It sends ERROR chunks of 1000 bytes until it is told "enough", and then a message. */
#include "common.h"

#define PLENTY 500

static struct sctp_assoc_stats stats_of(int fd)
{
    struct sctp_assoc_stats stats = { 0 };
    socklen_t len = sizeof stats;
    CHECK(getsockopt(fd, IPPROTO_SCTP, SCTP_GET_ASSOC_STATS, &stats, &len) == 0);
    return stats;
}

int main(int count, char **words)
{
    CHECK(count == 2);
    int fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), room = 20000;
    struct sctp_udpencaps port = { .sue_port = htons(atoi(words[1])) };
    CHECK(setsockopt(fd, IPPROTO_SCTP, SCTP_REMOTE_UDP_ENCAPS_PORT, &port, sizeof port) == 0);
    CHECK(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room) == 0);
    struct sctp_event error = { SCTP_FUTURE_ASSOC, SCTP_REMOTE_ERROR, 1 }, change = { SCTP_FUTURE_ASSOC, SCTP_ASSOC_CHANGE, 1 };
    CHECK(setsockopt(fd, IPPROTO_SCTP, SCTP_EVENT, &error, sizeof error) == 0);
    CHECK(setsockopt(fd, IPPROTO_SCTP, SCTP_EVENT, &change, sizeof change) == 0);
    struct sockaddr_in name = name_of("127.0.0.1", 7);
    CHECK(connect(fd, NAME(name), sizeof name) == 0);
    struct timespec moment = { 0, 1000000 };
    while (stats_of(fd).sas_ipackets < PLENTY)
        nanosleep(&moment, NULL);
    CHECK(send(fd, "enough", 6, 0) == 6);
    /* Its message has come before its end. */
    struct sctp_status status;
    socklen_t len = sizeof status;
    while (getsockopt(fd, IPPROTO_SCTP, SCTP_STATUS, &status, &len) == 0 && status.sstat_state == SCTP_ESTABLISHED)
        nanosleep(&moment, NULL);
    int errors = 0, changes = 0, messages = 0;
    static char data[2000];
    union sctp_notification got;
    for (;;) {
        struct iovec into = { data, sizeof data };
        struct msghdr message = { .msg_iov = &into, .msg_iovlen = 1 };
        ssize_t length = recvmsg(fd, &message, 0);
        CHECK(length >= 0);
        if (length == 0)
            break;
        CHECK(message.msg_flags & MSG_EOR);
        memcpy(&got, data, length < (ssize_t)sizeof got ? (size_t)length : sizeof got);
        if (!(message.msg_flags & MSG_NOTIFICATION))
            messages += length == 4 && !memcmp(data, "over", 4);
        else if (got.sn_header.sn_type == SCTP_REMOTE_ERROR)
            errors++;
        else
            changes += got.sn_header.sn_type == SCTP_ASSOC_CHANGE;
    }
    /* Half of the receive buffer holds fewer than ten of them; the message and the changes of the association come nevertheless. */
    CHECK(errors > 0 && errors < 10);
    CHECK(messages == 1 && changes >= 1);
    CHECK(close(fd) == 0);
    return 0;
}
