/* Notifications of RFC 6458, 6525 and 8260 about set-ups, addresses, keys and streams, each with its length and fields. */
#include "common.h"

/* Room for the longest of them, with what comes behind it. */
union told {
    union sctp_notification one;
    unsigned char bytes[400];
};

static void subscribe(int fd, int type)
{
    struct sctp_event event = { SCTP_FUTURE_ASSOC, type, 1 };
    CHECK(setsockopt(fd, IPPROTO_SCTP, SCTP_EVENT, &event, sizeof event) == 0);
}

/* What is read next: this notification, of so many bytes, from this name. */
static union told expect_from(int fd, int type, unsigned length, struct sockaddr_in *name)
{
    union told got;
    struct iovec into = { &got, sizeof got };
    struct msghdr message = { .msg_iov = &into, .msg_iovlen = 1, .msg_name = name, .msg_namelen = sizeof *name };
    CHECK(recvmsg(fd, &message, 0) == length);
    CHECK(message.msg_flags == (MSG_NOTIFICATION | MSG_EOR));
    CHECK(got.one.sn_header.sn_type == type && got.one.sn_header.sn_length == length);
    return got;
}

static union told expect(int fd, int type, unsigned length)
{
    struct sockaddr_in name;
    return expect_from(fd, type, length, &name);
}

static void offer(int fd, int option, int on)
{
    struct sctp_assoc_value value = { SCTP_FUTURE_ASSOC, on };
    CHECK(setsockopt(fd, IPPROTO_SCTP, option, &value, sizeof value) == 0);
}

/* A listener and a socket that is not connected yet, with whatever `prepare` sets on each, become the ends of an association. */
static void joined(int ends[2], void (*prepare)(int fd, int is_near))
{
    int far = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), near = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    prepare(far, 0);
    prepare(near, 1);
    struct sockaddr_in name = name_of("127.0.0.1", 0);
    CHECK(bind(far, NAME(name), sizeof name) == 0 && listen(far, 1) == 0);
    name.sin_port = htons(port_of(far));
    CHECK(connect(near, NAME(name), sizeof name) == 0);
    CHECK((ends[0] = near) >= 0 && (ends[1] = accept(far, NULL, NULL)) >= 0);
    CHECK(close(far) == 0);
}

static void finish(int ends[2])
{
    CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
}

static void one_without_authentication(int fd, int is_near)
{
    subscribe(fd, SCTP_ASSOC_CHANGE);
    subscribe(fd, SCTP_AUTHENTICATION_EVENT);
    offer(fd, SCTP_AUTH_SUPPORTED, is_near);
    offer(fd, SCTP_ASCONF_SUPPORTED, is_near);
    offer(fd, SCTP_INTERLEAVING_SUPPORTED, 1);
    struct sctp_initmsg init = { .sinit_num_ostreams = is_near ? 7 : 5, .sinit_max_instreams = 6 };
    CHECK(setsockopt(fd, IPPROTO_SCTP, SCTP_INITMSG, &init, sizeof init) == 0);
}

