/* Schedulers and congestion controllers for tresse, written in C.
 *
 * A stream scheduler selects the stream whose data leaves next; tresse has the queues, fragments the messages and keeps each
 * stream in order. A path scheduler selects the path for the next data; tresse limits the data on each path. A congestion
 * controller sets the congestion window of each path; tresse keeps the windows, and retransmits lost data.
 * A shared object contains one of them: it exports a table with the hooks, named `tresse_scheduler` for streams,
 * `tresse_path_scheduler` for paths or `tresse_congestion_controller`. docs/schedulers.md explains an example,
 * examples/schedulers/one_by_one.c; docs/path-schedulers.md one for paths, cleanest.c in the same directory; docs/congestion.md
 * a controller, examples/controllers/scalable.c.
 *
 *     cc -shared -fPIC -I include -o mine.so mine.c
 *
 * Rules
 * - Each association has its own schedulers and controller, made by `create` (a stream scheduler for each group of streams that
 *   share paths). An instance may be called from different threads, but never from two at a time.
 * - Hooks must not block, call tresse, or throw C++ exceptions. Their arguments are valid until they return.
 * - An invalid result is a failure. A failed policy is replaced in its association, which gets an event with the reason; no data
 *   is lost. A stream scheduler fails if it selects a stream with nothing to send, or no stream although data waits and every
 *   path could take it; first come, first served replaces it. A path scheduler fails if it selects a path that can take no data;
 *   a scheduler that prefers the primary path replaces it. A controller fails with a window out of bounds; that of RFC 9260
 *   replaces it. tresse cannot handle code that crashes or never returns: it runs in the same process.
 * - The object stays loaded as long as its table is registered or an instance of it exists.
 */
#ifndef TRESSE_SCHEDULER_H
#define TRESSE_SCHEDULER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface. Tables for another version are refused. */
#define TRESSE_SCHEDULER_ABI 3u

/* Bytes of a name, with the zero byte at its end. Names consist of the letters a to z, digits and underscores. */
#define TRESSE_SCHEDULER_NAME_SIZE 32

/* Result of `next`: no data leaves on this path now. */
#define TRESSE_NO_STREAM (-1)
/* Result of `pick`: wait for a better path. */
#define TRESSE_NO_PATH (-1)
/* Result of `next`, `pick` and the hooks that set a window: the instance has failed. */
#define TRESSE_FAILED (-2)

/* States of a path. */
#define TRESSE_PATH_UNCONFIRMED 0
#define TRESSE_PATH_ACTIVE 1
#define TRESSE_PATH_POTENTIALLY_FAILED 2
#define TRESSE_PATH_INACTIVE 3

/* A message was queued. */
struct tresse_queued {
    uint64_t bytes;     /* length of the message */
    uint64_t at_ns;     /* when the application sent it; nanoseconds on the clock of the endpoint */
    uint16_t stream;
    uint8_t was_idle;   /* the stream had nothing to send before */
};

/* Data of a stream went into a packet. */
struct tresse_taken {
    uint64_t bytes;
    uint16_t stream;
    uint8_t message_done; /* this was the end of a message */
    uint8_t turn_over;    /* another stream may be selected now: the message ended, or messages are interleaved (RFC 8260) */
    uint8_t stream_empty; /* the stream has nothing left to send */
};

/* A message was withdrawn before it was sent, because it expired for instance. */
struct tresse_removed {
    uint64_t bytes;     /* its unsent bytes */
    uint64_t ahead;     /* number of messages of the stream that were queued before it */
    uint16_t stream;
    uint8_t stream_empty;
};

/* A path: that for which a stream is selected, or a candidate. Sizes are bytes of DATA chunks, headers included. */
struct tresse_path {
    uint64_t cwnd;
    uint64_t ssthresh;
    uint64_t flight;       /* in flight: sent on it, neither acknowledged nor lost */
    uint64_t room;         /* bytes that its congestion window still admits */
    uint64_t rate;         /* recent delivery rate, bit/s; 0: not known */
    uint64_t srtt_ns;      /* smoothed round-trip time; 0: not measured */
    uint64_t rttvar_ns;
    uint64_t rtt_min_ns;   /* shortest and longest round-trip time */
    uint64_t rtt_max_ns;
    uint64_t rto_ns;
    uint64_t last_sent_ns; /* nanoseconds on the clock of the endpoint */
    double loss;           /* lost share of the data sent, from 0 to 1 */
    uint32_t mtu;          /* largest IP packet, bytes with all headers */
    uint8_t id;            /* its position, from 0 */
    uint8_t state;         /* TRESSE_PATH_... */
    uint8_t primary;
    uint8_t recovering;    /* a loss is being recovered */
};

