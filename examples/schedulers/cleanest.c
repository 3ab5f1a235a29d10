/* The path that lost least lately, and of paths that are alike in that the faster one.
 *
 * For links whose losses come and go, radio above all: what is lost on one path blocks what arrived on the others. Loses
 * where a path has to be tried to find out that it is clean again. The configuration is the difference in percent that
 * counts as none, 1 unless given. The same policy as cleanest.rs and cleanest.py.
 *
 *     cc -shared -fPIC -O2 -I include -o cleanest.so examples/schedulers/cleanest.c
 */
#include "tresse_scheduler.h"

#include <stdio.h>
#include <stdlib.h>

struct cleanest {
    double step; /* so much loss, from 0 to 1, makes a difference */
};

static void *create(const char *config, char *error, size_t error_size)
{
    struct cleanest *self;
    char *end = NULL;
    double percent = *config ? strtod(config, &end) : 1.0;

    if ((end && (end == config || *end)) || !(percent > 0.0 && percent <= 100.0)) {
        snprintf(error, error_size, "\"%s\" is no percentage above 0, such as 0.5", config);
        return NULL;
    }
    self = malloc(sizeof *self);
    if (!self) {
        snprintf(error, error_size, "out of memory");
        return NULL;
    }
    self->step = percent / 100.0;
    return self;
}

static void destroy(void *self)
{
    free(self);
}

/* How dirty a path is, in steps. */
static uint64_t dirt(const struct cleanest *self, const struct tresse_path *path)
{
    return (uint64_t)(path->loss / self->step);
}

/* A path without a measured round-trip time comes after those that have one. */
static int is_better(const struct cleanest *self, const struct tresse_path *path, const struct tresse_path *than)
{
    uint64_t one = dirt(self, path), other = dirt(self, than);

    if (one != other)
        return one < other;
    return path->srtt_ns && (!than->srtt_ns || path->srtt_ns < than->srtt_ns);
}

static int32_t pick(void *of, const struct tresse_offer *offer)
{
    const struct cleanest *self = of;
    const struct tresse_path *best = NULL;
    size_t i;

    for (i = 0; i < offer->count; i++) {
        const struct tresse_candidate *candidate = &offer->paths[i];

        if (candidate->open && (!best || is_better(self, &candidate->path, best)))
            best = &candidate->path;
    }
    return best ? best->id : TRESSE_NO_PATH;
}

const struct tresse_path_scheduler tresse_path_scheduler = {
    .abi = TRESSE_SCHEDULER_ABI,
    .size = sizeof(struct tresse_path_scheduler),
    .name = "cleanest",
    .create = create,
    .destroy = destroy,
    .pick = pick,
};