/* SCTP_COMM_UP names what both ends can do, and not what only one offered. */
static void set_ups(void)
{
    static const unsigned char both[] = { SCTP_ASSOC_SUPPORTS_PR, SCTP_ASSOC_SUPPORTS_MULTIBUF, SCTP_ASSOC_SUPPORTS_RE_CONFIG,
        SCTP_ASSOC_SUPPORTS_INTERLEAVING };
    int ends[2];
    joined(ends, one_without_authentication);
    for (int end = 0; end < 2; end++) {
        union told got = expect(ends[end], SCTP_ASSOC_CHANGE, sizeof got.one.sn_assoc_change + sizeof both);
        struct sctp_assoc_change *change = &got.one.sn_assoc_change;
        CHECK(change->sac_flags == 0 && change->sac_state == SCTP_COMM_UP && change->sac_error == 0);
        CHECK(change->sac_outbound_streams == (end ? 5 : 6) && change->sac_inbound_streams == (end ? 6 : 5));
        CHECK(change->sac_assoc_id >= 3 && !memcmp(change->sac_info, both, sizeof both));
        sctp_assoc_t id = change->sac_assoc_id;
        got = expect(ends[end], SCTP_AUTHENTICATION_EVENT, sizeof got.one.sn_authkey_event);
        CHECK(got.one.sn_authkey_event.auth_indication == SCTP_AUTH_NO_AUTH);
        CHECK(got.one.sn_authkey_event.auth_keynumber == 0 && got.one.sn_authkey_event.auth_assoc_id == id);
    }
    char room[40];
    socklen_t len = sizeof room;
    memset(room, 0, sizeof room);
    FAILS(getsockopt(ends[0], IPPROTO_SCTP, SCTP_PEER_AUTH_CHUNKS, room, &len), EACCES);
    /* An ABORT of the peer comes with SCTP_COMM_LOST as it was sent: a user's abort, with what that said. */
    struct sctp_sndrcvinfo info = { .sinfo_flags = SCTP_ABORT };
    CHECK(sctp_send(ends[1], "e\0\377ugh", 6, &info, 0) == 6);
    static const unsigned char chunk[] = { 6, 0, 0, 14, 0, 12, 0, 10, 'e', 0, 255, 'u', 'g', 'h' };
    union told got;
    struct iovec into = { &got, sizeof got };
    struct msghdr message = { .msg_iov = &into, .msg_iovlen = 1 };
    long length = recvmsg(ends[0], &message, 0);
    struct sctp_assoc_change *change = &got.one.sn_assoc_change;
    /* A cause may be padded to four bytes. */
    CHECK(length >= (long)(sizeof *change + sizeof chunk) && length <= (long)(sizeof *change + sizeof chunk + 2));
    CHECK(change->sac_length == length && change->sac_state == SCTP_COMM_LOST && change->sac_error == htons(12));
    CHECK(!memcmp(change->sac_info, chunk, 3) && !memcmp(change->sac_info + 4, chunk + 4, sizeof chunk - 4));
    finish(ends);
}

/* An association that cannot be set up: nobody has the port. */
static void no_set_up(void)
{
    int near = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP), gone = listener(SOCK_SEQPACKET, "127.0.0.1");
    struct sockaddr_in name = name_of("127.0.0.1", port_of(gone));
    CHECK(close(gone) == 0);
    subscribe(near, SCTP_ASSOC_CHANGE);
    subscribe(near, SCTP_SEND_FAILED_EVENT);
    CHECK(sctp_sendmsg(near, "nobody", 6, NAME(name), sizeof name, htonl(4), 0, 2, 0, 33) == 6);
    /* What is read says whom it is about, though there is no association any more: Erlang's gen_sctp waits for that name. */
    struct sockaddr_in from = { 0 };
    union told got = expect_from(near, SCTP_SEND_FAILED_EVENT, sizeof got.one.sn_send_failed_event + 6, &from);
    CHECK(from.sin_addr.s_addr == name.sin_addr.s_addr && from.sin_port == name.sin_port);
    struct sctp_send_failed_event *failed = &got.one.sn_send_failed_event;
    CHECK(failed->ssf_flags == SCTP_DATA_UNSENT && failed->ssfe_info.snd_sid == 2 && failed->ssfe_info.snd_ppid == htonl(4));
    CHECK(failed->ssfe_info.snd_context == 33 && !memcmp(failed->ssf_data, "nobody", 6));
    sctp_assoc_t id = failed->ssf_assoc_id;
    memset(&from, 0, sizeof from);
    got = expect_from(near, SCTP_ASSOC_CHANGE, sizeof got.one.sn_assoc_change, &from);
    CHECK(from.sin_addr.s_addr == name.sin_addr.s_addr && from.sin_port == name.sin_port);
    CHECK(got.one.sn_assoc_change.sac_state == SCTP_CANT_STR_ASSOC && got.one.sn_assoc_change.sac_assoc_id == id && id >= 3);
    CHECK(close(near) == 0);
}

static struct sockaddr_in address_of(const union told *told)
{
    struct sockaddr_in name;
    memcpy(&name, &told->one.sn_paddr_change.spc_aaddr, sizeof name);
    return name;
}

