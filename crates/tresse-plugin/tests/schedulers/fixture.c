/* A scheduler with whatever fault a test asks for: lowest stream first, over streams 0 to 63.
 *
 * ABI, SIZE, NAME   other values for the head of the table
 * NO_NEXT, NO_CREATE  leave a hook out
 * ANSWER            what `next` answers once it has been asked 20 times
 * REASON            what `failure` says
 * NAMED             the table's name in the object */
#include "tresse_scheduler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef ABI
#define ABI TRESSE_SCHEDULER_ABI
#endif
#ifndef SIZE
#define SIZE sizeof(struct tresse_scheduler)
#endif
#ifndef NAME
#define NAME "fixture"
#endif
#ifndef REASON
#define REASON NULL
#endif
#ifndef NAMED
#define NAMED tresse_scheduler
#endif

struct fixture {
    uint64_t waiting;
    uint16_t values[64];
    unsigned asked;
};

static void *create(const char *config, char *error, size_t error_size)
{
    if (strcmp(config, "silent") == 0)
        return NULL;
    if (*config) {
        snprintf(error, error_size, "\"%s\" is not\n\"silent\"", config);
        return NULL;
    }
    return calloc(1, sizeof(struct fixture));
}

static void destroy(void *self)
{
    free(self);
}

static void on_queued(void *of, const struct tresse_queued *queued)
{
    struct fixture *self = of;

    self->waiting |= (uint64_t)1 << (queued->stream % 64);
}

static int32_t next(void *of, const struct tresse_path *path, const struct tresse_backlog *backlog)
{
    struct fixture *self = of;
    int32_t stream;

    self->asked++;
#ifdef ANSWER
    if (self->asked > 20)
        return ANSWER;
#endif
    for (stream = 0; stream < 64; stream++) {
        if (!(self->waiting >> stream & 1))
            continue;
        /* What the core shows must agree with what it told. */
        if (backlog->head_bytes(backlog, (uint16_t)stream) == 0 ||
            backlog->messages(backlog, (uint16_t)stream) == 0 ||
            backlog->unsent_bytes(backlog, (uint16_t)stream) < backlog->head_bytes(backlog, (uint16_t)stream) ||
            path->state != TRESSE_PATH_ACTIVE || path->mtu < 1000 || path->cwnd == 0)
            return TRESSE_FAILED;
        return stream;
    }
    return TRESSE_NO_STREAM;
}

static void on_taken(void *of, const struct tresse_taken *taken)
{
    struct fixture *self = of;

    if (taken->stream_empty)
        self->waiting &= ~((uint64_t)1 << (taken->stream % 64));
}

static int is_empty(const void *of)
{
    return ((const struct fixture *)of)->waiting == 0;
}

static int set_value(void *of, uint16_t stream, uint16_t value)
{
    if (value > 9)
        return 22;
    ((struct fixture *)of)->values[stream % 64] = value;
    return 0;
}

static int32_t value(const void *of, uint16_t stream)
{
    return ((const struct fixture *)of)->values[stream % 64];
}

static const char *failure(const void *self)
{
    (void)self;
    return REASON;
}

const struct tresse_scheduler NAMED = {
    .abi = ABI,
    .size = SIZE,
    .name = NAME,
#ifndef NO_CREATE
    .create = create,
#endif
    .destroy = destroy,
    .on_queued = on_queued,
#ifndef NO_NEXT
    .next = next,
#endif
    .on_taken = on_taken,
    .is_empty = is_empty,
    .set_value = set_value,
    .value = value,
    .failure = failure,
};
