/* @p.h: the game "@game", version @version, for C, C++ and every language that calls C. Made by twinstep-c: do not edit.

   A frame of the engine:

       state = @p_advance(match, now_s, pads, seats);
       while (@p_poll_cue(match, &cue)) ...                            play or stop a sound or a flash
       while (@p_poll_event(match, &event, text, sizeof text)) ...     show or log what happened
       count = @p_shown(match, entities, room);                        draw
       if (state == @P_OVER) @p_why(match, text, sizeof text), ...

   Memory: the caller owns all of it. The library keeps no pointer after a function has returned, and gives none out. A
   pointer may be NULL: the function then writes nothing there.
   Texts: UTF-8, and end with a 0. A text that does not fit is cut at a character.
   Errors: no function ends the program. A match that cannot begin or go on is over, and @p_why has a sentence for the
   player. A panic of the game's own code ends its match in the same way.
   Threads: every function may be called from every thread. Calls for one match wait for each other. No function waits
   for the network or for a file.
   Unloading: leave all matches before the library is unloaded (@p_leave_all). */
#ifndef @P_H
#define @P_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The layout of this header. @p_join and @p_alone take it, and refuse a program with the header of another build. */
#define @P_ABI @abi

/* ---- Of this game. */

@constants

/* The controls of a player. */
@struct pad

/* An order of a player, which is carried out once or refused. */
@struct command

/* Where and how an entity is drawn. */
@struct pose

/* A sound or a flash. */
@struct cue

/* What else is shown. */
@struct hud

/* ---- Of every game. */

/* A match that this program plays, by its number; never 0. */
typedef uint64_t @p_match;

/* The states of a match. */
typedef int32_t @p_state;
#define @P_OVER 0         /* @p_why has the reason; leave it */
#define @P_CONNECTING 1   /* the server has not answered, its world is being loaded, or the match waits for players */
#define @P_PLAYING 2      /* the players here are in the match */
#define @P_RECONNECTING 3 /* the connection seems lost, and the client redials; the game goes on for a moment */

typedef struct @p_entity {
    uint64_t key;      /* names the entity for its whole life */
    uint32_t is_local; /* 1 if it is drawn like one of a player here, else 0 */
    @p_pose pose;
} @p_entity;

/* Each cue is started once. Later it is confirmed once, or cancelled once because it did not happen. */
#define @P_CUE_START 0   /* play it */
#define @P_CUE_CONFIRM 1 /* it did happen; `cue` is zero */
#define @P_CUE_CANCEL 2  /* stop it; `cue` is zero */

typedef struct @p_cue_event {
    uint64_t id;   /* the same for the start of a cue and its end */
    uint32_t kind; /* @P_CUE_... */
    @p_cue cue;
} @p_cue_event;

#define @P_EVENT_OTHER 0           /* a newer kind: log the text */
#define @P_EVENT_JOINED 1          /* the players here are in the match; number: how many seats */
#define @P_EVENT_COMMAND_REFUSED 2 /* seat; number: of @p_send */
#define @P_EVENT_PAD_REFUSED 3     /* seat: its pad meant nothing, and counts as neutral until it does */
#define @P_EVENT_RECONNECTING 4
#define @P_EVENT_BACK 5            /* after reconnecting; number: ticks that the server lost */
#define @P_EVENT_CONTROLS_LOST 6   /* seat: the server received no input of it for two seconds */
#define @P_EVENT_CONTROLS_BACK 7   /* seat */
#define @P_EVENT_NOTICE 8          /* text: a message of the server's operator to the players */
#define @P_EVENT_FAULT 9           /* a fault of the rules, or a world that differs or was healed: log the text */

typedef struct @p_event {
    uint32_t kind;   /* @P_EVENT_... */
    uint32_t seat;   /* 0 where the kind names none */
    uint32_t number; /* 0 where the kind names none */
} @p_event;

/* Joins the match of a ticket over UDP. `ticket` is the text of the ticket or of its file: a secret. `abi` is @P_ABI.
   Always returns a match, at once; one that could not begin is over. */
@p_match @p_join(uint32_t abi, const char *ticket);

/* Plays alone, without a server, with 1 to 4 players at this screen. Otherwise like @p_join. While @p_advance is not
   called, the match stands still. */
@p_match @p_alone(uint32_t abi, uint32_t seats);

/* Once in each frame of the engine: receives, plays and sends. Returns the state.
   `now_s`: the engine's clock in seconds, with any origin. It must go on while the game shows a menu, because the other
   players do (in Unity Time.unscaledTimeAsDouble). A time that is no number, below 0 or earlier than before stands still.
   `pads`: the controls by seat, `seats` of them; missing ones are neutral. Give what is held down in each frame: what a
   tap between two ticks of the match held is not lost. */
@p_state @p_advance(@p_match match, double now_s, const @p_pad *pads, uint32_t seats);

/* Gives an order as the player of a seat (0 to 3). Returns its number, from 0; or -1 if it is refused here, and @p_why has
   the reason. The server may still refuse it: @P_EVENT_COMMAND_REFUSED. */
int64_t @p_send(@p_match match, uint32_t seat, const @p_command *command);

/* Writes the entities to draw now, at most `room` of them, always in the same order. Returns how many there are in all. */
size_t @p_shown(@p_match match, @p_entity *entities, size_t room);

/* Writes what else to show now. Returns 1, or 0 while there is nothing. */
int32_t @p_get_hud(@p_match match, @p_hud *hud);

/* Takes the next cue. Returns 1, or 0 if there is none. */
int32_t @p_poll_cue(@p_match match, @p_cue_event *cue);

/* Takes the next event, and writes its text into `room` bytes (1024 are enough). Returns 1, or 0 if there is none. The
   newest 256 wait. */
int32_t @p_poll_event(@p_match match, @p_event *event, char *text, size_t room);

/* Writes a sentence into `room` bytes: why the match is over, or why a pad or a command was refused last. Returns the
   length of the whole sentence in bytes, without the 0; 0 if there is none. */
size_t @p_why(@p_match match, char *text, size_t room);

/* Leaves a match and frees it; its number names none any more. The other players learn it at once. */
void @p_leave(@p_match match);

/* Leaves all matches of this process: before the library is unloaded, and where an editor has reloaded the scripts that
   knew the numbers. */
void @p_leave_all(void);

#ifdef __cplusplus
}
#endif
#endif