/* The peer's second address is confirmed, and then preferred. */
static void addresses(void)
{
    int far = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), near = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    struct sockaddr_in own[2] = { name_of("127.0.0.1", 0), name_of("127.0.0.2", 0) };
    struct sockaddr_in theirs[2] = { name_of("127.0.0.3", 0), name_of("127.0.0.4", 0) };
    CHECK(sctp_bindx(near, NAME(own[0]), 2, SCTP_BINDX_ADD_ADDR) == 0);
    CHECK(sctp_bindx(far, NAME(theirs[0]), 2, SCTP_BINDX_ADD_ADDR) == 0 && listen(far, 1) == 0);
    subscribe(near, SCTP_PEER_ADDR_CHANGE);
    theirs[0].sin_port = theirs[1].sin_port = htons(port_of(far));
    sctp_assoc_t id;
    CHECK(sctp_connectx(near, NAME(theirs[0]), 1, &id) == 0);
    int end = accept(far, NULL, NULL);
    CHECK(end >= 0);
    union told got = expect(near, SCTP_PEER_ADDR_CHANGE, sizeof got.one.sn_paddr_change);
    CHECK(got.one.sn_paddr_change.spc_state == SCTP_ADDR_CONFIRMED && got.one.sn_paddr_change.spc_error == 0);
    struct sockaddr_in name = address_of(&got);
    CHECK(name.sin_family == AF_INET && name.sin_addr.s_addr == theirs[1].sin_addr.s_addr && name.sin_port == theirs[1].sin_port);
    struct sctp_setpeerprim prefer = { .sspp_assoc_id = 0 };
    memcpy(&prefer.sspp_addr, &theirs[1], sizeof theirs[1]);
    CHECK(setsockopt(end, IPPROTO_SCTP, SCTP_SET_PEER_PRIMARY_ADDR, &prefer, sizeof prefer) == 0);
    got = expect(near, SCTP_PEER_ADDR_CHANGE, sizeof got.one.sn_paddr_change);
    CHECK(got.one.sn_paddr_change.spc_state == SCTP_ADDR_MADE_PRIM && got.one.sn_paddr_change.spc_assoc_id >= 3);
    CHECK(address_of(&got).sin_addr.s_addr == theirs[1].sin_addr.s_addr);
    struct sctp_prim primary = { .ssp_assoc_id = 0 };
    socklen_t len = sizeof primary;
    CHECK(getsockopt(near, IPPROTO_SCTP, SCTP_PRIMARY_ADDR, &primary, &len) == 0);
    CHECK(!memcmp(&((struct sockaddr_in *)&primary.ssp_addr)->sin_addr, &theirs[1].sin_addr, 4));
    CHECK(close(near) == 0 && close(end) == 0 && close(far) == 0);
}

static void with_a_code(int fd, int is_near)
{
    int code = is_near ? 0x11223344 : 77;
    CHECK(setsockopt(fd, IPPROTO_SCTP, SCTP_ADAPTATION_LAYER, &code, sizeof code) == 0);
    subscribe(fd, SCTP_ADAPTATION_INDICATION);
}

static void adaptation(void)
{
    int ends[2];
    joined(ends, with_a_code);
    for (int end = 0; end < 2; end++) {
        union told got = expect(ends[end], SCTP_ADAPTATION_INDICATION, sizeof got.one.sn_adaptation_event);
        CHECK(got.one.sn_adaptation_event.sai_flags == 0 && got.one.sn_adaptation_event.sai_assoc_id >= 3);
        CHECK(got.one.sn_adaptation_event.sai_adaptation_ind == (end ? 0x11223344 : 77));
    }
    finish(ends);
}

static void with_keys(int fd, int is_near)
{
    (void)is_near;
    struct sctp_authchunk data = { 0 };
    struct { struct sctp_authkey head; uint8_t key[4]; } key = { { 0, 5, 4 }, { 1, 2, 3, 4 } };
    CHECK(setsockopt(fd, IPPROTO_SCTP, SCTP_AUTH_CHUNK, &data, sizeof data) == 0);
    CHECK(setsockopt(fd, IPPROTO_SCTP, SCTP_AUTH_KEY, &key, sizeof key.head + 4) == 0);
    subscribe(fd, SCTP_AUTHENTICATION_EVENT);
}

