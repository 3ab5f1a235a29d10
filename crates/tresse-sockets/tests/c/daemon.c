/* A process that goes into the background with its sockets, and says by a pipe that an association has come along. */
#include "common.h"
#include <sys/wait.h>

static void worker(int says)
{
    char data[10];
    int ends[2], before = getpid();
    pair("127.0.0.1", ends);
    CHECK(tresse_daemon(1, 1) == 0 && getpid() != before);
    CHECK(send(ends[0], "here", 4, 0) == 4 && recv(ends[1], data, sizeof data, 0) == 4);
    CHECK(close(ends[0]) == 0 && recv(ends[1], data, sizeof data, 0) == 0 && close(ends[1]) == 0);
    CHECK((write)(says, "tresse_daemon\n", 14) == 14);
    exit(0);
}

int main(void)
{
    int pipes[2], status;
    char data[100];
    CHECK(pipe(pipes) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0)
        worker(pipes[1]);
    /* The worker itself ends; what it has become says something, and ends. */
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK((close)(pipes[1]) == 0);
    CHECK((read)(pipes[0], data, sizeof data) == 14 && (read)(pipes[0], data + 14, 1) == 0);
    CHECK((write)(1, data, 14) == 14);
    return 0;
}
