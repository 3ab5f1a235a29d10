/* Ends a program of the tests with a line that says what is not so, and where. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(what)                                                                                                  \
    do {                                                                                                             \
        if (!(what)) {                                                                                               \
            fprintf(stderr, "%s:%d: %s (errno %d: %s)\n", __FILE__, __LINE__, #what, errno, strerror(errno));         \
            exit(1);                                                                                                 \
        }                                                                                                            \
    } while (0)
