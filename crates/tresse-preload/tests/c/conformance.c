/* A program for the kernel's SCTP that makes calls, most of them out of place, and prints what each answers: conformance.txt
 * has the lines that it prints over Linux and over tresse. Nothing here knows of tresse. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/sctp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

static const char *part = "";
static int pipes;

static void on_pipe(int signal)
{
    (void)signal;
    pipes++;
}

/* What a call has answered, under a name. */
static long says(const char *what, long answer)
{
    int error = errno;
    if (answer < 0)
        printf("%s: %s: %s", part, what, strerrorname_np(error));
    else
        printf("%s: %s: %ld", part, what, answer);
    printf(pipes ? " SIGPIPE\n" : "\n");
    pipes = 0;
    fflush(stdout);
    return answer;
}
#define SAYS(call) says(#call, (call))
#define NAME(name) ((struct sockaddr *)&(name))

static void hangs(int signal)
{
    (void)signal;
    printf("%s: HANGS\n", part);
    fflush(stdout);
    _exit(1);
}

static struct sockaddr_in name_of(const char *address, int port)
{
    struct sockaddr_in name = { .sin_family = AF_INET, .sin_port = htons(port) };
    inet_pton(AF_INET, address, &name.sin_addr);
    return name;
}

static int port_of(int fd)
{
    struct sockaddr_in name = { 0 };
    socklen_t len = sizeof name;
    if (getsockname(fd, NAME(name), &len))
        return -1;
    return ntohs(name.sin_port);
}

static int bound(int type)
{
    int fd = socket(AF_INET, type, IPPROTO_SCTP);
    struct sockaddr_in name = name_of("127.0.0.1", 0);
    if (fd < 0 || bind(fd, NAME(name), sizeof name))
        says("bound", -1);
    return fd;
}

static int listener(int type)
{
    int fd = bound(type);
    if (listen(fd, 10))
        says("listener", -1);
    return fd;
}

static int connected(int port)
{
    int fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    struct sockaddr_in name = name_of("127.0.0.1", port);
    if (connect(fd, NAME(name), sizeof name))
        says("connected", -1);
    return fd;
}

static void pair(int ends[2])
{
    int waiting = listener(SOCK_STREAM);
    ends[0] = connected(port_of(waiting));
    ends[1] = accept(waiting, NULL, NULL);
    close(waiting);
}

/* Waits for an event; a long time where nobody expects it. */
static int comes(int fd, short events, int milliseconds)
{
    struct pollfd one = { .fd = fd, .events = events };
    return poll(&one, 1, milliseconds) > 0;
}

/* Waits until the peer has acknowledged everything. */
static void delivered(int fd)
{
    struct sctp_status status = { .sstat_unackdata = 1 };
    for (int tries = 0; tries < 1000 && (status.sstat_unackdata || status.sstat_penddata); tries++) {
        socklen_t len = sizeof status;
        usleep(10000);
        getsockopt(fd, IPPROTO_SCTP, SCTP_STATUS, &status, &len);
    }
}

/* Waits until a one-to-many socket has no association. */
static void alone(int fd)
{
    unsigned count = 1;
    for (int tries = 0; tries < 1000 && count; tries++) {
        socklen_t len = sizeof count;
        usleep(10000);
        getsockopt(fd, IPPROTO_SCTP, SCTP_GET_ASSOC_NUMBER, &count, &len);
    }
}

/* The events that a descriptor shows, by name. */
static void shows(const char *what, int fd)
{
    struct pollfd one = { .fd = fd, .events = POLLIN | POLLOUT | POLLRDHUP | POLLPRI };
    poll(&one, 1, 0);
    printf("%s: %s shows:%s%s%s%s%s%s%s\n", part, what, one.revents ? "" : " nothing",
           one.revents & POLLIN ? " IN" : "", one.revents & POLLOUT ? " OUT" : "", one.revents & POLLRDHUP ? " RDHUP" : "", one.revents & POLLHUP ? " HUP" : "", one.revents & POLLERR ? " ERR" : "",
           one.revents & POLLPRI ? " PRI" : "");
}

static void error_of(const char *what, int fd)
{
    int error = 0;
    socklen_t len = sizeof error;
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len);
    printf("%s: %s SO_ERROR: %s\n", part, what, error ? strerrorname_np(error) : "0");
}

static void option_of(const char *what, int fd, int level, int name)
{
    int value = -1;
    socklen_t len = sizeof value;
    if (getsockopt(fd, level, name, &value, &len))
        says(what, -1);
    else
        says(what, value);
}

static void linger(int fd, int seconds)
{
    struct linger linger = { .l_onoff = 1, .l_linger = seconds };
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
}

static void timeout(int fd, int option, int milliseconds)
{
    struct timeval limit = { .tv_usec = milliseconds * 1000 };
    says("timeout", setsockopt(fd, SOL_SOCKET, option, &limit, sizeof limit));
}

static char text[100], block[200000];

/* Lengths that no compiler lets pass as constants. */
static volatile int minus_one = -1;

