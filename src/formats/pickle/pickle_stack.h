/* The machine that runs a pickle's opcodes: a stack with marks, a memo, and the values made. */
#ifndef SFTI_PICKLE_STACK_H
#define SFTI_PICKLE_STACK_H

#include "formats/pickle/pickle_scan.h"
#include "formats/parts/value.h"

/* Limits: SFT_FOREIGN_TABLE beyond them. */
#define SFTI_PICKLE_STACK ((size_t)10000000)
#define SFTI_PICKLE_VALUES ((uint64_t)1 << 26)
#define SFTI_PICKLE_GLOBALS ((size_t)1 << 16)
#define SFTI_PICKLE_OPS ((uint64_t)1 << 30) /* bytes, without long texts and bytes */

typedef struct sfti_machine sfti_machine;
typedef struct sfti_opcode sfti_opcode;

/* What stands behind an opcode. Counted ones have their length before them. */
typedef enum sfti_argument {
    SFTI_ARG_NONE = 0,
    SFTI_ARG_U1,
    SFTI_ARG_U2,
    SFTI_ARG_I4,
    SFTI_ARG_U4,
    SFTI_ARG_U8,
    SFTI_ARG_F8,     /* big-endian */
    SFTI_ARG_LINE,
    SFTI_ARG_LINES,  /* two */
    SFTI_ARG_TEXT1,  /* counted in one byte, four, eight, or four with a sign */
    SFTI_ARG_TEXT4,
    SFTI_ARG_TEXT8,
    SFTI_ARG_TEXTI4,
    SFTI_ARG_BYTES1, /* the same, and not kept in memory */
    SFTI_ARG_BYTES4,
    SFTI_ARG_BYTES8
} sfti_argument;

struct sfti_opcode {
    const char *name; /* NULL: no opcode */
    sft_code (*run)(sfti_machine *m); /* NULL: not read */
    uint8_t argument;
    int64_t detail; /* of some functions */
};

struct sfti_machine {
    sfti_scan scan;
    sfti_arena *arena;
    sft_error *err;
    const sfti_opcode *op;
    uint64_t op_at;
    uint64_t skipped; /* bytes of long texts and bytes */
    /* argument of the opcode */
    uint64_t number;
    double real;
    sft_span text, other;
    uint64_t text_at;

    sfti_value **stack;
    size_t depth, stack_cap;
    size_t *marks; /* depths */
    size_t mark_count, mark_cap;
    sfti_value **memo;
    size_t memo_len, memo_cap, memo_count; /* all below len are set or NULL; count are set */
    uint64_t puts;
    uint64_t values;
    sfti_value *none, *truth[2], *empty, *small[256];
    sfti_object *last;
    uint32_t *slots;  /* of globals by their names: index + 1 */
    uint64_t seed[2]; /* of their hashes: a file cannot know which are equal */
    size_t slot_count, global_cap, outside_cap;
    sfti_pickle out;
};

/* "SETITEMS: expected a dict, found a list". */
SFTI_COLD sft_code sfti_machine_fail(sfti_machine *m, sft_code code, const char *expected,
                                     const char *found);

sfti_value *sfti_machine_value(sfti_machine *m, sfti_value_kind kind);
sft_code sfti_machine_push(sfti_machine *m, sfti_value *value);
/* The topmost value above the last mark; NULL and err set if there is none. */
sfti_value *sfti_machine_pop(sfti_machine *m);
sfti_value *sfti_machine_top(sfti_machine *m);
sft_code sfti_machine_mark(sfti_machine *m);
/* Values above the last mark, which is removed with them; they stay until the next push. */
sft_code sfti_machine_since(sfti_machine *m, sfti_value ***items, size_t *count);

sft_code sfti_machine_put(sfti_machine *m, uint64_t at);
sft_code sfti_machine_get(sfti_machine *m, uint64_t at);

/* Append to the items of a list or map. */
sft_code sfti_machine_append(sfti_machine *m, sfti_value *to, sfti_value *const *items,
                             size_t count);
/* The value of a global, one for all mentions. */
sft_code sfti_machine_global(sfti_machine *m, sft_span module, sft_span name);

/* ── pickle_text.c: arguments of opcodes that are lines of text ── */

/* "12", "-3", "12L": 1 if the value is in *out, 0 if it is wider than 64 bits, -1 if it is no
 * integer. */
int sfti_pickle_decimal(sft_span text, int64_t *out);
/* Two's complement, little-endian, of any length: false if it is wider than 64 bits. */
bool sfti_pickle_long(const uint8_t *bytes, size_t len, int64_t *out);
/* 'text' or "text" with Python's escapes, into as many bytes at most; false if it is neither. */
bool sfti_pickle_quoted(sft_span text, char *into, size_t *len);
/* Text with \uXXXX and \UXXXXXXXX, and bytes that are Latin-1. into has room for twice as many
 * bytes. False: an escape that is none. */
bool sfti_pickle_unicode(sft_span text, char *into, size_t *len);

/* ── pickle_ops.c: the opcodes, by their byte ── */

extern const sfti_opcode sfti_opcodes[256];
/* The byte of STOP, which ends the machine. */
#define SFTI_STOP 0x2e

#endif
