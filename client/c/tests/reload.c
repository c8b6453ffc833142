/* An engine's editor that loads the library again and again:   reload LIBRARY TICKET */
#define _POSIX_C_SOURCE 199309L
#include "pucks.h"

#include <dlfcn.h>
#include <stdio.h>
#include <time.h>

static int rounds = 3;

int main(int argc, char **argv) {
    const struct timespec frame = {0, 8000000}, pause = {0, 300000000};
    pucks_match before = 0;
    int round, i;
    if (argc < 3) return 2;
    for (round = 0; round < rounds; round++) {
        pucks_match (*join)(uint32_t, const char *);
        pucks_match (*alone)(uint32_t, uint32_t);
        pucks_state (*advance)(pucks_match, double, const pucks_pad *, uint32_t);
        void (*leave_all)(void);
        pucks_match online, local;
        pucks_state states[2] = {0, 0};
        void *library = dlopen(argv[1], RTLD_NOW);
        if (!library) return printf("%s\n", dlerror()), 1;
        *(void **)&join = dlsym(library, "pucks_join");
        *(void **)&alone = dlsym(library, "pucks_alone");
        *(void **)&advance = dlsym(library, "pucks_advance");
        *(void **)&leave_all = dlsym(library, "pucks_leave_all");
        online = join(PUCKS_ABI, argv[2]);
        local = alone(PUCKS_ABI, 1);
        if (advance(before, 0.0, NULL, 0) != PUCKS_OVER) return printf("a number of an earlier load\n"), 1;
        before = local;
        for (i = 0; i < 120 || (i < 2000 && states[0] == PUCKS_CONNECTING); i++) {
            pucks_pad pad = {PUCKS_RIGHT};
            states[0] = advance(online, i * 0.008, &pad, 1);
            states[1] = advance(local, i * 0.008, &pad, 1);
            nanosleep(&frame, NULL);
        }
        printf("round %d: states %d %d, %d frames\n", round, (int)states[0], (int)states[1], i);
        if (states[0] != PUCKS_PLAYING || states[1] != PUCKS_PLAYING) return 1;
        /* The last editor forgets to leave. */
        if (round + 1 < rounds) leave_all();
        dlclose(library);
        nanosleep(&pause, NULL);
    }
    return 0;
}
