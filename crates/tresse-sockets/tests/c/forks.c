/* Processes that fork: a child has its parent's sockets, makes its own, and gives them to a child of its own; each closes by
 * itself. */
#define _GNU_SOURCE
#include "common.h"
#include <sys/resource.h>
#include <signal.h>
#include <sys/wait.h>

static void ends_well(pid_t child)
{
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void set_int(int fd, int option, int value)
{
    CHECK(setsockopt(fd, IPPROTO_SCTP, option, &value, sizeof value) == 0);
}

/* What a server does in a child for every connection: answers each message on its stream, until the peer has ended. */
static void echo(int fd)
{
    static char data[100000];
    set_int(fd, SCTP_RECVRCVINFO, 1);
    for (;;) {
        struct iovec into = { data, sizeof data };
        char control[200];
        struct msghdr message = { .msg_iov = &into, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
        wait_for(fd, POLLIN);
        ssize_t count = recvmsg(fd, &message, 0);
        CHECK(count >= 0);
        if (count == 0)
            return;
        struct sctp_rcvinfo info;
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        CHECK(header && header->cmsg_type == SCTP_RCVINFO && (message.msg_flags & MSG_EOR));
        memcpy(&info, CMSG_DATA(header), sizeof info);
        CHECK(sctp_sendmsg(fd, data, count, NULL, 0, info.rcv_ppid, 0, info.rcv_sid, 0, 0) == count);
    }
}

static void talk(int fd, const char *words, int stream)
{
    char data[100];
    long len = strlen(words);
    CHECK(sctp_sendmsg(fd, words, len, NULL, 0, 0, 0, stream, 0, 0) == len);
    CHECK(recv(fd, data, sizeof data, 0) == len && !memcmp(data, words, len));
}

/* A child for each of three connections, which are open at the same time. */
static void server_that_forks(void)
{
    static char big[90000], back[90000];
    int far = listener(SOCK_STREAM, "127.0.0.1"), near[3];
    pid_t child[3];
    for (int at = 0; at < 3; at++) {
        near[at] = connected("127.0.0.1", port_of(far));
        int one = accept(far, NULL, NULL);
        CHECK(one >= 0);
        CHECK((child[at] = fork()) >= 0);
        if (child[at] == 0) {
            CHECK(tresse_owns(one) && tresse_owns(far));
            CHECK(close(far) == 0);
            for (int other = 0; other <= at; other++)
                CHECK(close(near[other]) == 0);
            struct sockaddr_in peer;
            socklen_t len = sizeof peer;
            CHECK(getpeername(one, NAME(peer), &len) == 0 && peer.sin_addr.s_addr == htonl(INADDR_LOOPBACK));
            echo(one);
            CHECK(close(one) == 0);
            _exit(0);
        }
        CHECK(close(one) == 0);
        talk(near[at], "hello", at);
    }
    for (int round = 0; round < 20; round++)
        for (int at = 0; at < 3; at++)
            talk(near[at], "again", round % 5);
    memset(big, 'b', sizeof big);
    CHECK(send(near[1], big, sizeof big, 0) == sizeof big);
    CHECK(recv(near[1], back, sizeof back, MSG_WAITALL) == sizeof back && !memcmp(big, back, sizeof back));
    for (int at = 0; at < 3; at++) {
        CHECK(close(near[at]) == 0);
        ends_well(child[at]);
    }
    CHECK(close(far) == 0);
}

/* Children that wait for connections themselves; one blocks before there is any. */
static void servers_that_were_forked(void)
{
    int far = listener(SOCK_STREAM, "127.0.0.1");
    pid_t child[2];
    for (int at = 0; at < 2; at++) {
        CHECK((child[at] = fork()) >= 0);
        if (child[at] == 0) {
            struct sockaddr_in peer;
            socklen_t len = sizeof peer;
            int one = accept4(far, NAME(peer), &len, SOCK_CLOEXEC);
            CHECK(one >= 0 && peer.sin_family == AF_INET && (fcntl(one, F_GETFD) & FD_CLOEXEC));
            echo(one);
            /* It closes nothing: the end of the process does. */
            _exit(0);
        }
    }
    int near[2] = { connected("127.0.0.1", port_of(far)), connected("127.0.0.1", port_of(far)) };
    CHECK(close(far) == 0);
    talk(near[0], "one", 1);
    talk(near[1], "two", 2);
    /* Either child may have either. */
    CHECK(shutdown(near[0], SHUT_WR) == 0 && shutdown(near[1], SHUT_WR) == 0);
    for (int at = 0; at < 2; at++) {
        ends_well(child[at]);
        char data[10];
        CHECK(recv(near[at], data, sizeof data, 0) == 0 && close(near[at]) == 0);
    }
}

/* A child makes sockets, and its own child goes on with them after it has ended. */
static void generations(void)
{
    int far = listener(SOCK_SEQPACKET, "127.0.0.1"), port = port_of(far), pipes[2];
    CHECK(pipe(pipes) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK(close(far) == 0);
        FAILS(send(far, "x", 1, 0), EBADF);
        int near = connected("127.0.0.1", port), copy = dup(near), own;
        CHECK(copy >= 0 && tresse_owns(copy));
        CHECK(close(near) == 0);
        struct sctp_status status;
        socklen_t len = sizeof status;
        CHECK(sctp_opt_info(copy, 0, SCTP_STATUS, &status, &len) == 0 && status.sstat_state == SCTP_ESTABLISHED);
        struct sockaddr *names;
        CHECK(sctp_getpaddrs(copy, 0, &names) == 1 && sctp_freepaddrs(names) == 0);
        FAILS(setsockopt(copy, IPPROTO_SCTP, 9999, &own, sizeof own), ENOPROTOOPT);
        CHECK(fcntl(copy, F_SETFL, O_NONBLOCK) == 0);
        FAILS(recv(copy, &own, sizeof own, 0), EAGAIN);
        CHECK(fcntl(copy, F_SETFL, 0) == 0);
        own = listener(SOCK_SEQPACKET, "127.0.0.2");
        CHECK(port_of(own) > 0);
        /* One of several associations: the descriptor says nothing of it. */
        int many = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP);
        struct sockaddr_in name = name_of("127.0.0.2", port_of(own));
        CHECK(connect(many, NAME(name), sizeof name) == 0 && sctp_getpaddrs(many, 0, &names) == -1);
        CHECK(close(many) == 0);
        pid_t grandchild = fork();
        CHECK(grandchild >= 0);
        if (grandchild > 0)
            _exit(0);
        /* The parent of this one is gone, or is about to go. */
        CHECK(close(own) == 0);
        CHECK(send(copy, "from afar", 9, 0) == 9);
        char data[10];
        CHECK(recv(copy, data, sizeof data, 0) == 2 && !memcmp(data, "ok", 2));
        CHECK((write)(pipes[1], "done", 4) == 4);
        CHECK(close(copy) == 0);
        _exit(0);
    }
    ends_well(child);
    struct sctp_sndrcvinfo info;
    struct sockaddr_in from;
    socklen_t len = sizeof from;
    int flags = 0;
    char data[10];
    CHECK(sctp_recvmsg(far, data, sizeof data, NAME(from), &len, &info, &flags) == 9);
    /* A socket of one-to-many style is peeled off in yet another child. */
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        sctp_assoc_t id = 0;
        struct sctp_assoc_ids *ids = (struct sctp_assoc_ids *)data;
        len = sizeof data;
        CHECK(getsockopt(far, IPPROTO_SCTP, SCTP_GET_ASSOC_ID_LIST, ids, &len) == 0 && ids->gaids_number_of_ids == 1);
        memcpy(&id, ids->gaids_assoc_id, sizeof id);
        int one = sctp_peeloff(far, id);
        CHECK(one >= 0 && send(one, "ok", 2, 0) == 2);
        CHECK(recv(one, data, sizeof data, 0) == 0 && close(one) == 0);
        _exit(0);
    }
    CHECK((read)(pipes[0], data, sizeof data) == 4 && !memcmp(data, "done", 4));
    ends_well(child);
    CHECK(close(far) == 0 && (close)(pipes[0]) == 0 && (close)(pipes[1]) == 0);
}

