/* Every call that the library exports: that it works once, and what it does with a descriptor that is gone, one that is not
 * tresse's, and one of the other style. It prints the names of those that it has seen do both. */
#define _GNU_SOURCE
#include "common.h"
#undef socket
#undef close
#undef dup2
#include "tresse_scheduler.h"

/* That a call fails with EBADF for a descriptor that is gone, and for one of the system. */
#define NEEDS_OURS(name, call) do { \
    int fd = gone; FAILS(call, EBADF); fd = pipes[0]; FAILS(call, EBADF); printf("%s\n", name); } while (0)

static char data[100];
static struct iovec vector = { data, 4 };
static struct msghdr message = { .msg_iov = &vector, .msg_iovlen = 1 };
static struct mmsghdr several = { .msg_hdr = { .msg_iov = &vector, .msg_iovlen = 1 } };

static void of_nobody(int gone, const int pipes[2])
{
    struct sockaddr_in name = name_of("127.0.0.1", 7);
    struct sctp_sndrcvinfo info = { 0 };
    struct sctp_rtoinfo rto = { 0 };
    struct sockaddr *names;
    socklen_t len = sizeof name, info_len = sizeof info, rto_len = sizeof rto;
    unsigned kind;
    int value = 0, flags = 0;
    NEEDS_OURS("tresse_bind", tresse_bind(fd, NAME(name), sizeof name));
    NEEDS_OURS("tresse_listen", tresse_listen(fd, 1));
    NEEDS_OURS("tresse_accept", tresse_accept(fd, NULL, NULL));
    NEEDS_OURS("tresse_accept4", tresse_accept4(fd, NULL, NULL, 0));
    NEEDS_OURS("tresse_connect", tresse_connect(fd, NAME(name), sizeof name));
    NEEDS_OURS("tresse_shutdown", tresse_shutdown(fd, SHUT_WR));
    NEEDS_OURS("tresse_close", tresse_close(fd));
    NEEDS_OURS("tresse_dup", tresse_dup(fd));
    NEEDS_OURS("tresse_dup2", tresse_dup2(fd, 50));
    NEEDS_OURS("tresse_dup3", tresse_dup3(fd, 50, 0));
    NEEDS_OURS("tresse_fcntl", tresse_fcntl(fd, F_GETFL));
    NEEDS_OURS("tresse_ioctl", tresse_ioctl(fd, FIONREAD, &value));
    NEEDS_OURS("tresse_send", tresse_send(fd, data, 4, 0));
    NEEDS_OURS("tresse_sendto", tresse_sendto(fd, data, 4, 0, NAME(name), sizeof name));
    NEEDS_OURS("tresse_sendmsg", tresse_sendmsg(fd, &message, 0));
    NEEDS_OURS("tresse_write", tresse_write(fd, data, 4));
    NEEDS_OURS("tresse_writev", tresse_writev(fd, &vector, 1));
    NEEDS_OURS("tresse_recv", tresse_recv(fd, data, 4, 0));
    NEEDS_OURS("tresse_recvfrom", tresse_recvfrom(fd, data, 4, 0, NAME(name), &len));
    NEEDS_OURS("tresse_recvmsg", tresse_recvmsg(fd, &message, 0));
    NEEDS_OURS("tresse_read", tresse_read(fd, data, 4));
    NEEDS_OURS("tresse_readv", tresse_readv(fd, &vector, 1));
    NEEDS_OURS("tresse_sendmmsg", tresse_sendmmsg(fd, &several, 1, 0));
    NEEDS_OURS("tresse_recvmmsg", tresse_recvmmsg(fd, &several, 1, 0, NULL));
    NEEDS_OURS("tresse_sendfile", tresse_sendfile(fd, pipes[1], NULL, 4));
    NEEDS_OURS("tresse_splice", tresse_splice(pipes[1], NULL, fd, NULL, 4, 0));
    NEEDS_OURS("tresse_getsockname", tresse_getsockname(fd, NAME(name), &len));
    NEEDS_OURS("tresse_getpeername", tresse_getpeername(fd, NAME(name), &len));
    NEEDS_OURS("tresse_setsockopt", tresse_setsockopt(fd, IPPROTO_SCTP, SCTP_NODELAY, &value, sizeof value));
    NEEDS_OURS("tresse_getsockopt", tresse_getsockopt(fd, IPPROTO_SCTP, SCTP_NODELAY, &value, &len));
    NEEDS_OURS("sctp_bindx", sctp_bindx(fd, NAME(name), 1, SCTP_BINDX_ADD_ADDR));
    NEEDS_OURS("sctp_connectx", sctp_connectx(fd, NAME(name), 1, NULL));
    NEEDS_OURS("sctp_peeloff", sctp_peeloff(fd, 3));
    NEEDS_OURS("sctp_peeloff_flags", sctp_peeloff_flags(fd, 3, 0));
    NEEDS_OURS("sctp_getpaddrs", sctp_getpaddrs(fd, 0, &names));
    NEEDS_OURS("sctp_getladdrs", sctp_getladdrs(fd, 0, &names));
    NEEDS_OURS("sctp_opt_info", sctp_opt_info(fd, 0, SCTP_RTOINFO, &rto, &rto_len));
    NEEDS_OURS("sctp_sendmsg", sctp_sendmsg(fd, data, 4, NULL, 0, 0, 0, 0, 0, 0));
    NEEDS_OURS("sctp_send", sctp_send(fd, data, 4, &info, 0));
    NEEDS_OURS("sctp_sendx", sctp_sendx(fd, data, 4, NAME(name), 1, &info, 0));
    NEEDS_OURS("sctp_sendv", sctp_sendv(fd, &vector, 1, NULL, 0, NULL, 0, SCTP_SENDV_NOINFO, 0));
    NEEDS_OURS("sctp_recvmsg", sctp_recvmsg(fd, data, 4, NULL, NULL, &info, &flags));
    NEEDS_OURS("sctp_recvv", sctp_recvv(fd, &vector, 1, NULL, NULL, &info, &info_len, &kind, &flags));
}

