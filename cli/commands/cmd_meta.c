/* meta: show and edit metadata in place. */
#include "commands/commands.h"
#include "commands/meta_values.h"
#include "os/os.h"
#include "support/edit.h"
#include "support/hints.h"
#include "support/words.h"

#include <string.h>

/* ── Showing ── */

static void show_pair(cli *c, sft_span key, sft_span value) {
    cli_style_on(&c->out, CLI_BOLD);
    cli_escaped(&c->out, key);
    cli_style_off(&c->out, CLI_BOLD);
    cli_fill(&c->out, ": %\n", value);
}

static void json_pairs(sfti_json_writer *w, const meta_pairs *pairs) {
    sfti_json_open(w, '{');
    for (size_t i = 0; i < pairs->count; i++) {
        sft_pair pair = meta_pair_at(pairs, i);
        sfti_json_key_span(w, pair.key);
        if (pairs->is_json) sfti_json_raw(w, pair.value);
        else sfti_json_span(w, pair.value);
    }
    sfti_json_close(w, '}');
}

/* --to-json: nothing but the pairs. */
static void json_list(cli *c, const char *path, const meta_pairs *pairs) {
    sft_error err = SFT_ERROR_INIT;
    sfti_json_writer plain;
    sft_sink sink = cli_out_sink(&c->out);
    cli_object object;
    if (!c->set.to_json) {
        sfti_json_writer *w = cli_object_begin(&object, c, path);
        sfti_json_key(w, "metadata");
        json_pairs(w, pairs);
        cli_object_end(&object);
        return;
    }
    sfti_json_write(&plain, &sink, 0, &err);
    json_pairs(&plain, pairs);
    if (sfti_json_done(&plain)) cli_complain(c, path, &err);
    cli_text(&c->out, "\n");
}

static void list_input(cli *c, const cli_input *input) {
    sft_error err = SFT_ERROR_INIT;
    meta_pairs pairs;
    if (meta_read(c, input, &pairs, &err)) {
        cli_fail_input(c, input->path, &err);
    } else if (cli_is_json(c) || c->set.to_json) {
        json_list(c, input->path, &pairs);
    } else {
        for (size_t i = 0; i < pairs.count; i++)
            show_pair(c, meta_pair_at(&pairs, i).key, meta_value(&pairs, i));
    }
    meta_free(&pairs);
}

static void meta_list(cli *c, char **operands, size_t count) {
    cli_each_input(c, operands, count, list_input);
}

/* To a terminal escaped; to a program as it is. */
static void show_value(cli *c, sft_span value) {
    if (os_is_terminal(1)) cli_escaped(&c->out, value);
    else cli_put(&c->out, value.data, value.len);
    cli_text(&c->out, "\n");
}

static void no_such_key(cli *c, const char *path, const char *key) {
    sft_error err = SFT_ERROR_INIT;
    sfti_fail(&err, SFT_NOT_FOUND, SFT_NO_OFFSET, "no such key: \"%s\"", key);
    cli_hint(&err, CLI_HINT_LIST_KEYS);
    cli_refuse(c, path, &err);
}

static size_t find_pair(const meta_pairs *pairs, const char *key) {
    size_t i = 0;
    while (i < pairs->count && !cli_is(meta_pair_at(pairs, i).key, key)) i++;
    return i;
}

static void meta_get(cli *c, char **operands, size_t count) {
    sft_error err = SFT_ERROR_INIT;
    meta_pairs pairs = { .count = 0 };
    sfti_arena arena = { .alloc = c->alloc };
    cli_input input = { CLI_FILE, operands[0], NULL };
    (void)count;
    sft_code code = cli_edit_operand(c, &arena, operands[0], &input.path, &err);
    if (sft_path_is_index(input.path)) input.kind = CLI_INDEX;
    if (strcmp(input.path, "-") == 0) input.kind = CLI_STDIN;
    if (!code) code = meta_read(c, &input, &pairs, &err);
    if (code) {
        cli_fail_input(c, input.path, &err);
    } else {
        size_t at = find_pair(&pairs, operands[1]);
        meta_pairs one = pairs;
        one.first = pairs.first + at;
        one.count = 1;
        if (at == pairs.count) no_such_key(c, input.path, operands[1]);
        else if (cli_is_json(c)) json_list(c, input.path, &one);
        else show_value(c, meta_value(&pairs, at));
    }
    meta_free(&pairs);
    sfti_arena_free(&arena);
}