/* A child sends to one peer while another one reads nothing. */
static void one_slow_peer(void)
{
    static char message[1000];
    int ends[2], messages = 200;
    struct sockaddr_in names[2];
    int center = with_two_peers(names, ends);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        fill(center, names[0]);
        for (int number = 0; number < messages; number++)
            CHECK(sendto(center, message, sizeof message, 0, NAME(names[1]), sizeof *names) == sizeof message);
        _exit(0);
    }
    for (int number = 0; number < messages; number++)
        CHECK(recv(ends[1], message, sizeof message, 0) == sizeof message);
    ends_well(child);
    CHECK(close(ends[0]) == 0 && close(ends[1]) == 0 && close(center) == 0);
}

static void limit_descriptors(pid_t process, rlim_t count, struct rlimit *before)
{
    struct rlimit limit;
    CHECK(prlimit(process, RLIMIT_NOFILE, NULL, &limit) == 0);
    if (before)
        *before = limit;
    limit.rlim_cur = count;
    CHECK(prlimit(process, RLIMIT_NOFILE, &limit, NULL) == 0);
}

/* A child that accepts while no descriptor is left, in itself or where the sockets are: the connection waits until there is one. */
static void without_descriptors(void)
{
    int far = listener(SOCK_STREAM, "127.0.0.1"), port = port_of(far), made_it[2];
    char byte;
    CHECK(pipe(made_it) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        struct rlimit before;
        int free_number = (dup)(0), made;
        CHECK(free_number >= 0 && (close)(free_number) == 0);
        wait_for(far, POLLIN);
        limit_descriptors(0, free_number, &before);
        FAILS(accept(far, NULL, NULL), EMFILE);
        FAILS(socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), EMFILE);
        limit_descriptors(0, before.rlim_cur, NULL);
        wait_for(far, POLLIN);
        /* `connect` needs descriptors of its own there. */
        CHECK((read)(made_it[0], &byte, 1) == 1);
        /* The number is more than what is waited for at a time there, and less than any that is free. */
        limit_descriptors(getppid(), 3, &before);
        FAILS(accept(far, NULL, NULL), EMFILE);
        limit_descriptors(getppid(), before.rlim_cur, NULL);
        CHECK((made = accept(far, NULL, NULL)) == free_number);
        echo(made);
        CHECK(close(made) == 0 && close(far) == 0);
        _exit(0);
    }
    CHECK(close(far) == 0);
    int near = connected("127.0.0.1", port);
    CHECK((write)(made_it[1], "c", 1) == 1);
    talk(near, "in spite of all", 1);
    CHECK(close(near) == 0 && (close)(made_it[0]) == 0 && (close)(made_it[1]) == 0);
    ends_well(child);
}

