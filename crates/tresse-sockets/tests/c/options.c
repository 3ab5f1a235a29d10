/* Every option: what it says by default, what it says after it was set, and the number that it fails with. */
#include "common.h"

static int get(int fd, int option, void *value, size_t size)
{
    socklen_t len = size;
    return getsockopt(fd, IPPROTO_SCTP, option, value, &len);
}

static int set(int fd, int option, const void *value, size_t size)
{
    return setsockopt(fd, IPPROTO_SCTP, option, value, size);
}

#define GET(fd, option, value) CHECK(get(fd, option, &(value), sizeof(value)) == 0)
#define SET(fd, option, value) CHECK(set(fd, option, &(value), sizeof(value)) == 0)
#define REFUSES(fd, option, value, number) FAILS(set(fd, option, &(value), sizeof(value)), number)

/* A structure that does not fit is refused, but those that were shorter once are cut. */
static void short_buffers(int fd)
{
    static const int whole[] = { SCTP_INITMSG, SCTP_NODELAY, SCTP_AUTOCLOSE, SCTP_ADAPTATION_LAYER, SCTP_DISABLE_FRAGMENTS,
        SCTP_I_WANT_MAPPED_V4_ADDR, SCTP_MAXSEG, SCTP_FRAGMENT_INTERLEAVE, SCTP_PARTIAL_DELIVERY_POINT, SCTP_MAX_BURST,
        SCTP_GET_ASSOC_NUMBER, SCTP_RECVRCVINFO, SCTP_RECVNXTINFO, SCTP_REUSE_PORT };
    char byte = 0;
    for (size_t at = 0; at < sizeof whole / sizeof *whole; at++)
        FAILS(get(fd, whole[at], &byte, 1), EINVAL);
    CHECK(get(fd, SCTP_EVENTS, &byte, 1) == 0);
}

static void numbers(int fd, int option, unsigned usual, unsigned other)
{
    unsigned value = 12345;
    GET(fd, option, value);
    CHECK(value == usual);
    SET(fd, option, other);
    GET(fd, option, value);
    CHECK(value == other);
    SET(fd, option, usual);
    FAILS(set(fd, option, &value, 2), EINVAL);
}

static void values(int fd, int option, unsigned usual, unsigned other)
{
    struct sctp_assoc_value value = { 0, 12345 };
    GET(fd, option, value);
    CHECK(value.assoc_value == usual);
    value.assoc_value = other;
    SET(fd, option, value);
    value.assoc_value = 12345;
    GET(fd, option, value);
    CHECK(value.assoc_value == other);
    value.assoc_value = usual;
    SET(fd, option, value);
    value.assoc_id = 999999;
    if (option != SCTP_MAXSEG && option != SCTP_MAX_BURST)
        FAILS(set(fd, option, &value, 4), EINVAL);
}

