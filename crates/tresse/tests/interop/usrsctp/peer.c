/* A plain SCTP peer on usrsctp for the interoperability tests, in UDP.
 *
 *   peer KEY=VALUE...
 *
 *   role=server|client           waits for one association, or opens it
 *   udp=PORT peer_udp=PORT       own UDP port, and the peer's (client)
 *   sctp=PORT peer_sctp=PORT     own SCTP port, and the peer's (client)
 *   local=A,B peer=A,B           own addresses, and the peer's (client)
 *   streams=N                    streams to ask for
 *   work=echo|count              sends every message back, or checks and counts what comes
 *   use=nr_sack,cmt,ecn,interleaving extensions that are off by default
 *
 * Commands come line by line on standard input:
 *
 *   generate COUNT               sends the next COUNT messages by the rule of `length` and `content`
 *   generate COUNT retransmissions N | lifetime MS      with every second one partially reliable
 *   reset STREAM                 resets an outgoing stream
 *   add ADDRESS, remove ADDRESS  changes its own addresses
 *   shutdown, abort              ends the association
 *
 * What happens is told on standard output: listening, connected, restarted, generated COUNT, reset in STREAM,
 * received MESSAGES BYTES WRONG, ended graceful|aborted. */

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <usrsctp.h>

enum { LONGEST = 1 << 20, MOST_ADDRESSES = 8, HOST_ADDRESSES = 32, MOST_STREAMS = 64, FIRST_PPID = 1000000 };

/* RFC 8260 section 4.3.1; the library knows the option, its header does not name it. */
#ifndef SCTP_INTERLEAVING_SUPPORTED
#define SCTP_INTERLEAVING_SUPPORTED 0x00001206
#endif

struct addresses {
    int count;
    struct sockaddr_in list[MOST_ADDRESSES];
};

static struct {
    int server, echo, udp, peer_udp, sctp, peer_sctp, streams, nr_sack, cmt, ecn, interleaving;
    struct addresses local, peer;
} set = {.streams = 16, .echo = 1};

/* Messages that came, those among them that were not as they should be, and for each stream the number
 * after the latest ordered one. */
static struct {
    unsigned long messages, bytes, wrong;
    uint32_t expected[MOST_STREAMS];
} got;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void check(int failed, const char *what) {
    if (failed) {
        fail(what);
    }
}

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
    fflush(stdout);
}

/* ---- the addresses of this host ---- */

/* Stands in for the C library's: the stack is to know the loopback addresses that this host has without
 * naming them at its interface, its own and those of tresse. */
int getifaddrs(struct ifaddrs **list) {
    static struct sockaddr_in addresses[HOST_ADDRESSES];
    *list = NULL;
    for (uint32_t i = 0; i < HOST_ADDRESSES; i++) {
        addresses[i].sin_family = AF_INET;
        addresses[i].sin_addr.s_addr = htonl(INADDR_LOOPBACK + i);
        struct ifaddrs *entry = calloc(1, sizeof *entry);
        check(entry == NULL, "calloc");
        entry->ifa_next = *list;
        entry->ifa_name = "lo";
        entry->ifa_flags = IFF_UP | IFF_RUNNING | IFF_LOOPBACK;
        entry->ifa_addr = (struct sockaddr *)&addresses[i];
        *list = entry;
    }
    return 0;
}

void freeifaddrs(struct ifaddrs *list) {
    while (list != NULL) {
        struct ifaddrs *next = list->ifa_next;
        free(list);
        list = next;
    }
}

static void parse_addresses(struct addresses *to, char *text) {
    char *rest = NULL;
    for (char *part = strtok_r(text, ",", &rest); part != NULL; part = strtok_r(NULL, ",", &rest)) {
        check(to->count == MOST_ADDRESSES, "too many addresses");
        struct sockaddr_in *address = &to->list[to->count++];
        address->sin_family = AF_INET;
        check(inet_pton(AF_INET, part, &address->sin_addr) != 1, part);
    }
}

