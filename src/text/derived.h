/* Marks of exports: which values of a JSON text were derived from other files, so that they are
 * no facts of their own as long as these files are there.
 *
 * A text that was exported has the member SFTI_DERIVED: {"derived": {ORIGIN: [DIGEST, ...]}}.
 * ORIGIN is the name of a file beside the model, several of them joined by '/', or
 * SFTI_DERIVED_MODEL: the model itself. A digest is of a value and its place, 16 hexadecimal
 * digits; whoever changes a value takes it out of the mark, and whoever writes the text anew
 * without the member takes all of it out.
 *
 * {"apart": [NAME, ...]} beside "derived" are files (or SFTI_DERIVED_MODEL) whose marks named this
 * one when it was not there, so that their values counted: this file was made of them, and they go
 * on to count. Otherwise two files could each be derived from the other, and nobody would tell what
 * both hold. */
#ifndef SFTI_DERIVED_H
#define SFTI_DERIVED_H

#include "base/json.h"

#define SFTI_DERIVED "libsafetensors"
#define SFTI_DERIVED_MODEL "model"
#define SFTI_DERIVED_HEADER "libsafetensors.derived" /* of __metadata__: the object of origins */
#define SFTI_DERIVED_MOST 65536

/* Sorted. */
typedef struct sfti_derived {
    uint64_t *digests;
    size_t count;
} sfti_derived;

/* The digest of a scalar at a JSON pointer, whose numbers (indices) do not count; text is
 * unescaped. */
uint64_t sfti_derived_digest(sft_span pointer, sfti_json_type type, sft_span text);
bool sfti_derived_sort(sfti_derived *set, sfti_arena *arena); /* false when out of memory */
bool sfti_derived_has(const sfti_derived *set, uint64_t digest);
/* Whether a mark may name the value at this pointer; false of what is compared with the file or
 * guards what is seen of it (digests, sizes, content ratings), which is read whoever wrote it. */
bool sfti_derived_may(sft_span pointer);

/* Goes through the scalars of a JSON text. */
typedef struct sfti_leaves {
    sfti_json json; /* the last event is that of the scalar */
    sfti_arena *arena;
    char pointer[512];
    size_t lens[SFTI_JSON_DEPTH + 2]; /* by depth: the pointer up to there */
} sfti_leaves;
void sfti_leaves_begin(sfti_leaves *leaves, sft_span text, sfti_arena *arena);
/* The next event, of a scalar its digest too; SFTI_JSON_ERROR of broken text and out of memory. */
sfti_json_type sfti_leaves_event(sfti_leaves *leaves, uint64_t *digest);
/* The next scalar; false at the end, of broken text, and out of memory. */
bool sfti_leaves_next(sfti_leaves *leaves, uint64_t *digest);

/* All digests of a text; false when out of memory. */
bool sfti_derived_of(sft_span text, sfti_arena *arena, sfti_derived *out);
/* Those of an object of origins, where is_there() tells so of every file (NULL: of all);
 * false when out of memory. */
typedef bool sfti_derived_there(void *ctx, sft_span origin);
bool sfti_derived_read(sft_span origins, sfti_arena *arena, sfti_derived_there *is_there, void *ctx,
                       sfti_derived *out);
/* The object of origins in a marked text; false if there is none. */
bool sfti_derived_find(sft_span text, sft_span *origins);
/* The value of a member of an object that is a text; false if there is none. */
bool sfti_derived_member(sft_span text, const char *key, sft_span *value);

#endif
