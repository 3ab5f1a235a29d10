/* A program for the kernel's SCTP that makes calls, most of them out of place, and prints what each answers: conformance.txt
 * has the lines that it prints over Linux and over tresse. Nothing here knows of tresse. */
#include "conformance.h"

int main(int argc, char **argv)
{
    static const struct { const char *name; void (*play)(void); } parts[] = {
        { "socket", sockets }, { "pointers", pointers }, { "unconnected", unconnected }, { "listen", listening },
        { "connect", connecting }, { "messages", messages }, { "information", information }, { "full", full }, { "shutdown", shutting_down },
        { "abort", aborted }, { "bindx", bindings }, { "many", many },
    };
    signal(SIGPIPE, on_pipe);
    signal(SIGALRM, hangs);
    for (size_t at = 0; at < sizeof parts / sizeof *parts; at++) {
        if (argc > 1 && strcmp(argv[1], parts[at].name))
            continue;
        alarm(30);
        parts[at].play();
    }
    return 0;
}
