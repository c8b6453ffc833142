/* Plays pucks: with a ticket for some seconds, or alone without one.   main [SECONDS [TICKET]]
   It is C and C++. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 199309L
#endif
#include "pucks.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ROOM 16

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

int main(int argc, char **argv) {
    const double play_s = argc > 1 ? atof(argv[1]) : 3.0;
    const double start_s = seconds();
    const struct timespec frame = {0, 8000000};
    char text[1024];
    unsigned cues[3] = {0, 0, 0}, frames = 0;
    int jumped = 0;
    size_t count = 0, i;
    pucks_entity entities[ROOM];
    pucks_hud hud = {0};
    pucks_cue_event cue;
    pucks_event event;
    pucks_state state = PUCKS_CONNECTING;
    pucks_match match = argc > 2 ? pucks_join(PUCKS_ABI, argv[2]) : pucks_alone(PUCKS_ABI, 1);

    while (state != PUCKS_OVER && seconds() - start_s < play_s) {
        pucks_pad pad = {0};
        pad.held = (uint8_t)((unsigned)(seconds() - start_s) % 2 ? PUCKS_LEFT | PUCKS_UP : PUCKS_RIGHT | PUCKS_DOWN);
        state = pucks_advance(match, seconds(), &pad, 1);
        while (pucks_poll_cue(match, &cue)) cues[cue.kind]++; /* here a sound would be played, or stopped */
        while (pucks_poll_event(match, &event, text, sizeof text)) {
            printf("event %u: %s\n", (unsigned)event.kind, text);
        }
        if (state == PUCKS_PLAYING && !jumped) {
            const pucks_command jump = {PUCKS_JUMP, {500, -500}};
            jumped = pucks_send(match, 0, &jump) >= 0;
            if (!jumped) {
                pucks_why(match, text, sizeof text);
                printf("%s\n", text);
            }
        }
        count = pucks_shown(match, entities, ROOM);
        pucks_get_hud(match, &hud);
        frames++;
        nanosleep(&frame, NULL);
    }

    printf("state %d, %u frames, cues %u %u %u, %u bumps, jumped %d\n", (int)state, frames, cues[0], cues[1], cues[2],
           (unsigned)hud.bumps, jumped);
    for (i = 0; i < count && i < ROOM; i++)
        printf("puck %lu local %u at %.2f %.2f\n", (unsigned long)entities[i].key, (unsigned)entities[i].is_local,
               (double)entities[i].pose.x, (double)entities[i].pose.y);
    if (state == PUCKS_OVER) {
        pucks_why(match, text, sizeof text);
        printf("over: %s\n", text);
    }
    pucks_leave(match);
    return state == PUCKS_OVER;
}
