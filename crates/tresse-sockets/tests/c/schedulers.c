/* A stream scheduler of the program's own, registered while associations run, used by those to come, and taken away again. Its
 * configuration is the order of streams; a stream that is not in it comes last. */
#include "common.h"
#include "tresse_scheduler.h"

static int alive;

struct ordered {
    int named;
    unsigned order[8];
    int has[65536];
    long waiting;
};

static void *create(const char *config, char *error, size_t error_size)
{
    struct ordered *self = calloc(1, sizeof *self);
    /* The bytes of SCTP_SCHED come as hexadecimal digits: one byte names a stream. */
    for (; *config && self->named < 8; config += 2) {
        if (sscanf(config, "%2x", &self->order[self->named++]) != 1) {
            snprintf(error, error_size, "\"%s\": streams as hexadecimal digits are accepted", config);
            free(self);
            return NULL;
        }
    }
    alive++;
    return self;
}

static void destroy(void *self)
{
    alive--;
    free(self);
}

static void on_queued(void *of, const struct tresse_queued *queued)
{
    struct ordered *self = of;
    self->has[queued->stream] = 1;
    self->waiting += queued->was_idle;
}

static int32_t next(void *of, const struct tresse_path *path, const struct tresse_backlog *backlog)
{
    struct ordered *self = of;
    (void)path;
    (void)backlog;
    for (int at = 0; at < self->named; at++)
        if (self->has[self->order[at]])
            return self->order[at];
    for (int stream = 0; stream < 65536; stream++)
        if (self->has[stream])
            return stream;
    return TRESSE_NO_STREAM;
}

static void on_taken(void *of, const struct tresse_taken *taken)
{
    struct ordered *self = of;
    if (taken->stream_empty) {
        self->has[taken->stream] = 0;
        self->waiting--;
    }
}

static int is_empty(const void *self)
{
    return ((const struct ordered *)self)->waiting == 0;
}

static struct tresse_scheduler table = {
    .abi = TRESSE_SCHEDULER_ABI, .size = sizeof table, .name = "ordered", .create = create, .destroy = destroy,
    .on_queued = on_queued, .next = next, .on_taken = on_taken, .is_empty = is_empty,
};

static int choose(int fd, const char *name, const char *config)
{
    char room[200] = { 0 };
    struct sctp_sched *one = (struct sctp_sched *)room;
    strncpy(one->ssched_name, name, SCTP_SCHED_NAME_MAX);
    one->ssched_config_len = strlen(config);
    memcpy(one->ssched_config, config, strlen(config));
    return setsockopt(fd, IPPROTO_SCTP, SCTP_SCHED, one, sizeof *one + strlen(config));
}

static int client(void)
{
    int fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    struct sctp_initmsg init = { .sinit_num_ostreams = 3 };
    CHECK(fd >= 0 && setsockopt(fd, IPPROTO_SCTP, SCTP_INITMSG, &init, sizeof init) == 0);
    return fd;
}

static char block[1000];

/* Sends more on each of three streams than the peer's window takes: they are complete in this order. */
static void transfer(int near, int far, const int order[3])
{
    int on = 1, one, last[3] = { 0 }, left[3] = { 10, 10, 10 };
    struct sockaddr_in name = name_of("127.0.0.1", port_of(far));
    CHECK(connect(near, NAME(name), sizeof name) == 0);
    CHECK((one = accept(far, NULL, NULL)) >= 0);
    CHECK(setsockopt(one, IPPROTO_SCTP, SCTP_RECVRCVINFO, &on, sizeof on) == 0);
    for (int stream = 0; stream < 3; stream++)
        for (int count = 0; count < 10; count++)
            CHECK(sctp_sendmsg(near, block, sizeof block, NULL, 0, 0, 0, stream, 0, 0) == sizeof block);
    for (int count = 0; count < 30; count++) {
        struct iovec into = { block, sizeof block };
        char control[100];
        struct msghdr message = { .msg_iov = &into, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
        CHECK(recvmsg(one, &message, 0) == sizeof block);
        struct sctp_rcvinfo info;
        memcpy(&info, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof info);
        CHECK(info.rcv_sid < 3);
        left[info.rcv_sid]--;
        last[info.rcv_sid] = count;
    }
    CHECK(!left[0] && !left[1] && !left[2]);
    /* What comes first in the order is complete first. */
    CHECK(last[order[0]] < last[order[1]] && last[order[1]] < last[order[2]]);
    CHECK(close(one) == 0);
}

int main(void)
{
    int far = listener(SOCK_STREAM, "127.0.0.1"), small = 4096, early = client(), late = client();
    /* The peer's window takes a few messages. */
    CHECK(setsockopt(far, SOL_SOCKET, SO_RCVBUF, &small, sizeof small) == 0);
    FAILS(choose(late, "ordered", ""), EINVAL);
    FAILS(tresse_unregister_scheduler("ordered"), ENOENT);
    FAILS(tresse_unregister_scheduler("fcfs"), ENOENT);

    /* One association there is before; it goes on as it began. */
    transfer(early, far, (int[]) { 0, 1, 2 });
    CHECK(tresse_register_scheduler(&table) == 0);
    FAILS(tresse_register_scheduler(&table), EEXIST);
    /* SCTP_SCHED would select the built-in scheduler of this name. */
    struct tresse_scheduler hidden = table;
    strcpy(hidden.name, "rr");
    FAILS(tresse_register_scheduler(&hidden), EEXIST);
    struct tresse_scheduler broken = table;
    broken.next = NULL;
    FAILS(tresse_register_scheduler(&broken), EINVAL);
    FAILS(tresse_register_scheduler(NULL), EINVAL);

    /* Streams 2 and 1 before 0, and two that are not negotiated: those apply to nothing. */
    CHECK(choose(late, "ordered", "\x07\x02\x09\x01") == 0);
    FAILS(tresse_unregister_scheduler("ordered"), EBUSY);
    transfer(late, far, (int[]) { 2, 1, 0 });
    CHECK(alive > 0);
    FAILS(tresse_unregister_scheduler("ordered"), EBUSY);

    /* A listening socket has it for those that come, too. */
    CHECK(choose(far, "ordered", "\x02\x01") == 0);
    CHECK(close(late) == 0);
    FAILS(tresse_unregister_scheduler("ordered"), EBUSY);
    CHECK(choose(far, "fcfs", "") == 0);
    for (int tries = 0; tresse_unregister_scheduler("ordered") != 0; tries++) {
        /* The association ends when the peer has answered. */
        CHECK(errno == EBUSY && tries < 6000);
        struct pollfd none = { .fd = far, .events = POLLIN };
        poll(&none, 1, 10);
    }
    CHECK(alive == 0);
    FAILS(choose(far, "ordered", ""), EINVAL);
    CHECK(close(early) == 0 && close(far) == 0);
    return 0;
}
