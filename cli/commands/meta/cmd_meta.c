/* meta: show and edit metadata in place. */
#include "base/glob.h"
#include "commands/commands.h"
#include "commands/meta/meta.h"
#include "os/os.h"
#include "support/edit.h"
#include "support/files.h"
#include "support/guard.h"
#include "support/hints.h"
#include "support/output.h"
#include "support/raw.h"
#include "support/remote.h"
#include "support/words.h"

#include <stdio.h>
#include <string.h>

/* ── Changing ── */

/* What set, rm and scrub ask for: a value of data NULL removes. */
typedef struct meta_change {
    sfti_arena arena;
    sft_pair *pairs;
    size_t count;
    bool is_scrub, is_rm;
    const char *value_file; /* of KEY=@FILE, while it is read */
    const sft_span *missing; /* the first key that is not there, or NULL */
    /* Keys of the current file: removed, left in part by scrub, kept by it. */
    sft_span *listed, *rewritten, *kept;
    size_t listed_count, rewritten_count, kept_count;
    const char **reasons, **rewritten_reasons, **kept_reasons; /* of scrub */
} meta_change;

static sft_code scrub_arrays(meta_change *change, size_t count, sft_error *err) {
    sfti_arena *arena = &change->arena;
    change->listed = sfti_arena_array(arena, count, sizeof *change->listed);
    change->rewritten = sfti_arena_array(arena, count, sizeof *change->rewritten);
    change->reasons = sfti_arena_array(arena, count, sizeof(char *));
    change->rewritten_reasons = sfti_arena_array(arena, count, sizeof(char *));
    change->kept = sfti_arena_array(arena, count, sizeof *change->kept);
    change->kept_reasons = sfti_arena_array(arena, count, sizeof(char *));
    bool fine = change->listed && change->rewritten && change->reasons
                && change->rewritten_reasons && change->kept && change->kept_reasons;
    return fine ? SFT_OK : sfti_fail_memory(err, count * sizeof *change->listed);
}

/* Whether __metadata__ has the key again, with another value, which the last one hides; --level
 * compat reads such files. */
static sft_code has_hidden(sft_span metadata, sft_span key, sfti_arena *arena, bool *out,
                           sft_error *err) {
    cli_raw raw;
    sft_span value = { NULL, 0 };
    *out = false;
    for (cli_raw_begin(&raw, metadata); cli_raw_next(&raw);) {
        char *decoded = raw.key.len < key.len ? NULL : sfti_arena_take(arena, raw.key.len + 1);
        if (!decoded && raw.key.len >= key.len) return sfti_fail_memory(err, raw.key.len);
        sft_span name = { decoded, decoded ? sfti_json_decode(raw.key, decoded) : 0 };
        if (!decoded || !sft_span_equal(name, key)) continue;
        *out = *out || (value.data && !sft_span_equal(value, raw.value));
        value = raw.value;
    }
    return SFT_OK;
}

/* The text of __metadata__ if it has keys again, else empty. */
static sft_span text_with_hidden(const cli *c, const sft_file *file) {
    cli_raw raw;
    sft_span metadata, none = { "", 0 };
    size_t count = 0;
    if (c->open.level != SFT_LEVEL_COMPAT
        || !cli_raw_member(sft_file_header(file), "__metadata__", &metadata))
        return none;
    for (cli_raw_begin(&raw, metadata); cli_raw_next(&raw);) count++;
    return count > sft_file_metadata_count(file) ? metadata : none;
}

