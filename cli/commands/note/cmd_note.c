/* note: one's own facts of models. Tests: tests/cli/note. */
#include "commands/commands.h"
#include "commands/info/beside.h"
#include "commands/info/save_as.h"
#include "commands/note/note.h"
#include "os/io.h"
#include "support/files.h"
#include "support/hints.h"
#include "support/records.h"
#include "support/where.h"
#include "support/words.h"

#include <string.h>

typedef struct note_run {
    cli *c;
    cli_wheres where;
    note_change changes[CLI_WORDS_MOST];
    size_t change_count, found;
} note_run;

/* ── Showing ── */

static void show(cli *c, const cli_model *model, const cli_sidecar *there) {
    cli_raw raw;
    if (cli_is_json(c)) {
        cli_object object;
        sfti_json_writer *w = cli_object_begin(&object, c, model->path);
        sfti_json_key(w, "note");
        if (there->object.len) sfti_json_text(w, there->object);
        else sfti_json_null(w);
        cli_object_end(&object);
        return;
    }
    cli_path_bold(&c->out, model->path, there->object.len ? "\n" : ": no note\n");
    for (cli_raw_begin(&raw, there->object); cli_raw_next(&raw);) {
        if (cli_is(raw.key, NOTE_WEIGHTS) || cli_is(raw.key, NOTE_BYTES)) continue;
        cli_fill(&c->out, "  %  ", raw.key);
        cli_pad(&c->out, raw.key.len < 10 ? 10 - raw.key.len : 0);
        cli_pretty(&c->out, raw.value, 14);
        cli_text(&c->out, "\n");
    }
}

/* ── Writing ── */

/* The digest that finds the note again, whatever the model is called and whatever its metadata
 * say; NULL where there is none. */
static const char *digest_of(cli *c, const cli_model *model, sft_hashes *hashes, sft_error *err) {
    cli_progress progress;
    if (!model->set || model->import || sft_set_shard_count(model->set) != 1) return NULL;
    sft_job job = cli_progress_begin(&progress, c, model->path);
    sft_code code = sft_hash_set(model->set, SFT_HASH_BIT(SFT_HASH_SSHS_MODEL), hashes, &job, err);
    cli_progress_end(&progress);
    return code ? NULL : sft_hashes_get(hashes, SFT_HASH_SSHS_MODEL);
}

static void tell(const note_run *run, const cli_model *model, const char *path, const char *what) {
    cli *c = run->c;
    if (cli_is_json(c)) {
        cli_object object;
        sfti_json_writer *w = cli_object_begin(&object, c, model->path);
        sfti_json_put_cstr(w, "output", path);
        sfti_json_put_bool(w, "changed", strcmp(what, "unchanged") != 0);
        sfti_json_put_bool(w, "dry_run", c->set.dry_run != 0);
        cli_object_end(&object);
    } else {
        cli_path(&c->out, path, ": %s%s\n", c->set.dry_run ? "would be " : "", what);
    }
}

static sft_code write_note(note_run *run, const cli_model *model, cli_sidecar *there,
                           sft_error *err) {
    cli *c = run->c;
    sft_buffer text = { .alloc = c->alloc };
    sft_hashes hashes;
    if (c->set.forget) {
        int error = there->exists && !c->set.dry_run ? sfti_os_unlink(there->path) : 0;
        if (error) return sfti_io_fail(err, SFT_IO_PUBLISH, error, "remove");
        tell(run, model, there->path, there->exists ? "removed" : "unchanged");
        return SFT_OK;
    }
    sft_span known;
    const char *digest = cli_raw_string(there->object, NOTE_WEIGHTS, &known)
                                 && known.len == sft_hash_digits(SFT_HASH_SSHS_MODEL)
                             ? NULL : digest_of(c, model, &hashes, err);
    sft_code code = err ? err->code : SFT_OK;
    if (!code)
        code = note_text(c, there->object, sft_tree_root(model->tree), run->changes,
                         run->change_count, digest, digest ? sft_set_data_bytes(model->set) : 0,
                         &text, err);
    sft_span now = { text.data, text.len };
    os_info info;
    int error = code ? 0 : sfti_os_info_path(model->path, true, &info); /* not moved meanwhile */
    if (error) code = sfti_io_fail(err, SFT_IO_OPEN, error, "open");
    bool same = !code && there->exists && sft_span_equal(now, cli_read_text(&there->text));
    if (!code && !same && !c->set.dry_run)
        code = cli_write_beside(c, model, there->path, there->path, now, there->exists, err);
    if (!code)
        tell(run, model, there->path, same ? "unchanged" : there->exists ? "updated" : "written");
    sft_buffer_free(&text);
    return code;
}

