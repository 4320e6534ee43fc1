/* The program that a regular expression becomes. */
#ifndef CLI_REGEX_STEPS_H
#define CLI_REGEX_STEPS_H

#include "support/regex.h"

typedef enum rx_op {
    RX_CHAR,   /* the character a */
    RX_ANY,    /* any one */
    RX_SET,    /* one of the b ranges from a */
    RX_NOT_SET,
    RX_SPLIT,  /* on at a and, of lower rank, at b */
    RX_JUMP,   /* on at a */
    RX_SAVE,   /* the place, in slot a */
    RX_BEGIN, RX_END, RX_WORD, RX_NOT_WORD, RX_WORD_BEGIN, RX_WORD_END, /* conditions of a place */
    RX_MATCH
} rx_op;

/* a and b of splits and jumps count from the step itself, so that steps can be moved and copied. */
typedef struct rx_step { rx_op op; int32_t a, b; } rx_step;
typedef struct rx_range { uint32_t first, last; } rx_range;

#define RX_SLOTS ((size_t)2 * CLI_REGEX_GROUPS)

typedef struct rx_program {
    rx_step *steps;
    size_t count, cap;
    rx_range *ranges;
    size_t range_count, range_cap;
    sft_allocator alloc;
} rx_program;

/* NULL, or what is wrong with the pattern; *memory: instead, there is too little of it. */
const char *cli_regex_compile(rx_program *program, sft_span pattern, bool *memory);

/* One character of a text: a byte that is no UTF-8 stands behind the last code point. */
uint32_t cli_regex_char(sft_span text, size_t *at);

#endif
