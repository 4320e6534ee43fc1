/* What find has found: how it is shown, and which of it fits a model. */
#ifndef CLI_FIND_H
#define CLI_FIND_H

#include "safetensors_info.h"
#include "support/cli.h"

/* What fits the word. */
typedef struct find_hit {
    const char *field, *algo; /* algo: of hashes */
    sft_span value, source;
} find_hit;

typedef struct find_found {
    const char *path;
    sft_span name;
    const find_hit *hits; /* at least one, if there is a word */
    size_t hit_count;
    sft_fit fit;          /* with --fits */
    const char *reason;   /* NULL without */
} find_found;

/* ── As text, JSON or a table (print.c) ── */

void find_show(cli *c, const find_found *found);
/* The first line of a table. has_word: matches are among its columns. */
void find_header(cli *c, bool has_word);

/* ── --fits FILE (fits.c) ── */

typedef struct find_fits {
    cli *c;
    const sft_info *with; /* the model of --fits */
    sfti_arena arena;
    struct find_row *rows;
    size_t count, good, unknown; /* good: that can be used with it */
    bool failed;        /* out of memory */
} find_fits;

void find_fits_begin(find_fits *fits, cli *c, const sft_info *with);
/* Keep what was found if it fits, or with --all may or does not. info NULL: it has no facts. */
void find_fits_take(find_fits *fits, const sft_info *info, const find_found *found);
/* Show all, best first, and give them back. */
void find_fits_end(find_fits *fits);

#endif
