/* note --adopt: notes whose model has another name now. Tests: tests/cli/note. */
#include "commands/note/note.h"

#include "commands/info/facts.h"
#include "os/io.h"
#include "support/companions.h"
#include "support/files.h"
#include "support/moves.h"
#include "support/raw.h"
#include "support/words.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A note without a model; then a model without a note. */
typedef struct adopt_note {
    const char *path;
    char digest[SFT_HASH_TEXT_SIZE]; /* empty: none */
    uint64_t bytes; /* of the model's tensors; 0: not told */
    bool done;
} adopt_note;

typedef struct adopt_run {
    cli *c;
    sfti_arena arena;
    const char **folders; /* to be looked through */
    size_t folder_count, folder_cap;
    const char *folder;   /* at hand */
    adopt_note *notes;
    size_t count, cap, known; /* known: those with a digest */
    bool failed;
    size_t adopted;
    cli_digests digests;
} adopt_run;

/* ── Notes without a model ── */

static bool has_model(adopt_run *run, const char *path) {
    size_t stem = strlen(path) - strlen(NOTE_SUFFIX);
    os_info info;
    for (size_t i = 0; cli_model_ends[i]; i++) {
        char *model = sfti_arena_join(&run->arena, (sft_span){ path, stem },
                                      sft_span_cstr(cli_model_ends[i]));
        run->failed |= !model;
        if (model && !sfti_os_info_path(model, true, &info)) return true;
    }
    return false;
}

static void put_note(adopt_run *run, const char *path, sft_span digest, sft_span object) {
    adopt_note *notes = sfti_arena_grow(&run->arena, run->notes, run->count, 1, &run->cap,
                                        sizeof *notes);
    run->failed |= !notes;
    if (!notes) return;
    run->notes = notes;
    adopt_note *note = &notes[run->count++];
    *note = (adopt_note){ .path = path };
    if (digest.len != sft_hash_digits(SFT_HASH_SSHS_MODEL)) return;
    memcpy(note->digest, digest.data, digest.len);
    run->known++;
    if (!cli_raw_uint(object, NOTE_BYTES, &note->bytes)) note->bytes = 0;
}

static void take_note(adopt_run *run, const char *path) {
    sft_buffer text;
    sft_error err = SFT_ERROR_INIT;
    sft_span digest = { "", 0 };
    if (has_model(run, path)) return;
    sft_code code = cli_read_file(run->c, path, NOTE_TEXT_MOST, &text, &err);
    sft_span object = code ? (sft_span){ "", 0 } : cli_read_text(&text);
    if (cli_raw_check(object)) (void)cli_raw_string(object, NOTE_WEIGHTS, &digest);
    if (!code) put_note(run, path, digest, object);
    sft_buffer_free(&text);
    if (code) cli_complain(run->c, path, &err);
}

static int take_entry(void *ctx, const char *name, os_kind kind) {
    adopt_run *run = ctx;
    bool is_note = kind == OS_FILE && cli_ends_with(sft_span_cstr(name), NOTE_SUFFIX);
    if (*name == '.' || (!is_note && kind != OS_DIR)) return 0;
    const char *path = cli_join_path(&run->arena, sft_span_cstr(run->folder), name);
    if (!path) return ENOMEM;
    if (is_note) {
        take_note(run, path);
        return 0;
    }
    const char **folders = sfti_arena_grow(&run->arena, run->folders, run->folder_count, 1,
                                           &run->folder_cap, sizeof *folders);
    if (!folders) return ENOMEM;
    run->folders = folders;
    folders[run->folder_count++] = path;
    return 0;
}

static int compare_notes(const void *a, const void *b) {
    return strcmp(((const adopt_note *)a)->path, ((const adopt_note *)b)->path);
}

/* The first by name of notes that are alike gets the model: systems list folders as they like. */
static void look_through(adopt_run *run, const char *folder) {
    sft_error err = SFT_ERROR_INIT;
    size_t before = run->count;
    sft_span trimmed = sfti_path_trimmed(sft_span_cstr(folder));
    run->folder = sfti_arena_copy(&run->arena, trimmed.data, trimmed.len);
    run->failed |= !run->folder;
    while (!run->failed && run->folder) {
        int error = sfti_os_list(run->folder, take_entry, run);
        run->failed |= error == ENOMEM;
        if (error) {
            (void)sfti_io_fail(&err, SFT_IO_OPEN, error, "list");
            cli_complain(run->c, run->folder, &err);
        }
        run->folder = run->folder_count > 0 ? run->folders[--run->folder_count] : NULL;
    }
    if (run->count > before)
        qsort(run->notes + before, run->count - before, sizeof *run->notes, compare_notes);
}

/* ── Models without a note ── */