/* The peer goes on with another key, and this end lets the old one go. */
static void keys(void)
{
    int ends[2];
    char text[10];
    joined(ends, with_keys);
    struct { struct sctp_authchunks head; uint8_t list[20]; } wanted = { .head.gauth_assoc_id = 0 };
    socklen_t len = sizeof wanted;
    CHECK(getsockopt(ends[0], IPPROTO_SCTP, SCTP_PEER_AUTH_CHUNKS, &wanted, &len) == 0 && len == 11);
    CHECK(wanted.head.gauth_number_of_chunks == 3 && wanted.list[0] == 0 && wanted.list[1] == 0x80 && wanted.list[2] == 0xc1);
    struct sctp_authkeyid key = { 0, 5 };
    CHECK(setsockopt(ends[0], IPPROTO_SCTP, SCTP_AUTH_ACTIVE_KEY, &key, sizeof key) == 0);
    CHECK(send(ends[0], "sealed", 6, 0) == 6);
    union told got = expect(ends[1], SCTP_AUTHENTICATION_EVENT, sizeof got.one.sn_authkey_event);
    CHECK(got.one.sn_authkey_event.auth_indication == SCTP_AUTH_NEW_KEY);
    CHECK(got.one.sn_authkey_event.auth_keynumber == 5 && got.one.sn_authkey_event.auth_assoc_id >= 3);
    CHECK(recv(ends[1], text, sizeof text, 0) == 6);
    FAILS(setsockopt(ends[0], IPPROTO_SCTP, SCTP_AUTH_DEACTIVATE_KEY, &key, sizeof key), EINVAL);
    key.scact_keynumber = 6;
    FAILS(setsockopt(ends[0], IPPROTO_SCTP, SCTP_AUTH_DEACTIVATE_KEY, &key, sizeof key), EINVAL);
    key.scact_keynumber = 0;
    CHECK(setsockopt(ends[0], IPPROTO_SCTP, SCTP_AUTH_DEACTIVATE_KEY, &key, sizeof key) == 0);
    got = expect(ends[0], SCTP_AUTHENTICATION_EVENT, sizeof got.one.sn_authkey_event);
    CHECK(got.one.sn_authkey_event.auth_indication == SCTP_AUTH_FREE_KEY && got.one.sn_authkey_event.auth_keynumber == 0);
    FAILS(setsockopt(ends[0], IPPROTO_SCTP, SCTP_AUTH_ACTIVE_KEY, &key, sizeof key), EINVAL);
    finish(ends);
}

static void with_streams(int fd, int is_near)
{
    (void)is_near;
    int on = 1;
    subscribe(fd, SCTP_STREAM_RESET_EVENT);
    subscribe(fd, SCTP_ASSOC_RESET_EVENT);
    subscribe(fd, SCTP_STREAM_CHANGE_EVENT);
    CHECK(setsockopt(fd, IPPROTO_SCTP, SCTP_RECVRCVINFO, &on, sizeof on) == 0);
}

/* The TSN of a message. */
static uint32_t tsn_of_next(int fd)
{
    struct sctp_rcvinfo info;
    socklen_t len = sizeof info;
    unsigned kind = 0;
    int flags = 0;
    char text[10];
    struct iovec into = { text, sizeof text };
    CHECK(sctp_recvv(fd, &into, 1, NULL, NULL, &info, &len, &kind, &flags) > 0);
    CHECK(kind == SCTP_RECVV_RCVINFO && flags == MSG_EOR);
    return info.rcv_tsn;
}

struct reset { struct sctp_reset_streams head; uint16_t list[2]; };

static struct sctp_stream_reset_event *of_two(union told *told, int flags)
{
    struct sctp_stream_reset_event *event = &told->one.sn_strreset_event;
    CHECK(event->strreset_flags == flags && event->strreset_assoc_id >= 3);
    CHECK(event->strreset_stream_list[0] == 1 && event->strreset_stream_list[1] == 3);
    return event;
}