static void of_sockets(void)
{
    int one = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), many = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP);
    numbers(one, SCTP_NODELAY, 0, 1);
    numbers(one, SCTP_DISABLE_FRAGMENTS, 0, 1);
    numbers(one, SCTP_I_WANT_MAPPED_V4_ADDR, 1, 0);
    numbers(one, SCTP_RECVRCVINFO, 0, 1);
    numbers(one, SCTP_RECVNXTINFO, 0, 1);
    numbers(one, SCTP_EXPLICIT_EOR, 0, 1);
    numbers(one, SCTP_FRAGMENT_INTERLEAVE, 0, 1);
    numbers(many, SCTP_FRAGMENT_INTERLEAVE, 1, 0);
    numbers(one, SCTP_PARTIAL_DELIVERY_POINT, 0, 5000);
    numbers(one, SCTP_ADAPTATION_LAYER, 0, 77);
    numbers(many, SCTP_AUTOCLOSE, 0, 5);
    numbers(one, SCTP_REUSE_PORT, 0, 1);
    int value = 2;
    REFUSES(one, SCTP_FRAGMENT_INTERLEAVE, value, EINVAL);
    value = 1 << 29;
    REFUSES(one, SCTP_PARTIAL_DELIVERY_POINT, value, EINVAL);
    value = 1;
    REFUSES(one, SCTP_AUTOCLOSE, value, EOPNOTSUPP);
    REFUSES(many, SCTP_REUSE_PORT, value, EOPNOTSUPP);
    FAILS(get(one, SCTP_GET_ASSOC_NUMBER, &value, sizeof value), EOPNOTSUPP);
    FAILS(get(one, SCTP_GET_ASSOC_ID_LIST, &value, sizeof value), EOPNOTSUPP);
    REFUSES(one, SCTP_AUTO_ASCONF, value, EOPNOTSUPP);
    value = 0;
    SET(one, SCTP_AUTO_ASCONF, value);
    GET(one, SCTP_AUTO_ASCONF, value);
    REFUSES(one, 999, value, ENOPROTOOPT);
    FAILS(get(one, SCTP_AUTH_KEY, &value, sizeof value), ENOPROTOOPT);
    FAILS(get(one, 4711, &value, sizeof value), ENOPROTOOPT);

    struct sctp_initmsg init = { .sinit_num_ostreams = 0 };
    GET(one, SCTP_INITMSG, init);
    CHECK(init.sinit_num_ostreams == 10 && init.sinit_max_instreams == 65535 && init.sinit_max_attempts == 8);
    init = (struct sctp_initmsg) { 4, 5, 6, 700 };
    SET(one, SCTP_INITMSG, init);
    memset(&init, 0, sizeof init);
    SET(one, SCTP_INITMSG, init);
    GET(one, SCTP_INITMSG, init);
    CHECK(init.sinit_num_ostreams == 4 && init.sinit_max_instreams == 5 && init.sinit_max_attempts == 6
        && init.sinit_max_init_timeo == 700);

    struct sctp_event_subscribe events = { .sctp_association_event = 1, .sctp_sender_dry_event = 1 }, got;
    SET(many, SCTP_EVENTS, events);
    GET(many, SCTP_EVENTS, got);
    CHECK(!memcmp(&events, &got, sizeof got));
    struct sctp_event event = { 0, SCTP_SENDER_DRY_EVENT, 0 };
    GET(many, SCTP_EVENT, event);
    CHECK(event.se_on == 1);
    event.se_type = 7;
    REFUSES(many, SCTP_EVENT, event, EINVAL);

    short_buffers(many);

    int number = 0;
    socklen_t len = sizeof number;
    CHECK(getsockopt(one, SOL_SOCKET, SO_TYPE, &number, &len) == 0 && number == SOCK_STREAM);
    CHECK(getsockopt(many, SOL_SOCKET, SO_TYPE, &number, &len) == 0 && number == SOCK_SEQPACKET);
    CHECK(getsockopt(one, SOL_SOCKET, SO_PROTOCOL, &number, &len) == 0 && number == IPPROTO_SCTP);
    CHECK(getsockopt(one, SOL_SOCKET, SO_DOMAIN, &number, &len) == 0 && number == AF_INET);
    number = 300000;
    CHECK(setsockopt(one, SOL_SOCKET, SO_SNDBUF, &number, sizeof number) == 0);
    CHECK(setsockopt(one, SOL_SOCKET, SO_RCVBUF, &number, sizeof number) == 0);
    number = 0;
    CHECK(getsockopt(one, SOL_SOCKET, SO_SNDBUF, &number, &len) == 0 && number == 300000);
    /* The buffers of the descriptor itself stay as they are: by them it shows whether there is room. */
    number = 400000;
    CHECK(setsockopt(one, SOL_SOCKET, SO_SNDBUFFORCE, &number, sizeof number) == 0);
    CHECK(setsockopt(one, SOL_SOCKET, SO_RCVBUFFORCE, &number, sizeof number) == 0);
    CHECK(getsockopt(one, SOL_SOCKET, SO_SNDBUF, &number, &len) == 0 && number == 400000);
    CHECK(getsockopt(one, SOL_SOCKET, SO_RCVBUF, &number, &len) == 0 && number == 400000 && !ready(one, POLLOUT));
    /* Those of other protocols, and those that a descriptor would take but that would do nothing, or keep calls from waking. */
    int others[] = { 9999, SO_PEEK_OFF, SO_BINDTODEVICE, SO_MARK, SO_PRIORITY, SO_PASSCRED, SO_ATTACH_FILTER, SO_TIMESTAMP };
    number = 0;
    for (unsigned at = 0; at < sizeof others / sizeof *others; at++) {
        FAILS(setsockopt(one, SOL_SOCKET, others[at], &number, sizeof number), ENOPROTOOPT);
        len = sizeof number;
        FAILS(getsockopt(one, SOL_SOCKET, others[at], &number, &len), ENOPROTOOPT);
    }
    struct linger linger = { 1, 3 };
    CHECK(setsockopt(one, SOL_SOCKET, SO_LINGER, &linger, sizeof linger) == 0);
    struct timeval time = { 0, 20000 };
    CHECK(setsockopt(many, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time) == 0);
    char text[10];
    listen(many, 1);
    FAILS(recv(many, text, sizeof text, 0), EAGAIN);
    CHECK(close(one) == 0 && close(many) == 0);
}

