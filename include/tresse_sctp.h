/* SCTP sockets of RFC 6458 by tresse: the calls of <sys/socket.h> with the prefix `tresse_`, and the structures and numbers of
 * Linux's <netinet/sctp.h> (libsctp-dev). The library also has the calls of that header, such as sctp_sendmsg.
 *
 *     cc -o mine mine.c $(pkg-config --cflags --libs tresse-sockets)
 *
 * If TRESSE_SOCKETS_PLAIN is defined before this header is included, the plain names mean tresse's calls: programs written for
 * the kernel's SCTP compile unchanged. Calls on descriptors that are not tresse's then fail with EBADF. docs/sockets.md
 * describes the effect of each option.
 *
 * poll, select and epoll work on a socket's descriptor as on any other. SCTP runs over raw IP if the process may open raw
 * sockets; otherwise, or with the environment variable TRESSE_UDP_PORT, over UDP (RFC 6951).
 */
#ifndef TRESSE_SCTP_H
#define TRESSE_SCTP_H

#include <poll.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/sendfile.h>
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
struct mmsghdr;
struct timespec;
int tresse_sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags);
/* Waits for the first message only, whatever `limit` says. */
int tresse_recvmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags, struct timespec *limit);
/* These calls fail with EINVAL: most programs then read and write instead. */
ssize_t tresse_sendfile(int to, int from, off_t *offset, size_t len);
ssize_t tresse_splice(int from, int64_t *from_offset, int to, int64_t *to_offset, size_t len, unsigned flags);
int tresse_getsockname(int fd, struct sockaddr *name, socklen_t *len);
int tresse_getpeername(int fd, struct sockaddr *name, socklen_t *len);
int tresse_setsockopt(int fd, int level, int option, const void *value, socklen_t len);
int tresse_getsockopt(int fd, int level, int option, void *value, socklen_t *len);

/* As sctp_send, to a peer with several addresses. A call of FreeBSD, which libsctp does not have. */
int sctp_sendx(int fd, const void *data, size_t len, struct sockaddr *names, int count,
    struct sctp_sndrcvinfo *info, int flags);

/* Returns 1 if a descriptor is one of tresse's sockets, otherwise 0. */
int tresse_owns(int fd);

/* For the end of a process: closes all sockets, and waits until their data is delivered and their associations have ended, at
 * most `timeout_ms` milliseconds (negative: without limit). */
void tresse_finish(int timeout_ms);

/* daemon(3) for a process with sockets: the process in the background gets them. */
int tresse_daemon(int nochdir, int noclose);

/* Requests the synchronous mode, in which the library does nothing between calls: each call receives packets, handles due
 * timers, does its own work, sends packets and returns. It has to be requested before the first socket (otherwise -1 and EBUSY),
 * or by TRESSE_SYNCHRONOUS=1. */
int tresse_synchronous(void);
/* poll, which in the synchronous mode also receives packets and handles timers. An event loop that does not wait in tresse_poll
 * calls tresse_turn for that whenever it wakes. Its descriptors may become readable without data: the call then fails with
 * EAGAIN. */
int tresse_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
void tresse_turn(void);

/* Features that both sides support, one byte each in `sac_info` of SCTP_COMM_UP and SCTP_RESTART (RFC 6458, 6525, 8260). The
 * numbers are FreeBSD's, as Linux has none. */
#ifndef SCTP_ASSOC_SUPPORTS_PR
#define SCTP_ASSOC_SUPPORTS_PR 1
#define SCTP_ASSOC_SUPPORTS_AUTH 2
#define SCTP_ASSOC_SUPPORTS_ASCONF 3
#define SCTP_ASSOC_SUPPORTS_MULTIBUF 4
#define SCTP_ASSOC_SUPPORTS_RE_CONFIG 5
#define SCTP_ASSOC_SUPPORTS_INTERLEAVING 6
#endif

/* Schedulers of Linux's newer kernels. */
#define SCTP_SS_TRESSE_FC 3
#define SCTP_SS_TRESSE_WFQ 4

/* The stream scheduler by its name, with its configuration: as in "A pluggable multi-stream scheduler for SCTP". Names: fcfs, rr,
 * rr_pkt, prio (a priority for each stream, the lowest first), fb, wfq (a weight for each stream), or a registered one, which
 * gets its configuration as hexadecimal digits. Values of streams that are not negotiated have no effect. */
#define SCTP_SCHED 2002
#define SCTP_SCHED_NAME_MAX 32
struct sctp_sched {
    char ssched_name[SCTP_SCHED_NAME_MAX];
    __u16 ssched_config_len;
    __u16 ssched_config[0];
};