/* ── Changing ── */

/* What set, rm and scrub ask for: a value of data NULL removes. */
typedef struct meta_change {
    sfti_arena arena;
    sft_pair *pairs;
    size_t count;
    bool is_scrub, is_rm;
    sft_span *listed; /* keys removed from the current file */
    size_t listed_count;
    const sft_span *missing; /* the first key that is not there, or NULL */
    sft_span *rewritten; /* keys that scrub has left something of */
    size_t rewritten_count;
    const char **reasons, **rewritten_reasons; /* of scrub */
} meta_change;

static sft_code scrub_arrays(meta_change *change, size_t count, sft_error *err) {
    sfti_arena *arena = &change->arena;
    change->listed = sfti_arena_array(arena, count, sizeof *change->listed);
    change->rewritten = sfti_arena_array(arena, count, sizeof *change->rewritten);
    change->reasons = sfti_arena_array(arena, count, sizeof(char *));
    change->rewritten_reasons = sfti_arena_array(arena, count, sizeof(char *));
    bool fine = change->listed && change->rewritten && change->reasons
                && change->rewritten_reasons;
    return fine ? SFT_OK : sfti_fail_memory(err, count * sizeof *change->listed);
}

static sft_code ask_scrub(cli *c, sft_edit *edit, meta_change *change, sft_error *err) {
    const sft_file *file = sft_edit_file(edit);
    size_t count = sft_file_metadata_count(file);
    sft_code code = scrub_arrays(change, count, err);
    for (size_t i = 0; !code && i < count; i++) {
        sft_pair pair = sft_file_metadata_at(file, i);
        cli_scrubbed found;
        if (!meta_scrub_pair(c, pair.key, pair.value, &change->arena, &found))
            return sfti_fail_memory(err, pair.value.len);
        if (!found.reason) continue;
        if (found.value.data) {
            code = sft_edit_set(edit, pair.key, found.value, err);
            change->rewritten_reasons[change->rewritten_count] = found.reason;
            change->rewritten[change->rewritten_count++] = pair.key;
        } else {
            code = sft_edit_remove(edit, pair.key, err);
            change->reasons[change->listed_count] = found.reason;
            change->listed[change->listed_count++] = pair.key;
        }
    }
    return code;
}

static sft_code ask_pairs(sft_edit *edit, meta_change *change, sft_error *err) {
    sft_span value;
    sft_code code = SFT_OK;
    change->listed = sfti_arena_array(&change->arena, change->count, sizeof *change->listed);
    if (!change->listed) return sfti_fail_memory(err, change->count);
    for (size_t i = 0; code == SFT_OK && i < change->count; i++) {
        const sft_pair *pair = &change->pairs[i];
        if (pair->value.data) {
            code = sft_edit_set(edit, pair->key, pair->value, err);
        } else if (sft_file_metadata_get(sft_edit_file(edit), pair->key, &value)) {
            code = sft_edit_remove(edit, pair->key, err);
            change->listed[change->listed_count++] = pair->key;
        } else {
            if (!change->missing) change->missing = &pair->key;
        }
    }
    return code;
}

static sft_code say_change(cli *c, const char *path, const meta_change *change,
                           const sft_edit_report *report, sft_error *err) {
    char sha256[SFT_HASH_TEXT_SIZE] = "";
    bool changed = report->method != SFT_EDIT_NONE || c->set.output;
    if (change->is_scrub && !c->set.dry_run) {
        sft_code code = meta_sha256(c, c->set.output ? c->set.output : path, sha256, err);
        if (code) return code;
    }
    cli_edit_result result = { .path = path, .report = report, .changed = changed,
                               .listed = change->listed, .listed_count = change->listed_count,
                               .reasons = change->reasons, .rewritten = change->rewritten,
                               .rewritten_count = change->rewritten_count,
                               .rewritten_reasons = change->rewritten_reasons,
                               .sha256 = *sha256 ? sha256 : NULL };
    if (change->is_scrub || change->listed_count > 0) result.what = "removed";
    cli_edit_say(c, &result);
    return SFT_OK;
}