/* A value counts only with its flag, 0 leaves it as it is, and what is off keeps its value, as in Linux. */
static void heartbeats_and_their_interval(void)
{
    int fd = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP);
    static const struct { unsigned flags, interval, mtu, delay, then, later; } steps[] = {
        { SPP_HB_ENABLE, 5000, 0, 0, SPP_HB_ENABLE, 5000 },
        { SPP_HB_ENABLE, 0, 0, 0, SPP_HB_ENABLE, 5000 },
        { 0, 7000, 0, 0, SPP_HB_ENABLE, 5000 },
        { SPP_HB_TIME_IS_ZERO, 0, 0, 0, SPP_HB_ENABLE, 5000 },
        { SPP_HB_DISABLE, 7000, 0, 0, SPP_HB_DISABLE, 5000 },
        { SPP_HB_ENABLE, 0, 0, 0, SPP_HB_ENABLE, 5000 },
        { SPP_HB_ENABLE | SPP_HB_TIME_IS_ZERO, 0, 0, 0, SPP_HB_ENABLE, 0 },
        { SPP_HB_DISABLE, 0, 0, 0, SPP_HB_DISABLE, 0 },
        { SPP_HB_ENABLE, 6000, 0, 0, SPP_HB_ENABLE, 6000 },
        { 0, 0, 0, 350, SPP_SACKDELAY_ENABLE, 200 },
        { SPP_SACKDELAY_ENABLE, 0, 0, 350, SPP_SACKDELAY_ENABLE, 350 },
        { SPP_PMTUD_DISABLE, 0, 0, 0, SPP_PMTUD_DISABLE, 1500 },
        { SPP_PMTUD_DISABLE, 0, 1400, 0, SPP_PMTUD_DISABLE, 1400 },
        { SPP_PMTUD_ENABLE, 0, 0, 0, SPP_PMTUD_ENABLE, 0 },
    };
    for (size_t at = 0; at < sizeof steps / sizeof *steps; at++) {
        struct sctp_paddrparams paths = { .spp_flags = steps[at].flags, .spp_hbinterval = steps[at].interval,
            .spp_pathmtu = steps[at].mtu, .spp_sackdelay = steps[at].delay };
        SET(fd, SCTP_PEER_ADDR_PARAMS, paths);
        memset(&paths, 0, sizeof paths);
        GET(fd, SCTP_PEER_ADDR_PARAMS, paths);
        unsigned then = steps[at].then, got = then & (SPP_HB_ENABLE | SPP_HB_DISABLE) ? paths.spp_hbinterval
            : then & SPP_SACKDELAY_ENABLE ? paths.spp_sackdelay : paths.spp_pathmtu;
        CHECK((paths.spp_flags & then) && got == steps[at].later);
    }
    CHECK(close(fd) == 0);
}

/* Delays of SACKs that are switched off and on again keep their frequency, as in Linux. */
static void delayed_sacks_and_their_frequency(void)
{
    int fd = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP);
    static const struct { unsigned flags, delay, frequency; } steps[] = {
        { SPP_SACKDELAY_ENABLE, 350, 5 },
        { SPP_SACKDELAY_DISABLE, 0, 1 },
        { SPP_SACKDELAY_ENABLE, 350, 5 },
        { SPP_SACKDELAY_ENABLE, 350, 5 },
    };
    struct sctp_sack_info sacks = { 0, 350, 5 };
    SET(fd, SCTP_DELAYED_SACK, sacks);
    for (size_t at = 0; at < sizeof steps / sizeof *steps; at++) {
        struct sctp_paddrparams paths = { .spp_flags = steps[at].flags };
        SET(fd, SCTP_PEER_ADDR_PARAMS, paths);
        GET(fd, SCTP_DELAYED_SACK, sacks);
        CHECK(sacks.sack_delay == steps[at].delay && sacks.sack_freq == steps[at].frequency);
    }
    sacks = (struct sctp_sack_info) { 0, 0, 1 };
    SET(fd, SCTP_DELAYED_SACK, sacks);
    struct sctp_paddrparams paths = { .spp_flags = SPP_SACKDELAY_ENABLE };
    SET(fd, SCTP_PEER_ADDR_PARAMS, paths);
    GET(fd, SCTP_DELAYED_SACK, sacks);
    CHECK(sacks.sack_freq == 5);
    CHECK(close(fd) == 0);
}

static void packets_are(int fd, unsigned flag, unsigned size)
{
    struct sctp_paddrparams paths = { 0 };
    GET(fd, SCTP_PEER_ADDR_PARAMS, paths);
    CHECK((paths.spp_flags & flag) && paths.spp_pathmtu == size);
}

/* RFC 6458 section 8.1.16: a segment size of 0 leaves packets as they are without one. */
static void segments_without_a_bound(void)
{
    int fd = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP);
    struct sctp_assoc_value bound = { 0, 500 }, none = { 0, 0 };
    struct sctp_paddrparams fixed = { .spp_flags = SPP_PMTUD_DISABLE };
    SET(fd, SCTP_MAXSEG, bound);
    packets_are(fd, SPP_PMTUD_DISABLE, 576);
    bound.assoc_value = 600;
    SET(fd, SCTP_MAXSEG, bound);
    SET(fd, SCTP_MAXSEG, none);
    packets_are(fd, SPP_PMTUD_ENABLE, 0);
    SET(fd, SCTP_PEER_ADDR_PARAMS, fixed);
    packets_are(fd, SPP_PMTUD_DISABLE, 1500);
    fixed.spp_pathmtu = 1400;
    SET(fd, SCTP_PEER_ADDR_PARAMS, fixed);
    SET(fd, SCTP_MAXSEG, none);
    packets_are(fd, SPP_PMTUD_DISABLE, 1400);
    SET(fd, SCTP_MAXSEG, bound);
    SET(fd, SCTP_MAXSEG, none);
    packets_are(fd, SPP_PMTUD_DISABLE, 1400);
    SET(fd, SCTP_MAXSEG, bound);
    fixed.spp_pathmtu = 1300;
    SET(fd, SCTP_PEER_ADDR_PARAMS, fixed);
    SET(fd, SCTP_MAXSEG, none);
    packets_are(fd, SPP_PMTUD_DISABLE, 1300);
    CHECK(close(fd) == 0);
}