/* Stream schedulers of the program: tables of hooks of <tresse_scheduler.h>, registered and unregistered at run time. Future
 * associations can name a registered one by SCTP_SCHED. Registering copies the table, and fails with EEXIST for a name that is
 * in use, EINVAL for an invalid table. After unregistering has returned 0, the hooks are not called any more, and their code may
 * be unloaded; it fails with EBUSY while an association or a socket uses the scheduler, ENOENT for a name that is not
 * registered. */
struct tresse_scheduler;
int tresse_register_scheduler(const struct tresse_scheduler *scheduler);
int tresse_unregister_scheduler(const char *name);

/* Bytes in the send buffer of an association, and unsent bytes of each of its streams, as many as there is room for. */
#define SCTP_TRESSE_STREAM_QUEUE 2003
struct sctp_tresse_stream_queue {
    sctp_assoc_t ssq_assoc_id;
    uint32_t ssq_limit;   /* size of the send buffer */
    uint32_t ssq_used;    /* bytes in it: not yet acknowledged cumulatively or as non-renegable */
    uint32_t ssq_unsent;  /* unsent bytes of these */
    uint32_t ssq_streams; /* number of outbound streams */
    uint32_t ssq_unsent_on[];
};

/* Requests the notification SCTP_TRESSE_STREAM_LOW (subscribed by SCTP_EVENT): at once, and each time that no more than
 * `slw_bytes` bytes of the stream are unsent; UINT32_MAX ends it. The descriptor becomes readable then. */
#define SCTP_TRESSE_LOW_WATER 2004
struct sctp_tresse_low_water {
    sctp_assoc_t slw_assoc_id;
    uint16_t slw_stream;
    uint16_t slw_reserved;
    uint32_t slw_bytes;
};
#define SCTP_TRESSE_STREAM_LOW 0x801f
struct sctp_tresse_stream_low {
    uint16_t ssl_type;
    uint16_t ssl_flags;
    uint32_t ssl_length;
    sctp_assoc_t ssl_assoc_id;
    uint16_t ssl_stream;
    uint16_t ssl_reserved;
    uint32_t ssl_unsent;
};

/* A setting of docs/switches.md by its name, for future associations; ENOENT for an unknown name. */
#define SCTP_TRESSE_SETTING 2005
struct sctp_tresse_setting {
    sctp_assoc_t sts_assoc_id;
    char sts_name[64];
    char sts_value[188];
};

/* Concurrent multipath transfer, struct sctp_assoc_value: 0 off, 1 on, 2 CMT/RPv1, 3 CMT/RPv2, 4 coupled as in MPTCP (OLIA). */
#ifndef SCTP_CMT_ON_OFF
#define SCTP_CMT_ON_OFF 2006
#endif
/* Policies by their names in docs/switches.md, for future associations; the stream map also for an existing one. */
#define SCTP_TRESSE_PATH_SCHEDULER 2007
#define SCTP_TRESSE_STREAM_MAP 2008
#define SCTP_TRESSE_CONGESTION_CONTROL 2009
struct sctp_tresse_choice {
    sctp_assoc_t stc_assoc_id;
    char stc_name[60];
};

/* An option of RFC 6458 for which Linux has no number. */
#ifndef SCTP_EXPLICIT_EOR
#define SCTP_EXPLICIT_EOR 2001
/* In snd_flags and sinfo_flags: the end of a message. */
#define SCTP_EOR 0x2000
#endif

#ifdef __cplusplus
}
#endif

#ifdef TRESSE_SOCKETS_PLAIN
/* Before the macros: they would rename the C library's own declarations, and inline functions of _FORTIFY_SOURCE such as `read`
 * would take the place of tresse's calls. */
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>
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
#define sendmmsg(...) tresse_sendmmsg(__VA_ARGS__)
#define recvmmsg(...) tresse_recvmmsg(__VA_ARGS__)
#define sendfile(...) tresse_sendfile(__VA_ARGS__)
#define sendfile64(...) tresse_sendfile(__VA_ARGS__)
#define splice(...) tresse_splice(__VA_ARGS__)
#define getsockname(...) tresse_getsockname(__VA_ARGS__)
#define getpeername(...) tresse_getpeername(__VA_ARGS__)
#define setsockopt(...) tresse_setsockopt(__VA_ARGS__)
#define getsockopt(...) tresse_getsockopt(__VA_ARGS__)
#define daemon(...) tresse_daemon(__VA_ARGS__)
#endif

#endif
