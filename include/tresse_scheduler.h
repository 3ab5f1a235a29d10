/* Schedulers and congestion controllers for tresse, written in C.
 *
 * A stream scheduler says which stream's data leaves next; tresse keeps the queues, cuts the messages and keeps each
 * stream in order. A path scheduler says which path gets the next data; tresse says what each path may carry.
 * A congestion controller says how much each path may carry; tresse keeps the windows, and recovers what was lost.
 * A shared object brings one of them: it exports a table with the hooks, named `tresse_scheduler` for streams,
 * `tresse_path_scheduler` for paths or `tresse_congestion_controller`. docs/schedulers.md walks through an example,
 * examples/schedulers/one_by_one.c; docs/path-schedulers.md has one of paths, cleanest.c beside it; docs/congestion.md has a
 * controller, examples/controllers/scalable.c.
 *
 *     cc -shared -fPIC -I include -o mine.so mine.c
 *
 * Rules
 * - Each association has schedulers and a controller of its own (schedulers of streams for each group of them), made by
 *   `create`. One may be called from different threads, but never from two at a time.
 * - Hooks do not block, do not call tresse, and let no C++ exception out. What they are given is theirs until they return.
 * - A scheduler that names a stream with nothing to send, or none although data waits and every path could take it, is
 *   replaced by first come, first served: in its own association, which is told why. So is one that names a path which can
 *   take no data, by the primary path first, and a controller with an answer out of bounds by that of RFC 9260. Nothing is
 *   lost. Against code that crashes or never returns there is no help: it is part of the process.
 * - The object stays loaded as long as the table is registered or anything from it lives.
 */
#ifndef TRESSE_SCHEDULER_H
#define TRESSE_SCHEDULER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface. Tables of any kind made for another one are refused. */
#define TRESSE_SCHEDULER_ABI 3u

/* Bytes of a name, with the zero at its end. Names have the letters a to z, digits and underscores. */
#define TRESSE_SCHEDULER_NAME_SIZE 32

/* What `next` answers for nothing on this path now. */
#define TRESSE_NO_STREAM (-1)
/* What `pick` answers to wait for a better path. */
#define TRESSE_NO_PATH (-1)
/* What all hooks with an answer give when they cannot go on. */
#define TRESSE_FAILED (-2)

/* States of a path. */
#define TRESSE_PATH_UNCONFIRMED 0
#define TRESSE_PATH_ACTIVE 1
#define TRESSE_PATH_POTENTIALLY_FAILED 2
#define TRESSE_PATH_INACTIVE 3

/* A message was queued. */
struct tresse_queued {
    uint64_t bytes;     /* its length */
    uint64_t at_ns;     /* when the application gave it; nanoseconds on the clock of the endpoint */
    uint16_t stream;
    uint8_t was_idle;   /* the stream had nothing to send before */
};

/* Data of a stream went into a packet. */
struct tresse_taken {
    uint64_t bytes;
    uint16_t stream;
    uint8_t message_done; /* this was the end of a message */
    uint8_t turn_over;    /* another stream may be served now: so it is, or fragments are interleaved (RFC 8260) */
    uint8_t stream_empty; /* the stream has nothing left to send */
};

/* A message was withdrawn before it was sent, because it expired for instance. */
struct tresse_removed {
    uint64_t bytes;     /* of it that were still to be sent */
    uint64_t ahead;     /* messages of the stream that were waiting before it */
    uint16_t stream;
    uint8_t stream_empty;
};

/* The path that asks, or that is offered. Sizes are bytes of DATA chunks, headers included. */
struct tresse_path {
    uint64_t cwnd;
    uint64_t ssthresh;
    uint64_t flight;       /* sent on it and not acknowledged */
    uint64_t room;         /* what its window still admits */
    uint64_t rate;         /* at which data was lately acknowledged, bit/s; 0: not known */
    uint64_t srtt_ns;      /* smoothed round-trip time; 0: not measured */
    uint64_t rttvar_ns;
    uint64_t rtt_min_ns;   /* the range that round-trip times have been in */
    uint64_t rtt_max_ns;
    uint64_t rto_ns;
    uint64_t last_sent_ns; /* nanoseconds on the clock of the endpoint */
    double loss;           /* share of what was sent, from 0 to 1 */
    uint32_t mtu;          /* bytes of a packet */
    uint8_t id;            /* its position, from 0 */
    uint8_t state;         /* TRESSE_PATH_... */
    uint8_t primary;
    uint8_t recovering;    /* a loss is being made good */
};