static sft_code ask_scrub(cli *c, sft_edit *edit, meta_change *change, sft_error *err) {
    const sft_file *file = sft_edit_file(edit);
    size_t count = sft_file_metadata_count(file);
    sft_code code = scrub_arrays(change, count, err);
    sft_span hidden = text_with_hidden(c, file);
    for (size_t i = 0; !code && i < count; i++) {
        sft_pair pair = sft_file_metadata_at(file, i);
        sfti_arena work = { .alloc = c->alloc }; /* the edit keeps a copy */
        sft_span key = { NULL, pair.key.len }; /* for when the file is closed */
        cli_scrubbed found;
        if (!meta_scrub_pair(c, pair.key, pair.value, &work, &found))
            code = sfti_fail_memory(err, pair.value.len);
        bool again = false;
        if (!code && hidden.len > 0 && !found.reason && !cli_matches_any(&c->set.keep, pair.key))
            code = has_hidden(hidden, pair.key, &work, &again, err);
        if (again) found = (cli_scrubbed){ "a value that another hides", pair.value };
        if (code) found.reason = NULL;
        const char *kept = found.reason && !found.value.data
                         ? NULL : meta_kept_reason(pair.key, pair.value);
        if (kept || found.reason)
            key.data = sfti_arena_copy(&change->arena, pair.key.data, key.len);
        if (kept) change->kept_reasons[change->kept_count] = kept;
        if (kept) change->kept[change->kept_count++] = key;
        if ((kept || found.reason) && !key.data) {
            code = sfti_fail_memory(err, key.len);
        } else if (found.reason && found.value.data) {
            code = sft_edit_set(edit, pair.key, found.value, err);
            change->rewritten_reasons[change->rewritten_count] = found.reason;
            change->rewritten[change->rewritten_count++] = key;
        } else if (found.reason) {
            code = sft_edit_remove(edit, pair.key, err);
            change->reasons[change->listed_count] = found.reason;
            change->listed[change->listed_count++] = key;
        }
        sfti_arena_free(&work);
    }
    return code;
}

static sft_code remove_key(sft_edit *edit, meta_change *change, sft_span key, sft_error *err) {
    for (size_t i = 0; i < change->listed_count; i++)
        if (sft_span_equal(change->listed[i], key)) return SFT_OK;
    key.data = sfti_arena_copy(&change->arena, key.data, key.len); /* the file may be closed */
    if (!key.data) return sfti_fail_memory(err, key.len);
    change->listed[change->listed_count++] = key;
    return sft_edit_remove(edit, key, err);
}

/* A key, or those that a glob matches. */
static sft_code remove_keys(sft_edit *edit, meta_change *change, const sft_span *key,
                            sft_error *err) {
    const sft_file *file = sft_edit_file(edit);
    size_t found = 0;
    sft_span value;
    sft_code code = SFT_OK;
    if (!change->listed) {
        size_t most = change->count + sft_file_metadata_count(file);
        change->listed = sfti_arena_array(&change->arena, most, sizeof *change->listed);
        if (!change->listed) return sfti_fail_memory(err, most);
    }
    if (sft_file_metadata_get(file, *key, &value)) return remove_key(edit, change, *key, err);
    for (size_t i = 0; !code && i < sft_file_metadata_count(file); i++) {
        sft_span name = sft_file_metadata_at(file, i).key;
        if (!sfti_glob_match(*key, name)) continue;
        code = remove_key(edit, change, name, err);
        found++;
    }
    if (found == 0 && !change->missing) change->missing = key;
    return code;
}

static sft_code say_change(cli *c, const char *path, meta_change *change,
                           const sft_edit_report *report, sft_error *err) {
    char sha256[SFT_HASH_TEXT_SIZE] = "";
    bool changed = report->method != SFT_EDIT_NONE || (c->set.output && c->set.copy);
    const char *result_path = c->set.output && changed ? c->set.output : path;
    if (change->is_scrub && !c->set.dry_run) {
        sft_code code = meta_sha256(c, result_path, sha256, err);
        if (code) return code;
    }
    cli_edit_result result = { .path = path, .report = report, .changed = changed,
                               .listed = change->listed, .listed_count = change->listed_count,
                               .reasons = change->reasons, .rewritten = change->rewritten,
                               .rewritten_count = change->rewritten_count,
                               .rewritten_reasons = change->rewritten_reasons,
                               .sha256 = *sha256 ? sha256 : NULL };
    if (change->is_scrub || change->listed_count > 0) result.what = "removed";
    if (change->is_scrub) {
        result.kept = change->kept;
        result.kept_count = change->kept_count;
        result.kept_reasons = change->kept_reasons;
        meta_beside(c, path, &change->arena, &result);
    } else if (!change->is_rm && !c->set.dry_run) {
        meta_still_shown(c, result_path, change->pairs, change->count, &change->arena, &result);
    }
    cli_edit_say(c, &result);
    return SFT_OK;
}

