/* pucks.h: the game "pucks", version 1, for C, C++ and every language that calls C. Made by twinstep-c: do not edit.

   A frame of the engine:

       state = pucks_advance(match, now_s, pads, seats);
       while (pucks_poll_cue(match, &cue)) ...                            play or stop a sound or a flash
       while (pucks_poll_event(match, &event, text, sizeof text)) ...     show or log what happened
       count = pucks_shown(match, entities, room);                        draw
       if (state == PUCKS_OVER) pucks_why(match, text, sizeof text), ...

   Memory: the caller owns all of it. The library keeps no pointer after a function has returned, and gives none out. A
   pointer may be NULL: the function then writes nothing there.
   Texts: UTF-8, and end with a 0. A text that does not fit is cut at a character.
   Errors: no function ends the program. A match that cannot begin or go on is over, and pucks_why has a sentence for the
   player. A panic of the game's own code ends its match in the same way.
   Threads: every function may be called from every thread. Calls for one match wait for each other. No function waits
   for the network or for a file.
   Unloading: leave all matches before the library is unloaded (pucks_leave_all). */
#ifndef PUCKS_H
#define PUCKS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The layout of this header. pucks_join and pucks_alone take it, and refuse a program with the header of another build. */
#define PUCKS_ABI 0x892b7faau

/* ---- Of this game. */

#define PUCKS_LEFT (1)
#define PUCKS_RIGHT (2)
#define PUCKS_DOWN (4)
#define PUCKS_UP (8)
#define PUCKS_JUMP (1)

/* The controls of a player. */
typedef struct pucks_pad {
    /* The sum of PUCKS_LEFT, PUCKS_RIGHT, PUCKS_DOWN and PUCKS_UP. */
    uint8_t held;
} pucks_pad;

/* An order of a player, which is carried out once or refused. */
typedef struct pucks_command {
    /* PUCKS_JUMP: jumps to a place on the table. */
    uint32_t kind;
    /* The place in mm, to the right and upwards, each from -2000 to 2000. */
    int16_t at_mm[2];
} pucks_command;

/* Where and how an entity is drawn. */
typedef struct pucks_pose {
    /* In m, to the right. */
    float x;
    /* In m, upwards. */
    float y;
} pucks_pose;

/* A sound or a flash. */
typedef struct pucks_cue {
    /* The key of the puck that bumps against the edge. */
    uint64_t bump_of;
} pucks_cue;

/* What else is shown. */
typedef struct pucks_hud {
    /* The total number of bumps, over all pucks on the table. */
    uint32_t bumps;
} pucks_hud;

/* ---- Of every game. */

/* A match that this program plays, by its number; never 0. */
typedef uint64_t pucks_match;

/* The states of a match. */
typedef int32_t pucks_state;
#define PUCKS_OVER 0         /* pucks_why has the reason; leave it */
#define PUCKS_CONNECTING 1   /* the server has not answered, its world is being loaded, or the match waits for players */
#define PUCKS_PLAYING 2      /* the players here are in the match */
#define PUCKS_RECONNECTING 3 /* the connection seems lost, and the client redials; the game goes on for a moment */

typedef struct pucks_entity {
    uint64_t key;      /* names the entity for its whole life */
    uint32_t is_local; /* 1 if it is drawn like one of a player here, else 0 */
    pucks_pose pose;
} pucks_entity;

/* Each cue is started once. Later it is confirmed once, or cancelled once because it did not happen. */
#define PUCKS_CUE_START 0   /* play it */
#define PUCKS_CUE_CONFIRM 1 /* it did happen; `cue` is zero */
#define PUCKS_CUE_CANCEL 2  /* stop it; `cue` is zero */

typedef struct pucks_cue_event {
    uint64_t id;   /* the same for the start of a cue and its end */
    uint32_t kind; /* PUCKS_CUE_... */
    pucks_cue cue;
} pucks_cue_event;