/* The backlog of each stream: functions to be called within `next`. */
struct tresse_backlog {
    const void *queues;
    uint64_t (*unsent_bytes)(const struct tresse_backlog *backlog, uint16_t stream);
    uint64_t (*messages)(const struct tresse_backlog *backlog, uint16_t stream);
    uint64_t (*head_bytes)(const struct tresse_backlog *backlog, uint16_t stream); /* unsent bytes of its first message */
};

/* A path that may carry new data. */
struct tresse_candidate {
    struct tresse_path path;
    uint64_t assigned;  /* assigned to it, and waiting for its window; 0 without TRESSE_ASSIGNS */
    uint64_t early;     /* acknowledged by gap ack blocks only; 0 without TRESSE_ASSIGNS */
    uint8_t open;       /* a packet may be sent on it now */
    uint8_t assignable; /* with TRESSE_ASSIGNS: another packet may be assigned to it */
};

/* A transmission opportunity for a path scheduler: new data waits, and these paths could carry it. */
struct tresse_offer {
    const struct tresse_candidate *paths; /* by ascending id, open or not */
    size_t count;
    uint64_t unsent;      /* bytes that wait to be sent, on all streams */
    uint64_t peer_window; /* receiver window that is left beside the data in flight, bytes */
    uint64_t now_ns;      /* nanoseconds on the clock of the endpoint */
    uint8_t buffer_limited; /* the send buffer limits the application: more data follows what waits */
    uint8_t streams_bound;  /* the stream map binds streams to paths: a path may carry only a part of what waits */
};

/* The table of a stream scheduler. `self` is what `create` returned. */
struct tresse_scheduler {
    uint32_t abi;  /* TRESSE_SCHEDULER_ABI */
    uint32_t size; /* sizeof(struct tresse_scheduler) */
    char name[TRESSE_SCHEDULER_NAME_SIZE];

    /* Creates an instance with this configuration, which may be empty. Returns NULL if the configuration is invalid, and writes
     * one line to `error`, which has room for `error_size` bytes: the fault, and what is accepted. */
    void *(*create)(const char *config, char *error, size_t error_size);
    void (*destroy)(void *self);

    void (*on_queued)(void *self, const struct tresse_queued *queued);
    /* Returns the stream whose data leaves next on this path, TRESSE_NO_STREAM or TRESSE_FAILED. If it is called again before
     * any other hook, it has to return the same. Without interleaving it is not called in the middle of a message. */
    int32_t (*next)(void *self, const struct tresse_path *path, const struct tresse_backlog *backlog);
    void (*on_taken)(void *self, const struct tresse_taken *taken);
    /* Returns a number other than 0 if no stream has data. */
    int (*is_empty)(const void *self);

    /* The hooks below are optional (NULL). */

    /* Without it, a withdrawal that empties the stream is reported by `on_taken`, and others are not reported. */
    void (*on_removed)(void *self, const struct tresse_removed *removed);
    /* A packet is complete; the next data goes into another one. */
    void (*on_packet_end)(void *self);
    /* Sets the value of a stream, a priority or weight, at any time. Returns 0, or another number if the value is refused. */
    int (*set_value)(void *self, uint16_t stream, uint16_t value);
    /* Returns the value of a stream; negative for none. */
    int32_t (*value)(const void *self, uint16_t stream);
    /* Returns one line with the reason of TRESSE_FAILED. */
    const char *(*failure)(const void *self);
};

/* Flags of a path scheduler that does more than to select open paths. */
#define TRESSE_ASSIGNS 1u /* it also selects paths that are assignable, but not open */
#define TRESSE_COPIES 2u  /* data sent on one path is sent on all others as well */

/* The table of a path scheduler. `create`, `destroy` and `failure` are as above. */
struct tresse_path_scheduler {
    uint32_t abi;   /* TRESSE_SCHEDULER_ABI */
    uint32_t size;  /* sizeof(struct tresse_path_scheduler) */
    char name[TRESSE_SCHEDULER_NAME_SIZE];
    uint32_t flags; /* TRESSE_ASSIGNS, TRESSE_COPIES, both or 0 */

    void *(*create)(const char *config, char *error, size_t error_size);
    void (*destroy)(void *self);

    /* Returns the id of the path for the next packet of new data, TRESSE_NO_PATH to wait for a better one, or TRESSE_FAILED. If
     * it waits while nothing is in flight, an open path is used all the same. If it is called again before `on_sent`, it has to
     * return the same. It is also called, for its information, when no path is open. */
    int32_t (*pick)(void *self, const struct tresse_offer *offer);

