/* A plain SCTP peer on a stack with the sockets of RFC 6458, for the interoperability tests, in UDP. What stacks
 * do differently is behind stack.h.
 *
 *   peer KEY=VALUE...
 *
 *   role=server|client           waits for one association, or opens it
 *   udp=PORT peer_udp=PORT       own UDP port, and the peer's (client)
 *   sctp=PORT peer_sctp=PORT     own SCTP port, and the peer's (client)
 *   local=A,B peer=A,B           own addresses, and the peer's (client)
 *   streams=N                    streams to ask for
 *   work=echo|count              sends every message back, or checks and counts what comes
 *   use=nr_sack,cmt,ecn,interleaving,addresses
 *                                extensions that are off by default
 *
 * Commands come line by line on standard input:
 *
 *   generate COUNT               sends the next COUNT messages by the rule of `length` and `content`
 *   generate COUNT retransmissions N | lifetime MS      with every second one partially reliable
 *   reset STREAM                 resets an outgoing stream
 *   add ADDRESS, remove ADDRESS, prefer ADDRESS
 *                                changes its own addresses, or says which the other side should send to
 *   shutdown, abort              ends the association
 *   crash                        ends the program without a word to the other side
 *
 * What happens is told on standard output: listening, connected, restarted, generated COUNT, reset in STREAM,
 * received MESSAGES BYTES WRONG, ended graceful|aborted. */

#include "stack.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LONGEST = 1 << 20, MOST_ADDRESSES = 8, MOST_STREAMS = 64, FIRST_PPID = 1000000 };

struct addresses {
    int count;
    struct sockaddr_in list[MOST_ADDRESSES];
};

static struct {
    int server, echo, udp, peer_udp, sctp, peer_sctp, streams;
    struct extensions extensions;
    struct addresses local, peer;
} set = {.streams = 16, .echo = 1};

/* Messages that came, those among them that were not as they should be, and for each stream the number
 * after the latest ordered one. */
static struct {
    unsigned long messages, bytes, wrong;
    uint32_t expected[MOST_STREAMS];
} got;