/* A one-to-one socket is not asked for what only the other style has, and the other way round. */
static void of_the_other_style(void)
{
    int one = listener(SOCK_STREAM, "127.0.0.1"), many = listener(SOCK_SEQPACKET, "127.0.0.1");
    FAILS(sctp_peeloff(one, 3), EINVAL);
    FAILS(sctp_peeloff_flags(one, 3, 0), EINVAL);
    FAILS(accept(many, NULL, NULL), EOPNOTSUPP);
    FAILS(accept4(many, NULL, NULL, 0), EOPNOTSUPP);
    FAILS(shutdown(many, SHUT_WR), ENOTCONN);
    FAILS(shutdown(one, 77), EINVAL);
    FAILS(getpeername(many, NULL, NULL), ENOTCONN);
    FAILS(send(many, data, 4, 0), EPIPE);
    FAILS(tresse_socket(AF_UNIX, SOCK_STREAM, IPPROTO_SCTP), EAFNOSUPPORT);
    FAILS(tresse_socket(AF_INET, SOCK_STREAM, IPPROTO_TCP), EPROTONOSUPPORT);
    FAILS(tresse_socket(AF_INET, SOCK_RAW, IPPROTO_SCTP), EPROTONOSUPPORT);
    CHECK(tresse_close(one) == 0 && tresse_close(many) == 0);
    printf("tresse_socket\n");
}