    /* The hooks below are optional (NULL). */

    /* A packet with so many bytes of DATA chunks with new data was sent on this path, whatever selected the path, or was assigned
     * to it. */
    void (*on_sent)(void *self, uint8_t path, uint64_t bytes);
    const char *(*failure)(const void *self);
};

/* The congestion window of a path, in bytes of DATA chunks, headers included. */
struct tresse_window {
    uint64_t cwnd;
    uint64_t ssthresh;  /* slow-start threshold */
    uint64_t packet;    /* the DATA chunk of a full packet */
    uint64_t srtt_ns;   /* smoothed round-trip time; 0: not measured */
    uint64_t min_rtt_ns; /* shortest round-trip time since the path was added; 0: not measured */
    uint8_t id;         /* the path, which is the index of this window */
    uint8_t usable;     /* the path is confirmed and active; coupled controllers should ignore the others */
    uint8_t recovering; /* a loss is being recovered */
};

/* The time and the path of an event, and the windows of all paths. Do not keep the windows: the core changes them too. */
struct tresse_situation {
    const struct tresse_window *windows; /* windows[p] is the window of path p */
    size_t count;
    uint64_t now_ns; /* nanoseconds on the clock of the endpoint */
    uint8_t path;    /* the path whose window the hook sets */
};

/* Report of a SACK for that path, in bytes of DATA chunks, headers included. */
struct tresse_ack {
    uint64_t bytes;         /* newly acknowledged */
    uint64_t flight_before; /* in flight before the SACK */
    uint64_t flight_after;  /* in flight after it, before further data is sent */
    uint64_t lost;          /* found lost since the path's data was last acknowledged */
    uint64_t rtt_ns;        /* round-trip time of the newest data acknowledged; 0: it was sent more than once */
    uint64_t rate;          /* delivery rate over the last round trip, bytes per second; 0: not known */
    uint8_t may_grow;       /* no loss is being recovered, and the rule for growth under CMT (CUC) permits it */
    uint8_t fully_used;     /* the window was fully used: otherwise it must not grow (RFC 9260 section 7.2) */
};

/* The new window: each value at most 1 GiB, and at least a full packet, or the previous value if that was less. */
struct tresse_sizes {
    uint64_t cwnd;
    uint64_t ssthresh;
};

/* The table of a congestion controller. `create`, `destroy` and `failure` are as above. Hooks with the argument `sizes` find the
 * present window there and may change it; they return 0, or TRESSE_FAILED. */
struct tresse_congestion_controller {
    uint32_t abi;  /* TRESSE_SCHEDULER_ABI */
    uint32_t size; /* sizeof(struct tresse_congestion_controller) */
    char name[TRESSE_SCHEDULER_NAME_SIZE];

    void *(*create)(const char *config, char *error, size_t error_size);
    void (*destroy)(void *self);

    /* Data of the path was newly acknowledged. Called once for each SACK and path, before `on_loss` for the same SACK. */
    int32_t (*on_ack)(void *self, const struct tresse_situation *situation, const struct tresse_ack *ack,
                      struct tresse_sizes *sizes);
    /* Data of the path was lost, or congestion was marked (ECN), and no loss was being recovered before. */
    int32_t (*on_loss)(void *self, const struct tresse_situation *situation, const struct tresse_ack *ack,
                       struct tresse_sizes *sizes);

    /* The hooks below are optional (NULL). */

    /* T3-rtx of the path expired. Without it: one packet, and slow start up to half of the window (RFC 9260). */
    int32_t (*on_timeout)(void *self, const struct tresse_situation *situation, struct tresse_sizes *sizes);
    /* Another RTO has passed without data on the path. Without it: half of the window, but at least four packets. */
    int32_t (*on_idle)(void *self, const struct tresse_situation *situation, struct tresse_sizes *sizes);
    /* A path was added, possibly with the id of a removed one. */
    void (*on_path_added)(void *self, const struct tresse_window *window);
    /* Returns the greatest rate of a path, in bytes per second; called after each hook that sets the window. 0, or without this
     * hook: a multiple of the window divided by the round-trip time (RFC 9002 section 7.7). A path pauses for a second at most,
     * at however low a rate. */
    uint64_t (*pacing_rate)(void *self, uint8_t path);
    const char *(*failure)(const void *self);
};

/* An object exports one of these. */
extern const struct tresse_scheduler tresse_scheduler;
extern const struct tresse_path_scheduler tresse_path_scheduler;
extern const struct tresse_congestion_controller tresse_congestion_controller;

#ifdef __cplusplus
}
#endif

#endif
