/* An inert reader of pickles: opcodes build values, and nothing else happens. */
#ifndef SFTI_PICKLE_H
#define SFTI_PICKLE_H

#include "formats/parts/value.h"

typedef struct sfti_pickle_input {
    const sft_source *source;
    uint64_t begin, end; /* bytes of it that may be read */
    const uint8_t *bytes; /* they, in memory for as long as the values; NULL: read as needed */
} sfti_pickle_input;

typedef struct sfti_pickle {
    sfti_value *root;
    sfti_object *first;    /* the others by next, in the order of the file */
    sfti_global **globals; /* every one that is named, in the order of the file */
    size_t global_count;
    sfti_value **outside; /* every persistent id, in the order of the file */
    size_t outside_count;
    uint64_t end; /* byte behind STOP */
} sfti_pickle;

/* Read one pickle; its globals have their meaning (globals.h). Values live in the arena; texts,
 * too, unless the input is in memory; bytes stay where they are. SFT_FOREIGN_OPCODE: an opcode that
 * is not read, or does not find what it needs; SFT_FOREIGN_SYNTAX: an argument that breaks a rule;
 * SFT_FOREIGN_AMBIGUOUS: a container changes behind a call that took its contents;
 * SFT_FOREIGN_TRUNCATED: no STOP; SFT_FOREIGN_TABLE: over a limit. Cost: linear in the bytes read,
 * which do not include long texts and bytes. */
sft_code sfti_pickle_read(const sfti_pickle_input *input, sfti_arena *arena, sfti_pickle *out,
                          sft_error *err);

#endif
