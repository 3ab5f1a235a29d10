#include "conformance.h"

const char *part = "";
static int pipes;

void on_pipe(int signal)
{
    (void)signal;
    pipes++;
}

long says(const char *what, long answer)
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

void hangs(int signal)
{
    (void)signal;
    printf("%s: HANGS\n", part);
    fflush(stdout);
    _exit(1);
}

struct sockaddr_in name_of(const char *address, int port)
{
    struct sockaddr_in name = { .sin_family = AF_INET, .sin_port = htons(port) };
    inet_pton(AF_INET, address, &name.sin_addr);
    return name;
}

int port_of(int fd)
{
    struct sockaddr_in name = { 0 };
    socklen_t len = sizeof name;
    if (getsockname(fd, NAME(name), &len))
        return -1;
    return ntohs(name.sin_port);
}

int bound(int type)
{
    int fd = socket(AF_INET, type, IPPROTO_SCTP);
    struct sockaddr_in name = name_of("127.0.0.1", 0);
    if (fd < 0 || bind(fd, NAME(name), sizeof name))
        says("bound", -1);
    return fd;
}

int listener(int type)
{
    int fd = bound(type);
    if (listen(fd, 10))
        says("listener", -1);
    return fd;
}

int connected(int port)
{
    int fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    struct sockaddr_in name = name_of("127.0.0.1", port);
    if (connect(fd, NAME(name), sizeof name))
        says("connected", -1);
    return fd;
}

void pair(int ends[2])
{
    int waiting = listener(SOCK_STREAM);
    ends[0] = connected(port_of(waiting));
    ends[1] = accept(waiting, NULL, NULL);
    close(waiting);
}

int comes(int fd, short events, int milliseconds)
{
    struct pollfd one = { .fd = fd, .events = events };
    return poll(&one, 1, milliseconds) > 0;
}

void delivered(int fd)
{
    struct sctp_status status = { .sstat_unackdata = 1 };
    for (int tries = 0; tries < 1000 && (status.sstat_unackdata || status.sstat_penddata); tries++) {
        socklen_t len = sizeof status;
        usleep(10000);
        getsockopt(fd, IPPROTO_SCTP, SCTP_STATUS, &status, &len);
    }
}

void alone(int fd)
{
    unsigned count = 1;
    for (int tries = 0; tries < 1000 && count; tries++) {
        socklen_t len = sizeof count;
        usleep(10000);
        getsockopt(fd, IPPROTO_SCTP, SCTP_GET_ASSOC_NUMBER, &count, &len);
    }
}

void shows(const char *what, int fd)
{
    struct pollfd one = { .fd = fd, .events = POLLIN | POLLOUT | POLLRDHUP | POLLPRI };
    poll(&one, 1, 0);
    printf("%s: %s shows:%s%s%s%s%s%s%s\n", part, what, one.revents ? "" : " nothing",
           one.revents & POLLIN ? " IN" : "", one.revents & POLLOUT ? " OUT" : "", one.revents & POLLRDHUP ? " RDHUP" : "", one.revents & POLLHUP ? " HUP" : "", one.revents & POLLERR ? " ERR" : "",
           one.revents & POLLPRI ? " PRI" : "");
}

void error_of(const char *what, int fd)
{
    int error = 0;
    socklen_t len = sizeof error;
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len);
    printf("%s: %s SO_ERROR: %s\n", part, what, error ? strerrorname_np(error) : "0");
}

void option_of(const char *what, int fd, int level, int name)
{
    int value = -1;
    socklen_t len = sizeof value;
    if (getsockopt(fd, level, name, &value, &len))
        says(what, -1);
    else
        says(what, value);
}

void linger(int fd, int seconds)
{
    struct linger linger = { .l_onoff = 1, .l_linger = seconds };
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
}

void timeout(int fd, int option, int milliseconds)
{
    struct timeval limit = { .tv_usec = milliseconds * 1000 };
    says("timeout", setsockopt(fd, SOL_SOCKET, option, &limit, sizeof limit));
}

char text[100], block[200000];

volatile int minus_one = -1;

void reads_sized(const char *what, int fd, size_t room, int flags)
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
