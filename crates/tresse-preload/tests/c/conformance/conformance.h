/* What all parts of the program share. The name of the current part stands before each line that it prints. */
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

extern const char *part;
extern char text[100], block[200000];
/* A length that no compiler lets pass as a constant. */
extern volatile int minus_one;

void on_pipe(int signal);
/* What a call has answered, under a name. */
long says(const char *what, long answer);
void hangs(int signal);
struct sockaddr_in name_of(const char *address, int port);
int port_of(int fd);
int bound(int type);
int listener(int type);
int connected(int port);
void pair(int ends[2]);
/* Waits for an event; a long time where nobody expects it. */
int comes(int fd, short events, int milliseconds);
/* Waits until the peer has acknowledged everything. */
void delivered(int fd);
/* Waits until a one-to-many socket has no association. */
void alone(int fd);
/* The events that a descriptor shows, by name. */
void shows(const char *what, int fd);
void error_of(const char *what, int fd);
void option_of(const char *what, int fd, int level, int name);
void linger(int fd, int seconds);
void timeout(int fd, int option, int milliseconds);
/* recvmsg with its flags. */
void reads_sized(const char *what, int fd, size_t room, int flags);

#define SAYS(call) says(#call, (call))
#define NAME(name) ((struct sockaddr *)&(name))
#define READS(fd, room, flags) reads_sized("recvmsg(" #fd ", " #room ", " #flags ")", fd, room, flags)

/* The parts. */
void sockets(void);
void pointers(void);
void unconnected(void);
void listening(void);
void connecting(void);
void messages(void);
void information(void);
void full(void);
void shutting_down(void);
void aborted(void);
void bindings(void);
void many(void);
