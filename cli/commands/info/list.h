/* The list of several models, for people: a row each in columns that fit the terminal. Without an
 * order rows are printed as they come, in columns as wide as the first LIST_SAMPLE rows need; an
 * order or groups need all rows first. Also puts text that is already rendered into order. */
#ifndef CLI_INFO_LIST_H
#define CLI_INFO_LIST_H

#include "base/mem.h"
#include "support/cli.h"
#include "support/models.h"

#define LIST_SAMPLE 1000

typedef enum cli_list_column {
    LIST_NAME,
    LIST_WHAT,
    LIST_BASE,
    LIST_WORDS,
    LIST_DATE,
    LIST_SIZE,
    LIST_PATH,
    LIST_COLUMNS
} cli_list_column;

/* Choices of --sort and --group-by. */
typedef enum cli_list_sort {
    LIST_BY_PATH,
    LIST_BY_NAME,
    LIST_BY_DATE,
    LIST_BY_SIZE,
    LIST_BY_BASE,
    LIST_BY_RANK
} cli_list_sort;
typedef enum cli_list_group {
    LIST_NO_GROUPS,
    LIST_GROUP_BASE,
    LIST_GROUP_KIND,
    LIST_GROUP_FOLDER
} cli_list_group;

typedef struct cli_row {
    sft_span cells[LIST_COLUMNS]; /* as a file has them: print them escaped */
    sft_span text;                /* rendered: printed instead of the cells, or beneath them */
    sft_span group;               /* its heading; empty: unknown */
    sft_span key, group_key;      /* what texts are sorted by, in small letters */
    sft_span tie;                 /* path, likewise */
    uint64_t bytes, number;       /* number: what numbers are sorted by */
    bool is_text, is_known;       /* is_known: has the value that is sorted by */
    bool is_wrong, needs_path;
} cli_row;

typedef struct cli_list {
    cli *c;
    sfti_arena arena;
    cli_row *rows;
    size_t count, capacity;
    size_t wrong;         /* rows with a mark */
    bool holds;           /* an order needs all rows first */
    bool begun;           /* the columns are decided */
    bool labels;          /* texts are labels, with an empty line between */
    bool failed;          /* out of memory */
    const char *folder;   /* the only operand, or "" */
    size_t columns;       /* of the terminal; 0: there is none */
    size_t widths[LIST_COLUMNS]; /* 0: not shown */
    cli_progress progress;
} cli_list;

/* operands: as they were given. */
void cli_list_begin(cli_list *list, cli *c, char **operands, size_t count);
/* One model more; text (rendered) is printed beneath its row, or with is_text instead of it. */
void cli_list_add(cli_list *list, const cli_model *model, const sft_node *root, sft_span text,
                  bool is_text);
/* Print what was held back. */
void cli_list_end(cli_list *list);

/* ── How rows are printed (rows.c) ── */

/* Decide the columns by these rows, and print the heads. */
void cli_rows_begin(cli_list *list, cli_row *rows, size_t count);
void cli_row_print(const cli_list *list, const cli_row *row);
/* Whether all words of the file's name that tell something are in the model's name. */
bool cli_name_tells(sft_span name, const char *path);

#endif