/* recvmsg with its flags. */
static void reads_sized(const char *what, int fd, size_t room, int flags)
{
    struct iovec into = { text, room };
    struct msghdr message = { .msg_iov = &into, .msg_iovlen = 1 };
    long got = recvmsg(fd, &message, flags);
    int error = errno;
    if (got < 0)
        printf("%s: %s: %s\n", part, what, strerrorname_np(error));
    else
        /* How much a notification says is each system's own. */
        printf("%s: %s: %ld%s%s%s%s\n", part, what, message.msg_flags & MSG_NOTIFICATION ? 0 : got, message.msg_flags & MSG_EOR ? " EOR" : "",
               message.msg_flags & MSG_TRUNC ? " TRUNC" : "", message.msg_flags & MSG_CTRUNC ? " CTRUNC" : "",
               message.msg_flags & MSG_NOTIFICATION ? " NOTIFICATION" : "");
}
#define READS(fd, room, flags) reads_sized("recvmsg(" #fd ", " #room ", " #flags ")", fd, room, flags)

static void sockets(void)
{
    part = "socket";
    SAYS(socket(AF_INET, SOCK_DGRAM, IPPROTO_SCTP));
    SAYS(socket(AF_INET, SOCK_RDM, IPPROTO_SCTP));
    SAYS(socket(AF_UNIX, SOCK_STREAM, IPPROTO_SCTP));
    SAYS(socket(AF_INET, SOCK_STREAM | 0x4000000, IPPROTO_SCTP));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_SCTP);
    SAYS((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
    SAYS(fcntl(fd, F_GETFD));
    option_of("SO_TYPE", fd, SOL_SOCKET, SO_TYPE);
    option_of("SO_PROTOCOL", fd, SOL_SOCKET, SO_PROTOCOL);
    option_of("SO_DOMAIN", fd, SOL_SOCKET, SO_DOMAIN);
    option_of("SO_ACCEPTCONN", fd, SOL_SOCKET, SO_ACCEPTCONN);
    option_of("SO_REUSEADDR", fd, SOL_SOCKET, SO_REUSEADDR);
    int on = 1;
    SAYS(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on));
    option_of("SO_REUSEADDR", fd, SOL_SOCKET, SO_REUSEADDR);
    SAYS(setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on));
    option_of("SO_KEEPALIVE", fd, SOL_SOCKET, SO_KEEPALIVE);
    SAYS(setsockopt(fd, SOL_SOCKET, SO_BROADCAST, &on, sizeof on));
    SAYS(setsockopt(fd, SOL_SOCKET, SO_TYPE, &on, sizeof on));
    SAYS(setsockopt(fd, SOL_SOCKET, 9999, &on, sizeof on));
    SAYS(setsockopt(fd, IPPROTO_TCP, 1, &on, sizeof on));
    SAYS(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &on, 1));
    SAYS(setsockopt(fd, SOL_SOCKET, SO_LINGER, &on, 4));
    struct linger kept = { 0 };
    socklen_t len = sizeof kept;
    linger(fd, 5);
    SAYS(getsockopt(fd, SOL_SOCKET, SO_LINGER, &kept, &len));
    SAYS(kept.l_onoff * 100 + kept.l_linger);
    int tos = 0x10;
    SAYS(setsockopt(fd, IPPROTO_IP, IP_TOS, &tos, sizeof tos));
    option_of("IP_TOS", fd, IPPROTO_IP, IP_TOS);
    int ttl = 33;
    SAYS(setsockopt(fd, IPPROTO_IP, IP_TTL, &ttl, sizeof ttl));
    option_of("IP_TTL", fd, IPPROTO_IP, IP_TTL);
    SAYS(setsockopt(fd, IPPROTO_IP, 9999, &ttl, sizeof ttl));
    close(fd);
    int six = socket(AF_INET6, SOCK_STREAM, IPPROTO_SCTP);
    option_of("IPV6_V6ONLY", six, IPPROTO_IPV6, IPV6_V6ONLY);
    SAYS(setsockopt(six, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on));
    option_of("IPV6_V6ONLY", six, IPPROTO_IPV6, IPV6_V6ONLY);
    struct sockaddr_in four = name_of("127.0.0.1", 0);
    SAYS(bind(six, NAME(four), sizeof four));
    close(six);
}