void check(int failed, const char *what) {
    if (failed) {
        perror(what);
        exit(1);
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

/* ---- addresses ---- */

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

static const struct reliability reliable = {.policy = SCTP_PR_SCTP_NONE};

static void generate(stack_socket sock, uint32_t count, struct reliability reliability) {
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
        if (!stack_send(sock, bytes, len, info, i % 2 == 1 ? reliability : reliable)) {
            break;
        }
    }
    free(bytes);
    say("generated %u", done);
}

/* ---- commands ---- */

static void reset(stack_socket sock, int stream) {
    struct {
        struct sctp_reset_streams head;
        uint16_t stream;
    } request = {.head = {.srs_flags = SCTP_STREAM_RESET_OUTGOING, .srs_number_streams = 1},
                 .stream = (uint16_t)stream};
    socklen_t len = sizeof request.head + sizeof request.stream;
    stack_option(sock, SCTP_RESET_STREAMS, &request, len, "SCTP_RESET_STREAMS");
}

static struct sockaddr_in own_address(char *text) {
    struct addresses named = {0};
    parse_addresses(&named, text);
    check(named.count != 1, "one address");
    give_port(&named, set.sctp);
    return named.list[0];
}

/* Commands that name an address; false for any other. */
static int change_addresses(stack_socket sock, const char *word, char *text) {
    int adds = strcmp(word, "add") == 0;
    if (adds || strcmp(word, "remove") == 0) {
        struct sockaddr_in address = own_address(text);
        check(stack_bind(sock, &address, adds ? SCTP_BINDX_ADD_ADDR : SCTP_BINDX_REM_ADDR), "bindx");
    } else if (strcmp(word, "prefer") == 0) {
        struct sockaddr_in address = own_address(text);
        stack_prefer(sock, &address);
    } else {
        return 0;
    }
    return 1;
}

/* The association's socket, or the one that waits for it: there may be a command meanwhile. */
static _Atomic(stack_socket) association;

static void *obey(void *unused) {
    (void)unused;
    char line[256], word[32] = "", policy[32], first[64];
    while (fgets(line, sizeof line, stdin) != NULL) {
        stack_socket socket = association;
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
        } else if (strcmp(word, "shutdown") == 0) {
            check(stack_shutdown(socket), "shutdown");
        } else if (strcmp(word, "abort") == 0) {
            stack_abort(socket);
        } else if (strcmp(word, "crash") == 0) {
            stack_vanish(socket);
        } else if (!change_addresses(socket, word, first)) {
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

static void on_message(stack_socket sock, const unsigned char *bytes, size_t len, const struct sctp_rcvinfo *info) {
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
        if (!stack_send(sock, bytes, len, back, reliable)) {
            say("echo refused");
        }
    }
}

/* Pieces of messages, one message a stream and kind: with interleaving they come mixed. */
struct pieces {
    unsigned char *bytes;
    size_t have;
};

static void receive(stack_socket sock) {
    static struct pieces unfinished[MOST_STREAMS + 1][2];
    static unsigned char buffer[LONGEST];
    for (;;) {
        struct sctp_rcvinfo info = {0};
        int flags = 0;
        ssize_t len = stack_receive(sock, buffer, sizeof buffer, &info, &flags);
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

static void subscribe(stack_socket sock) {
    uint16_t types[] = {SCTP_ASSOC_CHANGE, SCTP_STREAM_RESET_EVENT};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        struct sctp_event event = {.se_assoc_id = SCTP_FUTURE_ASSOC, .se_type = types[i], .se_on = 1};
        stack_option(sock, SCTP_EVENT, &event, sizeof event, "SCTP_EVENT");
    }
}

static stack_socket open_socket(void) {
    stack_socket sock = stack_open(&set.extensions);
    int on = 1, longest = LONGEST;
    stack_option(sock, SCTP_RECVRCVINFO, &on, sizeof on, "SCTP_RECVRCVINFO");
    stack_option(sock, SCTP_NODELAY, &on, sizeof on, "SCTP_NODELAY");
    stack_option(sock, SCTP_PARTIAL_DELIVERY_POINT, &longest, sizeof longest, "SCTP_PARTIAL_DELIVERY_POINT");
    struct sctp_initmsg init = {.sinit_num_ostreams = (uint16_t)set.streams,
                                .sinit_max_instreams = (uint16_t)set.streams};
    stack_option(sock, SCTP_INITMSG, &init, sizeof init, "SCTP_INITMSG");
    subscribe(sock);
    for (int i = 0; i < set.local.count; i++) {
        check(stack_bind(sock, &set.local.list[i], SCTP_BINDX_ADD_ADDR), "bindx");
    }
    return sock;
}

static stack_socket wait_for_peer(stack_socket sock) {
    check(stack_listen(sock), "listen");
    say("listening");
    return stack_accept(sock);
}

static stack_socket call_peer(stack_socket sock) {
    struct sctp_udpencaps encapsulation = {.sue_port = htons((uint16_t)set.peer_udp)};
    encapsulation.sue_address.ss_family = AF_INET;
    stack_option(sock, SCTP_REMOTE_UDP_ENCAPS_PORT, &encapsulation, sizeof encapsulation,
                 "SCTP_REMOTE_UDP_ENCAPS_PORT");
    check(stack_call(sock, set.peer.list, set.peer.count), "connectx");
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
        set.extensions.nr_sack = strstr(value, "nr_sack") != NULL;
        set.extensions.ecn = strstr(value, "ecn") != NULL;
        set.extensions.cmt = strstr(value, "cmt") != NULL;
        set.extensions.interleaving = strstr(value, "interleaving") != NULL;
        set.extensions.addresses = strstr(value, "addresses") != NULL;
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
    stack_begin(set.udp, &set.extensions);
    stack_socket bound = open_socket();
    association = bound;
    pthread_t commands;
    check(pthread_create(&commands, NULL, obey, NULL), "pthread_create");
    stack_socket sock = set.server ? wait_for_peer(bound) : call_peer(bound);
    association = sock;
    receive(sock);
    stack_close(sock);
    if (sock != bound) {
        stack_close(bound);
    }
    stack_end();
    return 0;
}