/* Streams are reset and added, and everything begins anew: both ends are told. */
static void streams(void)
{
    int ends[2];
    joined(ends, with_streams);
    struct reset reset = { { 0, SCTP_STREAM_RESET_OUTGOING, 2 }, { 1, 3 } };
    CHECK(setsockopt(ends[0], IPPROTO_SCTP, SCTP_RESET_STREAMS, &reset, sizeof reset) == 0);
    union told got = expect(ends[1], SCTP_STREAM_RESET_EVENT, sizeof got.one.sn_strreset_event + 4);
    of_two(&got, SCTP_STREAM_RESET_INCOMING_SSN);
    got = expect(ends[0], SCTP_STREAM_RESET_EVENT, sizeof got.one.sn_strreset_event + 4);
    of_two(&got, SCTP_STREAM_RESET_OUTGOING_SSN);
    struct sctp_add_streams add = { .sas_outstrms = 5 };
    CHECK(setsockopt(ends[0], IPPROTO_SCTP, SCTP_ADD_STREAMS, &add, sizeof add) == 0);
    for (int end = 0; end < 2; end++) {
        got = expect(ends[end], SCTP_STREAM_CHANGE_EVENT, sizeof got.one.sn_strchange_event);
        struct sctp_stream_change_event *change = &got.one.sn_strchange_event;
        CHECK(change->strchange_flags == 0 && change->strchange_assoc_id >= 3);
        CHECK(change->strchange_instrms == (end ? 15 : 10) && change->strchange_outstrms == (end ? 10 : 15));
    }
    sctp_assoc_t all = 0;
    CHECK(setsockopt(ends[0], IPPROTO_SCTP, SCTP_RESET_ASSOC, &all, sizeof all) == 0);
    uint32_t local[2], remote[2];
    for (int end = 0; end < 2; end++) {
        got = expect(ends[end], SCTP_ASSOC_RESET_EVENT, sizeof got.one.sn_assocreset_event);
        CHECK(got.one.sn_assocreset_event.assocreset_flags == 0 && got.one.sn_assocreset_event.assocreset_assoc_id >= 3);
        local[end] = got.one.sn_assocreset_event.assocreset_local_tsn;
        remote[end] = got.one.sn_assocreset_event.assocreset_remote_tsn;
    }
    CHECK(local[0] == remote[1] && local[1] == remote[0] && local[0] != 0);
    /* These are the numbers that both go on with. */
    CHECK(send(ends[0], "forth", 5, 0) == 5 && send(ends[1], "back", 4, 0) == 4);
    CHECK(tsn_of_next(ends[1]) == local[0] && tsn_of_next(ends[0]) == local[1]);
    finish(ends);
}

static void one_that_denies(int fd, int is_near)
{
    with_streams(fd, is_near);
    if (!is_near)
        offer(fd, SCTP_ENABLE_STREAM_RESET, 0);
}

/* The peer wants none of it. */
static void denials(void)
{
    int ends[2];
    joined(ends, one_that_denies);
    struct reset reset = { { 0, SCTP_STREAM_RESET_OUTGOING, 2 }, { 1, 3 } };
    CHECK(setsockopt(ends[0], IPPROTO_SCTP, SCTP_RESET_STREAMS, &reset, sizeof reset) == 0);
    union told got = expect(ends[0], SCTP_STREAM_RESET_EVENT, sizeof got.one.sn_strreset_event + 4);
    of_two(&got, SCTP_STREAM_RESET_OUTGOING_SSN | SCTP_STREAM_RESET_DENIED);
    reset.head.srs_flags = SCTP_STREAM_RESET_INCOMING;
    CHECK(setsockopt(ends[0], IPPROTO_SCTP, SCTP_RESET_STREAMS, &reset, sizeof reset) == 0);
    got = expect(ends[0], SCTP_STREAM_RESET_EVENT, sizeof got.one.sn_strreset_event + 4);
    of_two(&got, SCTP_STREAM_RESET_INCOMING_SSN | SCTP_STREAM_RESET_DENIED);
    struct sctp_add_streams add = { .sas_outstrms = 5 };
    CHECK(setsockopt(ends[0], IPPROTO_SCTP, SCTP_ADD_STREAMS, &add, sizeof add) == 0);
    got = expect(ends[0], SCTP_STREAM_CHANGE_EVENT, sizeof got.one.sn_strchange_event);
    CHECK(got.one.sn_strchange_event.strchange_flags == SCTP_STREAM_CHANGE_DENIED);
    CHECK(got.one.sn_strchange_event.strchange_instrms == 10 && got.one.sn_strchange_event.strchange_outstrms == 10);
    sctp_assoc_t all = 0;
    CHECK(setsockopt(ends[0], IPPROTO_SCTP, SCTP_RESET_ASSOC, &all, sizeof all) == 0);
    got = expect(ends[0], SCTP_ASSOC_RESET_EVENT, sizeof got.one.sn_assocreset_event);
    CHECK(got.one.sn_assocreset_event.assocreset_flags == SCTP_ASSOC_RESET_DENIED);
    CHECK(got.one.sn_assocreset_event.assocreset_local_tsn == 0 && got.one.sn_assocreset_event.assocreset_remote_tsn == 0);
    finish(ends);
}

