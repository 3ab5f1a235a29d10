/* Messages of one-to-one sockets, what comes beside their data, and a full send buffer. */
#include "conformance.h"

void messages(void)
{
    part = "messages";
    int ends[2];
    pair(ends);
    SAYS(send(ends[0], "hello", 5, MSG_OOB));
    SAYS(send(ends[0], "hello", 5, MSG_EOR));
    SAYS(send(ends[0], "hello", 5, MSG_MORE));
    SAYS(send(ends[0], "hello", 5, MSG_DONTROUTE));
    SAYS(send(ends[0], "hello", 5, MSG_CONFIRM));
    SAYS(send(ends[0], "hello", 5, MSG_DONTWAIT | MSG_NOSIGNAL));
    delivered(ends[0]);
    int waits = -1;
    SAYS(ioctl(ends[1], FIONREAD, &waits));
    SAYS(waits);
    READS(ends[1], 100, MSG_OOB);
    READS(ends[1], 2, MSG_PEEK);
    READS(ends[1], 100, MSG_PEEK);
    READS(ends[1], 2, 0);
    SAYS(ioctl(ends[1], FIONREAD, &waits));
    SAYS(waits);
    READS(ends[1], 2, 0);
    READS(ends[1], 2, 0);
    READS(ends[1], 2, MSG_TRUNC);
    READS(ends[1], 100, MSG_TRUNC);
    READS(ends[1], 100, MSG_WAITALL);
    READS(ends[1], 3, MSG_WAITALL);
    READS(ends[1], 100, MSG_DONTWAIT);
    READS(ends[1], 100, MSG_DONTWAIT);
    READS(ends[1], 100, MSG_DONTWAIT);
    READS(ends[1], 100, MSG_DONTWAIT);
    READS(ends[1], 100, MSG_ERRQUEUE | MSG_DONTWAIT);
    timeout(ends[1], SO_RCVTIMEO, 50);
    SAYS(recv(ends[1], text, 10, 0));
    shows("idle", ends[1]);
    int copy = dup(ends[1]);
    SAYS(fcntl(copy, F_SETFL, O_NONBLOCK));
    SAYS(recv(ends[1], text, 10, 0));
    SAYS(fcntl(ends[1], F_SETFL, 0));
    SAYS((fcntl(copy, F_GETFL) & O_NONBLOCK) != 0);
    close(copy);
    /* Longer than the send buffer. */
    int size = 20000;
    SAYS(setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size));
    option_of("SO_SNDBUF", ends[0], SOL_SOCKET, SO_SNDBUF);
    SAYS(send(ends[0], block, sizeof block, MSG_DONTWAIT));
    /* A stream that is not there. */
    struct sctp_sndrcvinfo info = { .sinfo_stream = 60000 };
    SAYS(sctp_send(ends[0], "x", 1, &info, 0));
    info = (struct sctp_sndrcvinfo){ .sinfo_flags = 0x100 };
    SAYS(sctp_send(ends[0], "x", 1, &info, 0));
    info = (struct sctp_sndrcvinfo){ .sinfo_assoc_id = 12345 };
    SAYS(sctp_send(ends[0], "x", 1, &info, 0));
    info = (struct sctp_sndrcvinfo){ .sinfo_flags = SCTP_SENDALL };
    SAYS(sctp_send(ends[0], "x", 1, &info, 0));
    info = (struct sctp_sndrcvinfo){ .sinfo_flags = SCTP_UNORDERED };
    SAYS(sctp_send(ends[0], "x", 1, &info, 0));
    info = (struct sctp_sndrcvinfo){ .sinfo_flags = SCTP_ADDR_OVER };
    SAYS(sctp_send(ends[0], "x", 1, &info, 0));
    /* Ancillary data that is not in order. */
    char control[64] = { 0 };
    struct iovec one = { "y", 1 };
    struct msghdr message = { .msg_iov = &one, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
    struct cmsghdr *head = (struct cmsghdr *)control;
    *head = (struct cmsghdr){ .cmsg_level = IPPROTO_SCTP, .cmsg_type = SCTP_SNDINFO, .cmsg_len = CMSG_LEN(4) };
    SAYS(sendmsg(ends[0], &message, 0));
    head->cmsg_len = 3;
    SAYS(sendmsg(ends[0], &message, 0));
    head->cmsg_len = 1000;
    SAYS(sendmsg(ends[0], &message, 0));
    *head = (struct cmsghdr){ .cmsg_level = IPPROTO_SCTP, .cmsg_type = 77, .cmsg_len = CMSG_LEN(16) };
    SAYS(sendmsg(ends[0], &message, 0));
    *head = (struct cmsghdr){ .cmsg_level = SOL_SOCKET, .cmsg_type = 77, .cmsg_len = CMSG_LEN(16) };
    message.msg_controllen = CMSG_SPACE(16);
    SAYS(sendmsg(ends[0], &message, 0));
    /* Too little room for what comes beside a message. */
    int on = 1;
    SAYS(setsockopt(ends[1], IPPROTO_SCTP, SCTP_RECVRCVINFO, &on, sizeof on));
    delivered(ends[0]);
    struct iovec into = { text, sizeof text };
    struct msghdr got = { .msg_iov = &into, .msg_iovlen = 1, .msg_control = control, .msg_controllen = 20 };
    SAYS(recvmsg(ends[1], &got, 0));
    SAYS((got.msg_flags & MSG_CTRUNC) != 0);
    /* A name that is longer than its room. */
    struct sockaddr_in name;
    socklen_t len = 4;
    SAYS(send(ends[0], "z", 1, 0));
    SAYS(recvfrom(ends[1], text, 10, 0, NAME(name), &len));
    SAYS(len);
    close(ends[0]), close(ends[1]);
}