static void pointers(void)
{
    part = "pointers";
    int ends[2], fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    struct sockaddr_in name = name_of("127.0.0.1", 9);
    struct sockaddr_in6 six = { .sin6_family = AF_INET6 };
    struct sockaddr other = { .sa_family = AF_UNIX };
    socklen_t len = sizeof name;
    SAYS(bind(fd, NULL, sizeof name));
    SAYS(bind(fd, NAME(name), 4));
    SAYS(bind(fd, NAME(name), 0));
    SAYS(bind(fd, NAME(name), minus_one));
    SAYS(bind(fd, &other, sizeof other));
    SAYS(bind(fd, NAME(six), sizeof six));
    SAYS(connect(fd, NULL, sizeof name));
    SAYS(connect(fd, NAME(name), 4));
    SAYS(connect(fd, NAME(name), 0));
    SAYS(connect(fd, &other, sizeof other));
    SAYS(connect(fd, NAME(six), sizeof six));
    struct sockaddr_in broad = name_of("255.255.255.255", 9), multi = name_of("224.0.0.1", 9);
    SAYS(connect(fd, NAME(broad), sizeof broad));
    SAYS(connect(fd, NAME(multi), sizeof multi));
    SAYS(bind(fd, NAME(broad), sizeof broad));
    SAYS(bind(fd, NAME(multi), sizeof multi));
    SAYS(getsockname(fd, NAME(name), NULL));
    SAYS(getsockname(fd, NULL, &len));
    len = -1;
    SAYS(getsockname(fd, NAME(name), &len));
    len = 2;
    SAYS(getsockname(fd, NAME(name), &len));
    SAYS(len);
    int on = 1;
    SAYS(setsockopt(fd, IPPROTO_SCTP, SCTP_NODELAY, NULL, sizeof on));
    SAYS(setsockopt(fd, IPPROTO_SCTP, SCTP_NODELAY, &on, 0));
    SAYS(setsockopt(fd, IPPROTO_SCTP, SCTP_NODELAY, &on, 2));
    SAYS(setsockopt(fd, IPPROTO_SCTP, SCTP_NODELAY, &on, -1));
    SAYS(getsockopt(fd, IPPROTO_SCTP, SCTP_NODELAY, &on, NULL));
    len = sizeof on;
    SAYS(getsockopt(fd, IPPROTO_SCTP, SCTP_NODELAY, NULL, &len));
    len = 2;
    SAYS(getsockopt(fd, IPPROTO_SCTP, SCTP_NODELAY, &on, &len));
    len = -1;
    SAYS(getsockopt(fd, IPPROTO_SCTP, SCTP_NODELAY, &on, &len));
    len = -1;
    SAYS(getsockopt(fd, SOL_SOCKET, SO_TYPE, &on, &len));
    len = 2;
    SAYS(getsockopt(fd, SOL_SOCKET, SO_TYPE, &on, &len));
    SAYS(len);
    len = 100;
    SAYS(getsockopt(fd, SOL_SOCKET, SO_TYPE, text, &len));
    SAYS(len);
    len = 100;
    SAYS(getsockopt(fd, IPPROTO_SCTP, SCTP_NODELAY, text, &len));
    SAYS(len);
    close(fd);
    pair(ends);
    SAYS(send(ends[0], NULL, 1, 0));
    SAYS(send(ends[0], NULL, 0, 0));
    SAYS(send(ends[0], text, 0, 0));
    SAYS(write(ends[0], text, 0));
    SAYS(send(ends[0], "good", 4, 0));
    comes(ends[1], POLLIN, 5000);
    SAYS(recv(ends[1], NULL, 0, 0));
    SAYS(read(ends[1], text, 0));
    SAYS(recv(ends[1], text, 0, MSG_PEEK));
    READS(ends[1], 0, MSG_DONTWAIT);
    READS(ends[1], 10, MSG_DONTWAIT);
    READS(ends[1], 0, MSG_DONTWAIT);
    struct iovec many[1025] = { { text, 1 } };
    struct msghdr none = { 0 }, big = { .msg_iov = many, .msg_iovlen = 1025 };
    SAYS(sendmsg(ends[0], &none, 0));
    SAYS(sendmsg(ends[0], &big, 0));
    SAYS(writev(ends[0], many, 1025));
    SAYS(writev(ends[0], many, minus_one));
    SAYS(writev(ends[0], many, 0));
    SAYS(readv(ends[0], many, minus_one));
    SAYS(readv(ends[0], many, 1025));
    SAYS(fcntl(ends[0], F_SETFL, O_NONBLOCK));
    SAYS(readv(ends[0], many, 0));
    SAYS(recvmsg(ends[0], &none, 0));
    SAYS(sendmsg(ends[0], NULL, 0));
    SAYS(recvmsg(ends[0], NULL, 0));
    SAYS(sendto(ends[0], "x", 1, 0, &other, sizeof other));
    SAYS(sendto(ends[0], "x", 1, 0, NAME(name), 4));
    SAYS(sendto(ends[0], "x", 1, 0, NULL, 4));
    struct sockaddr_in elsewhere = name_of("127.0.0.9", 9);
    SAYS(sendto(ends[0], "x", 1, 0, NAME(elsewhere), sizeof elsewhere));
    close(ends[0]), close(ends[1]);
}

