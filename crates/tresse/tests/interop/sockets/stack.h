/* What the peer asks of a stack, beyond the names that RFC 6458 gives to structures and options: a file for each stack
 * (usrsctp.c, linux.c) answers it. */

#ifndef STACK_H
#define STACK_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#ifdef STACK_OF_LINUX
#include <linux/sctp.h>
typedef int stack_socket;
#else
#include <usrsctp.h>
typedef struct socket *stack_socket;
#endif

/* Extensions that are off by default. */
struct extensions {
    int nr_sack, cmt, ecn, interleaving, addresses;
};

/* Partial reliability of a message; SCTP_PR_SCTP_NONE for none. */
struct reliability {
    int policy;
    uint32_t value;
};

/* Ends the program with a word on `what` if `failed` (peer.c). */
void check(int failed, const char *what);

/* Begins with SCTP in UDP on this port. */
void stack_begin(int udp_port, const struct extensions *wanted);
/* A socket for one association, with extensions as wanted. */
stack_socket stack_open(const struct extensions *wanted);
void stack_option(stack_socket sock, int name, const void *value, socklen_t len, const char *what);
/* Adds or removes an own address (SCTP_BINDX_ADD_ADDR, SCTP_BINDX_REM_ADDR). */
int stack_bind(stack_socket sock, struct sockaddr_in *address, int how);
/* Asks the peer to send to this own address by preference. */
void stack_prefer(stack_socket sock, const struct sockaddr_in *address);
int stack_call(stack_socket sock, struct sockaddr_in *list, int count);
int stack_listen(stack_socket sock);
stack_socket stack_accept(stack_socket sock);

/* True if the message was taken. */
int stack_send(stack_socket sock, const void *bytes, size_t len, struct sctp_sndinfo info, struct reliability how);
/* As recvmsg(2), with what there is to know of a message. */
ssize_t stack_receive(stack_socket sock, void *bytes, size_t size, struct sctp_rcvinfo *info, int *flags);

int stack_shutdown(stack_socket sock);
/* Ends the association with ABORT, and perhaps the program too. */
void stack_abort(stack_socket sock);
/* Ends the program without a word to the other side, and nothing of the association stays. */
void stack_vanish(stack_socket sock);
void stack_close(stack_socket sock);
void stack_end(void);

#endif
