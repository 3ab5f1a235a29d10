/* Figure 7 of "A pluggable multi-stream scheduler for SCTP", word for word between its lines, and what it brings about: stream
 * 0 goes before stream 1. */
#include "common.h"

/* The paper's type for 16 bits. */
typedef __u16 _u16;

static int figure(void)
{
int sk, ss_sz; struct sctp_initmsg si; struct sctp_sched *ss;

// create a one-to-many style SCTP socket
sk = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP);

// we need only two outgoing streams
bzero(&si, sizeof(si));
si.sinit_num_ostreams = 2;
setsockopt(sk, IPPROTO_SCTP, SCTP_INITMSG, &si, sizeof(si));

// configure priority scheduling
ss_sz = sizeof(struct sctp_sched) + 2 * sizeof(_u16);
ss = (struct sctp_sched *) malloc(ss_sz);
strncpy(ss ->ssched_name, "prio", SCTP_SCHED_NAME_MAX);
ss ->ssched_config_len = 2 * sizeof(_u16);
ss ->ssched_config[0] = 1;
ss ->ssched_config[1] = 2;
setsockopt(sk, IPPROTO_SCTP, SCTP_SCHED, ss, ss_sz);
free(ss);
    return sk;
}

/* What the option says afterwards. */
static void asked(int fd, const char *name, int values, const __u16 *expected)
{
    char room[200];
    socklen_t len = sizeof room;
    struct sctp_sched *got = (struct sctp_sched *)room;
    CHECK(getsockopt(fd, IPPROTO_SCTP, SCTP_SCHED, got, &len) == 0);
    CHECK(!strcmp(got->ssched_name, name) && got->ssched_config_len == 2 * values);
    CHECK(len == sizeof *got + 2 * values && !memcmp(got->ssched_config, expected, 2 * values));
}

static int choose(int fd, const char *name, int values, const __u16 *config)
{
    char room[200] = { 0 };
    struct sctp_sched *one = (struct sctp_sched *)room;
    strncpy(one->ssched_name, name, SCTP_SCHED_NAME_MAX);
    one->ssched_config_len = 2 * values;
    memcpy(one->ssched_config, config, 2 * values);
    return setsockopt(fd, IPPROTO_SCTP, SCTP_SCHED, one, sizeof *one + 2 * values);
}

int main(void)
{
    static char block[1000];
    int far = listener(SOCK_STREAM, "127.0.0.1"), near = figure(), small = 4096;
    /* The peer's window takes a few messages. */
    CHECK(setsockopt(far, SOL_SOCKET, SO_RCVBUF, &small, sizeof small) == 0);
    asked(near, "prio", 2, (__u16[]) { 1, 2 });
    struct sockaddr_in name = name_of("127.0.0.1", port_of(far));
    /* What is more important is given last. */
    for (int count = 0; count < 30; count++)
        CHECK(sctp_sendmsg(near, block, sizeof block, NAME(name), sizeof name, 0, 0, 1, 0, 0) == sizeof block);
    for (int count = 0; count < 30; count++)
        CHECK(sctp_sendmsg(near, block, sizeof block, NAME(name), sizeof name, 0, 0, 0, 0, 0) == sizeof block);
    int one = accept(far, NULL, NULL), on = 1, late = 0, important = 0;
    CHECK(one >= 0 && setsockopt(one, IPPROTO_SCTP, SCTP_RECVRCVINFO, &on, sizeof on) == 0);
    for (int count = 0; count < 60; count++) {
        struct iovec into = { block, sizeof block };
        char control[100];
        struct msghdr message = { .msg_iov = &into, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
        CHECK(recvmsg(one, &message, 0) == sizeof block && (message.msg_flags & MSG_EOR));
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        CHECK(header && header->cmsg_type == SCTP_RCVINFO);
        struct sctp_rcvinfo info;
        memcpy(&info, CMSG_DATA(header), sizeof info);
        important += info.rcv_sid == 0;
        if (important < 30)
            late += info.rcv_sid == 1;
    }
    /* In the order in which they were given all 30 of stream 1 would come first; now it is what the window had taken. */
    CHECK(important == 30 && late <= 8);
    struct sctp_status status = { .sstat_assoc_id = 0 };
    socklen_t len = sizeof status;
    CHECK(getsockopt(one, IPPROTO_SCTP, SCTP_STATUS, &status, &len) == 0 && status.sstat_instrms == 2);

    /* The other schedulers of the paper; a configuration for more streams than there are applies truncated. */
    CHECK(choose(near, "fcfs", 0, (__u16[]) { 0 }) == 0);
    asked(near, "fcfs", 0, (__u16[]) { 0 });
    CHECK(choose(near, "wfq", 4, (__u16[]) { 1, 2, 3, 4 }) == 0);
    asked(near, "wfq", 4, (__u16[]) { 1, 2, 3, 4 });
    int other = listener(SOCK_STREAM, "127.0.0.2");
    name = name_of("127.0.0.2", port_of(other));
    FAILS(choose(near, "wfq", 1, (__u16[]) { 0 }), EINVAL);
    FAILS(choose(near, "nobody", 0, (__u16[]) { 0 }), EINVAL);
    FAILS(choose(near, "fcfs", 1, (__u16[]) { 1 }), EINVAL);
    asked(near, "wfq", 4, (__u16[]) { 1, 2, 3, 4 });
    CHECK(close(near) == 0 && close(one) == 0 && close(far) == 0 && close(other) == 0);
    return 0;
}