static void unconnected(void)
{
    part = "unconnected";
    int fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    struct sockaddr_in name;
    socklen_t len = sizeof name;
    shows("new", fd);
    SAYS(send(fd, "x", 1, 0));
    SAYS(send(fd, "x", 1, MSG_NOSIGNAL));
    SAYS(recv(fd, text, 10, 0));
    SAYS(recv(fd, text, 10, MSG_DONTWAIT));
    SAYS(getpeername(fd, NAME(name), &len));
    SAYS(getsockname(fd, NAME(name), &len));
    SAYS(ntohs(name.sin_port));
    SAYS(shutdown(fd, SHUT_WR));
    SAYS(shutdown(fd, SHUT_RD));
    SAYS(shutdown(fd, SHUT_RDWR));
    SAYS(shutdown(fd, 3));
    SAYS(shutdown(fd, -1));
    SAYS(accept(fd, NULL, NULL));
    SAYS(sctp_peeloff(fd, 3));
    int waits = -1;
    SAYS(ioctl(fd, FIONREAD, &waits));
    SAYS(waits);
    SAYS(ioctl(fd, FIONREAD, NULL));
    SAYS(ioctl(fd, TIOCOUTQ, &waits));
    SAYS(ioctl(fd, SIOCATMARK, &waits));
    SAYS(ioctl(fd, 0x1234, &waits));
    error_of("new", fd);
    option_of("SCTP_GET_ASSOC_NUMBER", fd, IPPROTO_SCTP, SCTP_GET_ASSOC_NUMBER);
    option_of("SCTP_GET_ASSOC_ID_LIST", fd, IPPROTO_SCTP, SCTP_GET_ASSOC_ID_LIST);
    option_of("SCTP_AUTOCLOSE", fd, IPPROTO_SCTP, SCTP_AUTOCLOSE);
    struct sctp_status status = { 0 };
    len = sizeof status;
    SAYS(getsockopt(fd, IPPROTO_SCTP, SCTP_STATUS, &status, &len));
    struct sockaddr *names;
    SAYS(sctp_getpaddrs(fd, 0, &names));
    SAYS(sctp_getladdrs(fd, 0, &names));
    close(fd);
    SAYS(close(fd));
}

static void listening(void)
{
    part = "listen";
    int fd = bound(SOCK_STREAM), accepted;
    SAYS(listen(fd, 0));
    option_of("SO_ACCEPTCONN", fd, SOL_SOCKET, SO_ACCEPTCONN);
    shows("listen 0", fd);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    SAYS(accept(fd, NULL, NULL));
    SAYS(listen(fd, 5));
    option_of("SO_ACCEPTCONN", fd, SOL_SOCKET, SO_ACCEPTCONN);
    SAYS(accept(fd, NULL, NULL));
    SAYS(listen(fd, 10));
    SAYS(listen(fd, -1));
    option_of("SO_ACCEPTCONN", fd, SOL_SOCKET, SO_ACCEPTCONN);
    SAYS(send(fd, "x", 1, 0));
    SAYS(recv(fd, text, 10, 0));
    int waits = -1;
    SAYS(ioctl(fd, FIONREAD, &waits));
    int shut = listener(SOCK_STREAM);
    SAYS(shutdown(shut, SHUT_WR));
    SAYS(shutdown(shut, SHUT_RD));
    SAYS(shutdown(shut, SHUT_RDWR));
    option_of("SO_ACCEPTCONN", shut, SOL_SOCKET, SO_ACCEPTCONN);
    close(shut);
    struct sockaddr_in name = name_of("127.0.0.1", port_of(fd));
    socklen_t len = sizeof name;
    SAYS(getpeername(fd, NAME(name), &len));
    SAYS(accept4(fd, NULL, NULL, 1));
    name = name_of("127.0.0.1", port_of(fd));
    int other = listener(SOCK_STREAM);
    struct sockaddr_in there = name_of("127.0.0.1", port_of(other));
    SAYS(connect(fd, NAME(there), sizeof there));
    close(other);
    int near = connected(port_of(fd));
    shows("listener", (comes(fd, POLLIN, 5000), fd));
    accepted = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
    SAYS((fcntl(accepted, F_GETFL) & O_NONBLOCK) != 0);
    SAYS(fcntl(accepted, F_GETFD));
    shows("accepted", accepted);
    SAYS(listen(accepted, 5));
    SAYS(listen(near, 5));
    SAYS(accept(near, NULL, NULL));
    SAYS(bind(near, NAME(there), sizeof there));
    SAYS(bind(fd, NAME(there), sizeof there));
    int second = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    SAYS(bind(second, NAME(name), sizeof name));
    struct sockaddr_in foreign = name_of("192.0.2.77", 0);
    SAYS(bind(second, NAME(foreign), sizeof foreign));
    /* Without bind. */
    SAYS(listen(second, 5));
    SAYS(port_of(second) > 0);
    close(second);
    close(near), close(accepted);
    SAYS(listen(fd, 0));
    option_of("SO_ACCEPTCONN", fd, SOL_SOCKET, SO_ACCEPTCONN);
    near = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    SAYS(connect(near, NAME(name), sizeof name));
    SAYS(connect(fd, NAME(name), sizeof name));
    close(near), close(fd);
    /* More callers than the backlog has room for. */
    fd = bound(SOCK_STREAM);
    SAYS(listen(fd, 1));
    int callers[4];
    for (int one = 0; one < 4; one++) {
        callers[one] = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
        name = name_of("127.0.0.1", port_of(fd));
        SAYS(connect(callers[one], NAME(name), sizeof name));
    }
    for (int one = 0; one < 4; one++)
        close(callers[one]);
    close(fd);
}