static sft_code change_file(cli *c, const char *path, void *ctx, sft_error *err) {
    meta_change *change = ctx;
    sft_edit *edit;
    sft_edit_report report;
    change->listed_count = change->rewritten_count = change->kept_count = 0;
    change->listed = NULL;
    change->missing = NULL;
    sft_edit_options options = cli_edit_options(c);
    sft_code code = sft_edit_open(path, &options, &edit, err);
    if (code) return code;
    if (change->is_scrub) code = ask_scrub(c, edit, change, err);
    for (size_t i = 0; !code && !change->is_scrub && i < change->count; i++) {
        const sft_pair *pair = &change->pairs[i];
        code = pair->value.data ? sft_edit_set(edit, pair->key, pair->value, err)
                                : remove_keys(edit, change, &pair->key, err);
    }
    if (!code) code = cli_edit_finish(c, path, edit, &report, err);
    if (!code && change->is_rm) {
        code = say_change(c, path, change, &report, err);
        if (!code && change->missing) /* the result object says nothing of it */
            meta_tell_missing(c, path, sft_edit_file(edit), *change->missing);
    }
    sft_edit_close(edit);
    /* A label takes memory of its own. */
    if (!code && !change->is_rm) code = say_change(c, path, change, &report, err);
    return code;
}

/* The metadata of an index; what may be private in it is found as in a file. */
static sft_code scrub_index(cli *c, const char *path, meta_change *change, sft_error *err) {
    meta_pairs pairs;
    cli_input input = { .kind = CLI_INDEX, .path = path };
    sft_code code = meta_read(c, &input, &pairs, err);
    change->pairs = sfti_arena_array(&change->arena, pairs.count, sizeof *change->pairs);
    change->count = 0;
    if (!code && !change->pairs) code = sfti_fail_memory(err, pairs.count);
    if (!code) code = scrub_arrays(change, pairs.count, err);
    change->listed_count = 0;
    for (size_t i = 0; !code && i < pairs.count; i++) {
        sft_pair pair = meta_pair_at(&pairs, i);
        cli_scrubbed found;
        sft_span value = meta_value(&pairs, i); /* a string's text */
        bool fine = *pair.value.data != '"' || value.data != pair.value.data;
        if (!fine || !meta_scrub_pair(c, pair.key, value, &change->arena, &found)) {
            code = sfti_fail_memory(err, pair.value.len);
            break;
        }
        if (!found.reason) continue;
        char *key = sfti_arena_copy(&change->arena, pair.key.data, pair.key.len);
        if (!key) code = sfti_fail_memory(err, pair.key.len);
        if (!key) break;
        sft_span name = { key, pair.key.len };
        change->pairs[change->count++] = (sft_pair){ name, { NULL, 0 } };
        change->reasons[change->listed_count] = found.reason;
        change->listed[change->listed_count++] = name;
    }
    meta_free(&pairs);
    return code;
}

static sft_code change_index(cli *c, const char *path, meta_change *change, sft_error *err) {
    bool changed = false;
    sft_index_changes changes = SFT_INDEX_CHANGES_INIT;
    sft_code code = c->set.output ? SFT_OK : cli_guard_lock(c, path, err);
    if (!code && change->is_scrub) code = scrub_index(c, path, change, err);
    if (code) return code;
    changes.metadata = change->pairs;
    changes.metadata_count = change->count;
    changes.dry_run = c->set.dry_run != 0;
    code = cli_edit_index(c, path, &changes, &changed, err);
    if (code) return code;
    cli_edit_result result = { .path = path, .changed = changed };
    if (change->is_scrub) {
        result.what = "removed";
        result.listed = change->listed;
        result.listed_count = change->listed_count;
        result.reasons = change->reasons;
    }
    cli_edit_say(c, &result);
    return SFT_OK;
}

