/* SCTP sockets of RFC 6458 out of tresse: the calls of <sys/socket.h> under the prefix `tresse_`, with the structures and
 * numbers of Linux's <netinet/sctp.h> (libsctp-dev), whose own calls, such as sctp_sendmsg, the library has too.
 *
 *     cc -o mine mine.c $(pkg-config --cflags --libs tresse-sockets)
 *
 * With TRESSE_SOCKETS_PLAIN defined before, the plain names mean tresse's calls: programs written for the kernel's SCTP are
 * compiled as they are. Calls on descriptors that are not tresse's then fail with EBADF. docs/sockets.md lists what each
 * option does.
 *
 * poll, select and epoll take a socket's descriptor as any other. SCTP travels over raw IP where the process may open raw
 * sockets, and else, or with the environment variable TRESSE_UDP_PORT, in UDP (RFC 6951).
 */
#ifndef TRESSE_SCTP_H
#define TRESSE_SCTP_H

#include <poll.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <netinet/in.h>
#include <netinet/sctp.h>

#ifdef __cplusplus
extern "C" {
#endif

int tresse_socket(int family, int type, int protocol);
int tresse_bind(int fd, const struct sockaddr *name, socklen_t len);
int tresse_listen(int fd, int backlog);
int tresse_accept(int fd, struct sockaddr *name, socklen_t *len);
int tresse_accept4(int fd, struct sockaddr *name, socklen_t *len, int flags);
int tresse_connect(int fd, const struct sockaddr *name, socklen_t len);
int tresse_shutdown(int fd, int how);
int tresse_close(int fd);
int tresse_dup(int fd);
int tresse_dup2(int fd, int to);
int tresse_dup3(int fd, int to, int flags);
int tresse_fcntl(int fd, int command, ...);
int tresse_ioctl(int fd, unsigned long request, ...);
ssize_t tresse_send(int fd, const void *data, size_t len, int flags);
ssize_t tresse_sendto(int fd, const void *data, size_t len, int flags, const struct sockaddr *to, socklen_t to_len);
ssize_t tresse_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t tresse_write(int fd, const void *data, size_t len);
ssize_t tresse_writev(int fd, const struct iovec *buffers, int count);
ssize_t tresse_recv(int fd, void *data, size_t len, int flags);
ssize_t tresse_recvfrom(int fd, void *data, size_t len, int flags, struct sockaddr *from, socklen_t *from_len);
ssize_t tresse_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t tresse_read(int fd, void *data, size_t len);
ssize_t tresse_readv(int fd, const struct iovec *buffers, int count);
int tresse_getsockname(int fd, struct sockaddr *name, socklen_t *len);
int tresse_getpeername(int fd, struct sockaddr *name, socklen_t *len);
int tresse_setsockopt(int fd, int level, int option, const void *value, socklen_t len);
int tresse_getsockopt(int fd, int level, int option, void *value, socklen_t *len);

/* Whether a descriptor is one of tresse's sockets. */
int tresse_owns(int fd);

/* The synchronous mode, in which nothing happens between calls: each takes what arrived, lets happen what is due, does its
 * work, sends and returns. To be asked for before the first socket (else -1 and EBUSY), or by TRESSE_SYNCHRONOUS=1. */
int tresse_synchronous(void);
/* poll, which lets things happen in the synchronous mode, too; and the same for event loops that wait by other means: to be
 * called whenever they wake. A descriptor that is woken there for nothing gives EAGAIN. */
int tresse_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
void tresse_turn(void);

/* RFC 6458 has this option, and Linux no number for it. */
#ifndef SCTP_EXPLICIT_EOR
#define SCTP_EXPLICIT_EOR 2001
/* In snd_flags and sinfo_flags: the end of a message. */
#define SCTP_EOR 0x2000
#endif

#ifdef __cplusplus
}
#endif

#ifdef TRESSE_SOCKETS_PLAIN
#define socket(...) tresse_socket(__VA_ARGS__)
#define bind(...) tresse_bind(__VA_ARGS__)
#define listen(...) tresse_listen(__VA_ARGS__)
#define accept(...) tresse_accept(__VA_ARGS__)
#define accept4(...) tresse_accept4(__VA_ARGS__)
#define connect(...) tresse_connect(__VA_ARGS__)
#define shutdown(...) tresse_shutdown(__VA_ARGS__)
#define close(...) tresse_close(__VA_ARGS__)
#define dup(...) tresse_dup(__VA_ARGS__)
#define dup2(...) tresse_dup2(__VA_ARGS__)
#define dup3(...) tresse_dup3(__VA_ARGS__)
#define fcntl(...) tresse_fcntl(__VA_ARGS__)
#define ioctl(...) tresse_ioctl(__VA_ARGS__)
#define poll(...) tresse_poll(__VA_ARGS__)
#define send(...) tresse_send(__VA_ARGS__)
#define sendto(...) tresse_sendto(__VA_ARGS__)
#define sendmsg(...) tresse_sendmsg(__VA_ARGS__)
#define write(...) tresse_write(__VA_ARGS__)
#define writev(...) tresse_writev(__VA_ARGS__)
#define recv(...) tresse_recv(__VA_ARGS__)
#define recvfrom(...) tresse_recvfrom(__VA_ARGS__)
#define recvmsg(...) tresse_recvmsg(__VA_ARGS__)
#define read(...) tresse_read(__VA_ARGS__)
#define readv(...) tresse_readv(__VA_ARGS__)
#define getsockname(...) tresse_getsockname(__VA_ARGS__)
#define getpeername(...) tresse_getpeername(__VA_ARGS__)
#define setsockopt(...) tresse_setsockopt(__VA_ARGS__)
#define getsockopt(...) tresse_getsockopt(__VA_ARGS__)
#endif

#endif