static void connecting(void)
{
    part = "connect";
    int spare = listener(SOCK_STREAM), port = port_of(spare);
    close(spare);
    int fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    struct sockaddr_in name = name_of("127.0.0.1", port), peer;
    socklen_t len = sizeof peer;
    SAYS(connect(fd, NAME(name), sizeof name));
    shows("refused", fd);
    error_of("refused", fd);
    SAYS(send(fd, "x", 1, 0));
    SAYS(recv(fd, text, 10, 0));
    SAYS(getpeername(fd, NAME(peer), &len));
    SAYS(shutdown(fd, SHUT_WR));
    int waiting = listener(SOCK_STREAM);
    struct sockaddr_in there = name_of("127.0.0.1", port_of(waiting));
    SAYS(connect(fd, NAME(there), sizeof there));
    SAYS(connect(fd, NAME(there), sizeof there));
    SAYS(connect(fd, NAME(name), sizeof name));
    SAYS(getpeername(fd, NAME(peer), &len));
    shows("connected", fd);
    error_of("connected", fd);
    close(fd);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, IPPROTO_SCTP);
    SAYS(connect(fd, NAME(name), sizeof name));
    SAYS(comes(fd, POLLOUT, 5000));
    shows("refused later", fd);
    SAYS(recv(fd, text, 10, 0));
    error_of("refused later", fd);
    error_of("and again", fd);
    SAYS(recv(fd, text, 10, 0));
    SAYS(send(fd, "x", 1, 0));
    SAYS(connect(fd, NAME(there), sizeof there));
    SAYS(comes(fd, POLLOUT, 5000));
    error_of("in the end", fd);
    SAYS(connect(fd, NAME(there), sizeof there));
    SAYS(send(fd, "x", 1, 0));
    close(fd), close(waiting);
    /* Refused, and asked by calls other than getsockopt. */
    fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, IPPROTO_SCTP);
    connect(fd, NAME(name), sizeof name);
    comes(fd, POLLOUT, 5000);
    SAYS(send(fd, "x", 1, 0));
    SAYS(send(fd, "x", 1, 0));
    SAYS(connect(fd, NAME(name), sizeof name));
    close(fd);
    /* sendto on a socket that is not connected sets it up. */
    waiting = listener(SOCK_STREAM);
    there = name_of("127.0.0.1", port_of(waiting));
    fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    SAYS(sendto(fd, "hello", 5, 0, NAME(there), sizeof there));
    SAYS(comes(waiting, POLLIN, 5000));
    int far = accept(waiting, NULL, NULL);
    SAYS(recv(far, text, 10, 0));
    SAYS(sctp_connectx(fd, NAME(there), 1, NULL));
    SAYS(sctp_connectx(fd, NAME(there), 0, NULL));
    SAYS(sctp_connectx(fd, NAME(there), -1, NULL));
    close(far), close(fd), close(waiting);
}

static void messages(void)
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

static void information(void)
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

static void full(void)
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

static void shutting_down(void)
{
    part = "shutdown";
    int ends[2];
    struct sockaddr_in name;
    socklen_t len = sizeof name;
    pair(ends);
    SAYS(shutdown(ends[0], SHUT_RD));
    SAYS(send(ends[1], "x", 1, 0));
    comes(ends[0], POLLIN, 5000);
    SAYS(recv(ends[0], text, 10, MSG_DONTWAIT));
    SAYS(shutdown(ends[0], 7));
    SAYS(shutdown(ends[0], SHUT_WR));
    SAYS(comes(ends[1], POLLRDHUP | POLLIN, 5000));
    /* POLLHUP is not asked for. */
    SAYS(comes(ends[0], 0, 5000));
    shows("who has shut down", ends[0]);
    shows("the peer", ends[1]);
    SAYS(shutdown(ends[0], SHUT_WR));
    SAYS(shutdown(ends[1], SHUT_WR));
    SAYS(send(ends[0], "x", 1, 0));
    SAYS(send(ends[1], "x", 1, MSG_NOSIGNAL));
    SAYS(recv(ends[0], text, 10, 0));
    SAYS(recv(ends[1], text, 10, 0));
    SAYS(recv(ends[1], text, 10, 0));
    SAYS(getpeername(ends[0], NAME(name), &len));
    SAYS(getpeername(ends[1], NAME(name), &len));
    SAYS(port_of(ends[0]) > 0);
    error_of("who has shut down", ends[0]);
    error_of("the peer", ends[1]);
    SAYS(ioctl(ends[1], FIONREAD, &len));
    int waiting = listener(SOCK_STREAM);
    struct sockaddr_in there = name_of("127.0.0.1", port_of(waiting));
    SAYS(connect(ends[0], NAME(there), sizeof there));
    SAYS(send(ends[0], "x", 1, 0));
    SAYS(listen(ends[1], 5));
    close(waiting), close(ends[0]), close(ends[1]);

    /* Both directions at once, and data that was not read yet. */
    pair(ends);
    SAYS(send(ends[0], "last", 4, 0));
    SAYS(shutdown(ends[0], SHUT_RDWR));
    SAYS(comes(ends[1], POLLRDHUP, 5000));
    shows("the peer with data", ends[1]);
    READS(ends[1], 10, 0);
    shows("the peer without", ends[1]);
    READS(ends[1], 10, 0);
    SAYS(recv(ends[0], text, 10, 0));
    SAYS(comes(ends[0], 0, 5000));
    shows("who has shut down", ends[0]);
    close(ends[0]), close(ends[1]);

    /* By a flag of a message. */
    pair(ends);
    struct sctp_sndrcvinfo info = { .sinfo_flags = SCTP_EOF };
    SAYS(sctp_send(ends[0], "data", 4, &info, 0));
    close(ends[0]), close(ends[1]);
}

