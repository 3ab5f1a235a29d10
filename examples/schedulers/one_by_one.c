/* One stream after the other: a stream that has its turn keeps it until nothing of it is left.
 *
 * For files on streams of their own: the first is complete early, instead of all of them late. Loses where a stream never
 * pauses: those behind it starve. The same policy as one_by_one.rs and one_by_one.py.
 *
 *     cc -shared -fPIC -O2 -I include -o one_by_one.so examples/schedulers/one_by_one.c
 */
#include "tresse_scheduler.h"

#include <stdio.h>
#include <stdlib.h>

#define STREAMS 65536u

/* Streams with data, in the order in which they came. Each is in there once, so that a ring for all never overflows. */
struct one_by_one {
    uint32_t first;
    uint32_t count;
    uint16_t ring[STREAMS];
};

static uint16_t *place(struct one_by_one *self, uint32_t position)
{
    return &self->ring[(self->first + position) % STREAMS];
}

static void *create(const char *config, char *error, size_t error_size)
{
    struct one_by_one *self;

    if (*config) {
        snprintf(error, error_size, "\"%s\": no configuration is accepted", config);
        return NULL;
    }
    self = calloc(1, sizeof *self);
    if (!self)
        snprintf(error, error_size, "out of memory");
    return self;
}

static void destroy(void *self)
{
    free(self);
}

static void on_queued(void *of, const struct tresse_queued *queued)
{
    struct one_by_one *self = of;

    if (queued->was_idle)
        *place(self, self->count++) = queued->stream;
}

static int32_t next(void *of, const struct tresse_path *path, const struct tresse_backlog *backlog)
{
    struct one_by_one *self = of;

    (void)path;
    (void)backlog;
    return self->count ? *place(self, 0) : TRESSE_NO_STREAM;
}

static void on_taken(void *of, const struct tresse_taken *taken)
{
    struct one_by_one *self = of;
    uint32_t position = 0;

    if (!taken->stream_empty)
        return;
    /* Nearly always the first. */
    while (position < self->count && *place(self, position) != taken->stream)
        position++;
    if (position == self->count)
        return;
    for (; position > 0; position--)
        *place(self, position) = *place(self, position - 1);
    self->first = (self->first + 1) % STREAMS;
    self->count--;
}

static int is_empty(const void *of)
{
    const struct one_by_one *self = of;

    return self->count == 0;
}

const struct tresse_scheduler tresse_scheduler = {
    .abi = TRESSE_SCHEDULER_ABI,
    .size = sizeof(struct tresse_scheduler),
    .name = "one_by_one",
    .create = create,
    .destroy = destroy,
    .on_queued = on_queued,
    .next = next,
    .on_taken = on_taken,
    .is_empty = is_empty,
};