/* The process that has the sockets is killed while its children wait for connections: they find that out although another one, which
 * was forked after them, goes on. */
static void orphans(void)
{
    int pipes[2], held[2];
    char byte;
    CHECK(pipe(pipes) == 0 && pipe(held) == 0);
    pid_t parent = fork();
    CHECK(parent >= 0);
    if (parent == 0) {
        int far = listener(SOCK_STREAM, "127.0.0.1");
        CHECK((close)(held[1]) == 0);
        for (int at = 0; at < 3; at++) {
            pid_t child = fork();
            CHECK(child >= 0);
            if (child == 0 && at == 2)
                _exit((read)(held[0], &byte, 1));
            if (child == 0) {
                FAILS(accept(far, NULL, NULL), ECONNRESET);
                _exit((write)(pipes[1], "r", 1) == 1 ? 0 : 1);
            }
        }
        CHECK((write)(pipes[1], "f", 1) == 1);
        pause();
    }
    CHECK((read)(pipes[0], &byte, 1) == 1 && byte == 'f');
    CHECK((close)(pipes[1]) == 0 && kill(parent, SIGKILL) == 0 && waitpid(parent, NULL, 0) == parent);
    for (int at = 0; at < 2; at++)
        CHECK((read)(pipes[0], &byte, 1) == 1 && byte == 'r');
    CHECK((close)(held[0]) == 0 && (close)(held[1]) == 0);
    CHECK((read)(pipes[0], &byte, 1) == 0 && (close)(pipes[0]) == 0);
}

/* A child's message that is too long fails by itself, as where the sockets are, and one that fits the send buffer does not. */
static void too_long(void)
{
    static char message[(1 << 27) + 1];
    int ends[2], size = 1 << 28;
    char byte;
    pair("127.0.0.1", ends);
    FAILS(send(ends[0], message, sizeof message, 0), EMSGSIZE);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        FAILS(send(ends[0], message, sizeof message, 0), EMSGSIZE);
        CHECK(send(ends[0], "x", 1, 0) == 1);
        CHECK(setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size) == 0);
        CHECK(send(ends[0], message, sizeof message, 0) == sizeof message);
        _exit(0);
    }
    ends_well(child);
    CHECK(recv(ends[1], &byte, 1, 0) == 1 && byte == 'x');
    CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
}

int main(void)
{
    orphans();
    too_long();
    without_descriptors();
    one_slow_peer();
    server_that_forks();
    servers_that_were_forked();
    generations();
    return 0;
}
