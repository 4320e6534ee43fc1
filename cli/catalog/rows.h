/* The columns of a catalogue (Rows of page/types.d.ts): collected model by model, written at the
 * end, when the dictionaries are known. */
#ifndef CATALOG_ROWS_H
#define CATALOG_ROWS_H

#include "catalog/dict.h"
#include "catalog/html.h"
#include "catalog/pictures.h"

/* What a card says of a model that could not be read, in two words. */
typedef struct catalog_fault {
    const char *id;    /* an icon's name (page/icons.js) */
    const char *label;
} catalog_fault;

/* bytes: of the file, UINT64_MAX if unknown. Static. */
const catalog_fault *catalog_fault_of(const sft_error *err, uint64_t bytes);

#define ROW_WORDS 3
#define ROW_TAGS 32

/* What rows of a column are numbers of. */
typedef enum rows_dict {
    ROWS_KIND,
    ROWS_BASE,
    ROWS_ARCHITECTURE,
    ROWS_PRECISION,
    ROWS_FOLDER,
    ROWS_TAG,
    ROWS_LICENCE,
    ROWS_AUTHOR,
    ROWS_WHAT,   /* not written as a dictionary */
    ROWS_WEIGHTS /* digests of models: those of several are copies; not written either */
} rows_dict;
#define ROWS_DICTS 10

enum {
    ROW_CONFLICTS = 1,
    ROW_HASHED = 2,
    ROW_ON_CIVITAI = 4,
    ROW_DIFFERS = 8,
    ROW_BROKEN = 16,
    ROW_OTHER_FORMAT = 32,
    ROW_RUNS_CODE = 64
};

typedef struct catalog_row {
    sft_span name, file, date, error;
    const catalog_fault *fault; /* of one that could not be read */
    uint32_t number;
    uint32_t in[ROWS_DICTS]; /* numbers in the dictionaries */
    uint32_t *tags;
    sft_span words[ROW_WORDS];
    uint32_t tag_count, word_count, picture_count, flags;
    uint64_t bytes, parameters, rank; /* UINT64_MAX: unknown */
    int64_t modified;                 /* days since 1970, or -1 */
    char hash[2][13];                 /* sha256 and autov3, or "" */
    catalog_picture preview;
} catalog_row;

typedef struct catalog_rows {
    cli *c;
    const catalog_places *places;
    sfti_arena arena;
    catalog_dict dicts[ROWS_DICTS];
    catalog_row **rows;
    size_t count, capacity;
    int64_t newest;
    size_t entry_bytes; /* of the entries that the last model was the first to have */
} catalog_rows;

void rows_begin(catalog_rows *rows, cli *c, const catalog_places *places);
void rows_free(catalog_rows *rows);
/* One model more. */
sft_code rows_add(catalog_rows *rows, const cli_model *model, const catalog_picture *pictures,
                  size_t count, sft_error *err);
/* Bytes that the last one takes, about. */
size_t rows_last_bytes(const catalog_rows *rows);
/* The block "rows", and the table for browsers without scripts. block: models in a block of
 * details. */
sft_code rows_write(catalog_rows *rows, html_page *page, const char *title, size_t block,
                    sft_error *err);

#endif
