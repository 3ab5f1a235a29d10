/* What is read in which order: notifications between the messages before and after them, and nothing waits for a peer that sends
 * without a pause. */
#include "common.h"

static void say(int fd, const char *word)
{
    CHECK(send(fd, word, strlen(word), 0) == (ssize_t)strlen(word));
}

static void hear_of(int fd, int kind)
{
    struct sctp_event event = { SCTP_ALL_ASSOC, kind, 1 };
    CHECK(setsockopt(fd, IPPROTO_SCTP, SCTP_EVENT, &event, sizeof event) == 0);
}

/* The first letter of the next message, or N for a notification of this kind. */
static char next(int fd, int kind)
{
    char data[500] = "";
    struct iovec into = { data, sizeof data };
    struct msghdr message = { .msg_iov = &into, .msg_iovlen = 1 };
    CHECK(recvmsg(fd, &message, 0) > 0 && (message.msg_flags & MSG_EOR));
    if (!(message.msg_flags & MSG_NOTIFICATION))
        return data[0];
    CHECK(((union sctp_notification *)data)->sn_header.sn_type == kind);
    return 'N';
}

/* A peer of which messages wait all the time holds up neither what another one sends, nor what is told of it. */
static void one_peer_without_a_pause(void)
{
    struct sockaddr_in names[2];
    int ends[2], center = with_two_peers(names, ends), told = 0, heard = 0;
    for (int each = 0; each < 10; each++)
        say(ends[0], "again");
    arrived(ends[0]);
    hear_of(center, SCTP_SHUTDOWN_EVENT);
    say(ends[1], "once");
    CHECK(shutdown(ends[1], SHUT_WR) == 0);
    char word;
    CHECK(recv(ends[1], &word, 1, 0) == 0);
    for (int reads = 0; reads < 10; reads++) {
        char what = next(center, SCTP_SHUTDOWN_EVENT);
        CHECK(what != 'N' || heard);
        told += what == 'N';
        heard += what == 'o';
        say(ends[0], "again");
        arrived(ends[0]);
    }
    CHECK(told == 1 && heard == 1);
    CHECK(close(ends[0]) == 0 && close(ends[1]) == 0 && close(center) == 0);
}

/* What is told of an association comes behind the messages before it, and before those after it. */
static void between_messages(void)
{
    int ends[2];
    pair("127.0.0.1", ends);
    hear_of(ends[0], SCTP_STREAM_CHANGE_EVENT);
    hear_of(ends[1], SCTP_STREAM_CHANGE_EVENT);
    for (int round = 0; round < 3; round++) {
        struct sctp_add_streams more = { 0, 0, 1 };
        say(ends[0], round ? "c" : "a");
        say(ends[0], round ? "d" : "b");
        arrived(ends[0]);
        CHECK(setsockopt(ends[0], IPPROTO_SCTP, SCTP_ADD_STREAMS, &more, sizeof more) == 0);
        CHECK(next(ends[0], SCTP_STREAM_CHANGE_EVENT) == 'N');
    }
    say(ends[0], "e");
    arrived(ends[0]);
    for (const char *expected = "abNcdNcdNe"; *expected; expected++)
        CHECK(next(ends[1], SCTP_STREAM_CHANGE_EVENT) == *expected);
    CHECK(!ready(ends[1], POLLIN) && close(ends[0]) == 0 && close(ends[1]) == 0);
}

int main(void)
{
    one_peer_without_a_pause();
    between_messages();
    return 0;
}