/* What waits on each stream: questions to ask within `next`. */
struct tresse_backlog {
    const void *queues;
    uint64_t (*unsent_bytes)(const struct tresse_backlog *backlog, uint16_t stream);
    uint64_t (*messages)(const struct tresse_backlog *backlog, uint16_t stream);
    uint64_t (*head_bytes)(const struct tresse_backlog *backlog, uint16_t stream); /* of its first message */
};

/* A path that may carry new data. */
struct tresse_candidate {
    struct tresse_path path;
    uint64_t assigned;  /* left to it, and waiting for its window; 0 without TRESSE_ASSIGNS, as the next one */
    uint64_t early;     /* that arrived, or so the peer says, before something that has a lower TSN */
    uint8_t open;       /* a packet may leave on it now */
    uint8_t assignable; /* with TRESSE_ASSIGNS: a packet more may wait for its window */
};

/* What a path scheduler decides on: new data waits, and these paths could carry it. */
struct tresse_offer {
    const struct tresse_candidate *paths; /* by ascending id, open or not */
    size_t count;
    uint64_t unsent;      /* bytes that wait to be sent, on all streams */
    uint64_t peer_window; /* bytes that the peer can still take beside what is in flight */
    uint64_t now_ns;      /* nanoseconds on the clock of the endpoint */
};

/* The table of a stream scheduler. `self` is what `create` returned. */
struct tresse_scheduler {
    uint32_t abi;  /* TRESSE_SCHEDULER_ABI */
    uint32_t size; /* sizeof(struct tresse_scheduler) */
    char name[TRESSE_SCHEDULER_NAME_SIZE];

    /* A scheduler with this configuration, an empty string for none. NULL refuses it; then `error`, which has room for
     * `error_size` bytes, says in one line what is wrong and what would be accepted. */
    void *(*create)(const char *config, char *error, size_t error_size);
    void (*destroy)(void *self);

    void (*on_queued)(void *self, const struct tresse_queued *queued);
    /* The stream whose data leaves next on this path, TRESSE_NO_STREAM or TRESSE_FAILED. Asked again before anything else
     * was told, it gives the same answer. Without interleaving it is not asked in the middle of a message. */
    int32_t (*next)(void *self, const struct tresse_path *path, const struct tresse_backlog *backlog);
    void (*on_taken)(void *self, const struct tresse_taken *taken);
    /* Whether no stream has data. */
    int (*is_empty)(const void *self);

    /* From here on hooks may be left out (NULL). */

    /* Without it, a withdrawal counts as taken when it empties the stream, and else as nothing. */
    void (*on_removed)(void *self, const struct tresse_removed *removed);
    /* A packet is complete; what is taken next goes into another one. */
    void (*on_packet_end)(void *self);
    /* Sets the value of a stream, a priority or weight, at any time; other than 0 refuses it. */
    int (*set_value)(void *self, uint16_t stream, uint16_t value);
    /* The value of a stream; negative for none. */
    int32_t (*value)(const void *self, uint16_t stream);
    /* Why `next` answered TRESSE_FAILED, in one line. */
    const char *(*failure)(const void *self);
};

/* What a path scheduler does beside picking open paths. */
#define TRESSE_ASSIGNS 1u /* it leaves data to paths that are not open, but assignable */
#define TRESSE_COPIES 2u  /* what is sent on one path leaves on all others as well */

/* The table of a path scheduler. `create`, `destroy` and `failure` are as above. */
struct tresse_path_scheduler {
    uint32_t abi;   /* TRESSE_SCHEDULER_ABI */
    uint32_t size;  /* sizeof(struct tresse_path_scheduler) */
    char name[TRESSE_SCHEDULER_NAME_SIZE];
    uint32_t flags; /* TRESSE_ASSIGNS, TRESSE_COPIES, both or 0 */

    void *(*create)(const char *config, char *error, size_t error_size);
    void (*destroy)(void *self);

    /* The id of the path for the next packet of new data, TRESSE_NO_PATH to wait for a better one, or TRESSE_FAILED. To wait
     * while nothing is in flight is not possible: an open path is used then all the same. Asked again before `on_sent`, it
     * gives the same answer. Also asked, for its information, when no path is open. */
    int32_t (*pick)(void *self, const struct tresse_offer *offer);