static void change_one(cli *c, const char *operand, void *ctx) {
    sft_error err = SFT_ERROR_INIT;
    meta_change *change = ctx;
    const char *path;
    if (cli_output_is_stream(c) || cli_is_remote(c, operand)) {
        meta_request ask = { change->pairs, change->count, change->is_scrub, change->is_rm };
        meta_stream(c, operand, &ask);
        return;
    }
    sft_code code = SFT_OK;
    if (strcmp(operand, "-") == 0)
        code = cli_usage_error(&err, "expected -o - for standard input, found %s%s",
                               c->set.output ? "-o " : "none", c->set.output ? c->set.output : "");
    path = operand;
    if (!code) code = cli_edit_operand(c, &change->arena, operand, &path, &err);
    if (code) {
        cli_edit_fail(c, path, &err);
        return;
    }
    bool index = sft_path_is_index(path), shards = index && c->set.each_shard;
    if (shards && c->set.output)
        code = cli_usage_error(&err, "expected --each-shard without -o, found both");
    else if (index && !shards && c->several && c->set.output)
        code = cli_usage_error(&err, "expected models in one file for -o DIR/, found an index");
    else if (shards)
        code = cli_edit_each_shard(c, path, change_file, change, &err);
    else
        code = index ? change_index(c, path, change, &err) : change_file(c, path, change, &err);
    if (code) cli_edit_fail(c, path, &err);
}

/* ── Verbs ── */

/* KEY VALUE... and KEY=@FILE of set. */
static sft_code take_values(cli *c, char **words, size_t count, meta_change *change,
                            sft_error *err) {
    sft_code code = SFT_OK;
    for (size_t i = 0; !code && i < count; i++) {
        const char *mark = strstr(words[i], "=@");
        if (mark && mark > words[i] && mark[2]) {
            /* KEY=@FILE: the text of the file */
            sft_buffer text;
            sft_span key = { words[i], (size_t)(mark - words[i]) };
            change->value_file = mark + 2;
            code = cli_read_file(c, mark + 2, META_VALUE_MOST, &text, err);
            if (code) return code;
            change->value_file = NULL;
            char *copy = sfti_arena_copy(&change->arena, text.data ? text.data : "", text.len);
            if (!copy) code = sfti_fail_memory(err, text.len);
            if (!code) change->pairs[change->count++] = (sft_pair){ key, { copy, text.len } };
            sft_buffer_free(&text);
        } else if (i + 1 < count) {
            sft_pair pair = { sft_span_cstr(words[i]), sft_span_cstr(words[i + 1]) };
            change->pairs[change->count++] = pair;
            i++;
        } else {
            code = cli_usage_error(err, "expected a VALUE after the KEY \"%s\", found none",
                                   words[i]);
        }
    }
    return code;
}

static void usage(cli *c, const char *expected) {
    sft_error err = SFT_ERROR_INIT;
    cli_usage_error(&err, "expected %s", expected);
    cli_hint(&err, CLI_HINT_HELP_META);
    cli_fail_usage(c, &err);
}

static bool is_called_model(const char *word) {
    sft_span name = sft_span_cstr(word);
    return cli_ends_with(name, ".safetensors") || cli_ends_with(name, ".sft")
        || sft_path_is_index(word) || sft_remote_is_url(word);
}

/* The first operand is a model, and so are those behind it that are called like one or are
 * folders; keys and values follow. */
static size_t count_models(char **operands, size_t count) {
    size_t i = 1;
    os_info info;
    while (i < count && (is_called_model(operands[i])
                         || (!sfti_os_info_path(operands[i], true, &info) && info.kind == OS_DIR)))
        i++;
    return i;
}

/* Keys do not come out even: a folder before them may have been meant as one. */
static bool blame_folder(cli *c, char **operands, size_t models) {
    sft_error err = SFT_ERROR_INIT;
    const char *last = operands[models - 1];
    if (models < 2 || is_called_model(last)) return false;
    cli_usage_error(&err, "expected a KEY, found the folder \"%s\", which counts as a FILE: run "
                    "this where no folder has that name", last);
    cli_fail_usage(c, &err);
    return true;
}

