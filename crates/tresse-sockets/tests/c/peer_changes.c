/* What a peer brings about that this side cannot: the test is the peer, at the UDP port that the program is given, and has SCTP
 * port 7. Messages tell it when to go on. */
#include "common.h"

static void subscribe(int fd, int type)
{
    struct sctp_event event = { SCTP_FUTURE_ASSOC, type, 1 };
    CHECK(setsockopt(fd, IPPROTO_SCTP, SCTP_EVENT, &event, sizeof event) == 0);
}

static int towards(const char *port)
{
    int fd = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP);
    struct sctp_udpencaps udp = { .sue_port = htons(atoi(port)) };
    CHECK(setsockopt(fd, IPPROTO_SCTP, SCTP_REMOTE_UDP_ENCAPS_PORT, &udp, sizeof udp) == 0);
    return fd;
}

static void say(int fd, const char *word)
{
    struct sockaddr_in name = name_of("127.0.0.1", 7);
    long length = strlen(word);
    CHECK(sctp_sendmsg(fd, word, length, NAME(name), sizeof name, 0, 0, 0, 0, 0) == length);
}

static union sctp_notification told(int fd, int type, long least)
{
    union { union sctp_notification one; char room[400]; } got;
    struct iovec into = { &got, sizeof got };
    struct msghdr message = { .msg_iov = &into, .msg_iovlen = 1 };
    long length = recvmsg(fd, &message, 0);
    CHECK(length >= least && message.msg_flags == (MSG_NOTIFICATION | MSG_EOR));
    CHECK(got.one.sn_header.sn_type == type && got.one.sn_header.sn_length == length);
    return got.one;
}

/* The peer loses its memory and sets the association up again: the same one goes on, with other numbers of streams. */
static void restart(const char *port)
{
    int fd = towards(port);
    subscribe(fd, SCTP_ASSOC_CHANGE);
    say(fd, "restart");
    union sctp_notification got = told(fd, SCTP_ASSOC_CHANGE, sizeof got.sn_assoc_change);
    CHECK(got.sn_assoc_change.sac_state == SCTP_COMM_UP && got.sn_assoc_change.sac_inbound_streams == 10);
    sctp_assoc_t id = got.sn_assoc_change.sac_assoc_id;
    got = told(fd, SCTP_ASSOC_CHANGE, sizeof got.sn_assoc_change + 1);
    CHECK(got.sn_assoc_change.sac_state == SCTP_RESTART && got.sn_assoc_change.sac_assoc_id == id);
    CHECK(got.sn_assoc_change.sac_inbound_streams == 3 && got.sn_assoc_change.sac_outbound_streams == 10);
    CHECK(got.sn_assoc_change.sac_error == 0);
    say(fd, "done");
    CHECK(close(fd) == 0);
}

/* The state of this address changes; what is told of the other one is passed over. */
static int state_of_second(int fd)
{
    for (;;) {
        union sctp_notification got = told(fd, SCTP_PEER_ADDR_CHANGE, sizeof got.sn_paddr_change);
        struct sockaddr_in name;
        memcpy(&name, &got.sn_paddr_change.spc_aaddr, sizeof name);
        CHECK(name.sin_port == htons(7) && got.sn_paddr_change.spc_assoc_id >= 3);
        if (name.sin_addr.s_addr == htonl(INADDR_LOOPBACK + 1))
            return got.sn_paddr_change.spc_state;
    }
}

/* The peer's second address is confirmed, falls silent, and answers again. */
static void paths(const char *port)
{
    int fd = towards(port), seen_failing = 0, state;
    subscribe(fd, SCTP_PEER_ADDR_CHANGE);
    struct sctp_rtoinfo rto = { .srto_initial = 500, .srto_min = 500, .srto_max = 1000 };
    CHECK(setsockopt(fd, IPPROTO_SCTP, SCTP_RTOINFO, &rto, sizeof rto) == 0);
    struct sctp_paddrparams parameters = { .spp_hbinterval = 100, .spp_pathmaxrxt = 1, .spp_flags = SPP_HB_ENABLE };
    CHECK(setsockopt(fd, IPPROTO_SCTP, SCTP_PEER_ADDR_PARAMS, &parameters, sizeof parameters) == 0);
    struct sctp_assoc_value exposes = { SCTP_FUTURE_ASSOC, 1 };
    CHECK(setsockopt(fd, IPPROTO_SCTP, SCTP_EXPOSE_POTENTIALLY_FAILED_STATE, &exposes, sizeof exposes) == 0);
    say(fd, "hello");
    CHECK(state_of_second(fd) == SCTP_ADDR_CONFIRMED);
    say(fd, "deaf");
    while ((state = state_of_second(fd)) != SCTP_ADDR_UNREACHABLE)
        seen_failing |= state == SCTP_ADDR_POTENTIALLY_FAILED;
    CHECK(seen_failing);
    say(fd, "hear");
    while (state_of_second(fd) != SCTP_ADDR_AVAILABLE)
        ;
    say(fd, "done");
    CHECK(close(fd) == 0);
}

/* Waits until the state of the peer's second address is this one. */
static void second_becomes(int fd, int state)
{
    struct sctp_paddrinfo info;
    do {
        struct timespec moment = { 0, 10000000 };
        nanosleep(&moment, NULL);
        memset(&info, 0, sizeof info);
        struct sockaddr_in name = name_of("127.0.0.2", 7);
        memcpy(&info.spinfo_address, &name, sizeof name);
        socklen_t len = sizeof info;
        CHECK(getsockopt(fd, IPPROTO_SCTP, SCTP_GET_PEER_ADDR_INFO, &info, &len) == 0);
    } while (info.spinfo_state != state);
}

/* Who does not ask for potentially failed addresses does not hear that one is available again either: it never was not. */
static void doubts(const char *port)
{
    int fd = towards(port);
    union sctp_notification got;
    subscribe(fd, SCTP_PEER_ADDR_CHANGE);
    struct sctp_rtoinfo rto = { .srto_initial = 500, .srto_min = 500, .srto_max = 500 };
    CHECK(setsockopt(fd, IPPROTO_SCTP, SCTP_RTOINFO, &rto, sizeof rto) == 0);
    /* So many errors do not come in the time of this test. */
    struct sctp_paddrparams parameters = { .spp_hbinterval = 100, .spp_pathmaxrxt = 1000, .spp_flags = SPP_HB_ENABLE };
    CHECK(setsockopt(fd, IPPROTO_SCTP, SCTP_PEER_ADDR_PARAMS, &parameters, sizeof parameters) == 0);
    say(fd, "hello");
    CHECK(state_of_second(fd) == SCTP_ADDR_CONFIRMED);
    say(fd, "deaf");
    second_becomes(fd, SCTP_PF);
    say(fd, "hear");
    second_becomes(fd, SCTP_ACTIVE);
    FAILS(recv(fd, &got, sizeof got, MSG_DONTWAIT), EAGAIN);
    say(fd, "done");
    CHECK(close(fd) == 0);
}

int main(int count, char **words)
{
    CHECK(count == 3);
    if (!strcmp(words[2], "restart"))
        restart(words[1]);
    else if (!strcmp(words[2], "doubts"))
        doubts(words[1]);
    else
        paths(words[1]);
    tresse_finish(60000);
    return 0;
}