/* Calls that no other program of the tests makes. */
static void sends_and_receives(void)
{
    int ends[2];
    pair("127.0.0.1", ends);
    struct sctp_sndrcvinfo info = { .sinfo_stream = 4, .sinfo_ppid = htonl(9) }, got;
    struct sctp_event_subscribe events = { .sctp_data_io_event = 1 };
    CHECK(setsockopt(ends[1], IPPROTO_SCTP, SCTP_EVENTS, &events, sizeof events) == 0);
    CHECK(sctp_send(ends[0], "one", 3, &info, 0) == 3);
    struct sockaddr_in name = name_of("127.0.0.1", 0), from;
    socklen_t len = sizeof name, from_len = sizeof from;
    CHECK(getpeername(ends[0], NAME(name), &len) == 0);
    CHECK(sctp_sendx(ends[0], "more", 4, NAME(name), 1, &info, 0) == 4);
    CHECK(sendto(ends[0], "five5", 5, 0, NAME(name), sizeof name) == 5);
    int flags = 0;
    for (long count = 3; count <= 4; count++) {
        CHECK(sctp_recvmsg(ends[1], data, sizeof data, NAME(from), &from_len, &got, &flags) == count);
        CHECK(got.sinfo_stream == 4 && got.sinfo_ppid == htonl(9) && got.sinfo_ssn == count - 3 && (flags & MSG_EOR));
    }
    from_len = sizeof from;
    CHECK(recvfrom(ends[1], data, sizeof data, 0, NAME(from), &from_len) == 5 && from_len == sizeof from);
    CHECK(ntohs(from.sin_port) == port_of(ends[0]));
    struct iovec parts[2] = { { "first", 5 }, { "second", 6 } };
    struct mmsghdr both_of[2] = { { .msg_hdr = { .msg_iov = &parts[0], .msg_iovlen = 1 } },
        { .msg_hdr = { .msg_iov = &parts[1], .msg_iovlen = 1 } } };
    CHECK(sendmmsg(ends[0], both_of, 2, 0) == 2 && both_of[0].msg_len == 5 && both_of[1].msg_len == 6);
    vector.iov_len = sizeof data;
    for (unsigned len = 5; len <= 6; len++) {
        CHECK(recvmmsg(ends[1], &several, 1, 0, NULL) == 1 && several.msg_len == len);
        CHECK(several.msg_hdr.msg_flags & MSG_EOR);
    }
    FAILS(recvmmsg(ends[1], &several, 1, MSG_DONTWAIT, NULL), EAGAIN);
    int pipes[2];
    CHECK(pipe(pipes) == 0);
    FAILS(sendfile(ends[0], pipes[0], NULL, 4), EINVAL);
    FAILS(splice(ends[1], NULL, pipes[1], NULL, 4, 0), EINVAL);
    int high = tresse_dup3(ends[0], 77, O_CLOEXEC);
    CHECK(high == 77 && (tresse_fcntl(77, F_GETFD) & FD_CLOEXEC) && tresse_close(77) == 0);
    FAILS(tresse_dup3(ends[0], ends[0], 0), EINVAL);
    FAILS(tresse_dup3(ends[0], 77, O_NONBLOCK), EINVAL);
    CHECK(tresse_dup2(ends[0], ends[0]) == ends[0]);
    CHECK(tresse_owns(ends[0]) && !tresse_owns(77) && !tresse_owns(-1));
    printf("tresse_owns\n");
    CHECK(sctp_getaddrlen(AF_INET) == sizeof(struct sockaddr_in) && sctp_getaddrlen(AF_INET6) == sizeof(struct sockaddr_in6));
    printf("sctp_getaddrlen\n");
    struct sockaddr *names;
    CHECK(sctp_getpaddrs(ends[0], 0, &names) == 1 && sctp_freepaddrs(names) == 0);
    CHECK(sctp_getladdrs(ends[0], 0, &names) == 1 && sctp_freeladdrs(names) == 0);
    printf("sctp_freepaddrs\nsctp_freeladdrs\n");
    struct pollfd both[2] = { { .fd = ends[0], .events = POLLOUT }, { .fd = ends[1], .events = POLLIN } };
    CHECK(tresse_poll(both, 2, 0) == 1 && both[0].revents == POLLOUT && both[1].revents == 0);
    tresse_turn();
    printf("tresse_poll\ntresse_turn\n");
    CHECK(tresse_close(ends[0]) == 0 && tresse_close(ends[1]) == 0);
}

static void peels_off(void)
{
    int many = listener(SOCK_SEQPACKET, "127.0.0.1"), near = connected("127.0.0.1", port_of(many));
    CHECK(send(near, "here", 4, 0) == 4 && recv(many, data, sizeof data, 0) == 4);
    struct { struct sctp_assoc_ids head; sctp_assoc_t room[4]; } ids;
    socklen_t len = sizeof ids;
    CHECK(getsockopt(many, IPPROTO_SCTP, SCTP_GET_ASSOC_ID_LIST, &ids, &len) == 0 && ids.head.gaids_number_of_ids == 1);
    int own = sctp_peeloff_flags(many, ids.head.gaids_assoc_id[0], SOCK_NONBLOCK | SOCK_CLOEXEC);
    CHECK(own >= 0 && (tresse_fcntl(own, F_GETFL) & O_NONBLOCK) && (tresse_fcntl(own, F_GETFD) & FD_CLOEXEC));
    FAILS(recv(own, data, sizeof data, 0), EAGAIN);
    CHECK(tresse_close(own) == 0 && tresse_close(many) == 0 && tresse_close(near) == 0);
}

int main(void)
{
    int pipes[2];
    CHECK(pipe(pipes) == 0);
    int gone = tresse_socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    CHECK(gone >= 0 && tresse_close(gone) == 0);
    of_nobody(gone, pipes);
    of_the_other_style();
    sends_and_receives();
    peels_off();
    const char *asked = getenv("TRESSE_SYNCHRONOUS");
    if (asked && !strcmp(asked, "1"))
        CHECK(tresse_synchronous() == 0);
    else
        FAILS(tresse_synchronous(), EBUSY);
    FAILS(tresse_register_scheduler(NULL), EINVAL);
    FAILS(tresse_unregister_scheduler("nobody"), ENOENT);
    printf("tresse_synchronous\ntresse_register_scheduler\ntresse_unregister_scheduler\n");
    CHECK(tresse_socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP) >= 0);
    tresse_finish(-1);
    FAILS(tresse_close(gone), EBADF);
    printf("tresse_finish\n");
    return 0;
}
