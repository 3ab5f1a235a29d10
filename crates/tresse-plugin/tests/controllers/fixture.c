/* A congestion controller with whatever fault a test asks for: every window stays at ten packets.
 *
 * ABI, SIZE, NAME   other values in the table
 * NO_ON_LOSS        leaves the hook out
 * CWND, SSTHRESH    what `on_ack` sets once it has been asked 20 times
 * ANSWER            what `on_ack` answers then
 * REASON            what `failure` says
 * PACE              what `pacing_rate` answers */
#include "tresse_scheduler.h"

#include <stdio.h>
#include <stdlib.h>

#ifndef ABI
#define ABI TRESSE_SCHEDULER_ABI
#endif
#ifndef SIZE
#define SIZE sizeof(struct tresse_congestion_controller)
#endif
#ifndef NAME
#define NAME "controller_fixture"
#endif
#ifndef REASON
#define REASON NULL
#endif

struct fixture {
    unsigned asked;
    unsigned paths;
};

static void *create(const char *config, char *error, size_t error_size)
{
    if (*config) {
        snprintf(error, error_size, "\"%s\": no configuration is accepted", config);
        return NULL;
    }
    return calloc(1, sizeof(struct fixture));
}

static void destroy(void *self)
{
    free(self);
}

static void on_path_added(void *of, const struct tresse_window *window)
{
    struct fixture *self = of;

    if (window->cwnd >= window->packet)
        self->paths++;
}

/* What the core shows must agree with what it told, and with itself. */
static int is_sound(const struct fixture *self, const struct tresse_situation *situation, const struct tresse_sizes *sizes)
{
    const struct tresse_window *window = &situation->windows[situation->path];

    return situation->count == self->paths && situation->path < situation->count && window->id == situation->path &&
           window->packet > 1000 && window->cwnd == sizes->cwnd && window->ssthresh == sizes->ssthresh;
}

static int32_t on_ack(void *of, const struct tresse_situation *situation, const struct tresse_ack *ack,
                      struct tresse_sizes *sizes)
{
    struct fixture *self = of;

    self->asked++;
    if (!is_sound(self, situation, sizes) || situation->now_ns == 0 || ack->bytes == 0 ||
        ack->flight_before < ack->flight_after)
        return TRESSE_FAILED;
    sizes->cwnd = 10 * situation->windows[situation->path].packet;
    sizes->ssthresh = sizes->cwnd;
    if (self->asked > 20) {
#ifdef CWND
        sizes->cwnd = CWND;
#endif
#ifdef SSTHRESH
        sizes->ssthresh = SSTHRESH;
#endif
#ifdef ANSWER
        return ANSWER;
#endif
    }
    return 0;
}

static int32_t on_loss(void *of, const struct tresse_situation *situation, const struct tresse_ack *ack,
                       struct tresse_sizes *sizes)
{
    (void)ack;
    return is_sound(of, situation, sizes) && situation->windows[situation->path].recovering ? 0 : TRESSE_FAILED;
}

#ifdef PACE
static uint64_t pacing_rate(void *self, uint8_t path)
{
    (void)self;
    return path == 0 ? PACE : 0;
}
#endif

static const char *failure(const void *self)
{
    (void)self;
    return REASON;
}

const struct tresse_congestion_controller tresse_congestion_controller = {
    .abi = ABI,
    .size = SIZE,
    .name = NAME,
    .create = create,
    .destroy = destroy,
    .on_ack = on_ack,
#ifndef NO_ON_LOSS
    .on_loss = on_loss,
#endif
    .on_path_added = on_path_added,
#ifdef PACE
    .pacing_rate = pacing_rate,
#endif
    .failure = failure,
};
