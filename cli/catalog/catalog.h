/* The pages of the command catalog: page/types.d.ts describes their data. */
#ifndef CATALOG_CATALOG_H
#define CATALOG_CATALOG_H

#include "catalog/html.h"
#include "catalog/pack.h"
#include "catalog/places.h"
#include "support/models.h"
#include "support/titles.h"

/* ── Pictures: links to files below the folders that were given, or data: URLs in the page ── */

#define PICTURES_EMBED ((uint64_t)64 << 10) /* bytes, of --embed and of what is in headers */
#define PICTURES_MOST 16                    /* of a model */

typedef struct catalog_picture {
    const char *href;     /* percent-encoded; NULL: embedded, or not shown */
    size_t number;        /* of one that is embedded: its place among all of the page */
    const char *why;      /* it is not shown, or NULL */
    bool is_video;
    uint64_t width, height, level, bytes; /* 0: unknown */
} catalog_picture;

/* What the pictures of a page share. */
typedef struct catalog_pictures {
    cli *c;
    catalog_places *places;
    bool embeds;    /* files too, not only what is in headers */
    uint64_t most;  /* bytes of one that is embedded; 0: none is */
    size_t count;   /* embedded ones so far */
    uint64_t bytes; /* of them */
    html_page *page;
} catalog_pictures;

/* --embed[=KB]. SFT_BAD_ARGUMENT. places and page are the caller's to set. */
sft_code pictures_begin(catalog_pictures *all, cli *c, sft_error *err);
/* The pictures of a model, in the arena: at most PICTURES_MOST, in the order of `previews`. Those
 * that are embedded are written to the page, a block each. */
sft_code pictures_of(catalog_pictures *all, const cli_model *model, sfti_arena *arena,
                     catalog_picture **out, size_t *count, sft_error *err);
/* One, as a Picture of page/types.d.ts. */
void picture_json(sfti_json_writer *w, const catalog_picture *picture);

/* ── Rows: the columns of a catalogue (Rows of page/types.d.ts), collected model by model, written
 * at the end, when the dictionaries are known ── */

/* What a card says of a model that could not be read, in two words. */
typedef struct catalog_fault {
    const char *id;    /* an icon's name (page/icons.js) */
    const char *label;
} catalog_fault;

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
    ROW_RUNS_CODE = 64,
    ROW_FAVOURITE = 128,
    ROW_NOTED = 256 /* has facts of one's own beside it */
};

typedef struct catalog_row {
    sft_span name, file, date, error;
    sft_span rating; /* a number as JSON has it, or empty */
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

/* ── Details: the result object of info, without what is null or empty, bounded, and with sources
 * as numbers (More of page/types.d.ts) ── */

#define DETAILS_MODELS 256 /* in one block */
#define DETAILS_TEXT 2048  /* bytes of the longest text */
#define DETAILS_CUTS 16

typedef struct catalog_details {
    html_page *page;
    json_pack pack;
    sfti_arena arena;     /* of this block */
    catalog_dict sources;
    size_t blocks;        /* before this one */
    uint64_t budget;      /* bytes that models so far have left */
    sft_error *err;
    /* About the model that is written: */
    sft_span stem;
    int level;            /* how short it is: 0 is as long as possible */
    sft_span cuts[DETAILS_CUTS];
    size_t cut_count;
    sft_buffer keys;      /* of the object that begins */
    sft_sink key_sink;
    sfti_json_writer key_writer;
    char buffer[DETAILS_TEXT + 8];
} catalog_details;

void details_begin(catalog_details *out, html_page *page, const sft_allocator *alloc,
                   sft_error *err);
/* One model more. path: from the page's folder on. row: bytes of its row. Writes the block once it
 * is full. */
sft_code details_add(catalog_details *out, const cli_model *model, sft_span path,
                     const catalog_picture *pictures, size_t count, size_t row);
/* Write the last block. */
sft_code details_end(catalog_details *out);
void details_free(catalog_details *out);

/* ── Adapters ── */

/* Writes the member `norms` of ModelPage into the object that is open, with --deep computed values
 * too: what lora info tells. Of a model that is no adapter nothing; of one that cannot be read as
 * one, `adapter_error`. Memory: one module's matrices. */
sft_code model_norms_write(const cli_model *model, cli *c, sfti_json_writer *w, sft_error *err);

/* ── Pages ── */

/* What both kinds of page have. */
typedef struct catalog_run {
    cli *c;
    sft_sink sink;     /* of the page; the command finishes or abandons it */
    html_page page;    /* begun by what writes it */
    catalog_places places;
    catalog_pictures pictures;
} catalog_run;

/* A page about one model (--model; with --deep its statistics), to run->sink, from html_begin to
 * html_end. err says why there is none, or what went wrong. */
sft_code catalog_write_model(catalog_run *run, const char *path, sft_error *err);

#endif
