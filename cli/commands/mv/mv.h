/* mv: which files go where (plan.c), by a pattern of facts (pattern.c), and the journals of runs
 * (journal.c). */
#ifndef CLI_MV_H
#define CLI_MV_H

#include "support/companions.h"
#include "support/moves.h"

/* ── Patterns: --to ── */

#define MV_FIELDS_MOST 8 /* alternatives of one pair of braces */

typedef struct mv_part {
    sft_span before, after; /* literal; of braces: written only beside a value */
    sft_span fields[MV_FIELDS_MOST];
    size_t count;           /* of fields; 0: `before` alone */
} mv_part;

typedef struct mv_pattern {
    const mv_part *parts;
    size_t count;
    bool is_folder; /* it ends with '/': files keep their names */
} mv_pattern;

/* "{base_model}/{kind|type}/{name}{ - version}": at most 64 parts. SFT_BAD_ARGUMENT for what is no
 * pattern, a field that no model has, and a path that leaves the folder. */
sft_code mv_pattern_read(const char *text, sfti_arena *arena, mv_pattern *out, sft_error *err);
/* The path that it gives a model, without the ending of the file's name, from the folder that it
 * is relative to. Names are such as every system takes. A folder of which nothing is known is
 * `unknown`; a file of which nothing is known keeps its name. NULL when out of memory. */
char *mv_pattern_path(cli *c, const mv_pattern *pattern, const sft_node *root, sft_span stem,
                      const char *unknown, sfti_arena *arena);

/* ── Plans ── */

/* A model that moves. */
typedef struct mv_unit {
    cli_unit unit;
    const char *to;  /* absolute: the file without its ending, or the folder */
    const char *to_folder; /* the same if the folder that it lies in moves; NULL: never */
    cli_moves moves; /* empty: it is where it belongs */
    bool left; /* without its adapter_config.json */
    bool bare; /* without what declares its quantised layers */
    size_t record, record_len; /* of the journal's text */
    bool made;
} mv_unit;

typedef struct mv_plan {
    cli *c;
    sfti_arena arena;
    cli_move_how how;
    mv_unit *units;
    size_t count, capacity;
    const char **others; /* models that were found and do not move */
    size_t other_count, other_cap;
    const char **made; /* of a journal: folders that were made, the highest first */
    size_t made_count, made_cap;
} mv_plan;

#define MV_NUMBER_MOST 9999
/* The n of a name that ends in " (n)"; others come behind those. */
uint64_t mv_number_of(const mv_unit *unit);
/* A unit goes to `to`; all live as long as the plan. False when out of memory. */
bool mv_plan_add(mv_plan *plan, const cli_unit *unit, const char *to, const char *to_folder);
/* All units are known: which file goes where. What is in the way is told (with --number names get
 * a number instead), and so is a link; *refused counts that. An error is about *blame. */
sft_code mv_plan_end(mv_plan *plan, size_t *refused, const char **blame, sft_error *err);

/* ── Journals ── */

/* Locked while its file is open: what is being moved is not taken back meanwhile. */
typedef struct mv_journal {
    char path[4096 + 64]; /* as far as it is known: what a failure is about; "": nothing */
    int fd;               /* -1: none; mv_journal_close closes it in any case */
    sft_buffer text;      /* that was written */
} mv_journal;

/* Before the first move: all that will be moved, on the disk, in a folder of the user's; the oldest
 * of more than 20 go. */
sft_code mv_journal_write(cli *c, const mv_plan *plan, mv_journal *out, sft_error *err);
/* The newest, into the plan. SFT_NOT_FOUND if there is none, SFT_EDIT_BUSY if its run is still
 * going on. */
sft_code mv_journal_read(cli *c, mv_plan *plan, mv_journal *out, sft_error *err);
/* When the run is over: only units that were made are to be taken back. */
void mv_journal_settle(cli *c, const mv_plan *plan, mv_journal *journal);
/* is_over: there is nothing to take back; the journal goes. An error is that it does not. */
int mv_journal_close(mv_journal *journal, bool is_over);

#endif