static void aborted(void)
{
    part = "abort";
    int ends[2];
    struct sockaddr_in name;
    socklen_t len = sizeof name;
    pair(ends);
    linger(ends[0], 0);
    SAYS(close(ends[0]));
    SAYS(comes(ends[1], POLLRDHUP, 5000));
    shows("the peer", ends[1]);
    SAYS(getpeername(ends[1], NAME(name), &len));
    SAYS(recv(ends[1], text, 10, 0));
    shows("then", ends[1]);
    SAYS(recv(ends[1], text, 10, 0));
    SAYS(send(ends[1], "x", 1, 0));
    error_of("then", ends[1]);
    SAYS(shutdown(ends[1], SHUT_WR));
    int waiting = listener(SOCK_STREAM);
    struct sockaddr_in there = name_of("127.0.0.1", port_of(waiting));
    SAYS(recv(ends[1], text, 10, MSG_DONTWAIT));
    SAYS(connect(ends[1], NAME(there), sizeof there));
    close(waiting);
    close(ends[1]);

    pair(ends);
    linger(ends[0], 0);
    close(ends[0]);
    comes(ends[1], POLLRDHUP, 5000);
    SAYS(send(ends[1], "x", 1, 0));
    SAYS(send(ends[1], "x", 1, 0));
    SAYS(recv(ends[1], text, 10, 0));
    close(ends[1]);

    pair(ends);
    linger(ends[0], 0);
    close(ends[0]);
    comes(ends[1], POLLRDHUP, 5000);
    error_of("the peer", ends[1]);
    shows("asked", ends[1]);
    SAYS(recv(ends[1], text, 10, 0));
    SAYS(send(ends[1], "x", 1, 0));
    close(ends[1]);

    /* With data that nobody has read. */
    pair(ends);
    SAYS(send(ends[1], "unread", 6, 0));
    comes(ends[0], POLLIN, 5000);
    close(ends[0]);
    SAYS(comes(ends[1], POLLRDHUP, 5000));
    SAYS(recv(ends[1], text, 10, 0));
    close(ends[1]);

    /* Data in front of an abort. */
    pair(ends);
    SAYS(send(ends[0], "data", 4, 0));
    comes(ends[1], POLLIN, 5000);
    struct sctp_sndrcvinfo info = { .sinfo_flags = SCTP_ABORT };
    SAYS(sctp_send(ends[0], "why", 3, &info, 0));
    linger(ends[0], 0);
    close(ends[0]);
    SAYS(comes(ends[1], POLLRDHUP, 5000));
    shows("the peer with data", ends[1]);
    SAYS(recv(ends[1], text, 10, 0));
    SAYS(recv(ends[1], text, 10, 0));
    SAYS(recv(ends[1], text, 10, 0));
    close(ends[1]);
}

static int bindx(int fd, const char *address, int port, int how)
{
    struct sockaddr_in name = name_of(address, port);
    return sctp_bindx(fd, NAME(name), 1, how);
}