/* With an interval of 0 an idle path has a heartbeat in each RTO; so it has when they were off in between. */
static void heartbeats_in_each_rto(int fd, struct sockaddr_storage to)
{
    static const unsigned steps[] = { SPP_HB_ENABLE | SPP_HB_TIME_IS_ZERO, SPP_HB_DISABLE, SPP_HB_ENABLE };
    struct sctp_assoc_stats before = { .sas_assoc_id = 0 }, now = { .sas_assoc_id = 0 };
    struct sctp_paddrparams paths = { .spp_address = to };
    for (int at = 0; at < 3; at++) {
        paths.spp_flags = steps[at];
        SET(fd, SCTP_PEER_ADDR_PARAMS, paths);
    }
    GET(fd, SCTP_GET_ASSOC_STATS, before);
    do {
        usleep(10000);
        GET(fd, SCTP_GET_ASSOC_STATS, now);
    } while (now.sas_opackets < before.sas_opackets + 3);
    paths.spp_hbinterval = 30000;
    SET(fd, SCTP_PEER_ADDR_PARAMS, paths);
}

static void of_associations(void)
{
    int many = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP);
    values(many, SCTP_MAX_BURST, 0, 7);
    values(many, SCTP_MAXSEG, 0, 1000);
    values(many, SCTP_CONTEXT, 0, 9);
    values(many, SCTP_PR_SUPPORTED, 1, 0);
    values(many, SCTP_RECONFIG_SUPPORTED, 1, 0);
    values(many, SCTP_ENABLE_STREAM_RESET, 7, 1);
    values(many, SCTP_STREAM_SCHEDULER, SCTP_SS_FCFS, SCTP_SS_PRIO);
    values(many, SCTP_STREAM_SCHEDULER, SCTP_SS_FCFS, SCTP_SS_TRESSE_WFQ);
    values(many, SCTP_INTERLEAVING_SUPPORTED, 0, 1);
    values(many, SCTP_ASCONF_SUPPORTED, 1, 0);
    values(many, SCTP_AUTH_SUPPORTED, 1, 0);
    values(many, SCTP_ECN_SUPPORTED, 1, 0);
    values(many, SCTP_EXPOSE_POTENTIALLY_FAILED_STATE, 0, 1);
    values(many, SCTP_CMT_ON_OFF, 1, 3);
    values(many, SCTP_CMT_ON_OFF, 1, 0);
    struct sctp_assoc_value value = { 0, 99 };
    REFUSES(many, SCTP_STREAM_SCHEDULER, value, EINVAL);
    REFUSES(many, SCTP_CMT_ON_OFF, value, EINVAL);
    REFUSES(many, SCTP_ENABLE_STREAM_RESET, value, EINVAL);
    value = (struct sctp_assoc_value) { 4242, 1 };
    REFUSES(many, SCTP_CONTEXT, value, EINVAL);

    struct sctp_rtoinfo rto = { 0, 0, 0, 0 };
    GET(many, SCTP_RTOINFO, rto);
    CHECK(rto.srto_initial == 1000 && rto.srto_max == 60000 && rto.srto_min == 300);
    rto = (struct sctp_rtoinfo) { 0, 0, 0, 300 };
    SET(many, SCTP_RTOINFO, rto);
    GET(many, SCTP_RTOINFO, rto);
    CHECK(rto.srto_initial == 1000 && rto.srto_min == 300);
    rto = (struct sctp_rtoinfo) { 0, 0, 10, 300 };
    REFUSES(many, SCTP_RTOINFO, rto, EINVAL);

    struct sctp_assocparams parameters = { .sasoc_asocmaxrxt = 3, .sasoc_cookie_life = 5000 };
    SET(many, SCTP_ASSOCINFO, parameters);
    memset(&parameters, 0, sizeof parameters);
    GET(many, SCTP_ASSOCINFO, parameters);
    CHECK(parameters.sasoc_asocmaxrxt == 3 && parameters.sasoc_cookie_life == 5000);

    struct sctp_sack_info sack = { 0, 0, 0 };
    GET(many, SCTP_DELAYED_SACK, sack);
    CHECK(sack.sack_delay == 200 && sack.sack_freq == 2);
    sack = (struct sctp_sack_info) { 0, 50, 1 };
    SET(many, SCTP_DELAYED_SACK, sack);
    GET(many, SCTP_DELAYED_SACK, sack);
    CHECK(sack.sack_delay == 0 && sack.sack_freq == 1);
    sack.sack_delay = 501;
    REFUSES(many, SCTP_DELAYED_SACK, sack, EINVAL);
    /* The older structure has the delay alone. */
    sack = (struct sctp_sack_info) { 0, 50, 3 };
    SET(many, SCTP_DELAYED_SACK, sack);
    value = (struct sctp_assoc_value) { 0, 300 };
    SET(many, SCTP_DELAYED_ACK_TIME, value);
    GET(many, SCTP_DELAYED_SACK, sack);
    CHECK(sack.sack_delay == 300 && sack.sack_freq == 3);
    value.assoc_value = 0;
    GET(many, SCTP_DELAYED_ACK_TIME, value);
    CHECK(value.assoc_value == 300);
    value.assoc_value = 501;
    REFUSES(many, SCTP_DELAYED_ACK_TIME, value, EINVAL);
    value.assoc_value = 0;
    SET(many, SCTP_DELAYED_ACK_TIME, value);
    GET(many, SCTP_DELAYED_SACK, sack);
    CHECK(sack.sack_delay == 0 && sack.sack_freq == 1);
    sack = (struct sctp_sack_info) { 0, 200, 2 };
    SET(many, SCTP_DELAYED_SACK, sack);

    struct sctp_sndinfo info = { 3, SCTP_UNORDERED, htonl(8), 9, 0 }, got = { 0 };
    info.snd_flags |= 0x100;
    REFUSES(many, SCTP_DEFAULT_SNDINFO, info, EINVAL);
    info.snd_flags &= ~0x100;
    SET(many, SCTP_DEFAULT_SNDINFO, info);
    GET(many, SCTP_DEFAULT_SNDINFO, got);
    CHECK(!memcmp(&info, &got, sizeof got));
    struct sctp_default_prinfo policy = { 0, 500, SCTP_PR_SCTP_TTL };
    SET(many, SCTP_DEFAULT_PRINFO, policy);
    memset(&policy, 0, sizeof policy);
    GET(many, SCTP_DEFAULT_PRINFO, policy);
    CHECK(policy.pr_value == 500 && policy.pr_policy == SCTP_PR_SCTP_TTL);
    struct sctp_sndrcvinfo old = { .sinfo_stream = 0 };
    GET(many, SCTP_DEFAULT_SEND_PARAM, old);
    CHECK(old.sinfo_stream == 3 && old.sinfo_timetolive == 500 && old.sinfo_context == 9);
    old = (struct sctp_sndrcvinfo) { .sinfo_stream = 1, .sinfo_ppid = 4 };
    SET(many, SCTP_DEFAULT_SEND_PARAM, old);
    GET(many, SCTP_DEFAULT_SNDINFO, got);
    CHECK(got.snd_sid == 1 && got.snd_ppid == 4 && got.snd_flags == 0);
    old.sinfo_timetolive = 70;
    SET(many, SCTP_DEFAULT_SEND_PARAM, old);
    GET(many, SCTP_DEFAULT_PRINFO, policy);
    CHECK(policy.pr_value == 70 && policy.pr_policy == SCTP_PR_SCTP_TTL);

    struct sctp_paddrparams paths = { .spp_hbinterval = 0 };
    GET(many, SCTP_PEER_ADDR_PARAMS, paths);
    CHECK(paths.spp_hbinterval == 30000 && paths.spp_pathmaxrxt == 7 && (paths.spp_flags & SPP_HB_ENABLE));
    paths = (struct sctp_paddrparams) { .spp_hbinterval = 1234, .spp_pathmaxrxt = 2, .spp_flags = SPP_HB_ENABLE };
    SET(many, SCTP_PEER_ADDR_PARAMS, paths);
    GET(many, SCTP_PEER_ADDR_PARAMS, paths);
    CHECK(paths.spp_hbinterval == 1234 && paths.spp_pathmaxrxt == 2);
    heartbeats_and_their_interval();
    delayed_sacks_and_their_frequency();
    segments_without_a_bound();
    paths = (struct sctp_paddrparams) { .spp_flags = SPP_HB_ENABLE | SPP_HB_DISABLE };
    REFUSES(many, SCTP_PEER_ADDR_PARAMS, paths, EINVAL);
    paths.spp_flags = SPP_DSCP;
    REFUSES(many, SCTP_PEER_ADDR_PARAMS, paths, EOPNOTSUPP);
    struct sctp_paddrthlds thresholds = { .spt_pathmaxrxt = 4, .spt_pathpfthld = 1 };
    SET(many, SCTP_PEER_ADDR_THLDS, thresholds);
    struct sctp_paddrthlds_v2 version_2 = { .spt_pathmaxrxt = 0 };
    GET(many, SCTP_PEER_ADDR_THLDS_V2, version_2);
    CHECK(version_2.spt_pathmaxrxt == 4 && version_2.spt_pathpfthld == 1 && version_2.spt_pathcpthld == 0xffff);
    version_2 = (struct sctp_paddrthlds_v2) { .spt_pathpfthld = 1, .spt_pathcpthld = 9 };
    SET(many, SCTP_PEER_ADDR_THLDS_V2, version_2);
    GET(many, SCTP_PEER_ADDR_THLDS, thresholds);
    CHECK(thresholds.spt_pathmaxrxt == 4);
    struct sctp_udpencaps udp = { .sue_port = 0 };
    GET(many, SCTP_REMOTE_UDP_ENCAPS_PORT, udp);
    if (udp.sue_port) {
        udp.sue_port = htons(1234);
        SET(many, SCTP_REMOTE_UDP_ENCAPS_PORT, udp);
        udp.sue_port = 0;
        GET(many, SCTP_REMOTE_UDP_ENCAPS_PORT, udp);
        CHECK(udp.sue_port == htons(1234));
    } else {
        udp.sue_port = htons(1234);
        REFUSES(many, SCTP_REMOTE_UDP_ENCAPS_PORT, udp, EOPNOTSUPP);
    }
    struct sctp_probeinterval probing = { .spi_interval = 0 };
    GET(many, SCTP_PLPMTUD_PROBE_INTERVAL, probing);
    SET(many, SCTP_PLPMTUD_PROBE_INTERVAL, probing);
    probing.spi_interval = 3;
    REFUSES(many, SCTP_PLPMTUD_PROBE_INTERVAL, probing, EINVAL);
    CHECK(close(many) == 0);
}