#define PUCKS_EVENT_OTHER 0           /* a newer kind: log the text */
#define PUCKS_EVENT_JOINED 1          /* the players here are in the match; number: how many seats */
#define PUCKS_EVENT_COMMAND_REFUSED 2 /* seat; number: of pucks_send */
#define PUCKS_EVENT_PAD_REFUSED 3     /* seat: its pad meant nothing, and counts as neutral until it does */
#define PUCKS_EVENT_RECONNECTING 4
#define PUCKS_EVENT_BACK 5            /* after reconnecting; number: ticks that the server lost */
#define PUCKS_EVENT_CONTROLS_LOST 6   /* seat: the server received no input of it for two seconds */
#define PUCKS_EVENT_CONTROLS_BACK 7   /* seat */
#define PUCKS_EVENT_NOTICE 8          /* text: a message of the server's operator to the players */
#define PUCKS_EVENT_FAULT 9           /* a fault of the rules, or a world that differs or was healed: log the text */

typedef struct pucks_event {
    uint32_t kind;   /* PUCKS_EVENT_... */
    uint32_t seat;   /* 0 where the kind names none */
    uint32_t number; /* 0 where the kind names none */
} pucks_event;

/* Joins the match of a ticket over UDP. `ticket` is the text of the ticket or of its file: a secret. `abi` is PUCKS_ABI.
   Always returns a match, at once; one that could not begin is over. */
pucks_match pucks_join(uint32_t abi, const char *ticket);

/* Plays alone, without a server, with 1 to 4 players at this screen. Otherwise like pucks_join. While pucks_advance is not
   called, the match stands still. */
pucks_match pucks_alone(uint32_t abi, uint32_t seats);

/* Once in each frame of the engine: receives, plays and sends. Returns the state.
   `now_s`: the engine's clock in seconds, with any origin. It must go on while the game shows a menu, because the other
   players do (in Unity Time.unscaledTimeAsDouble). A time that is no number, below 0 or earlier than before stands still.
   `pads`: the controls by seat, `seats` of them; missing ones are neutral. Give what is held down in each frame: what a
   tap between two ticks of the match held is not lost. */
pucks_state pucks_advance(pucks_match match, double now_s, const pucks_pad *pads, uint32_t seats);

/* Gives an order as the player of a seat (0 to 3). Returns its number, from 0; or -1 if it is refused here, and pucks_why has
   the reason. The server may still refuse it: PUCKS_EVENT_COMMAND_REFUSED. */
int64_t pucks_send(pucks_match match, uint32_t seat, const pucks_command *command);

/* Writes the entities to draw now, at most `room` of them, always in the same order. Returns how many there are in all. */
size_t pucks_shown(pucks_match match, pucks_entity *entities, size_t room);

/* Writes what else to show now. Returns 1, or 0 while there is nothing. */
int32_t pucks_get_hud(pucks_match match, pucks_hud *hud);

/* Takes the next cue. Returns 1, or 0 if there is none. */
int32_t pucks_poll_cue(pucks_match match, pucks_cue_event *cue);

/* Takes the next event, and writes its text into `room` bytes (1024 are enough). Returns 1, or 0 if there is none. The
   newest 256 wait. */
int32_t pucks_poll_event(pucks_match match, pucks_event *event, char *text, size_t room);

/* Writes a sentence into `room` bytes: why the match is over, or why a pad or a command was refused last. Returns the
   length of the whole sentence in bytes, without the 0; 0 if there is none. */
size_t pucks_why(pucks_match match, char *text, size_t room);

/* Leaves a match and frees it; its number names none any more. The other players learn it at once. */
void pucks_leave(pucks_match match);

/* Leaves all matches of this process: before the library is unloaded, and where an editor has reloaded the scripts that
   knew the numbers. */
void pucks_leave_all(void);

#ifdef __cplusplus
}
#endif
#endif