static void give_port(struct addresses *to, int port) {
    for (int i = 0; i < to->count; i++) {
        to->list[i].sin_port = htons((uint16_t)port);
    }
}

/* ---- messages ---- */

/* Length of message `i`, whose payload protocol identifier is FIRST_PPID + i; every peer of these tests has
 * the same rule. */
static size_t length(uint32_t i) {
    return 4 + (i * 7919u) % 20000u;
}

static unsigned char content(uint32_t i, size_t at) {
    return (unsigned char)(at < 4 ? i >> (24 - 8 * at) : at * 31 + i * 7);
}

static int is_whole(const unsigned char *bytes, size_t len, uint32_t i) {
    if (len != length(i)) {
        return 0;
    }
    for (size_t at = 0; at < len; at++) {
        if (bytes[at] != content(i, at)) {
            return 0;
        }
    }
    return 1;
}

struct reliability {
    int policy;
    uint32_t value;
};

static const struct reliability reliable = {.policy = SCTP_PR_SCTP_NONE};

static int send_message(struct socket *sock, const unsigned char *bytes, size_t len, struct sctp_sndinfo info,
                        struct reliability reliability) {
    struct sctp_sendv_spa how = {.sendv_flags = SCTP_SEND_SNDINFO_VALID, .sendv_sndinfo = info};
    if (reliability.policy != SCTP_PR_SCTP_NONE) {
        how.sendv_flags |= SCTP_SEND_PRINFO_VALID;
        how.sendv_prinfo.pr_policy = (uint16_t)reliability.policy;
        how.sendv_prinfo.pr_value = reliability.value;
    }
    return usrsctp_sendv(sock, bytes, len, NULL, 0, &how, sizeof how, SCTP_SENDV_SPA, 0) == (ssize_t)len;
}

static void generate(struct socket *sock, uint32_t count, struct reliability reliability) {
    static uint32_t next;
    unsigned char *bytes = malloc(LONGEST);
    check(bytes == NULL, "malloc");
    uint32_t last = next + count, done = 0;
    for (; next < last; next++, done++) {
        uint32_t i = next;
        size_t len = length(i);
        for (size_t at = 0; at < len; at++) {
            bytes[at] = content(i, at);
        }
        struct sctp_sndinfo info = {.snd_sid = (uint16_t)(i % (uint32_t)set.streams),
                                    .snd_ppid = htonl(FIRST_PPID + i),
                                    .snd_flags = i % 3 == 2 ? SCTP_UNORDERED : 0};
        if (!send_message(sock, bytes, len, info, i % 2 == 1 ? reliability : reliable)) {
            break;
        }
    }
    free(bytes);
    say("generated %u", done);
}

/* ---- commands ---- */

static void end(struct socket *sock, int flag) {
    struct sctp_sndinfo info = {.snd_flags = (uint16_t)flag};
    usrsctp_sendv(sock, "", 0, NULL, 0, &info, sizeof info, SCTP_SENDV_SNDINFO, 0);
}

static void reset(struct socket *sock, int stream) {
    struct {
        struct sctp_reset_streams head;
        uint16_t stream;
    } request = {.head = {.srs_flags = SCTP_STREAM_RESET_OUTGOING, .srs_number_streams = 1},
                 .stream = (uint16_t)stream};
    socklen_t len = sizeof request.head + sizeof request.stream;
    check(usrsctp_setsockopt(sock, IPPROTO_SCTP, SCTP_RESET_STREAMS, &request, len), "SCTP_RESET_STREAMS");
}

static void change_addresses(struct socket *sock, char *text, int how) {
    struct addresses changed = {0};
    parse_addresses(&changed, text);
    give_port(&changed, set.sctp);
    check(usrsctp_bindx(sock, (struct sockaddr *)changed.list, 1, how), "bindx");
}