static void of_keys(void)
{
    int many = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP);
    struct sctp_authchunk chunk = { 0 };
    SET(many, SCTP_AUTH_CHUNK, chunk);
    chunk.sauth_chunk = 1;
    REFUSES(many, SCTP_AUTH_CHUNK, chunk, EINVAL);
    struct { struct sctp_authchunks head; uint8_t room[20]; } chunks = { .head.gauth_assoc_id = 0 };
    GET(many, SCTP_LOCAL_AUTH_CHUNKS, chunks);
    CHECK(chunks.head.gauth_number_of_chunks >= 1);
    FAILS(get(many, SCTP_PEER_AUTH_CHUNKS, &chunks, sizeof chunks), EINVAL);
    struct { struct sctp_hmacalgo head; uint16_t idents[2]; } hashes;
    GET(many, SCTP_HMAC_IDENT, hashes);
    CHECK(hashes.head.shmac_num_idents == 2 && hashes.idents[0] == SCTP_AUTH_HMAC_ID_SHA256);
    hashes.head.shmac_num_idents = 1;
    REFUSES(many, SCTP_HMAC_IDENT, hashes, EINVAL);
    hashes.idents[0] = SCTP_AUTH_HMAC_ID_SHA1;
    SET(many, SCTP_HMAC_IDENT, hashes);
    struct { struct sctp_authkey head; uint8_t key[4]; } key = { { 0, 5, 4 }, { 1, 2, 3, 4 } };
    SET(many, SCTP_AUTH_KEY, key);
    struct sctp_authkeyid id = { 0, 9 };
    REFUSES(many, SCTP_AUTH_ACTIVE_KEY, id, EINVAL);
    id.scact_keynumber = 5;
    SET(many, SCTP_AUTH_ACTIVE_KEY, id);
    REFUSES(many, SCTP_AUTH_DELETE_KEY, id, EINVAL);
    REFUSES(many, SCTP_AUTH_DEACTIVATE_KEY, id, EINVAL);
    id.scact_keynumber = 0;
    GET(many, SCTP_AUTH_ACTIVE_KEY, id);
    CHECK(id.scact_keynumber == 5);
    id.scact_keynumber = 9;
    REFUSES(many, SCTP_AUTH_DEACTIVATE_KEY, id, EINVAL);
    id.scact_keynumber = 0;
    SET(many, SCTP_AUTH_DEACTIVATE_KEY, id);
    REFUSES(many, SCTP_AUTH_ACTIVE_KEY, id, EINVAL);
    SET(many, SCTP_AUTH_DELETE_KEY, id);
    REFUSES(many, SCTP_AUTH_DEACTIVATE_KEY, id, EINVAL);
    struct sctp_assoc_value off = { 0, 0 };
    int plain = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP);
    SET(plain, SCTP_AUTH_SUPPORTED, off);
    REFUSES(plain, SCTP_AUTH_DEACTIVATE_KEY, id, EACCES);
    CHECK(close(many) == 0 && close(plain) == 0);
}

