/* A program for the kernel's SCTP with calls that few programs make: several messages at once, and descriptors that are
 * replaced or closed from a number on. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <netinet/in.h>
#include <netinet/sctp.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

enum { MESSAGES = 5, SIZE = 100 };

static void messages_at_once(int from, int to)
{
    char texts[MESSAGES][SIZE];
    struct iovec parts[MESSAGES];
    struct mmsghdr messages[MESSAGES] = {0};
    for (int i = 0; i < MESSAGES; i++) {
        parts[i] = (struct iovec){.iov_base = texts[i], .iov_len = (size_t)snprintf(texts[i], SIZE, "message %d", i)};
        messages[i].msg_hdr = (struct msghdr){.msg_iov = &parts[i], .msg_iovlen = 1};
    }
    CHECK(sendmmsg(from, messages, MESSAGES, 0) == MESSAGES);
    for (int i = 0; i < MESSAGES; i++)
        CHECK(messages[i].msg_len == strlen(texts[i]));

    /* As many as have come: with MSG_WAITFORONE it does not wait for the rest. */
    for (int got = 0; got < MESSAGES;) {
        char heard[MESSAGES][SIZE] = {0};
        for (int i = 0; i < MESSAGES; i++) {
            parts[i] = (struct iovec){.iov_base = heard[i], .iov_len = SIZE - 1};
            messages[i] = (struct mmsghdr){.msg_hdr = {.msg_iov = &parts[i], .msg_iovlen = 1}};
        }
        int more = recvmmsg(to, messages, MESSAGES, MSG_WAITFORONE, NULL);
        CHECK(more > 0 && got + more <= MESSAGES);
        for (int i = 0; i < more; i++) {
            CHECK(messages[i].msg_len == strlen(texts[got]) && strcmp(heard[i], texts[got]) == 0);
            CHECK(messages[i].msg_hdr.msg_flags & MSG_EOR);
            got++;
        }
    }
    CHECK(recvmmsg(to, messages, MESSAGES, MSG_DONTWAIT, NULL) == -1 && errno == EAGAIN);
}

static void word(int from, int to, const char *text)
{
    char heard[SIZE];
    CHECK(send(from, text, strlen(text), 0) == (ssize_t)strlen(text));
    CHECK(recv(to, heard, sizeof heard, 0) == (ssize_t)strlen(text) && !memcmp(heard, text, strlen(text)));
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1]))};
    CHECK(inet_pton(AF_INET, "127.0.0.1", &name.sin_addr) == 1);
    int waiting = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), near = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    CHECK(bind(waiting, (struct sockaddr *)&name, sizeof name) == 0 && listen(waiting, 1) == 0);
    CHECK(connect(near, (struct sockaddr *)&name, sizeof name) == 0);
    int far = accept(waiting, NULL, NULL);
    CHECK(far >= 0);
    messages_at_once(near, far);
    messages_at_once(far, near);

    /* Buffers with an offset and flags, as of a file that is read on where it stands. */
    char heard[SIZE];
    struct iovec out = { "once more", 9 }, in = { heard, sizeof heard };
    CHECK(preadv2(far, &in, 1, -1, RWF_NOWAIT) == -1 && errno == EAGAIN);
    CHECK(pwritev2(near, &out, 1, -1, RWF_NOWAIT) == 9 && preadv2(far, &in, 1, -1, 0) == 9 && !memcmp(heard, "once more", 9));
    CHECK(pwritev2(near, &out, 1, 0, 0) == -1 && errno == ESPIPE && preadv2(far, &in, 1, 0, 0) == -1 && errno == ESPIPE);
    CHECK(pwritev2(near, &out, 1, -1, 1 << 30) == -1 && errno == EOPNOTSUPP);

    /* A file's number becomes one more of the socket, and the socket's one of a file again. */
    int number = open("/dev/null", O_WRONLY);
    CHECK(dup3(near, near, 0) == -1 && errno == EINVAL && fcntl(near, F_DUPFD, -1) == -1 && errno == EINVAL);
    CHECK(dup3(near, number, O_CLOEXEC) == number && fcntl(number, F_GETFD) == FD_CLOEXEC);
    CHECK(close(near) == 0);
    word(number, far, "by the number of a file");
    int kept = fcntl(number, F_DUPFD_CLOEXEC, 700), file = open("/dev/null", O_WRONLY);
    CHECK(kept >= 700 && dup3(file, number, 0) == number);
    CHECK(write(number, "nowhere", 7) == 7);
    word(kept, far, "by the one that is left");

    /* The last descriptor goes: the peer's end is told. */
    CHECK(close_range(700, ~0U, 1 << 30) == -1 && errno == EINVAL && close_range(700, ~0U, CLOSE_RANGE_CLOEXEC) == 0);
    word(kept, far, "by what was not closed");
    closefrom(700);
    char byte;
    CHECK(recv(far, &byte, 1, 0) == 0);
    CHECK(fcntl(kept, F_GETFD) == -1 && errno == EBADF && fcntl(far, F_GETFD) == 0);
    int once = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), other;
    CHECK(connect(once, (struct sockaddr *)&name, sizeof name) == 0 && (other = accept(waiting, NULL, NULL)) >= 0);
    CHECK((kept = fcntl(once, F_DUPFD, 700)) >= 700 && close(once) == 0);
    CHECK(close_range(700, ~0U, CLOSE_RANGE_UNSHARE) == 0 && recv(other, &byte, 1, 0) == 0 && close(other) == 0);
    CHECK((once = open("/dev/zero", O_RDONLY)) >= 0 && dup2(once, kept) == kept && read(kept, &byte, 1) == 1);
    CHECK(close(kept) == 0 && close(once) == 0);
    /* What the library itself needs stays open, also where each number is closed by itself, and is not replaced. */
    int spared = 0;
    for (int each = 700; each < 10000; each++) {
        if (fcntl(each, F_GETFD) < 0)
            continue;
        CHECK(close(each) == -1 && errno == EBADF && dup2(file, each) == -1 && errno == EBUSY);
        CHECK(dup2(far, each) == -1 && errno == EBUSY);
        spared++;
    }
    CHECK(spared > 0);
    int again = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), number_again;
    CHECK(connect(again, (struct sockaddr *)&name, sizeof name) == 0);
    CHECK((number_again = accept(waiting, NULL, NULL)) >= 0);
    word(again, number_again, "afterwards");
    return 0;
}
