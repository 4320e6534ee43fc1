/* Files that change their place together: the files of one model and what is its own beside it.
 *
 * 1. Folders are made. Each file gets its new name beside its old one: a second name of the same
 *    file; on another file system a copy, compared with the original; a new file if its text
 *    changes. A crash here leaves the model whole in its old place, and names that nobody needs in
 *    the new one.
 * 2. The folders of the new names are synced. The model is now whole in both places.
 * 3. The old names are removed, and their folders synced. A crash here leaves the model whole in
 *    its new place.
 *
 * Where a file can have one name only (FAT), step 3 renames it instead: there alone a crash can
 * leave a model in two places. What fails is taken back, from another file system by a copy. The
 * journal of a run (journal.h) knows all names before the first step, so that what a crash left can
 * be put back too. */
#ifndef CLI_MOVES_H
#define CLI_MOVES_H

#include "support/cli.h"

typedef enum cli_move_how { CLI_MOVE = 0, CLI_MOVE_COPY, CLI_MOVE_LINK } cli_move_how;

/* Bytes of a file that says where the model lies: from offset `at` on `old`, which is to be `text`
 * when it has moved. */
typedef struct cli_move_edit {
    uint64_t at;
    sft_span old, text;
} cli_move_edit;

/* What one file, or one folder with all that is in it, becomes. Paths end with NUL. */
typedef struct cli_move {
    const char *from, *to; /* to NULL: it is removed, as the last of all: there is no way back */
    bool is_folder;
    bool stays;    /* the old name is not removed: another model's, too */
    const cli_move_edit *edits; /* of a small file, in ascending order; NULL: none */
    size_t edit_count;
} cli_move;

#define CLI_MOVE_TEXT_MOST ((uint64_t)16 << 20) /* of a file with edits */

/* A model's, in the order in which they are removed: the model's own files first. */
typedef struct cli_moves {
    const char *path; /* the model, as it was named */
    cli_move *items;
    size_t count, capacity;
    const char **emptied; /* folders that are removed when all files are out, the innermost first */
    size_t emptied_count, emptied_cap;
    bool is_torn; /* after a failure that could not be taken back: some files have moved */
} cli_moves;

/* Do it, or nothing of it; where that fails, too, is_torn. *blame is the path that a failure is
 * about. */
sft_code cli_moves_make(cli *c, cli_moves *moves, cli_move_how how, const char **blame,
                        sft_error *err);
/* Put back what cli_moves_make did or began, by what is there now: nothing that was changed or
 * taken since is lost; *left counts the files that could not be put back, each of which is told.
 * How many were put back; none if the first cannot be. */
size_t cli_moves_undo(cli *c, const cli_moves *moves, size_t *left);

/* Plans the edits of a JSON sidecar in which a manager of models keeps where its model lies (LoRA
 * Manager: file_path, file_name, preview_url): it goes with a model of that name, from -> to, and
 * with the other moves. What is no JSON object moves as it is. False when out of memory. */
bool cli_follow(cli *c, sfti_arena *arena, sft_span stem, const cli_move *model,
                const cli_moves *moves, cli_move *move);

/* Whether two paths that differ by the case of letters alone lead to one file by one name: both do,
 * and the folder has not both names. */
bool cli_is_one_name(const char *a, const char *b);

/* Whether two files have the same bytes, all of which are read. */
sft_code cli_same_bytes(cli *c, const char *a, const char *b, bool *same, sft_error *err);

#endif