/* recvmsg with what comes beside the data. */
static void reads_info(const char *what, int fd, size_t room, int flags)
{
    char control[512] = { 0 };
    struct iovec into = { text, room };
    struct sockaddr_in from;
    struct msghdr message = { .msg_name = &from, .msg_namelen = sizeof from, .msg_iov = &into, .msg_iovlen = 1,
                              .msg_control = control, .msg_controllen = sizeof control };
    long got = recvmsg(fd, &message, flags);
    printf("%s: %s: %ld%s from %u", part, what, got, message.msg_flags & MSG_EOR ? " EOR" : "", message.msg_namelen);
    for (struct cmsghdr *head = CMSG_FIRSTHDR(&message); head; head = CMSG_NXTHDR(&message, head)) {
        const void *data = CMSG_DATA(head);
        if (head->cmsg_type == SCTP_SNDRCV) {
            const struct sctp_sndrcvinfo *info = data;
            printf(" SNDRCV %d %d %x %x %u", info->sinfo_stream, info->sinfo_ssn, info->sinfo_flags, info->sinfo_ppid,
                   info->sinfo_context);
        } else if (head->cmsg_type == SCTP_RCVINFO) {
            const struct sctp_rcvinfo *info = data;
            printf(" RCVINFO %d %d %x %x %u", info->rcv_sid, info->rcv_ssn, info->rcv_flags, info->rcv_ppid, info->rcv_context);
        } else if (head->cmsg_type == SCTP_NXTINFO) {
            const struct sctp_nxtinfo *info = data;
            printf(" NXTINFO %d %x %x %u", info->nxt_sid, info->nxt_flags, info->nxt_ppid, info->nxt_length);
        }
    }
    printf("\n");
}
#define READS_INFO(fd, room, flags) reads_info("recvmsg(" #fd ", " #room ", " #flags ")", fd, room, flags)

static long sends(int fd, int stream, int flags, unsigned ppid, const char *data)
{
    struct sctp_sndrcvinfo info = { .sinfo_stream = stream, .sinfo_flags = flags, .sinfo_ppid = ppid, .sinfo_context = 7 };
    return sctp_send(fd, data, strlen(data), &info, 0);
}