static void bindings(void)
{
    part = "bindx";
    int fd = bound(SOCK_STREAM), port = port_of(fd);
    SAYS(bindx(fd, "127.0.0.1", 0, SCTP_BINDX_ADD_ADDR));
    SAYS(bindx(fd, "127.0.0.1", port, SCTP_BINDX_ADD_ADDR));
    SAYS(bindx(fd, "127.0.0.2", port + 1, SCTP_BINDX_ADD_ADDR));
    SAYS(bindx(fd, "192.0.2.77", port, SCTP_BINDX_ADD_ADDR));
    SAYS(bindx(fd, "0.0.0.0", port, SCTP_BINDX_ADD_ADDR));
    SAYS(bindx(fd, "127.0.0.2", port, SCTP_BINDX_REM_ADDR));
    SAYS(bindx(fd, "127.0.0.1", port, SCTP_BINDX_REM_ADDR));
    SAYS(bindx(fd, "127.0.0.2", 0, SCTP_BINDX_ADD_ADDR));
    SAYS(bindx(fd, "127.0.0.3", port, SCTP_BINDX_ADD_ADDR));
    SAYS(bindx(fd, "127.0.0.4", port, SCTP_BINDX_REM_ADDR));
    SAYS(bindx(fd, "192.0.2.77", port, SCTP_BINDX_REM_ADDR));
    SAYS(bindx(fd, "127.0.0.2", port + 1, SCTP_BINDX_REM_ADDR));
    SAYS(bindx(fd, "0.0.0.0", port, SCTP_BINDX_REM_ADDR));
    SAYS(bindx(fd, "127.0.0.2", port, SCTP_BINDX_REM_ADDR));
    SAYS(bindx(fd, "127.0.0.2", port, SCTP_BINDX_REM_ADDR));
    SAYS(bindx(fd, "127.0.0.3", 0, SCTP_BINDX_REM_ADDR));
    SAYS(bindx(fd, "127.0.0.1", port, SCTP_BINDX_REM_ADDR));
    SAYS(bindx(fd, "127.0.0.2", port, 3));
    struct sockaddr_in both[2] = { name_of("127.0.0.5", port), name_of("192.0.2.77", port) };
    SAYS(sctp_bindx(fd, NAME(both[0]), 2, SCTP_BINDX_ADD_ADDR));
    struct sockaddr *names;
    SAYS(sctp_getladdrs(fd, 0, &names));
    SAYS(sctp_bindx(fd, NAME(both[0]), 0, SCTP_BINDX_ADD_ADDR));
    SAYS(sctp_bindx(fd, NAME(both[0]), -1, SCTP_BINDX_ADD_ADDR));
    struct sockaddr other = { .sa_family = AF_UNIX };
    SAYS(sctp_bindx(fd, &other, 1, SCTP_BINDX_ADD_ADDR));
    both[0] = name_of("127.0.0.1", port), both[1] = name_of("127.0.0.2", port);
    SAYS(bindx(fd, "127.0.0.2", port, SCTP_BINDX_ADD_ADDR));
    SAYS(sctp_bindx(fd, NAME(both[0]), 2, SCTP_BINDX_REM_ADDR));
    SAYS(sctp_getladdrs(fd, 0, &names));
    struct sockaddr_in name;
    socklen_t len = sizeof name;
    SAYS(getsockname(fd, NAME(name), &len));
    SAYS(ntohl(name.sin_addr.s_addr) & 255);
    close(fd);
    fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    SAYS(bindx(fd, "127.0.0.1", port, SCTP_BINDX_REM_ADDR));
    SAYS(bindx(fd, "127.0.0.1", 0, SCTP_BINDX_ADD_ADDR));
    SAYS(bindx(fd, "127.0.0.2", 0, SCTP_BINDX_ADD_ADDR));
    SAYS(sctp_getladdrs(fd, 0, &names));
    SAYS(bind(fd, NAME(both[0]), sizeof both[0]));
    close(fd);
    fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    both[0] = name_of("127.0.0.1", 0), both[1] = name_of("127.0.0.1", 0);
    SAYS(sctp_bindx(fd, NAME(both[0]), 2, SCTP_BINDX_ADD_ADDR));
    close(fd);
}

static int sends_to(int fd, const char *data, size_t length, int port, int flags)
{
    struct sockaddr_in name = name_of("127.0.0.1", port);
    return sctp_sendmsg(fd, data, length, NAME(name), sizeof name, 0, flags, 0, 0, 0);
}