/* set FILE... KEY VALUE..., rm FILE... KEY... */
static void change_pairs(cli *c, char **operands, size_t count, bool is_rm) {
    sft_error err = SFT_ERROR_INIT;
    size_t models = count_models(operands, count);
    if (models == count && (is_rm || (!c->set.from_json && !c->set.thumbnail))) {
        if (!blame_folder(c, operands, models))
            usage(c, is_rm ? "FILE KEY..., found no KEY" : "FILE KEY VALUE, KEY=@FILE, --from-json "
                                                           "or --thumbnail, found FILE alone");
        return;
    }
    meta_change change = { .arena.alloc = c->alloc, .is_rm = is_rm };
    meta_json json = { .text = { .alloc = c->alloc } };
    sft_pair thumbnail;
    const char *from_json = c->set.from_json, *picture = c->set.thumbnail;
    sft_code code = SFT_OK;
    if (from_json) {
        code = meta_json_read(c, from_json, &change.arena, &json, &err);
        sft_buffer_free(&json.text);
    }
    if (!code && picture) code = meta_thumbnail(c, picture, &change.arena, &thumbnail, &err);
    size_t most = count - models + json.count + (picture != NULL);
    if (!code) {
        change.pairs = sfti_arena_array(&change.arena, most, sizeof *change.pairs);
        if (!change.pairs) code = sfti_fail_memory(&err, most);
    }
    for (size_t i = 0; !code && i < json.count; i++) change.pairs[change.count++] = json.pairs[i];
    if (!code && picture) change.pairs[change.count++] = thumbnail;
    if (!code && !is_rm)
        code = take_values(c, operands + models, count - models, &change, &err);
    for (size_t i = models; !code && is_rm && i < count; i++)
        change.pairs[change.count++] = (sft_pair){ sft_span_cstr(operands[i]), { NULL, 0 } };
    const char *blame = change.value_file ? change.value_file : from_json ? from_json : picture;
    bool is_usage = code == SFT_BAD_ARGUMENT && !blame;
    if (is_usage && !blame_folder(c, operands, models)) cli_fail_usage(c, &err);
    else if (code && !is_usage) cli_complain(c, blame, &err);
    else if (!code) cli_write_each(c, operands, models, change_one, &change);
    sfti_arena_free(&change.arena);
}

static void meta_set(cli *c, char **operands, size_t count) {
    change_pairs(c, operands, count, false);
}

static void meta_rm(cli *c, char **operands, size_t count) {
    change_pairs(c, operands, count, true);
}

static void meta_scrub(cli *c, char **operands, size_t count) {
    meta_change change = { .arena.alloc = c->alloc, .is_scrub = true };
    cli_write_each(c, operands, count, change_one, &change);
    sfti_arena_free(&change.arena);
}

/* clean: what was not interrupted is told, too. */
static sft_code recover_file(cli *c, const char *path, bool clean, sft_error *err) {
    static const char *const said[] = { "no edit was interrupted", "as before the edit",
                                        "the edit is done now" };
    static const char *const names[] = { "none", "old", "new" };
    cli_object object;
    sft_edit_options options = cli_edit_options(c);
    sft_edit_found found = SFT_EDIT_CLEAN;
    sft_code code = sft_edit_recover(path, &options, &found, err);
    if (code || (!clean && found == SFT_EDIT_CLEAN)) return code;
    if (cli_is_json(c)) {
        sfti_json_put_cstr(cli_object_begin(&object, c, path), "recovered", names[found]);
        cli_object_end(&object);
    } else {
        cli_path(&c->out, path, ": %s\n", said[found]);
    }
    return SFT_OK;
}

/* One that cannot be recovered does not stop the rest. */
static sft_code recover_one(cli *c, const char *path, void *ctx, sft_error *err) {
    (void)ctx;
    if (recover_file(c, path, true, err)) cli_edit_fail(c, path, err);
    return SFT_OK;
}

static void meta_recover(cli *c, char **operands, size_t count) {
    for (size_t i = 0; i < count && !cli_is_over(c); i++) {
        sft_error err = SFT_ERROR_INIT;
        sfti_arena arena = { .alloc = c->alloc };
        const char *path;
        sft_code code = cli_edit_operand(c, &arena, operands[i], &path, &err);
        bool index = !code && sft_path_is_index(path);
        /* of an index only its replacement can have been interrupted */
        if (index) code = recover_file(c, path, false, &err);
        if (!code)
            code = index ? cli_edit_each_named(c, path, recover_one, NULL, &err)
                         : recover_one(c, path, NULL, &err);
        if (code) cli_edit_fail(c, path, &err);
        sfti_arena_free(&arena);
    }
}

/* ── The command ── */

