/* Which models have the modules of an adapter. */
#ifndef SFTI_FITTING_H
#define SFTI_FITTING_H

#include "label/tensors/adapters.h"

/* Modules of a form that have the same sizes, 0 = not to be seen (fitting.c): bits by the number in
 * their names, or, where there are several, by their places in numbers. */
#define SFTI_SIZED_MODULES 128
#define SFTI_SIZED_SLOTS 6
typedef struct sfti_sized {
    struct sfti_sized *next;
    uint64_t in, out, hash; /* hash: of the form's text, in the first */
    uint64_t have[2];
    uint8_t (*numbers)[SFTI_SIZED_SLOTS];
    size_t count, cap; /* cap: of numbers */
    struct sfti_cover *covers;
    bool folded;
} sfti_sized;

#define SFTI_FIT_MODELS SFTI_RECORDS_FITTING
#define SFTI_FIT_WORDS (SFTI_FIT_MODELS / 64)

/* Which of such modules a model has. */
typedef struct sfti_cover {
    struct sfti_cover *next;
    size_t model;
    uint64_t bits[2];
} sfti_cover;

typedef struct sfti_fit_model {
    const sfti_record *record;
    uint64_t covered; /* modules in places of its rows that are adapted as a whole */
    uint64_t stacks;  /* sfti_fit_bit of how the names of these begin */
    const sfti_record_row *said; /* of a user's, that alone has one of the modules, or NULL */
    uint16_t of;      /* the model whose modules it has, too, or SFTI_FIT_MODELS */
} sfti_fit_model;

typedef struct sfti_fitting {
    size_t count, heir_count;
    uint64_t known, unknown;       /* modules that a model has; with sizes that none has */
    uint64_t fits[SFTI_FIT_WORDS]; /* models that have every module that any has */
    bool sized;                    /* one that is known has both sizes */
    bool inside;                   /* one that is known is of a block */
    int trust;
    uint64_t told;                 /* modules that rows "adapter" tell of, if no model is known */
    const sfti_record *base;       /* NULL: several, or none; what those rows tell */
    bool encoders;                 /* the rows tell by text encoders: nothing else is adapted */
    const sfti_record *bases[2];   /* of modules of two models that have nothing in common */
    const sft_tensor *first;       /* of a module that is known */
    sfti_fit_model models[SFTI_FIT_MODELS];
    const uint16_t *heirs;
} sfti_fitting;

static inline uint64_t sfti_count_bits(const uint64_t bits[2]) {
    uint64_t count = 0;
    for (int i = 0; i < 2; i++)
        for (uint64_t rest = bits[i]; rest; rest &= rest - 1) count++;
    return count;
}

/* ── Rows "modules" as lines (fitting_lines.c) ── */

/* A line, and those that go on with it. */
#define SFTI_FIT_BEGINS 2
typedef struct sfti_fit_line {
    uint64_t begins[SFTI_FIT_BEGINS]; /* bits of how the names of its modules begin */
    uint64_t sizes[2]; /* bits of what the modules' sizes may be */
    uint16_t at, len; /* in the text of the row, which has less than 64 KiB */
    uint16_t row, model;
} sfti_fit_line;

typedef struct sfti_fit_base {
    uint16_t record;
    uint16_t of; /* as in sfti_fit_model */
} sfti_fit_base;

typedef struct sfti_fit_lines {
    const sfti_fit_line *lines;
    const sfti_fit_base *models;
    const uint16_t *heirs; /* models that have another's modules, too */
    uint16_t count, model_count, heir_count;
} sfti_fit_lines;

/* The lines of records; without bits any line may be meant. NULL when out of memory. */
const sfti_fit_lines *sfti_fit_lines_cut(sfti_arena *arena, const sfti_records *records, bool bits);
/* Those that come with the library, cut when it was built (records/made.h); count 0: they were
 * not. */
extern const sfti_fit_lines sfti_made_fit_lines;

/* The hash of a name goes on with a character: dots are as good as "_". */
#define SFTI_FIT_HASH UINT64_C(0x9E3779B97F4A7C15)
static inline uint64_t sfti_fit_hash(uint64_t hash, char c) {
    return hash * SFTI_FIT_HASH + (uint8_t)(c == '.' ? '_' : c);
}
static inline uint32_t sfti_fit_place(uint64_t hash) {
    return (uint32_t)((hash ^ hash >> 29) * SFTI_FIT_HASH >> 40);
}
static inline uint64_t sfti_fit_bit(uint64_t hash) {
    return UINT64_C(1) << sfti_fit_place(hash) % 64;
}
static inline void sfti_fit_begins_put(uint64_t begins[SFTI_FIT_BEGINS], uint64_t hash) {
    begins[sfti_fit_place(hash) / 64 % SFTI_FIT_BEGINS] |= sfti_fit_bit(hash);
}

typedef struct sfti_fit_sizes { uint64_t out, in, kernel; } sfti_fit_sizes;
/* Reads "NAME[9216,3072]" or "NAME[320,4,9]"; the name's length, or 0 if it is neither. */
size_t sfti_fit_read_sizes(sft_span word, sfti_fit_sizes *sizes);
#define SFTI_FIT_SIZES 1024
static inline uint32_t sfti_fit_sizes_place(uint64_t out, uint64_t in) {
    return sfti_fit_place(out * 31 + in) % SFTI_FIT_SIZES;
}

/* Note a module of the main part and the numbers in its name. */
void sfti_fitting_put(sfti_forms *forms, sfti_form *form, const sfti_module *module,
                      const uint64_t *numbers, size_t slots);
/* What models have them, into info->fitting. */
void sfti_fitting_find(sfti_forms *forms);
/* The row "modules" that tells the base: a user's, if the library's do not have every module. */
const sfti_record_row *sfti_fitting_row(const sfti_records *records, const sfti_fitting *fitting);
/* The models that rows "modules" tell of, and what they have of the forms; any_size: by their names
 * alone. kin: only what models of this architecture and kin of it have, which are out->fits then;
 * NULL: all. */
void sfti_fitting_read(const sfti_forms *forms, bool any_size, const char *kin,
                       sfti_fitting *out);

#endif