static void many(void)
{
    part = "one-to-many";
    int fd = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP), there = listener(SOCK_SEQPACKET), port = port_of(there);
    struct sockaddr_in name = name_of("127.0.0.1", port);
    socklen_t len = sizeof name;
    int waits = -1;
    shows("new", fd);
    SAYS(send(fd, "x", 1, 0));
    SAYS(send(fd, "x", 1, MSG_NOSIGNAL));
    SAYS(recv(fd, text, 10, MSG_DONTWAIT));
    SAYS(getpeername(fd, NAME(name), &len));
    int shut = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP);
    SAYS(shutdown(shut, SHUT_WR));
    SAYS(shutdown(shut, SHUT_RD));
    SAYS(shutdown(shut, 9));
    close(shut);
    SAYS(accept(fd, NULL, NULL));
    SAYS(accept(there, NULL, NULL));
    SAYS(sctp_peeloff(fd, 0));
    SAYS(sctp_peeloff(fd, 12345));
    SAYS(ioctl(fd, FIONREAD, &waits));
    SAYS(ioctl(there, FIONREAD, &waits));
    option_of("SCTP_GET_ASSOC_NUMBER", fd, IPPROTO_SCTP, SCTP_GET_ASSOC_NUMBER);
    option_of("SCTP_AUTOCLOSE", fd, IPPROTO_SCTP, SCTP_AUTOCLOSE);
    SAYS(sends_to(fd, "x", 1, port, SCTP_EOF));
    SAYS(sends_to(fd, "x", 1, port, SCTP_ABORT));
    SAYS(sends_to(fd, "", 0, port, 0));
    struct sctp_sndrcvinfo info = { .sinfo_assoc_id = 12345 };
    SAYS(sctp_send(fd, "x", 1, &info, 0));
    info = (struct sctp_sndrcvinfo){ .sinfo_flags = SCTP_SENDALL };
    SAYS(sctp_send(fd, "x", 1, &info, 0));
    struct sctp_event_subscribe events = { .sctp_association_event = 1, .sctp_data_io_event = 1 };
    SAYS(setsockopt(fd, IPPROTO_SCTP, SCTP_EVENTS, &events, sizeof events));
    SAYS(sends_to(fd, "hello", 5, port, 0));
    SAYS(comes(fd, POLLIN, 5000));
    READS(fd, 100, 0);
    SAYS(comes(there, POLLIN, 5000));
    READS(there, 100, 0);
    option_of("SCTP_GET_ASSOC_NUMBER", fd, IPPROTO_SCTP, SCTP_GET_ASSOC_NUMBER);
    shows("associated", fd);
    SAYS(send(fd, "x", 1, MSG_NOSIGNAL));
    SAYS(getpeername(fd, NAME(name), &len));
    name = name_of("127.0.0.1", port);
    SAYS(connect(fd, NAME(name), sizeof name));
    info = (struct sctp_sndrcvinfo){ .sinfo_flags = SCTP_SENDALL };
    SAYS(sctp_send(fd, "all", 3, &info, 0));
    SAYS(sends_to(fd, "x", 1, port, SCTP_SENDALL));
    struct { struct sctp_assoc_ids head; sctp_assoc_t room[4]; } ids;
    len = sizeof ids;
    SAYS(getsockopt(fd, IPPROTO_SCTP, SCTP_GET_ASSOC_ID_LIST, &ids, &len));
    SAYS(len);
    int id = ids.head.gaids_assoc_id[0];
    info = (struct sctp_sndrcvinfo){ .sinfo_assoc_id = id };
    SAYS(sctp_send(fd, "id", 2, &info, 0));
    info = (struct sctp_sndrcvinfo){ .sinfo_assoc_id = id, .sinfo_stream = 60000 };
    SAYS(sctp_send(fd, "id", 2, &info, 0));
    struct sockaddr *names;
    SAYS(sctp_getpaddrs(fd, id, &names));
    SAYS(sctp_getpaddrs(fd, 0, &names));
    SAYS(sctp_getpaddrs(fd, 12345, &names));
    SAYS(sctp_getladdrs(fd, 0, &names) > 0);
    SAYS(sctp_getladdrs(fd, 12345, &names));
    SAYS(listen(fd, 0));
    SAYS(listen(fd, 5));
    option_of("SO_ACCEPTCONN", fd, SOL_SOCKET, SO_ACCEPTCONN);
    SAYS(listen(fd, 0));
    option_of("SO_ACCEPTCONN", fd, SOL_SOCKET, SO_ACCEPTCONN);
    option_of("SO_ACCEPTCONN", there, SOL_SOCKET, SO_ACCEPTCONN);
    int own = sctp_peeloff(fd, id);
    SAYS(own >= 0);
    SAYS(sctp_peeloff(fd, id));
    SAYS(sctp_peeloff(own, id));
    shows("peeled off", own);
    SAYS(send(own, "own", 3, 0));
    SAYS(sctp_send(fd, "id", 2, &info, 0));
    option_of("SCTP_GET_ASSOC_NUMBER", fd, IPPROTO_SCTP, SCTP_GET_ASSOC_NUMBER);
    option_of("SO_TYPE of one that was peeled off", own, SOL_SOCKET, SO_TYPE);
    len = sizeof name;
    SAYS(getpeername(own, NAME(name), &len));
    close(own);
    /* An association ends by a message. */
    alone(there);
    SAYS(sends_to(fd, "again", 5, port, 0));
    comes(fd, POLLIN, 5000);
    READS(fd, 100, 0);
    SAYS(sends_to(fd, NULL, 0, port, SCTP_EOF));
    SAYS(comes(fd, POLLIN, 5000));
    READS(fd, 100, 0);
    option_of("SCTP_GET_ASSOC_NUMBER", fd, IPPROTO_SCTP, SCTP_GET_ASSOC_NUMBER);
    error_of("ended", fd);
    SAYS(sends_to(fd, "again", 5, port, 0));
    comes(fd, POLLIN, 5000);
    READS(fd, 100, 0);
    SAYS(sends_to(fd, "why", 3, port, SCTP_ABORT));
    SAYS(comes(fd, POLLIN, 5000));
    READS(fd, 100, MSG_DONTWAIT);
    option_of("SCTP_GET_ASSOC_NUMBER", fd, IPPROTO_SCTP, SCTP_GET_ASSOC_NUMBER);
    error_of("aborted", fd);
    shows("aborted", fd);
    alone(there);
    close(there);
    /* To nobody. */
    SAYS(sends_to(fd, "nobody", 6, port, 0));
    SAYS(comes(fd, POLLIN, 5000));
    READS(fd, 100, MSG_DONTWAIT);
    error_of("nobody", fd);
    shows("nobody", fd);
    name = name_of("127.0.0.1", port);
    SAYS(connect(fd, NAME(name), sizeof name));
    error_of("nobody", fd);
    READS(fd, 100, MSG_DONTWAIT);
    SAYS(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &waits, sizeof waits));
    close(fd);
}

int main(int argc, char **argv)
{
    static const struct { const char *name; void (*play)(void); } parts[] = {
        { "socket", sockets }, { "pointers", pointers }, { "unconnected", unconnected }, { "listen", listening },
        { "connect", connecting }, { "messages", messages }, { "information", information }, { "full", full }, { "shutdown", shutting_down },
        { "abort", aborted }, { "bindx", bindings }, { "many", many },
    };
    signal(SIGPIPE, on_pipe);
    signal(SIGALRM, hangs);
    for (size_t at = 0; at < sizeof parts / sizeof *parts; at++) {
        if (argc > 1 && strcmp(argv[1], parts[at].name))
            continue;
        alarm(30);
        parts[at].play();
    }
    return 0;
}