static void with_ends(int fd, int is_near)
{
    subscribe(fd, is_near ? SCTP_SENDER_DRY_EVENT : SCTP_SHUTDOWN_EVENT);
}

/* All is acknowledged, and the peer will send nothing more. */
static void ends_of_sending(void)
{
    int ends[2];
    char text[10];
    joined(ends, with_ends);
    CHECK(send(ends[0], "last", 4, 0) == 4);
    union told got = expect(ends[0], SCTP_SENDER_DRY_EVENT, sizeof got.one.sn_sender_dry_event);
    CHECK(got.one.sn_sender_dry_event.sender_dry_flags == 0 && got.one.sn_sender_dry_event.sender_dry_assoc_id >= 3);
    CHECK(shutdown(ends[0], SHUT_WR) == 0);
    CHECK(recv(ends[1], text, sizeof text, 0) == 4);
    got = expect(ends[1], SCTP_SHUTDOWN_EVENT, sizeof got.one.sn_shutdown_event);
    CHECK(got.one.sn_shutdown_event.sse_flags == 0 && got.one.sn_shutdown_event.sse_assoc_id >= 3);
    finish(ends);
}

static void with_nothing(int fd, int is_near)
{
    (void)fd;
    (void)is_near;
}

/* Whoever subscribes while nothing is outstanding is told so at once, each time. */
static void subscriptions_to_being_dry(void)
{
    int ends[2];
    joined(ends, with_nothing);
    struct sctp_event event = { 0, SCTP_SENDER_DRY_EVENT, 1 };
    for (int round = 0; round < 3; round++) {
        event.se_on = 1;
        CHECK(setsockopt(ends[0], IPPROTO_SCTP, SCTP_EVENT, &event, sizeof event) == 0);
        expect(ends[0], SCTP_SENDER_DRY_EVENT, sizeof(struct sctp_sender_dry_event));
        event.se_on = 0;
        CHECK(setsockopt(ends[0], IPPROTO_SCTP, SCTP_EVENT, &event, sizeof event) == 0);
    }
    struct sctp_event_subscribe events = { .sctp_sender_dry_event = 1 };
    CHECK(setsockopt(ends[0], IPPROTO_SCTP, SCTP_EVENTS, &events, sizeof events) == 0);
    expect(ends[0], SCTP_SENDER_DRY_EVENT, sizeof(struct sctp_sender_dry_event));
    finish(ends);
}

/* A socket of IPv6 reads IPv4 addresses in its own form. */
static void mapped_addresses(void)
{
    int far = listener(SOCK_STREAM, "127.0.0.1"), near = socket(AF_INET6, SOCK_SEQPACKET, IPPROTO_SCTP);
    struct sockaddr_in names[2] = { name_of("127.0.0.1", port_of(far)), name_of("127.0.0.5", 0) };
    subscribe(near, SCTP_PEER_ADDR_CHANGE);
    CHECK(sctp_connectx(near, NAME(names[0]), 1, NULL) == 0);
    int end = accept(far, NULL, NULL);
    CHECK(end >= 0 && sctp_bindx(end, NAME(names[1]), 1, SCTP_BINDX_ADD_ADDR) == 0);
    union told got = expect(near, SCTP_PEER_ADDR_CHANGE, sizeof got.one.sn_paddr_change);
    struct sockaddr_in6 name;
    memcpy(&name, &got.one.sn_paddr_change.spc_aaddr, sizeof name);
    CHECK(got.one.sn_paddr_change.spc_state == SCTP_ADDR_ADDED);
    CHECK(name.sin6_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&name.sin6_addr) && name.sin6_addr.s6_addr[15] == 5);
    CHECK(close(near) == 0 && close(end) == 0 && close(far) == 0);
}

int main(void)
{
    set_ups();
    no_set_up();
    addresses();
    adaptation();
    keys();
    streams();
    denials();
    ends_of_sending();
    subscriptions_to_being_dry();
    mapped_addresses();
    return 0;
}
