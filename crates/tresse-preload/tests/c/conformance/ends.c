/* Ends of associations: by shutdown and by abort. */
#include "conformance.h"

void shutting_down(void)
{
    part = "shutdown";
    int ends[2];
    struct sockaddr_in name;
    socklen_t len = sizeof name;
    pair(ends);
    SAYS(shutdown(ends[0], SHUT_RD));
    SAYS(send(ends[1], "x", 1, 0));
    comes(ends[0], POLLIN, 5000);
    SAYS(recv(ends[0], text, 10, MSG_DONTWAIT));
    SAYS(shutdown(ends[0], 7));
    SAYS(shutdown(ends[0], SHUT_WR));
    SAYS(comes(ends[1], POLLRDHUP | POLLIN, 5000));
    /* POLLHUP is not asked for. */
    SAYS(comes(ends[0], 0, 5000));
    shows("who has shut down", ends[0]);
    /* Its answer may be here before it knows itself. */
    comes(ends[1], POLLRDHUP, 5000);
    shows("the peer", ends[1]);
    SAYS(shutdown(ends[0], SHUT_WR));
    SAYS(shutdown(ends[1], SHUT_WR));
    SAYS(send(ends[0], "x", 1, 0));
    SAYS(send(ends[1], "x", 1, MSG_NOSIGNAL));
    SAYS(recv(ends[0], text, 10, 0));
    SAYS(recv(ends[1], text, 10, 0));
    SAYS(recv(ends[1], text, 10, 0));
    SAYS(getpeername(ends[0], NAME(name), &len));
    SAYS(getpeername(ends[1], NAME(name), &len));
    SAYS(port_of(ends[0]) > 0);
    error_of("who has shut down", ends[0]);
    error_of("the peer", ends[1]);
    SAYS(ioctl(ends[1], FIONREAD, &len));
    int waiting = listener(SOCK_STREAM);
    struct sockaddr_in there = name_of("127.0.0.1", port_of(waiting));
    SAYS(connect(ends[0], NAME(there), sizeof there));
    SAYS(send(ends[0], "x", 1, 0));
    SAYS(listen(ends[1], 5));
    close(waiting), close(ends[0]), close(ends[1]);

    /* Both directions at once, and data that was not read yet. */
    pair(ends);
    SAYS(send(ends[0], "last", 4, 0));
    SAYS(shutdown(ends[0], SHUT_RDWR));
    SAYS(comes(ends[1], POLLRDHUP, 5000));
    shows("the peer with data", ends[1]);
    READS(ends[1], 10, 0);
    shows("the peer without", ends[1]);
    READS(ends[1], 10, 0);
    SAYS(recv(ends[0], text, 10, 0));
    SAYS(comes(ends[0], 0, 5000));
    shows("who has shut down", ends[0]);
    close(ends[0]), close(ends[1]);

    /* By a flag of a message. */
    pair(ends);
    struct sctp_sndrcvinfo info = { .sinfo_flags = SCTP_EOF };
    SAYS(sctp_send(ends[0], "data", 4, &info, 0));
    close(ends[0]), close(ends[1]);
}

void aborted(void)
{
    part = "abort";
    int ends[2];
    struct sockaddr_in name;
    socklen_t len = sizeof name;
    pair(ends);
    linger(ends[0], 0);
    SAYS(close(ends[0]));
    SAYS(comes(ends[1], POLLRDHUP, 5000));
    shows("the peer", ends[1]);
    SAYS(getpeername(ends[1], NAME(name), &len));
    SAYS(recv(ends[1], text, 10, 0));
    shows("then", ends[1]);
    SAYS(recv(ends[1], text, 10, 0));
    SAYS(send(ends[1], "x", 1, 0));
    error_of("then", ends[1]);
    SAYS(shutdown(ends[1], SHUT_WR));
    int waiting = listener(SOCK_STREAM);
    struct sockaddr_in there = name_of("127.0.0.1", port_of(waiting));
    SAYS(recv(ends[1], text, 10, MSG_DONTWAIT));
    SAYS(connect(ends[1], NAME(there), sizeof there));
    close(waiting);
    close(ends[1]);

    pair(ends);
    linger(ends[0], 0);
    close(ends[0]);
    comes(ends[1], POLLRDHUP, 5000);
    SAYS(send(ends[1], "x", 1, 0));
    SAYS(send(ends[1], "x", 1, 0));
    SAYS(recv(ends[1], text, 10, 0));
    close(ends[1]);

    pair(ends);
    linger(ends[0], 0);
    close(ends[0]);
    comes(ends[1], POLLRDHUP, 5000);
    error_of("the peer", ends[1]);
    shows("asked", ends[1]);
    SAYS(recv(ends[1], text, 10, 0));
    SAYS(send(ends[1], "x", 1, 0));
    close(ends[1]);

    /* With data that nobody has read. */
    pair(ends);
    SAYS(send(ends[1], "unread", 6, 0));
    comes(ends[0], POLLIN, 5000);
    close(ends[0]);
    SAYS(comes(ends[1], POLLRDHUP, 5000));
    SAYS(recv(ends[1], text, 10, 0));
    close(ends[1]);

    /* Data in front of an abort. */
    pair(ends);
    SAYS(send(ends[0], "data", 4, 0));
    comes(ends[1], POLLIN, 5000);
    struct sctp_sndrcvinfo info = { .sinfo_flags = SCTP_ABORT };
    SAYS(sctp_send(ends[0], "why", 3, &info, 0));
    linger(ends[0], 0);
    close(ends[0]);
    SAYS(comes(ends[1], POLLRDHUP, 5000));
    shows("the peer with data", ends[1]);
    SAYS(recv(ends[1], text, 10, 0));
    SAYS(recv(ends[1], text, 10, 0));
    SAYS(recv(ends[1], text, 10, 0));
    close(ends[1]);
}
