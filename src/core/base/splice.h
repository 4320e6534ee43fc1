/* Changing JSON text without writing it anew: the members that change are cut out and
 * replaced, every other byte stays as it is. */
#ifndef SFTI_SPLICE_H
#define SFTI_SPLICE_H

#include "base/json.h"
#include "base/mem.h"
#include "base/names.h"
#include "safetensors.h"

/* A JSON string as the official writer spells it, quotes and all: only what JSON asks for is
 * escaped. Returns its bytes; out NULL only counts. text must be UTF-8. */
uint64_t sfti_spell(sft_span text, char *out);

/* ── Cuts ── */

/* Bytes [begin, end) of a text give way to another. */
typedef struct sfti_cut {
    size_t begin, end;
    sft_span text;
    struct sfti_cut *next;
} sfti_cut;

/* In ascending order, without overlap. Zeroed but for the arena there are none. */
typedef struct sfti_cuts {
    sfti_arena *arena;
    sfti_cut *first, *last;
} sfti_cuts;

/* False when out of memory. */
bool sfti_cuts_put(sfti_cuts *cuts, size_t begin, size_t end, sft_span text);
/* Length of text once it is cut. */
uint64_t sfti_cuts_length(const sfti_cuts *cuts, size_t text_len);
/* Whether that text is another one. */
bool sfti_cuts_differ(const sfti_cuts *cuts, const char *text);
/* Write that text to out. */
void sfti_cuts_apply(const sfti_cuts *cuts, sft_span text, char *out);

/* ── Members of an object ── */

/* What one member of an object becomes. Both NULL: it stays. */
typedef struct sfti_change {
    sft_span key;
    sft_span value; /* JSON text; data NULL: the member goes */
} sfti_change;

/* Values that are plain texts become JSON in the arena; false when out of memory. */
bool sfti_changes_spell(sfti_change *items, size_t count, sfti_arena *arena);

/* Changes by key, each key once; zeroed it is empty. */
typedef struct sfti_changes {
    const sfti_change *items;
    size_t count;
    sfti_names names;
} sfti_changes;

/* A later change of a key takes the place of an earlier one, where that stands. items is
 * reordered and may become shorter. seed keys the table. False when out of memory. */
bool sfti_changes_begin(sfti_changes *changes, sfti_change *items, size_t count,
                        const uint64_t seed[2], sfti_arena *arena);

/* Whether there is one that is no removal. */
bool sfti_changes_set(const sfti_changes *changes);
/* json has just given a KEY, whose value is an object: its members are cut to the changes; new ones
 * go behind the last, in their order. A value that is no object gives way to a new one if something
 * is to be set. Afterwards the value's end is the last event. */
sft_code sfti_splice_value(sfti_json *json, const sfti_changes *changes, sfti_cuts *cuts,
                           sft_error *err);
/* A member of that name, whose value is a new object, comes first in the object whose bracket ends
 * at `at`. Its cut goes before all others: whether it is needed shows at the end. alone: the object
 * has no other member. */
sft_code sfti_splice_first(const char *name, const sfti_changes *changes, size_t at, bool alone,
                           sfti_cuts *cuts, sft_error *err);

#endif