/* Only what a note may be of is read: models of terabytes are not, for a note of one. */
static uint32_t wanted(void *ctx, cli_model *model, size_t unit) {
    const adopt_run *run = ctx;
    bool one = unit == 0 && model->tree && model->set && !model->import
            && sft_set_shard_count(model->set) == 1;
    if (!one || cli_is_noted(sft_tree_root(model->tree))) return 0;
    for (size_t i = 0; i < run->count; i++) {
        uint64_t bytes = run->notes[i].bytes;
        if (!run->notes[i].done && *run->notes[i].digest
            && (bytes == 0 || bytes == sft_set_data_bytes(model->set)))
            return SFT_HASH_BIT(SFT_HASH_SSHS_MODEL);
    }
    return 0;
}

static void give_note(adopt_run *run, const cli_model *model, adopt_note *note) {
    cli *c = run->c;
    sft_error err = SFT_ERROR_INIT;
    const char *blame = note->path;
    sft_span path = sft_span_cstr(model->path);
    size_t end = cli_ends_with(path, ".safetensors") ? 12 : cli_ends_with(path, ".sft") ? 4 : 0;
    char *to = sfti_arena_join(&run->arena, (sft_span){ path.data, path.len - end },
                               sft_span_cstr(NOTE_SUFFIX));
    cli_move move = { .from = note->path, .to = to };
    cli_moves moves = { .path = note->path, .items = &move, .count = 1 };
    note->done = true;
    sft_code code = to ? SFT_OK : sfti_fail_memory(&err, path.len);
    if (!code && !c->set.dry_run) code = cli_moves_make(c, &moves, CLI_MOVE, &blame, &err);
    if (code) {
        cli_complain(c, blame, &err);
        return;
    }
    run->adopted++;
    if (cli_is_json(c)) {
        cli_object object;
        sfti_json_writer *w = cli_object_begin(&object, c, model->path);
        sfti_json_put_cstr(w, "from", note->path);
        sfti_json_put_cstr(w, "output", to);
        sfti_json_put_bool(w, "dry_run", c->set.dry_run != 0);
        cli_object_end(&object);
        return;
    }
    cli_path(&c->out, note->path, ": %smoved to ", c->set.dry_run ? "would be " : "");
    cli_path_text(&c->out, sft_span_cstr(to));
    cli_text(&c->out, "\n");
}

static void answer(void *ctx, cli_model *model, size_t unit, const sft_hash_result *result) {
    adopt_run *run = ctx;
    const char *digest = sft_hashes_get(&result->hashes, SFT_HASH_SSHS_MODEL);
    (void)unit;
    for (size_t i = 0; digest && i < run->count; i++) {
        if (run->notes[i].done || strcmp(run->notes[i].digest, digest) != 0) continue;
        give_note(run, model, &run->notes[i]);
        return;
    }
}

static void each_model(void *ctx, cli_model *model) {
    adopt_run *run = ctx;
    bool notes_alone = model->input->kind == CLI_EMPTY; /* models may have left them */
    if (!notes_alone && (!model->tree || model->err.code)) cli_fail_model(run->c, model);
}

void note_adopt(cli *c, char **operands, size_t count) {
    adopt_run run = { .c = c };
    sft_error err = SFT_ERROR_INIT;
    size_t models;
    c->set.recursive = 1; /* a note may have stayed anywhere */
    run.arena.alloc = c->alloc;
    run.failed = cli_distinct_operands(c, operands, &count, &run.arena, &err) != SFT_OK;
    for (size_t i = 0; i < count; i++) look_through(&run, operands[i]);
    run.digests.wanted = wanted;
    run.digests.answer = answer;
    run.digests.ctx = &run;
    if (run.failed) cli_complain_memory(c, sizeof *run.notes);
    cli_hash_run_begin(&run.digests.hashing, c, "note");
    if (!run.failed && run.known > 0 && run.digests.hashing.usable)
        cli_each_model(c, operands, count, &models, &run.digests, each_model, &run);
    cli_hash_run_end(&run.digests.hashing);
    for (size_t i = 0; i < run.count && !cli_is_json(c); i++)
        if (!run.notes[i].done)
            cli_path(&c->out, run.notes[i].path, *run.notes[i].digest
                     ? ": its model was not found\n"
                     : ": has no digest of its model's weights\n");
    if (run.count == 0 && c->status == CLI_OK && !cli_is_json(c)) {
        (void)sfti_fail(&err, SFT_NOT_FOUND, "expected notes without a model, found none");
        cli_refuse(c, NULL, &err);
    }
    if (run.adopted == 0 && c->status == CLI_OK) cli_status(c, CLI_NO);
    sfti_arena_free(&run.arena);
}
