/* A path scheduler with whatever fault a test asks for: the open path with the lowest id.
 *
 * ABI, SIZE, NAME, FLAGS  other values in the table
 * NO_PICK           leaves the hook out
 * BOTH              exports a table of stream schedulers too
 * ANSWER            what `pick` answers once it has been asked 20 times
 * REASON            what `failure` says */
#include "tresse_scheduler.h"

#include <stdio.h>
#include <stdlib.h>

#ifndef ABI
#define ABI TRESSE_SCHEDULER_ABI
#endif
#ifndef SIZE
#define SIZE sizeof(struct tresse_path_scheduler)
#endif
#ifndef NAME
#define NAME "path_fixture"
#endif
#ifndef FLAGS
#define FLAGS 0
#endif
#ifndef REASON
#define REASON NULL
#endif

struct fixture {
    unsigned asked;
    uint64_t sent;
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

static int32_t pick(void *of, const struct tresse_offer *offer)
{
    struct fixture *self = of;
    size_t i;

    self->asked++;
#ifdef ANSWER
    if (self->asked > 20)
        return ANSWER;
#endif
    /* What the core shows must agree with what it told, and with itself. */
    if (offer->count == 0 || offer->now_ns == 0 || (self->asked > 20 && self->sent == 0))
        return TRESSE_FAILED;
    for (i = 0; i < offer->count; i++) {
        const struct tresse_candidate *candidate = &offer->paths[i];

        if ((i > 0 && candidate->path.id <= candidate[-1].path.id) || candidate->path.mtu < 1000 ||
            candidate->path.cwnd == 0)
            return TRESSE_FAILED;
        if (!FLAGS && (candidate->assignable || candidate->assigned || candidate->early))
            return TRESSE_FAILED;
        if (candidate->open || candidate->assignable)
            return candidate->path.id;
    }
    return TRESSE_NO_PATH;
}

static void on_sent(void *of, uint8_t path, uint64_t bytes)
{
    struct fixture *self = of;

    (void)path;
    self->sent += bytes;
}

static const char *failure(const void *self)
{
    (void)self;
    return REASON;
}

const struct tresse_path_scheduler tresse_path_scheduler = {
    .abi = ABI,
    .size = SIZE,
    .name = NAME,
    .flags = FLAGS,
    .create = create,
    .destroy = destroy,
#ifndef NO_PICK
    .pick = pick,
#endif
    .on_sent = on_sent,
    .failure = failure,
};

#ifdef BOTH
const struct tresse_scheduler tresse_scheduler = {
    .abi = TRESSE_SCHEDULER_ABI,
    .size = sizeof(struct tresse_scheduler),
};
#endif
