/* Addresses that a socket adds and removes, and one-to-many sockets. */
#include "conformance.h"

static int bindx(int fd, const char *address, int port, int how)
{
    struct sockaddr_in name = name_of(address, port);
    return sctp_bindx(fd, NAME(name), 1, how);
}

void bindings(void)
{
    part = "bindx";
    int fd = bound(SOCK_STREAM), port = port_of(fd);
    SAYS(bindx(fd, "127.0.0.1", 0, SCTP_BINDX_ADD_ADDR));
    SAYS(bindx(fd, "127.0.0.1", port, SCTP_BINDX_ADD_ADDR));
    SAYS(bindx(fd, "127.0.0.2", port + 1, SCTP_BINDX_ADD_ADDR));
    SAYS(bindx(fd, "192.0.2.77", port, SCTP_BINDX_ADD_ADDR));
    SAYS(bindx(fd, "0.0.0.0", port, SCTP_BINDX_ADD_ADDR));
    SAYS(bindx(fd, "127.0.0.2", port, SCTP_BINDX_REM_ADDR));
    SAYS(bindx(fd, "127.0.0.1", port, SCTP_BINDX_REM_ADDR));
    SAYS(bindx(fd, "127.0.0.2", 0, SCTP_BINDX_ADD_ADDR));
    SAYS(bindx(fd, "127.0.0.3", port, SCTP_BINDX_ADD_ADDR));
    SAYS(bindx(fd, "127.0.0.4", port, SCTP_BINDX_REM_ADDR));
    SAYS(bindx(fd, "192.0.2.77", port, SCTP_BINDX_REM_ADDR));
    SAYS(bindx(fd, "127.0.0.2", port + 1, SCTP_BINDX_REM_ADDR));
    SAYS(bindx(fd, "0.0.0.0", port, SCTP_BINDX_REM_ADDR));
    SAYS(bindx(fd, "127.0.0.2", port, SCTP_BINDX_REM_ADDR));
    SAYS(bindx(fd, "127.0.0.2", port, SCTP_BINDX_REM_ADDR));
    SAYS(bindx(fd, "127.0.0.3", 0, SCTP_BINDX_REM_ADDR));
    SAYS(bindx(fd, "127.0.0.1", port, SCTP_BINDX_REM_ADDR));
    SAYS(bindx(fd, "127.0.0.2", port, 3));
    struct sockaddr_in both[2] = { name_of("127.0.0.5", port), name_of("192.0.2.77", port) };
    SAYS(sctp_bindx(fd, NAME(both[0]), 2, SCTP_BINDX_ADD_ADDR));
    struct sockaddr *names;
    SAYS(sctp_getladdrs(fd, 0, &names));
    SAYS(sctp_bindx(fd, NAME(both[0]), 0, SCTP_BINDX_ADD_ADDR));
    SAYS(sctp_bindx(fd, NAME(both[0]), -1, SCTP_BINDX_ADD_ADDR));
    struct sockaddr other = { .sa_family = AF_UNIX };
    SAYS(sctp_bindx(fd, &other, 1, SCTP_BINDX_ADD_ADDR));
    both[0] = name_of("127.0.0.1", port), both[1] = name_of("127.0.0.2", port);
    SAYS(bindx(fd, "127.0.0.2", port, SCTP_BINDX_ADD_ADDR));
    SAYS(sctp_bindx(fd, NAME(both[0]), 2, SCTP_BINDX_REM_ADDR));
    SAYS(sctp_getladdrs(fd, 0, &names));
    struct sockaddr_in name;
    socklen_t len = sizeof name;
    SAYS(getsockname(fd, NAME(name), &len));
    SAYS(ntohl(name.sin_addr.s_addr) & 255);
    close(fd);
    fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    SAYS(bindx(fd, "127.0.0.1", port, SCTP_BINDX_REM_ADDR));
    SAYS(bindx(fd, "127.0.0.1", 0, SCTP_BINDX_ADD_ADDR));
    SAYS(bindx(fd, "127.0.0.2", 0, SCTP_BINDX_ADD_ADDR));
    SAYS(sctp_getladdrs(fd, 0, &names));
    SAYS(bind(fd, NAME(both[0]), sizeof both[0]));
    close(fd);
    fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    both[0] = name_of("127.0.0.1", 0), both[1] = name_of("127.0.0.1", 0);
    SAYS(sctp_bindx(fd, NAME(both[0]), 2, SCTP_BINDX_ADD_ADDR));
    close(fd);
}