/* Where other programs look, of what is known now. */
static void save_for_others(cli *c, const cli_model *model) {
    cli_told told;
    cli_model now = *model;
    c->set.save_as = c->set.save_for;
    cli_told_open(c, model->path, &told);
    now.set = told.set;
    now.import = told.import;
    now.info = told.info;
    now.tree = told.tree;
    if (told.tree) cli_save_model(c, &now, CLI_SAVE_TRUST);
    else cli_fail_input(c, model->path, &told.err);
    cli_told_close(&told);
    c->set.save_as = 0;
}

static void each_model(void *ctx, cli_model *model) {
    note_run *run = ctx;
    cli_lock lock = { .fd = -1 };
    cli *c = run->c;
    sft_error err = SFT_ERROR_INIT;
    sfti_arena arena = { .alloc = c->alloc };
    cli_sidecar there = { .path = NULL };
    if (!model->tree || model->err.code) {
        cli_fail_model(c, model);
        return;
    }
    if (!cli_wheres_fit(c, &run->where, sft_tree_root(model->tree))) return;
    run->found++;
    sft_code code = SFT_OK;
    if (model->is_pipeline || model->is_dataset)
        code = sfti_fail(&err, SFT_IO_NOT_FILE, "expected a model in a file, found a folder: note "
                                                "one of its files");
    bool writes = run->change_count > 0 || c->set.forget;
    if (!code && writes && !c->set.dry_run) code = cli_lock_beside(model->path, &lock, &err);
    if (!code) code = cli_sidecar_open(c, model, &arena, NOTE_SUFFIX, &there, &err);
    os_info info;
    if (!code && there.exists && !there.object.len
        && !sfti_os_info_path(there.path, false, &info) && info.kind == OS_LINK)
        code = cli_fail_hint(&err, SFT_IS_LINK, CLI_HINT_MOVE_AWAY,
                             "expected a note, found a symbolic link");
    if (!code && there.exists && !there.object.len)
        code = cli_fail_hint(&err, SFT_EXISTS, SFT_HINT_NONE,
                             "expected a note, found a file that is none%s",
                             writes ? ": it stays" : "");
    if (!code && !writes) show(c, model, &there);
    else if (!code) code = write_note(run, model, &there, &err);
    if (code) cli_fail_input(c, there.path ? there.path : model->path, &err);
    else if (writes && c->set.save_for) save_for_others(c, model);
    cli_sidecar_close(&there);
    cli_lock_end(&lock);
    sfti_arena_free(&arena);
}

/* ── The command ── */

/* Words behind the models that are changes. */
static sft_code read_changes(note_run *run, char **operands, size_t *count, sft_error *err) {
    size_t models = 0;
    for (size_t i = 0; i < *count; i++) {
        os_info info;
        bool is_model = !note_is_change(operands[i])
                     || (!strchr(operands[i], '=') && !sfti_os_info_path(operands[i], true, &info));
        if (is_model) {
            operands[models++] = operands[i];
            continue;
        }
        if (run->change_count == CLI_WORDS_MOST)
            return cli_usage_error(err, "expected at most %d facts, found more", CLI_WORDS_MOST);
        sft_code code = note_change_read(operands[i], &run->changes[run->change_count++], err);
        if (code) return code;
    }
    *count = models;
    return models > 0 ? SFT_OK : cli_usage_error(err, "expected a model, found none");
}