static void *obey(void *socket) {
    char line[256], word[32] = "", policy[32], first[64];
    while (fgets(line, sizeof line, stdin) != NULL) {
        uint32_t number = 0, value = 0;
        first[0] = policy[0] = '\0';
        sscanf(line, "%31s %63s %31s %u", word, first, policy, &value);
        number = (uint32_t)strtoul(first, NULL, 10);
        if (strcmp(word, "generate") == 0) {
            struct reliability reliability = {.value = value};
            reliability.policy = strcmp(policy, "retransmissions") == 0 ? SCTP_PR_SCTP_RTX
                                 : strcmp(policy, "lifetime") == 0      ? SCTP_PR_SCTP_TTL
                                                                        : SCTP_PR_SCTP_NONE;
            generate(socket, number, reliability);
        } else if (strcmp(word, "reset") == 0) {
            reset(socket, (int)number);
        } else if (strcmp(word, "add") == 0) {
            change_addresses(socket, first, SCTP_BINDX_ADD_ADDR);
        } else if (strcmp(word, "remove") == 0) {
            change_addresses(socket, first, SCTP_BINDX_REM_ADDR);
        } else if (strcmp(word, "shutdown") == 0) {
            check(usrsctp_shutdown(socket, SHUT_WR), "shutdown");
        } else if (strcmp(word, "abort") == 0) {
            end(socket, SCTP_ABORT);
        } else {
            fprintf(stderr, "no such command: %s", line);
            exit(2);
        }
    }
    return NULL;
}

/* ---- what comes ---- */

static void on_notification(const union sctp_notification *note) {
    switch (note->sn_header.sn_type) {
    case SCTP_ASSOC_CHANGE:
        if (note->sn_assoc_change.sac_state == SCTP_COMM_UP) {
            say("connected");
        } else if (note->sn_assoc_change.sac_state == SCTP_RESTART) {
            /* It counts from 0 again. */
            memset(got.expected, 0, sizeof got.expected);
            say("restarted");
        }
        break;
    case SCTP_STREAM_RESET_EVENT: {
        const struct sctp_stream_reset_event *event = &note->sn_strreset_event;
        if (event->strreset_flags & (SCTP_STREAM_RESET_DENIED | SCTP_STREAM_RESET_FAILED)) {
            say("reset refused");
            break;
        }
        size_t streams = (event->strreset_length - sizeof *event) / sizeof(uint16_t);
        for (size_t i = 0; i < streams; i++) {
            if (event->strreset_flags & SCTP_STREAM_RESET_INCOMING_SSN) {
                say("reset in %u", event->strreset_stream_list[i]);
            }
        }
        break;
    }
    default:
        break;
    }
}

static void on_message(struct socket *sock, const unsigned char *bytes, size_t len, const struct sctp_rcvinfo *info) {
    got.messages++;
    got.bytes += len;
    uint32_t i = ntohl(info->rcv_ppid) - FIRST_PPID;
    int late = 0;
    if (!(info->rcv_flags & SCTP_UNORDERED)) {
        late = i < got.expected[info->rcv_sid];
        got.expected[info->rcv_sid] = i + 1;
    }
    got.wrong += late || !is_whole(bytes, len, i);
    if (set.echo) {
        struct sctp_sndinfo back = {.snd_sid = info->rcv_sid,
                                    .snd_ppid = info->rcv_ppid,
                                    .snd_flags = info->rcv_flags & SCTP_UNORDERED};
        if (!send_message(sock, bytes, len, back, reliable)) {
            say("echo refused");
        }
    }
}

/* Pieces of messages, one message a stream and kind: with interleaving they come mixed. */
struct pieces {
    unsigned char *bytes;
    size_t have;
};