void information(void)
{
    part = "information";
    int ends[2], on = 1;
    pair(ends);
    struct sctp_event_subscribe events = { .sctp_data_io_event = 1 };
    SAYS(setsockopt(ends[1], IPPROTO_SCTP, SCTP_EVENTS, &events, sizeof events));
    SAYS(sends(ends[0], 1, 0, htonl(46), "one"));
    SAYS(sends(ends[0], 1, 0, 5, "two"));
    SAYS(sends(ends[0], 2, SCTP_UNORDERED, 6, "three"));
    SAYS(sends(ends[0], 1, SCTP_SACK_IMMEDIATELY, 6, "four"));
    delivered(ends[0]);
    READS_INFO(ends[1], 100, MSG_PEEK);
    READS_INFO(ends[1], 2, 0);
    READS_INFO(ends[1], 100, 0);
    SAYS(setsockopt(ends[1], IPPROTO_SCTP, SCTP_RECVRCVINFO, &on, sizeof on));
    READS_INFO(ends[1], 100, 0);
    SAYS(setsockopt(ends[1], IPPROTO_SCTP, SCTP_RECVNXTINFO, &on, sizeof on));
    READS_INFO(ends[1], 2, 0);
    READS_INFO(ends[1], 100, 0);
    READS_INFO(ends[1], 100, 0);
    struct sctp_assoc_value context = { .assoc_value = 99 };
    SAYS(setsockopt(ends[1], IPPROTO_SCTP, SCTP_CONTEXT, &context, sizeof context));
    struct sctp_sndinfo usual = { .snd_sid = 5, .snd_ppid = 77, .snd_flags = 0x100 };
    SAYS(setsockopt(ends[0], IPPROTO_SCTP, SCTP_DEFAULT_SNDINFO, &usual, sizeof usual));
    usual.snd_flags = SCTP_UNORDERED;
    SAYS(setsockopt(ends[0], IPPROTO_SCTP, SCTP_DEFAULT_SNDINFO, &usual, sizeof usual));
    SAYS(send(ends[0], "usual", 5, 0));
    READS_INFO(ends[1], 100, 0);
    struct iovec pieces[2] = { { "ab", 2 }, { "cde", 3 } };
    struct sctp_sndinfo own = { .snd_sid = 2, .snd_ppid = 8 };
    struct sctp_prinfo policy = { .pr_policy = SCTP_PR_SCTP_TTL, .pr_value = 10000 };
    SAYS(sctp_sendv(ends[0], pieces, 2, NULL, 0, &own, sizeof own, SCTP_SENDV_SNDINFO, 0));
    READS_INFO(ends[1], 100, 0);
    SAYS(sctp_sendv(ends[0], pieces, 2, NULL, 0, &policy, sizeof policy, SCTP_SENDV_PRINFO, 0));
    READS_INFO(ends[1], 100, 0);
    policy.pr_policy = 0x70;
    SAYS(sctp_sendv(ends[0], pieces, 2, NULL, 0, &policy, sizeof policy, SCTP_SENDV_PRINFO, 0));
    /* The rest of a message that is larger than the point of partial delivery. */
    unsigned point = 1000;
    SAYS(setsockopt(ends[1], IPPROTO_SCTP, SCTP_PARTIAL_DELIVERY_POINT, &point, sizeof point));
    SAYS(send(ends[0], block, 60000, 0));
    long sum = 0;
    for (int end = 0; !end;) {
        struct iovec into = { text, sizeof text };
        struct msghdr message = { .msg_iov = &into, .msg_iovlen = 1 };
        sum += recvmsg(ends[1], &message, 0);
        end = message.msg_flags & MSG_EOR;
    }
    SAYS(sum);
    /* The error that an association ends with. */
    events.sctp_association_event = 1;
    SAYS(setsockopt(ends[1], IPPROTO_SCTP, SCTP_EVENTS, &events, sizeof events));
    linger(ends[0], 0);
    close(ends[0]);
    comes(ends[1], POLLIN, 5000);
    struct sctp_assoc_change change = { 0 };
    SAYS(recv(ends[1], &change, sizeof change, 0));
    SAYS(change.sac_state);
    SAYS(ntohs(change.sac_error));
    close(ends[1]);
}

void full(void)
{
    part = "full";
    int ends[2], size = 30000;
    pair(ends);
    SAYS(setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size));
    timeout(ends[0], SO_SNDTIMEO, 100);
    long sent = 0;
    while (sent < 3000 && send(ends[0], block, 1000, 0) == 1000)
        sent++;
    while (send(ends[0], block, 1000, MSG_DONTWAIT) == 1000)
        ;
    shows("full", ends[0]);
    SAYS(send(ends[0], block, 10000, 0));
    linger(ends[0], 0), linger(ends[1], 0);
    close(ends[0]), close(ends[1]);
}