static void run_note(cli *c, char **operands, size_t count) {
    sft_error err = SFT_ERROR_INIT;
    note_run run = { .c = c };
    size_t models;
    c->others = CLI_AND_OTHERS | CLI_FILES_ONLY;
    c->counts_unread = true;
    sft_code code = cli_where_read(c, &run.where, &err);
    if (!code) code = read_changes(&run, operands, &count, &err);
    bool writes = run.change_count > 0;
    if (!code && c->set.forget && writes)
        code = cli_usage_error(&err, "expected facts or --rm, found both");
    bool adopts_more = writes || c->set.forget || c->set.save_for || c->set.where.count > 0;
    if (!code && c->set.adopt && adopts_more)
        code = cli_usage_error(&err, "expected --adopt with folders alone, found more");
    if (!code && c->set.save_for && !writes)
        code = cli_usage_error(&err, "expected facts with --for, found none: info --save-as writes "
                               "what is known without new ones");
    if (!code && c->set.save_for && c->set.dry_run)
        code = cli_usage_error(&err, "expected --for without --dry-run, found both: what it writes "
                               "is made of the facts that are kept then");
    if (code) {
        cli_fail_usage(c, &err);
        return;
    }
    if (c->set.adopt) {
        note_adopt(c, operands, count);
        return;
    }
    cli_each_model(c, operands, count, &models, NULL, each_model, &run);
    if (run.found == 0 && c->status == CLI_OK) cli_status(c, CLI_NO);
}

const cli_command cli_note_command = {
    "note", "MODEL... [FACT...]", "keep facts of your own about models",
    "Facts of your own go before all that others say: name=TEXT, base=TEXT (the base model, as "
    "CivitAI spells it), words=A,B (trigger words), tags=A,B, rating=0 to 5, favourite, "
    "weight=0.8, note=TEXT. += adds to words and tags, to those that others say if you have none "
    "of your own; "
    "-= takes some off; an empty value (rating=) removes a fact, --rm all of them. Without a fact, "
    "the note is shown. What the tensors exclude is not believed, as anywhere else: a base model "
    "is then reported as a conflict.\n"
    "A note is NAME.own.json beside the model, which you may edit by hand: one object with these "
    "keys, and any others, which stay. It moves along with mv, and that of a safetensors model in "
    "one file has a digest of its weights, so that --adopt finds the model again if it was renamed "
    "by other means, or retitled: notes without a model go to the model of those weights. Notes "
    "without a digest are named, and stay.\n"
    "info, find --where, catalog and all that show facts read notes; the source is \"own\". --for "
    "also writes what is known now to where other programs look, as info --save-as does.",
    CLI_EXAMPLES(
        { "safetensors note neon.safetensors rating=4 favourite tags+=city,night",
          "stars, a mark, and two tags more" },
        { "safetensors note neon.safetensors weight=0.8 note='less at 1024'",
          "a strength, and a text" },
        { "safetensors note -r ~/models --where base_model=Pony tags+=pony", "to all of them" },
        { "safetensors find --where 'rating>=4' -r ~/models", "what you rated so" },
        { "safetensors note --adopt ~/models", "after files were renamed by other means" }),
    { CLI_OPTIONS(
        CLI_TAKES_MANY(0, "where", "FIELD=VALUE", where, CLI_WHERE_HELP),
        { 0, "for", "civitai|lora-manager|a1111|modelspec", CLI_CHOICE, CLI_SAVE_CIVITAI,
          offsetof(cli_settings, save_for),
          "also write it for another program, as info --save-as does" },
        CLI_ON(0, "rm", forget, "remove the note"),
        CLI_ON(0, "adopt", adopt,
          "bring notes whose model was renamed to it again; a folder may hold notes alone"),
        CLI_ON(0, "force", force, "with --for: also replace what somebody else wrote"),
        CLI_ON(0, "dry-run", dry_run, "print what would be done; write nothing")),
      cli_unread_options, cli_input_options, cli_json_options, cli_reading_options,
      cli_records_options, cli_common_options },
    { "all notes are written, or shown",
      "no model matches --where; with --adopt: no note was brought to a model",
      CLI_UNREAD_STATUS ", a note could not be written, or a usage error" },
    1, SIZE_MAX, run_note, CLI_URLS_NONE,
};