static void receive(struct socket *sock) {
    static struct pieces unfinished[MOST_STREAMS + 1][2];
    static unsigned char buffer[LONGEST];
    for (;;) {
        struct sctp_rcvinfo info = {0};
        socklen_t info_len = sizeof info, from_len = 0;
        unsigned int info_type = 0;
        int flags = 0;
        ssize_t len =
            usrsctp_recvv(sock, buffer, sizeof buffer, NULL, &from_len, &info, &info_len, &info_type, &flags);
        if (len <= 0) {
            say("received %lu %lu %lu", got.messages, got.bytes, got.wrong);
            say("ended %s", len == 0 ? "graceful" : "aborted");
            return;
        }
        int notification = (flags & MSG_NOTIFICATION) != 0;
        check(info.rcv_sid >= MOST_STREAMS, "stream");
        struct pieces *message = &unfinished[notification ? MOST_STREAMS : info.rcv_sid]
                                            [(info.rcv_flags & SCTP_UNORDERED) != 0];
        if (message->bytes == NULL) {
            message->bytes = malloc(LONGEST);
        }
        check(message->bytes == NULL || message->have + (size_t)len > LONGEST, "message");
        memcpy(message->bytes + message->have, buffer, (size_t)len);
        message->have += (size_t)len;
        if (!(flags & MSG_EOR)) {
            continue;
        }
        if (notification) {
            on_notification((const union sctp_notification *)message->bytes);
        } else {
            on_message(sock, message->bytes, message->have, &info);
        }
        message->have = 0;
    }
}

/* ---- set-up ---- */

static void tune(void) {
    usrsctp_sysctl_set_sctp_no_csum_on_loopback(0);
    usrsctp_sysctl_set_sctp_nrsack_enable((uint32_t)set.nr_sack);
    usrsctp_sysctl_set_sctp_cmt_on_off((uint32_t)set.cmt);
    usrsctp_sysctl_set_sctp_ecn_enable((uint32_t)set.ecn);
    usrsctp_sysctl_set_sctp_auto_asconf(0);
    usrsctp_sysctl_set_sctp_sendspace(1 << 20);
    usrsctp_sysctl_set_sctp_recvspace(1 << 20);
    /* Silent towards packets of others: with the right to, it hears raw IP too. */
    usrsctp_sysctl_set_sctp_blackhole(2);
    /* Losses are part of the tests; a second for each would only make them long. */
    usrsctp_sysctl_set_sctp_rto_initial_default(200);
    usrsctp_sysctl_set_sctp_rto_min_default(100);
    usrsctp_sysctl_set_sctp_path_rtx_max_default(2);
    usrsctp_sysctl_set_sctp_heartbeat_interval_default(1000);
}

static void option(struct socket *sock, int name, const void *value, socklen_t len, const char *what) {
    check(usrsctp_setsockopt(sock, IPPROTO_SCTP, name, value, len), what);
}

static void subscribe(struct socket *sock) {
    uint16_t types[] = {SCTP_ASSOC_CHANGE, SCTP_STREAM_RESET_EVENT};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        struct sctp_event event = {.se_assoc_id = SCTP_FUTURE_ASSOC, .se_type = types[i], .se_on = 1};
        option(sock, SCTP_EVENT, &event, sizeof event, "SCTP_EVENT");
    }
}