static const struct meta_verb {
    const char *name, *operands;
    size_t least, most;
    void (*run)(cli *c, char **operands, size_t count);
    cli_urls urls;
} meta_verbs[] = {
    { "list", "PATH...", 1, SIZE_MAX, meta_list, CLI_URLS_ALL },
    { "get", "FILE KEY...", 2, SIZE_MAX, meta_get, CLI_URLS_FIRST },
    { "header", "PATH...", 1, SIZE_MAX, meta_header, CLI_URLS_ALL },
    { "set", "FILE... KEY VALUE...", 1, SIZE_MAX, meta_set, CLI_URLS_COPY_FIRST },
    { "rm", "FILE... KEY...", 2, SIZE_MAX, meta_rm, CLI_URLS_COPY_FIRST },
    { "scrub", "FILE...", 1, SIZE_MAX, meta_scrub, CLI_URLS_COPY },
    { "recover", "FILE...", 1, SIZE_MAX, meta_recover, CLI_URLS_NONE },
};

static const struct meta_verb *verb_named(const char *name) {
    for (size_t i = 0; i < sizeof meta_verbs / sizeof *meta_verbs; i++)
        if (strcmp(meta_verbs[i].name, name) == 0) return &meta_verbs[i];
    return NULL;
}

static void run_meta(cli *c, char **operands, size_t count) {
    const struct meta_verb *verb = verb_named(operands[0]);
    size_t skip = verb != NULL;
    if (!verb) { /* what the options say, or a file, which is listed */
        os_info info;
        const char *word = operands[0];
        bool is_file = strcmp(word, "-") == 0 || strpbrk(word, "./\\")
                    || sfti_os_info_path(word, true, &info) == 0;
        if (c->set.from_json || c->set.thumbnail) verb = verb_named("set");
        else if (c->set.to_json || is_file) verb = verb_named("list");
    }
    count -= skip;
    const char *clash = NULL;
    if (verb) {
        bool lists = verb->run == meta_list || verb->run == meta_get || verb->run == meta_header;
        bool tsv = c->set.format == CLI_TSV;
        if (c->set.dry_run && verb->run == meta_recover)
            clash = "recover without --dry-run, found both";
        if (tsv && (c->set.pretty || c->set.to_json))
            clash = "--tsv without --pretty and --to-json, found both";
        if (tsv && verb->run != meta_list) clash = "--tsv with list only";
        if (c->set.pretty && !lists) clash = "--pretty with list, get and header only";
        bool changes = verb->run == meta_set || verb->run == meta_rm || verb->run == meta_scrub;
        if (c->set.output && !changes) clash = "-o with set, rm and scrub only";
        if (c->set.to_json && verb->run != meta_list) clash = "--to-json with list only";
        if (c->set.from_json && verb->run != meta_set) clash = "--from-json with set only";
        if (c->set.thumbnail && verb->run != meta_set) clash = "--thumbnail with set only";
        if (c->set.keep.count > 0 && verb->run != meta_scrub) clash = "--keep with scrub only";
        bool one = verb->run == meta_get || verb->run == meta_recover;
        if (c->set.recursive && one) clash = "files without -r for get and recover, found both";
    }
    sft_error err = SFT_ERROR_INIT;
    if (!verb) {
        sfti_guess guess = sfti_guess_begin(sft_span_cstr(operands[0]));
        for (size_t i = 0; i < sizeof meta_verbs / sizeof *meta_verbs; i++)
            sfti_guess_try(&guess, sft_span_cstr(meta_verbs[i].name));
        cli_usage_error(&err, "expected list, get, header, set, rm, scrub, recover or a file, "
                        "found \"%s\"%s", operands[0], sfti_guess_text(&guess, "\"", "\""));
        cli_hint(&err, CLI_HINT_HELP_META);
        cli_fail_usage(c, &err);
    } else if (count < verb->least || count > verb->most) {
        usage(c, verb->operands);
    } else if (clash) {
        usage(c, clash);
    } else {
        char what[32];
        size_t models = count; /* what follows those of set and rm may look like a URL */
        operands += skip;
        snprintf(what, sizeof what, "meta %s", verb->name);
        if (verb->urls == CLI_URLS_COPY_FIRST) models = count_models(operands, count);
        if (verb->urls == CLI_URLS_FIRST) models = 1;
        if (cli_remote_take(c, operands, models, verb->urls, what, &err)) cli_fail_usage(c, &err);
        else verb->run(c, operands, count);
    }
}