static int sends_to(int fd, const char *data, size_t length, int port, int flags)
{
    struct sockaddr_in name = name_of("127.0.0.1", port);
    return sctp_sendmsg(fd, data, length, NAME(name), sizeof name, 0, flags, 0, 0, 0);
}

void many(void)
{
    part = "one-to-many";
    int fd = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP), there = listener(SOCK_SEQPACKET), port = port_of(there);
    struct sockaddr_in name = name_of("127.0.0.1", port);
    socklen_t len = sizeof name;
    int waits = -1;
    shows("new", fd);
    SAYS(send(fd, "x", 1, 0));
    SAYS(send(fd, "x", 1, MSG_NOSIGNAL));
    SAYS(recv(fd, text, 10, MSG_DONTWAIT));
    SAYS(getpeername(fd, NAME(name), &len));
    int shut = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP);
    SAYS(shutdown(shut, SHUT_WR));
    SAYS(shutdown(shut, SHUT_RD));
    SAYS(shutdown(shut, 9));
    close(shut);
    SAYS(accept(fd, NULL, NULL));
    SAYS(accept(there, NULL, NULL));
    SAYS(sctp_peeloff(fd, 0));
    SAYS(sctp_peeloff(fd, 12345));
    SAYS(ioctl(fd, FIONREAD, &waits));
    SAYS(ioctl(there, FIONREAD, &waits));
    option_of("SCTP_GET_ASSOC_NUMBER", fd, IPPROTO_SCTP, SCTP_GET_ASSOC_NUMBER);
    option_of("SCTP_AUTOCLOSE", fd, IPPROTO_SCTP, SCTP_AUTOCLOSE);
    SAYS(sends_to(fd, "x", 1, port, SCTP_EOF));
    SAYS(sends_to(fd, "x", 1, port, SCTP_ABORT));
    SAYS(sends_to(fd, "", 0, port, 0));
    struct sctp_sndrcvinfo info = { .sinfo_assoc_id = 12345 };
    SAYS(sctp_send(fd, "x", 1, &info, 0));
    info = (struct sctp_sndrcvinfo){ .sinfo_flags = SCTP_SENDALL };
    SAYS(sctp_send(fd, "x", 1, &info, 0));
    struct sctp_event_subscribe events = { .sctp_association_event = 1, .sctp_data_io_event = 1 };
    SAYS(setsockopt(fd, IPPROTO_SCTP, SCTP_EVENTS, &events, sizeof events));
    SAYS(sends_to(fd, "hello", 5, port, 0));
    SAYS(comes(fd, POLLIN, 5000));
    READS(fd, 100, 0);
    SAYS(comes(there, POLLIN, 5000));
    READS(there, 100, 0);
    option_of("SCTP_GET_ASSOC_NUMBER", fd, IPPROTO_SCTP, SCTP_GET_ASSOC_NUMBER);
    shows("associated", fd);
    SAYS(send(fd, "x", 1, MSG_NOSIGNAL));
    SAYS(getpeername(fd, NAME(name), &len));
    name = name_of("127.0.0.1", port);
    SAYS(connect(fd, NAME(name), sizeof name));
    info = (struct sctp_sndrcvinfo){ .sinfo_flags = SCTP_SENDALL };
    SAYS(sctp_send(fd, "all", 3, &info, 0));
    SAYS(sends_to(fd, "x", 1, port, SCTP_SENDALL));
    struct { struct sctp_assoc_ids head; sctp_assoc_t room[4]; } ids;
    len = sizeof ids;
    SAYS(getsockopt(fd, IPPROTO_SCTP, SCTP_GET_ASSOC_ID_LIST, &ids, &len));
    SAYS(len);
    int id = ids.head.gaids_assoc_id[0];
    info = (struct sctp_sndrcvinfo){ .sinfo_assoc_id = id };
    SAYS(sctp_send(fd, "id", 2, &info, 0));
    info = (struct sctp_sndrcvinfo){ .sinfo_assoc_id = id, .sinfo_stream = 60000 };
    SAYS(sctp_send(fd, "id", 2, &info, 0));
    struct sockaddr *names;
    SAYS(sctp_getpaddrs(fd, id, &names));
    SAYS(sctp_getpaddrs(fd, 0, &names));
    SAYS(sctp_getpaddrs(fd, 12345, &names));
    SAYS(sctp_getladdrs(fd, 0, &names) > 0);
    SAYS(sctp_getladdrs(fd, 12345, &names));
    SAYS(listen(fd, 0));
    SAYS(listen(fd, 5));
    option_of("SO_ACCEPTCONN", fd, SOL_SOCKET, SO_ACCEPTCONN);
    SAYS(listen(fd, 0));
    option_of("SO_ACCEPTCONN", fd, SOL_SOCKET, SO_ACCEPTCONN);
    option_of("SO_ACCEPTCONN", there, SOL_SOCKET, SO_ACCEPTCONN);
    int own = sctp_peeloff(fd, id);
    SAYS(own >= 0);
    SAYS(sctp_peeloff(fd, id));
    SAYS(sctp_peeloff(own, id));
    shows("peeled off", own);
    SAYS(send(own, "own", 3, 0));
    SAYS(sctp_send(fd, "id", 2, &info, 0));
    option_of("SCTP_GET_ASSOC_NUMBER", fd, IPPROTO_SCTP, SCTP_GET_ASSOC_NUMBER);
    option_of("SO_TYPE of one that was peeled off", own, SOL_SOCKET, SO_TYPE);
    len = sizeof name;
    SAYS(getpeername(own, NAME(name), &len));
    close(own);
    /* An association ends by a message. */
    alone(there);
    SAYS(sends_to(fd, "again", 5, port, 0));
    comes(fd, POLLIN, 5000);
    READS(fd, 100, 0);
    SAYS(sends_to(fd, NULL, 0, port, SCTP_EOF));
    SAYS(comes(fd, POLLIN, 5000));
    READS(fd, 100, 0);
    option_of("SCTP_GET_ASSOC_NUMBER", fd, IPPROTO_SCTP, SCTP_GET_ASSOC_NUMBER);
    error_of("ended", fd);
    SAYS(sends_to(fd, "again", 5, port, 0));
    comes(fd, POLLIN, 5000);
    READS(fd, 100, 0);
    SAYS(sends_to(fd, "why", 3, port, SCTP_ABORT));
    SAYS(comes(fd, POLLIN, 5000));
    READS(fd, 100, MSG_DONTWAIT);
    option_of("SCTP_GET_ASSOC_NUMBER", fd, IPPROTO_SCTP, SCTP_GET_ASSOC_NUMBER);
    error_of("aborted", fd);
    shows("aborted", fd);
    alone(there);
    close(there);
    /* To nobody. */
    SAYS(sends_to(fd, "nobody", 6, port, 0));
    SAYS(comes(fd, POLLIN, 5000));
    READS(fd, 100, MSG_DONTWAIT);
    error_of("nobody", fd);
    shows("nobody", fd);
    name = name_of("127.0.0.1", port);
    SAYS(connect(fd, NAME(name), sizeof name));
    error_of("nobody", fd);
    READS(fd, 100, MSG_DONTWAIT);
    SAYS(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &waits, sizeof waits));
    close(fd);
}
