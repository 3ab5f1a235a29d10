/* Scalable TCP (Kelly 2003): a window grows by a share of itself and loses a share of itself, so that the time between
 * losses does not depend on how large it is.
 *
 * For long and fast paths, where one packet more for each window takes minutes to make good a loss. Loses, in fairness,
 * where a path is shared: who has more gets more. A window too small for that grows as RFC 9260 says. The configuration
 * is the percentage that a loss takes away, 12.5 unless given. The same as scalable.rs and scalable.py.
 *
 *     cc -shared -fPIC -O2 -I include -o scalable.so examples/controllers/scalable.c
 */
#include "tresse_scheduler.h"

#include <stdio.h>
#include <stdlib.h>

struct scalable {
    double keeps; /* what a loss leaves, from 0 to 1 */
};

static void *create(const char *config, char *error, size_t error_size)
{
    struct scalable *self;
    char *end = NULL;
    double percent = *config ? strtod(config, &end) : 12.5;

    if ((end && (end == config || *end)) || !(percent > 0.0 && percent < 100.0)) {
        snprintf(error, error_size, "\"%s\" is no percentage between 0 and 100, such as 12.5", config);
        return NULL;
    }
    self = malloc(sizeof *self);
    if (!self) {
        snprintf(error, error_size, "out of memory");
        return NULL;
    }
    self->keeps = 1.0 - percent / 100.0;
    return self;
}

static void destroy(void *self)
{
    free(self);
}

static uint64_t smaller(uint64_t one, uint64_t other)
{
    return one < other ? one : other;
}

static uint64_t larger(uint64_t one, uint64_t other)
{
    return one > other ? one : other;
}

static int32_t on_ack(void *self, const struct tresse_situation *situation, const struct tresse_ack *ack,
                      struct tresse_sizes *sizes)
{
    const struct tresse_window *window = &situation->windows[situation->path];

    (void)self;
    if (!ack->may_grow || !ack->fully_used)
        return 0;
    if (window->cwnd <= window->ssthresh)
        sizes->cwnd += smaller(ack->bytes, window->packet);
    else
        sizes->cwnd += larger(ack->bytes / 100, window->packet * ack->bytes / window->cwnd);
    return 0;
}

static int32_t on_loss(void *of, const struct tresse_situation *situation, const struct tresse_ack *ack,
                       struct tresse_sizes *sizes)
{
    const struct scalable *self = of;
    const struct tresse_window *window = &situation->windows[situation->path];

    (void)ack;
    sizes->cwnd = larger((uint64_t)(window->cwnd * self->keeps), 4 * window->packet);
    sizes->ssthresh = sizes->cwnd;
    return 0;
}

const struct tresse_congestion_controller tresse_congestion_controller = {
    .abi = TRESSE_SCHEDULER_ABI,
    .size = sizeof(struct tresse_congestion_controller),
    .name = "scalable",
    .create = create,
    .destroy = destroy,
    .on_ack = on_ack,
    .on_loss = on_loss,
};