/* Of an association that is there. */
static void live(void)
{
    int ends[2];
    pair("127.0.0.1", ends);
    struct sctp_status status = { .sstat_assoc_id = 0 };
    GET(ends[0], SCTP_STATUS, status);
    CHECK(status.sstat_state == SCTP_ESTABLISHED && status.sstat_outstrms == 10 && status.sstat_instrms == 10);
    CHECK(status.sstat_rwnd > 1000 && status.sstat_primary.spinfo_state == SCTP_ACTIVE);
    struct sctp_prim prim = { .ssp_assoc_id = 0 };
    GET(ends[0], SCTP_PRIMARY_ADDR, prim);
    struct sockaddr_in *name = (struct sockaddr_in *)&prim.ssp_addr;
    CHECK(name->sin_family == AF_INET && name->sin_addr.s_addr == htonl(INADDR_LOOPBACK));
    SET(ends[0], SCTP_PRIMARY_ADDR, prim);
    struct sctp_paddrinfo info = { .spinfo_assoc_id = 0 };
    info.spinfo_address = prim.ssp_addr;
    GET(ends[0], SCTP_GET_PEER_ADDR_INFO, info);
    CHECK(info.spinfo_state == SCTP_ACTIVE && info.spinfo_cwnd > 0 && info.spinfo_mtu > 500);
    name->sin_addr.s_addr = htonl(0x7f090909);
    REFUSES(ends[0], SCTP_PRIMARY_ADDR, prim, EINVAL);
    struct sctp_setpeerprim peer = { .sspp_addr = prim.ssp_addr };
    CHECK(set(ends[0], SCTP_SET_PEER_PRIMARY_ADDR, &peer, sizeof peer) == -1);
    CHECK(errno == EADDRNOTAVAIL || errno == EPERM);

    static char block[20000];
    int on = 1;
    SET(ends[0], SCTP_DISABLE_FRAGMENTS, on);
    FAILS(send(ends[0], block, 2000, 0), EMSGSIZE);
    CHECK(send(ends[0], block, 1000, 0) == 1000 && recv(ends[1], block, sizeof block, 0) == 1000);
    on = 0;
    SET(ends[0], SCTP_DISABLE_FRAGMENTS, on);

    struct sctp_rtoinfo rto = { 0, 0, 0, 250 };
    SET(ends[0], SCTP_RTOINFO, rto);
    GET(ends[0], SCTP_RTOINFO, rto);
    CHECK(rto.srto_min == 250 && rto.srto_max == 60000);
    struct sctp_paddrparams paths = { .spp_address = info.spinfo_address, .spp_flags = SPP_HB_DEMAND, .spp_hbinterval = 700 };
    SET(ends[0], SCTP_PEER_ADDR_PARAMS, paths);
    heartbeats_in_each_rto(ends[0], (struct sockaddr_storage) { .ss_family = AF_UNSPEC });
    heartbeats_in_each_rto(ends[0], info.spinfo_address);
    struct sctp_sack_info sack = { 0, 100, 3 };
    SET(ends[0], SCTP_DELAYED_SACK, sack);
    GET(ends[0], SCTP_DELAYED_SACK, sack);
    CHECK(sack.sack_delay == 100 && sack.sack_freq == 3);
    struct sctp_assoc_stats stats = { .sas_assoc_id = 0 };
    GET(ends[0], SCTP_GET_ASSOC_STATS, stats);
    CHECK(stats.sas_opackets > 0 && stats.sas_maxrto > 0);

    /* Streams. */
    struct sctp_assoc_value scheduler = { 0, SCTP_SS_PRIO };
    SET(ends[0], SCTP_STREAM_SCHEDULER, scheduler);
    struct sctp_stream_value value = { 0, 3, 17 };
    SET(ends[0], SCTP_STREAM_SCHEDULER_VALUE, value);
    value.stream_value = 0;
    GET(ends[0], SCTP_STREAM_SCHEDULER_VALUE, value);
    CHECK(value.stream_value == 17);
    value.stream_id = 10;
    REFUSES(ends[0], SCTP_STREAM_SCHEDULER_VALUE, value, EINVAL);
    struct sctp_prstatus abandoned = { 0, 3, SCTP_PR_SCTP_ALL, 1, 1 };
    GET(ends[0], SCTP_PR_ASSOC_STATUS, abandoned);
    CHECK(abandoned.sprstat_abandoned_unsent == 0);
    GET(ends[0], SCTP_PR_STREAM_STATUS, abandoned);
    /* What was offered stays; what is accepted of the peer does not have to. */
    struct sctp_assoc_value fixed = { 0, 0 };
    REFUSES(ends[0], SCTP_PR_SUPPORTED, fixed, EINVAL);
    fixed.assoc_value = 1;
    SET(ends[0], SCTP_PR_SUPPORTED, fixed);
    SET(ends[0], SCTP_ENABLE_STREAM_RESET, fixed);
    fixed.assoc_value = 0;
    GET(ends[0], SCTP_ENABLE_STREAM_RESET, fixed);
    CHECK(fixed.assoc_value == 1);
    fixed.assoc_value = 7;
    SET(ends[0], SCTP_ENABLE_STREAM_RESET, fixed);

    struct { struct sctp_tresse_stream_queue head; uint32_t each[10]; } queue = { .head.ssq_assoc_id = 0 };
    GET(ends[0], SCTP_TRESSE_STREAM_QUEUE, queue);
    CHECK(queue.head.ssq_streams == 10 && queue.head.ssq_unsent == 0 && queue.head.ssq_limit > 0);

    struct sctp_event event = { 0, SCTP_STREAM_RESET_EVENT, 1 };
    SET(ends[0], SCTP_EVENT, event);
    SET(ends[1], SCTP_EVENT, event);
    event.se_type = SCTP_STREAM_CHANGE_EVENT;
    SET(ends[1], SCTP_EVENT, event);
    event.se_type = SCTP_TRESSE_STREAM_LOW;
    SET(ends[0], SCTP_EVENT, event);
    struct { struct sctp_reset_streams head; uint16_t list[1]; } reset = { { 0, SCTP_STREAM_RESET_OUTGOING, 1 }, { 2 } };
    SET(ends[0], SCTP_RESET_STREAMS, reset);
    union sctp_notification got;
    wait_for(ends[1], POLLIN);
    CHECK(recv(ends[1], &got, sizeof got, 0) == 14);
    CHECK(got.sn_strreset_event.strreset_type == SCTP_STREAM_RESET_EVENT);
    CHECK(got.sn_strreset_event.strreset_flags == SCTP_STREAM_RESET_INCOMING_SSN);
    CHECK(got.sn_strreset_event.strreset_stream_list[0] == 2);
    wait_for(ends[0], POLLIN);
    CHECK(recv(ends[0], &got, sizeof got, 0) == 14);
    CHECK(got.sn_strreset_event.strreset_flags == SCTP_STREAM_RESET_OUTGOING_SSN);
    reset.list[0] = 99;
    REFUSES(ends[0], SCTP_RESET_STREAMS, reset, EINVAL);
    struct sctp_add_streams add = { 0, 0, 5 };
    SET(ends[0], SCTP_ADD_STREAMS, add);
    wait_for(ends[1], POLLIN);
    CHECK(recv(ends[1], &got, sizeof got, 0) == 16);
    CHECK(got.sn_strchange_event.strchange_type == SCTP_STREAM_CHANGE_EVENT && got.sn_strchange_event.strchange_instrms == 15);
    sctp_assoc_t all = 0;
    CHECK(set(ends[0], SCTP_RESET_ASSOC, &all, sizeof all) == 0 || errno == EAGAIN || errno == EINPROGRESS);

    struct sctp_tresse_low_water low = { .slw_stream = 1, .slw_bytes = 100 };
    SET(ends[0], SCTP_TRESSE_LOW_WATER, low);
    struct sctp_tresse_stream_low told;
    for (;;) {
        wait_for(ends[0], POLLIN);
        CHECK(recv(ends[0], &told, sizeof told, 0) >= 12);
        if (told.ssl_type == SCTP_TRESSE_STREAM_LOW)
            break;
    }
    CHECK(told.ssl_stream == 1 && told.ssl_unsent == 0);
    struct { struct sctp_authchunks head; uint8_t room[20]; } chunks = { .head.gauth_assoc_id = 0 };
    GET(ends[0], SCTP_PEER_AUTH_CHUNKS, chunks);
    /* ASCONF and its answer (RFC 5061, 4.1.1). */
    CHECK(chunks.head.gauth_number_of_chunks == 2 && chunks.room[0] == 0x80 && chunks.room[1] == 0xc1);
    CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
}