/* A key that rm did not find; the result object says nothing of it. */
static void tell_missing(cli *c, const char *path, sft_span key) {
    cli_status(c, CLI_NO);
    cli_flush(&c->out);
    cli_text(&c->err, "safetensors: ");
    cli_path(&c->err, path, ": no such key: ");
    cli_quoted(&c->err, key);
    cli_text(&c->err, "\n");
}

static sft_code change_file(cli *c, const char *path, void *ctx, sft_error *err) {
    meta_change *change = ctx;
    sft_edit *edit;
    sft_edit_report report;
    change->listed_count = change->rewritten_count = 0;
    change->missing = NULL;
    sft_code code = cli_edit_open(c, path, &edit, err);
    if (code) return code;
    code = change->is_scrub ? ask_scrub(c, edit, change, err) : ask_pairs(edit, change, err);
    if (!code) code = cli_edit_finish(c, path, edit, &report, err);
    if (!code) code = say_change(c, path, change, &report, err);
    sft_edit_close(edit);
    if (!code && change->is_rm && change->missing) tell_missing(c, path, *change->missing);
    return code;
}

/* The metadata of an index; what may be private in it is found as in a file. */
static sft_code scrub_index(cli *c, const char *path, meta_change *change, sft_error *err) {
    meta_pairs pairs;
    cli_input input = { CLI_INDEX, path, NULL };
    sft_code code = meta_read(c, &input, &pairs, err);
    change->pairs = sfti_arena_array(&change->arena, pairs.count, sizeof *change->pairs);
    change->count = 0;
    if (!code && !change->pairs) code = sfti_fail_memory(err, pairs.count);
    if (!code) code = scrub_arrays(change, pairs.count, err);
    change->listed_count = 0;
    for (size_t i = 0; !code && i < pairs.count; i++) {
        sft_pair pair = meta_pair_at(&pairs, i);
        cli_scrubbed found;
        if (!meta_scrub_pair(c, pair.key, pair.value, &change->arena, &found)) {
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
    sft_code code = change->is_scrub ? scrub_index(c, path, change, err) : SFT_OK;
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

static void change_one(cli *c, const char *operand, meta_change *change) {
    sft_error err = SFT_ERROR_INIT;
    const char *path;
    if (cli_edit_operand(c, &change->arena, operand, &path, &err)) {
        cli_edit_fail(c, path, &err);
        return;
    }
    if (!cli_edits_index(c, path)) {
        cli_edit_each(c, path, change_file, change);
    } else if (change_index(c, path, change, &err)) {
        cli_edit_fail(c, path, &err);
    }
}

/* ── Verbs ── */

static sft_code take_pairs(cli *c, char **words, size_t count, size_t each, meta_change *change,
                           sft_error *err) {
    meta_json json = { NULL, 0, { NULL, 0, 0, c->alloc } };
    sft_pair thumbnail;
    bool picture = c->set.thumbnail != NULL;
    sft_code code = SFT_OK;
    if (c->set.from_json) code = meta_json_read(c, c->set.from_json, &change->arena, &json, err);
    if (!code && picture)
        code = meta_thumbnail(c, c->set.thumbnail, &change->arena, &thumbnail, err);
    sft_buffer_free(&json.text);
    if (code) return code;
    size_t most = count + json.count + picture;
    change->pairs = sfti_arena_array(&change->arena, most, sizeof *change->pairs);
    if (!change->pairs) return sfti_fail_memory(err, most);
    for (size_t i = 0; i < json.count; i++) change->pairs[change->count++] = json.pairs[i];
    if (picture) change->pairs[change->count++] = thumbnail;
    for (size_t i = 0; i < count; i += each) {
        sft_pair pair = { sft_span_cstr(words[i]), { NULL, 0 } };
        if (each == 2) pair.value = sft_span_cstr(words[i + 1]);
        change->pairs[change->count++] = pair;
    }
    return SFT_OK;
}

static void usage(cli *c, const char *expected) {
    sft_error err = SFT_ERROR_INIT;
    cli_usage_error(&err, "expected %s", expected);
    cli_hint(&err, CLI_HINT_HELP_META);
    cli_fail_usage(c, &err);
}

/* set FILE KEY VALUE..., rm FILE KEY... */
static void change_pairs(cli *c, char **operands, size_t count, size_t each) {
    sft_error err = SFT_ERROR_INIT;
    meta_change change = { .arena.alloc = c->alloc, .is_rm = each == 1 };
    if (take_pairs(c, operands + 1, count - 1, each, &change, &err)) {
        cli_complain(c, c->set.from_json ? c->set.from_json : c->set.thumbnail, &err);
    } else {
        change_one(c, operands[0], &change);
    }
    sfti_arena_free(&change.arena);
}

static void meta_set(cli *c, char **operands, size_t count) {
    if (count % 2 == 0)
        usage(c, "FILE and pairs of KEY and VALUE, found a KEY without a VALUE");
    else if (count == 1 && !c->set.from_json && !c->set.thumbnail)
        usage(c, "FILE KEY VALUE, --from-json or --thumbnail, found FILE alone");
    else change_pairs(c, operands, count, 2);
}

static void meta_rm(cli *c, char **operands, size_t count) {
    change_pairs(c, operands, count, 1);
}

static void meta_scrub(cli *c, char **operands, size_t count) {
    meta_change change = { .arena.alloc = c->alloc, .is_scrub = true };
    if (count > 1 && c->set.output) {
        usage(c, "one FILE with -o OUT, found several");
        return;
    }
    for (size_t i = 0; i < count && !cli_is_over(c); i++) change_one(c, operands[i], &change);
    sfti_arena_free(&change.arena);
}

static void recover_say(cli *c, const char *path, sft_edit_found found) {
    static const char *const said[] = { "no edit was interrupted", "as before the edit",
                                        "the edit is done now" };
    static const char *const names[] = { "none", "old", "new" };
    cli_object object;
    if (!cli_is_json(c)) {
        cli_path(&c->out, path, ": %s\n", said[found]);
        return;
    }
    sfti_json_put_cstr(cli_object_begin(&object, c, path), "recovered", names[found]);
    cli_object_end(&object);
}

static sft_code recover_file(cli *c, const char *path, sft_error *err) {
    sft_edit_options options = cli_edit_options(c);
    sft_edit_found found = SFT_EDIT_CLEAN;
    sft_code code = sft_edit_recover(path, &options, &found, err);
    if (code == SFT_OK) recover_say(c, path, found);
    return code;
}

/* One that cannot be recovered does not stop the rest. */
static sft_code recover_one(cli *c, const char *path, void *ctx, sft_error *err) {
    (void)ctx;
    if (recover_file(c, path, err)) cli_edit_fail(c, path, err);
    return SFT_OK;
}

static void recover_operand(cli *c, const char *operand) {
    sft_error err = SFT_ERROR_INIT;
    sfti_arena arena = { .alloc = c->alloc };
    const char *path;
    sft_code code = cli_edit_operand(c, &arena, operand, &path, &err);
    if (!code)
        code = sft_path_is_index(path) ? cli_edit_each_named(c, path, recover_one, NULL, &err)
                                       : recover_one(c, path, NULL, &err);
    if (code) cli_edit_fail(c, path, &err);
    sfti_arena_free(&arena);
}

static void meta_recover(cli *c, char **operands, size_t count) {
    for (size_t i = 0; i < count && !cli_is_over(c); i++) recover_operand(c, operands[i]);
}

/* ── The command ── */

static const struct meta_verb {
    const char *name, *operands;
    size_t least, most;
    void (*run)(cli *c, char **operands, size_t count);
} meta_verbs[] = {
    { "list", "PATH...", 1, SIZE_MAX, meta_list },
    { "get", "FILE KEY", 2, 2, meta_get },
    { "set", "FILE KEY VALUE...", 1, SIZE_MAX, meta_set },
    { "rm", "FILE KEY...", 2, SIZE_MAX, meta_rm },
    { "scrub", "FILE...", 1, SIZE_MAX, meta_scrub },
    { "recover", "FILE...", 1, SIZE_MAX, meta_recover },
};

static const struct meta_verb *verb_named(const char *name) {
    for (size_t i = 0; i < sizeof meta_verbs / sizeof *meta_verbs; i++)
        if (strcmp(meta_verbs[i].name, name) == 0) return &meta_verbs[i];
    return NULL;
}

static void run_meta(cli *c, char **operands, size_t count) {
    const struct meta_verb *verb = verb_named(operands[0]);
    size_t skip = verb != NULL;
    if (!verb && c->set.to_json) verb = verb_named("list");
    if (!verb && (c->set.from_json || c->set.thumbnail)) verb = verb_named("set");
    count -= skip;
    if (!verb) usage(c, "list, get, set, rm, scrub or recover, found another word");
    else if (count < verb->least || count > verb->most) usage(c, verb->operands);
    else verb->run(c, operands + skip, count);
}

static const cli_option meta_options[] = {
    { 0, "to-json", NULL, CLI_FLAG, 1, offsetof(cli_settings, to_json),
      "list: print only the metadata, as one JSON object" },
    { 0, "from-json", "FILE", CLI_WORD, 0, offsetof(cli_settings, from_json),
      "set: all pairs of this JSON object; null removes a key, a value that is not a string is "
      "stored as its JSON text; - is standard input" },
    { 0, "thumbnail", "IMG", CLI_WORD, 0, offsetof(cli_settings, thumbnail),
      "set: modelspec.thumbnail, from a JPEG, PNG, WebP or GIF file" },
    { 0, "keep", "KEY", CLI_MANY, 0, offsetof(cli_settings, keep),
      "scrub: do not touch this key (a glob); may be repeated" },
    { 0, NULL, NULL, CLI_FLAG, 0, 0, NULL },
};

static const cli_example meta_examples[] = {
    { "safetensors meta list model.safetensors", "all keys and values" },
    { "safetensors meta set model.safetensors modelspec.title \"Neon City\"",
      "fast, whatever the size of the file" },
    { "safetensors meta rm model.safetensors ss_output_name", "remove a key" },
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
    "meta", "list|get|set|rm|scrub|recover FILE [KEY [VALUE]]...",
    "show and edit metadata in place",
    "list shows all pairs (of many files too), get one value, set adds or changes pairs, rm "
    "removes them. scrub removes what may identify you or your machine: values with absolute "
    "paths, e-mail addresses, names of users, folders and machines, session ids, secrets, whole "
    "configurations and workflows, images that carry such things; tag counts stay, under numbers "
    "instead of folder names. It prints what it removes and why, and the new SHA-256 of the "
    "file. Tensors are not touched, and of the header only the text that changes.\n"
    "A change that fits the padding of the header is written in place, under a journal next to "
    "the file. Otherwise the header grows: by a new file that shares the blocks of the data, by "
    "inserting blocks before the data, or by a copy, depending on the file system; the method "
    "used is printed. Space is left for later changes. After a crash in the middle, other "
    "commands report it, and recover repairs the file; so does any command that edits it.\n"
    "For a model with an index, the metadata of the index itself is shown and changed; "
    "--each-shard edits its files. With -o OUT the file stays as it is and a changed copy is "
    "written.",
    meta_examples,
    { meta_options, cli_editing_options, cli_writing_options, cli_input_options, cli_json_options,
      cli_reading_options, cli_common_options, NULL },
    { "done, also if there was nothing to change", "a key does not exist (get, rm)",
      "a file could not be read or written, or a usage error" },
    1, SIZE_MAX, run_meta,
};