static struct socket *open_socket(void) {
    struct socket *sock = usrsctp_socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP, NULL, NULL, 0, NULL);
    check(sock == NULL, "socket");
    int on = 1, longest = LONGEST;
    option(sock, SCTP_RECVRCVINFO, &on, sizeof on, "SCTP_RECVRCVINFO");
    option(sock, SCTP_NODELAY, &on, sizeof on, "SCTP_NODELAY");
    option(sock, SCTP_PARTIAL_DELIVERY_POINT, &longest, sizeof longest, "SCTP_PARTIAL_DELIVERY_POINT");
    struct sctp_initmsg init = {.sinit_num_ostreams = (uint16_t)set.streams,
                                .sinit_max_instreams = (uint16_t)set.streams};
    option(sock, SCTP_INITMSG, &init, sizeof init, "SCTP_INITMSG");
    struct sctp_assoc_value allowed = {.assoc_id = SCTP_FUTURE_ASSOC, .assoc_value = SCTP_ENABLE_VALUE_MASK};
    option(sock, SCTP_ENABLE_STREAM_RESET, &allowed, sizeof allowed, "SCTP_ENABLE_STREAM_RESET");
    if (set.interleaving) {
        int mixed = 2;
        struct sctp_assoc_value wanted = {.assoc_id = SCTP_FUTURE_ASSOC, .assoc_value = 1};
        option(sock, SCTP_FRAGMENT_INTERLEAVE, &mixed, sizeof mixed, "SCTP_FRAGMENT_INTERLEAVE");
        option(sock, SCTP_INTERLEAVING_SUPPORTED, &wanted, sizeof wanted, "SCTP_INTERLEAVING_SUPPORTED");
    }
    subscribe(sock);
    for (int i = 0; i < set.local.count; i++) {
        check(usrsctp_bindx(sock, (struct sockaddr *)&set.local.list[i], 1, SCTP_BINDX_ADD_ADDR), "bindx");
    }
    return sock;
}

static struct socket *wait_for_peer(struct socket *sock) {
    check(usrsctp_listen(sock, 1), "listen");
    say("listening");
    struct socket *accepted = usrsctp_accept(sock, NULL, NULL);
    check(accepted == NULL, "accept");
    return accepted;
}

static struct socket *call_peer(struct socket *sock) {
    struct sctp_udpencaps encapsulation = {.sue_port = htons((uint16_t)set.peer_udp)};
    encapsulation.sue_address.ss_family = AF_INET;
    option(sock, SCTP_REMOTE_UDP_ENCAPS_PORT, &encapsulation, sizeof encapsulation, "SCTP_REMOTE_UDP_ENCAPS_PORT");
    check(usrsctp_connectx(sock, (struct sockaddr *)set.peer.list, set.peer.count, NULL), "connectx");
    return sock;
}

static void parse(char *argument) {
    char *value = strchr(argument, '=');
    check(value == NULL, argument);
    *value++ = '\0';
    int number = (int)strtol(value, NULL, 10);
    struct {
        const char *key;
        int *place;
    } numbers[] = {{"udp", &set.udp},   {"peer_udp", &set.peer_udp},   {"sctp", &set.sctp},
                   {"streams", &set.streams}, {"peer_sctp", &set.peer_sctp}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (strcmp(argument, numbers[i].key) == 0) {
            *numbers[i].place = number;
            return;
        }
    }
    if (strcmp(argument, "role") == 0) {
        set.server = strcmp(value, "server") == 0;
    } else if (strcmp(argument, "work") == 0) {
        set.echo = strcmp(value, "echo") == 0;
    } else if (strcmp(argument, "local") == 0) {
        parse_addresses(&set.local, value);
    } else if (strcmp(argument, "peer") == 0) {
        parse_addresses(&set.peer, value);
    } else if (strcmp(argument, "use") == 0) {
        set.nr_sack = strstr(value, "nr_sack") != NULL;
        set.ecn = strstr(value, "ecn") != NULL;
        set.cmt = strstr(value, "cmt") != NULL;
        set.interleaving = strstr(value, "interleaving") != NULL;
    } else {
        fprintf(stderr, "no such setting: %s\n", argument);
        exit(2);
    }
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        parse(argv[i]);
    }
    give_port(&set.local, set.sctp);
    give_port(&set.peer, set.peer_sctp);
    usrsctp_init((uint16_t)set.udp, NULL, NULL);
    tune();
    struct socket *bound = open_socket();
    struct socket *sock = set.server ? wait_for_peer(bound) : call_peer(bound);
    pthread_t commands;
    check(pthread_create(&commands, NULL, obey, sock), "pthread_create");
    receive(sock);
    usrsctp_close(sock);
    if (sock != bound) {
        usrsctp_close(bound);
    }
    for (int tries = 0; usrsctp_finish() != 0 && tries < 20; tries++) {
        usleep(100000);
    }
    return 0;
}