static void of_tresse(void)
{
    int fd = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP);
    struct sctp_tresse_setting setting = { 0, "nr_sack_blocks", "16" };
    SET(fd, SCTP_TRESSE_SETTING, setting);
    memset(setting.sts_value, 0, sizeof setting.sts_value);
    GET(fd, SCTP_TRESSE_SETTING, setting);
    CHECK(!strcmp(setting.sts_value, "16"));
    strcpy(setting.sts_value, "many");
    REFUSES(fd, SCTP_TRESSE_SETTING, setting, EINVAL);
    strcpy(setting.sts_name, "nobody");
    REFUSES(fd, SCTP_TRESSE_SETTING, setting, ENOENT);
    struct { int option; const char *good, *bad; } choices[] = {
        { SCTP_TRESSE_PATH_SCHEDULER, "lowest_rtt", "fastest" },
        { SCTP_TRESSE_STREAM_MAP, "fixed:0,1", "crooked" },
        { SCTP_TRESSE_CONGESTION_CONTROL, "olia", "reno" },
    };
    for (unsigned at = 0; at < sizeof choices / sizeof *choices; at++) {
        struct sctp_tresse_choice choice = { .stc_assoc_id = 0 };
        strcpy(choice.stc_name, choices[at].bad);
        REFUSES(fd, choices[at].option, choice, EINVAL);
        strcpy(choice.stc_name, choices[at].good);
        SET(fd, choices[at].option, choice);
        memset(&choice, 0, sizeof choice);
        GET(fd, choices[at].option, choice);
        CHECK(!strcmp(choice.stc_name, choices[at].good));
    }
    struct sctp_assoc_value cmt = { 0, 0 };
    GET(fd, SCTP_CMT_ON_OFF, cmt);
    CHECK(cmt.assoc_value == 4);
    CHECK(close(fd) == 0);
}

int main(void)
{
    of_sockets();
    of_associations();
    of_keys();
    live();
    of_tresse();
    return 0;
}