    /* From here on hooks may be left out (NULL). */

    /* A packet with so many bytes of DATA chunks with new data was sent on this path, whoever chose it, or was left to it. */
    void (*on_sent)(void *self, uint8_t path, uint64_t bytes);
    const char *(*failure)(const void *self);
};

/* The congestion window of a path, in bytes of DATA chunks, headers included. */
struct tresse_window {
    uint64_t cwnd;
    uint64_t ssthresh;  /* slow-start threshold */
    uint64_t packet;    /* the DATA chunk of a full packet */
    uint64_t srtt_ns;   /* smoothed round-trip time; 0: not measured */
    uint64_t min_rtt_ns; /* the shortest since the path was added; 0: not measured */
    uint8_t id;         /* its path, which is its place among all */
    uint8_t usable;     /* the path is confirmed and active; what couples paths had better leave out the others */
    uint8_t recovering; /* a loss is being made good */
};

/* When something happened to one path, and how the windows of all stand. The core changes them too: look anew each time. */
struct tresse_situation {
    const struct tresse_window *windows; /* windows[p] is that of path p */
    size_t count;
    uint64_t now_ns; /* nanoseconds on the clock of the endpoint */
    uint8_t path;    /* the one that the answer is for */
};

/* What a SACK said about that path, in bytes of DATA chunks, headers included. */
struct tresse_ack {
    uint64_t bytes;         /* newly acknowledged */
    uint64_t flight_before; /* in flight before the SACK */
    uint64_t flight_after;  /* and after it, before anything else is sent */
    uint64_t lost;          /* found to be lost since data of the path was acknowledged before */
    uint64_t rtt_ns;        /* round trip of the newest data acknowledged; 0: it was sent more than once */
    uint64_t rate;          /* delivered over the last round trip, bytes a second; 0: not known */
    uint8_t may_grow;       /* nothing is being made good, and the rule for growth under CMT agrees */
    uint8_t fully_used;     /* the window was used to the full: RFC 9260 lets no other grow */
};

/* What the window is to be: from a full packet, or less if it was less before, to 1 GiB each. */
struct tresse_sizes {
    uint64_t cwnd;
    uint64_t ssthresh;
};

/* The table of a congestion controller. `create`, `destroy` and `failure` are as above. Hooks with an answer find the window
 * as it stands in `sizes`, change it there or leave it, and return 0, or TRESSE_FAILED. */
struct tresse_congestion_controller {
    uint32_t abi;  /* TRESSE_SCHEDULER_ABI */
    uint32_t size; /* sizeof(struct tresse_congestion_controller) */
    char name[TRESSE_SCHEDULER_NAME_SIZE];

    void *(*create)(const char *config, char *error, size_t error_size);
    void (*destroy)(void *self);

    /* Data of the path was newly acknowledged. Asked once for each SACK and path, before a loss in the same SACK. */
    int32_t (*on_ack)(void *self, const struct tresse_situation *situation, const struct tresse_ack *ack,
                      struct tresse_sizes *sizes);
    /* Data of it was lost, or met a congestion mark, and nothing was being made good before. */
    int32_t (*on_loss)(void *self, const struct tresse_situation *situation, const struct tresse_ack *ack,
                       struct tresse_sizes *sizes);

    /* From here on hooks may be left out (NULL). */

    /* T3 of the path expired. Without it: one packet, and slow start up to half of the window (RFC 9260). */
    int32_t (*on_timeout)(void *self, const struct tresse_situation *situation, struct tresse_sizes *sizes);
    /* Another RTO has passed without data on it. Without it: half of the window, down to four packets. */
    int32_t (*on_idle)(void *self, const struct tresse_situation *situation, struct tresse_sizes *sizes);
    /* A path was added, perhaps in the place of one that is gone. */
    void (*on_path_added)(void *self, const struct tresse_window *window);
    /* The most that a path sends, bytes a second; asked after each answer. 0, as without it: a multiple of window over
     * round-trip time (RFC 9002 section 7.7). */
    uint64_t (*pacing_rate)(void *self, uint8_t path);
    const char *(*failure)(const void *self);
};

/* What an object exports: one of them. */
extern const struct tresse_scheduler tresse_scheduler;
extern const struct tresse_path_scheduler tresse_path_scheduler;
extern const struct tresse_congestion_controller tresse_congestion_controller;

#ifdef __cplusplus
}
#endif

#endif