static const cli_option meta_options[] = {
    CLI_ON(0, "to-json", to_json, "list: print only the metadata, as one JSON object"),
    CLI_ON(0, "pretty", pretty,
      "list, get and header: JSON inside values, and that of the header, on indented lines; with "
      "--json: as JSON instead of text"),
    { 0, "tsv", NULL, CLI_FLAG, CLI_TSV, offsetof(cli_settings, format),
      "list: a table of path, key and value, separated by tabs" },
    CLI_TAKES(0, "from-json", "FILE", from_json,
      "set: all pairs of this JSON object; null removes a key, a value that is not a string is "
      "stored as its JSON text; - is standard input"),
    CLI_TAKES(0, "thumbnail", "IMG", thumbnail,
      "set: modelspec.thumbnail, from a JPEG, PNG, WebP or GIF file"),
    CLI_TAKES_MANY(0, "keep", "KEY", keep,
      "scrub: do not touch this key (a glob); may be repeated"),
    CLI_ON(0, "each-shard", each_shard,
      "for a model with an index: show or change its files instead; each is changed atomically, "
      "but not all together"),
    CLI_OPTIONS_END,
};

static const cli_example meta_examples[] = {
    { "safetensors meta model.safetensors", "all keys and values" },
    { "safetensors meta get --pretty lora.safetensors ss_bucket_info", "JSON inside a value" },
    { "safetensors meta set model.safetensors modelspec.title \"Neon City\"",
      "fast, whatever the size of the file" },
    { "safetensors meta set model.safetensors notes=@notes.txt", "the text of a file" },
    { "safetensors meta rm model.safetensors \"ss_*\"", "remove all keys of kohya's scripts" },
    { "safetensors meta scrub -r ~/loras -o clean/", "changed copies of every model in a tree" },
    { "safetensors meta scrub lora.safetensors --keep ss_tag_frequency",
      "remove paths, folder names, session ids, workflows" },
    { "safetensors meta --to-json model.safetensors | jq . | "
      "safetensors meta --from-json - other.safetensors",
      "copy metadata from one model to another" },
    { "safetensors meta set model.safetensors --thumbnail preview.png",
      "a preview image that programs show" },
    { NULL, NULL },
};

const cli_command cli_meta_command = {
    "meta", "[list|get|header|set|rm|scrub|recover] FILE... [KEY [VALUE]]...",
    "show and edit metadata in place",
    "list, the default, shows all pairs; get prints the values of keys; header prints the header "
    "as stored, without padding. set adds or changes pairs: KEY VALUE, or KEY=@FILE for the text "
    "of a file (@- is standard input). rm removes keys; * ? and [a-z] match several. scrub removes "
    "what may identify you or your machine: values with absolute paths, e-mail addresses, names of "
    "users, folders and machines, session ids, secrets, whole configurations and workflows, images "
    "that contain any of these. Tag counts are kept, with numbers in place of folder names. It "
    "prints what it removes and why, what it keeps although it may tell of you (author, names, "
    "pictures, comments, times, tags, and what says how tensors are read), the sidecars and "
    "previews beside the file, which it does not touch, and the new SHA-256 of the file. set says "
    "so where info goes on showing another value, from a sidecar, say. Tensors are not touched; in "
    "the header only the changed text is. If a key that begins with ss_ changes, sshs_legacy_hash, "
    "a digest that covers these keys, is dropped unless it is set, too.\n"
    "A change that fits the padding of the header is written in place, under a journal next to "
    "the file. Otherwise the header grows: by a new file that shares the blocks of the data, by "
    "inserting blocks before the data, or by a copy, depending on the file system; the method "
    "used is printed. Space is left for later changes. After a crash during an edit, other "
    "commands report it; recover, or the next command that edits the file, repairs it.\n"
    "For a model with an index, the metadata of the index itself is shown and changed; "
    "--each-shard edits its files. With -o OUT the file stays as it is and a changed copy is "
    "written; of several files, and of a tree with -r, into the folder OUT/. If nothing would "
    "change, nothing is written unless --copy is given or FILE is a URL.",
    meta_examples,
    { meta_options, cli_editing_options, cli_output_options, cli_writing_options, cli_input_options,
      cli_unread_options, cli_json_options, cli_reading_options, cli_remote_options,
      cli_network_options, cli_common_options },
    { "done, also if there was nothing to change", "a key does not exist (get, rm)",
      "a file could not be read or written (with list: " CLI_UNREAD_STATUS "), or a usage error" },
    1, SIZE_MAX, run_meta, CLI_URLS_OWN,
};
