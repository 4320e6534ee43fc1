/* How quantised tensors are stored: rows of data/quantised.layouts, which are text.
 *
 * A layout is a line "layout ID" and lines that stand indented, each a word and what it says:
 *   comfy NAME           ComfyUI declares it so
 *   config METHOD KEY=A|B  a quantization_config does; an empty value: without that key, too
 *   torchao TYPE KEY=A|B torchao does
 *   alone                also without a declaration
 *   result NAME          of the values; else the name of the codes
 *   rotate N             groups of N columns are rotated; if-told: only where that is declared
 *   over N               values are multiplied by 1 / N last
 *   pad N                rows and columns may be padded to a multiple of N
 *   share N              columns that share a number, unless another size is declared
 *   refused WHY          it is known and cannot be read
 *   write LAYOUT FORMAT SCALE CODES SCALES FLAGS   it is also written: as users name it, and with
 *                        these dtypes (src/model/convert/targets.h has the flags)
 *   members JSON         of the quantization_config that declares what the last "write" writes
 *   PART NAME|NAME DTYPE|DTYPE FLAGS
 *
 *   tied EMBEDDING MODULE|MODULE   modules that may use the weights of an embedding, whose name has
 *                        that end ("*": any), without tensors of their own; they are not quantised
 *   apart LAYOUT PATTERN NAME|NAME   how a quantization_config of that written layout names all
 *                        below a module of such a name ("%" in PATTERN), whatever stands before
 *   moved LAYOUT PATTERN NAME|NAME   and how other modules of models that have such ones, whose
 *                        names begin with these; "%": with what stands behind them
 *   odd WORD|WORD        what has one in its name, in any case, and no part's name, is not known
 * A part is a tensor. NAME: "*" stands for what the codes' name has in the place of theirs, and a
 * leading dot for the module. DTYPE: "wide" are floats of 16 bits and more, "float" all, "any".
 * Flags say how a matrix of numbers is stored, and how many rows and columns of values share one:
 *   as=F4 | int | uint | offset   of elements; offset: less half the range. Else the dtype's.
 *   wider                than a declaration may tell: fewer bits in elements of more
 *   bits=N               of elements that are packed; else from shapes
 *   high, awq            order in a byte, in a word; else the first element is lowest
 *   across               a stored row is a column of values; of codes: of 4 bits
 *   words                words of a line stand in a column
 *   tiled                tiles of 128 x 4, as cuBLAS has them
 *   flat                 one line, whatever the shape
 *   joined               the last two dimensions are one
 *   split                or, as the number of scales tells, rows of 6 bits: the low 4 of all
 *                        elements, then the high 2 of all; without a book
 *   planes               rows of the first part are in the highest bits, then those of the next
 *   rows=N columns=N blocks=?   "?": from shapes; else all, or of columns alone one row
 *   plus=N, divides, to-int8, then   what is done with a number; then: before the next factor
 *   middle               without a declaration all numbers must be half the range
 *   optional
 *   0, one, in=A|B       of what is dropped: its bytes must be 0; it is one number, or one a
 *                        matrix; it is in a module of one of these names
 *   scaled               and only beside codes that have a scale
 * The part "others" changes values in a way that no layout here does. */
#ifndef SFTI_QUANT_LAYOUTS_H
#define SFTI_QUANT_LAYOUTS_H

#include "base/mem.h"

typedef enum sfti_quant_role {
    SFTI_PART_CODES = 0, SFTI_PART_SCALE, SFTI_PART_ZERO, SFTI_PART_ADD, SFTI_PART_NESTED,
    SFTI_PART_MATRICES, /* those above are matrices of numbers */
    SFTI_PART_GROUP = SFTI_PART_MATRICES, SFTI_PART_BOOK, SFTI_PART_NESTED_BOOK, SFTI_PART_SHAPE,
    SFTI_PART_STATE, SFTI_PART_DROP, SFTI_PART_OTHERS, SFTI_PART_ROLES
} sfti_quant_role;

/* How an element of a packed dtype is read. */
typedef enum sfti_quant_code {
    SFTI_CODE_DTYPE, SFTI_CODE_INT, SFTI_CODE_UINT, SFTI_CODE_OFFSET
} sfti_quant_code;

#define SFTI_BLOCK_ALL 0u
#define SFTI_BLOCK_ANY UINT32_MAX

typedef struct sfti_layout_part {
    sft_span names, in;
    uint32_t dtypes; /* a bit each */
    uint32_t rows, columns;
    uint8_t role, code, bits, plus;
    uint8_t as;      /* sft_dtype; SFT_DTYPE_COUNT: its own */
    bool high, awq, across, words, tiled, flat, joined, planes, split;
    bool divides, to_int8, then, middle, optional, is_zero, is_one, wider, scaled;
} sfti_layout_part;

#define SFTI_LAYOUT_PARTS 10

typedef struct sfti_quant_layout {
    sft_span id, comfy, result, refused, odd;
    sft_span configs, torchao, writes, ties, aparts; /* the lines, from the first to the last */
    sfti_layout_part parts[SFTI_LAYOUT_PARTS]; /* the codes first */
    size_t count;
    uint32_t rotate, over, pad, group;
    bool alone, rotate_if_told;
} sfti_quant_layout;

typedef struct sfti_layouts {
    sfti_quant_layout *rows; /* the first is "any": its parts may accompany all */
    size_t count;
} sfti_layouts;

/* The rows of the text that comes with the library. False when out of memory. */
bool sfti_layouts_read(sfti_arena *arena, sfti_layouts *out);
/* The rows of a text; *line: the first that is wrong, or 0. */
bool sfti_layouts_parse(sft_span text, sfti_arena *arena, sfti_layouts *out, size_t *line);
/* The next word up to `end`; false when there is none. */
bool sfti_layout_word(sft_span *rest, char end, sft_span *word);
/* The next line of that word: what it says first, and the rest of it. */
bool sfti_layout_line(sft_span *lines, const char *word, sft_span *first, sft_span *rest);

/* ── Names ── */

#define SFTI_LAYOUTS_MOST 63 /* a bit for each */
#define SFTI_PART_NAME 1024 /* a longer name has no companions */

/* The stem of a name that one of the codes' names fits; false: it fits none. */
bool sfti_layout_stem(const sfti_quant_layout *layout, sft_span tensor, sft_span *stem);
/* Whether a module has that name, or an end of it after a dot. */
bool sfti_module_ends(sft_span module, sft_span end);
/* Whether a tensor is in a module in which the part may be. */
bool sfti_layout_inside(const sfti_layout_part *part, sft_span tensor);
/* A name for that stem, in a buffer of SFTI_PART_NAME bytes; empty: none, or too long. */
sft_span sfti_layout_name(sft_span pattern, sft_span stem, char *buffer);

#endif
