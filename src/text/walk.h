/* One walk through a JSON text that hands each value to the rows whose pattern fits its place. A
 * pattern is a JSON pointer, of which "*" is any index or key; what stands before its first slash
 * is the caller's. Tests: test_info_walk.c. */
#ifndef SFTI_TEXT_WALK_H
#define SFTI_TEXT_WALK_H

#include "base/json.h"
#include "base/mem.h"

#define SFTI_WALK_PLACE 256
#define SFTI_WALK_ROWS 256 /* at most */

typedef struct sfti_walk sfti_walk;
struct sfti_walk {
    /* the caller's: */
    sfti_arena *arena; /* texts live as long */
    const void *rows;  /* each begins with its pattern, a const char * */
    size_t stride, count;
    uint64_t seed[2]; /* random: it keeps keys apart */
    void *ctx;
    /* The value at hand goes to the row of that number. At an object or array it may read on in
     * json, or return: the walk goes on. Anything but SFT_OK ends it. */
    sft_code (*take)(sfti_walk *walk, size_t row);
    bool (*passes_over)(const sfti_walk *walk); /* the value at hand; NULL: none is */
    /* of the value at hand: */
    sfti_json json; /* its last event is the value's first */
    sft_span text;  /* STRING: unescaped; else as spelled */
    sft_span key;   /* an array's index lives as long as the visit only */
    bool member;    /* key is of an object, not an index */
    int64_t index;  /* the innermost array index, or -1 */
    char pointer[SFTI_WALK_PLACE]; /* where it stands; what is longer is cut */
};

/* False if the text is no JSON (then nothing is taken) or larger than limits allow, and when
 * something ended it, which *code then says. As Python reads it: NaN and Infinity are null, and of
 * members with one key the last is there (where its object has fewer than 2^17). */
bool sfti_walk_json(sfti_walk *walk, sft_span text, sft_code *code);

#endif
