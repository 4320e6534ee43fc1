/* info --save-as: what is known of a model as a sidecar or in the header, and its results. */
#include "commands/info/save_as.h"

#include "base/error.h"
#include "commands/info/facts.h"
#include "commands/info/beside.h"
#include "support/edit.h"
#include "support/files.h"
#include "support/hints.h"
#include "support/models.h"
#include "support/output.h"
#include "support/words.h"

#include <string.h>

const cli_option cli_save_options[] = {
    { 0, "save-as", "civitai|lora-manager|a1111|modelspec", CLI_CHOICE, CLI_SAVE_CIVITAI,
      offsetof(cli_settings, save_as),
      "write what is known as NAME.civitai.info, as NAME.metadata.json of ComfyUI-LoRA-Manager, "
      "as NAME.json of A1111, or into the header" },
    CLI_TAKES(0, "min-trust", "N", min_trust,
      "with --save-as: only facts of this trust, 0 to 100 (default: 60)"),
    CLI_OPTIONS_END,
};

sft_code cli_save_read(cli *c, uint64_t *least, sft_error *err) {
    *least = CLI_SAVE_TRUST;
    if (c->set.min_trust && !c->set.save_as)
        return cli_usage_error(err, "expected --save-as with --min-trust");
    if (c->set.min_trust && !cli_parse_number(c->set.min_trust, 100, least))
        return cli_usage_error(err, "expected a number from 0 to 100 for --min-trust, found "
                               "\"%s\"", c->set.min_trust);
    if (c->set.save_as && (c->set.fields || c->set.format == CLI_TSV))
        return cli_usage_error(err, "expected --save-as without -f and --tsv");
    return SFT_OK;
}

/* ── Results ── */

typedef struct saved {
    const char *path; /* what was written */
    sft_pair *items;  /* keys and values that are known; of a sidecar as JSON, "null": gone */
    size_t count;
    const sft_pair *all; /* the same, then what the program expects; NULL: items */
    size_t all_count;
    const sft_span *kept;
    size_t kept_count;
    bool is_new, is_json;
} saved;

static void say_human(cli_saving *saving, const saved *what) {
    cli *c = saving->c;
    bool dry = c->set.dry_run != 0;
    const char *verb = dry ? what->is_new ? "would be written" : "would be updated"
                           : what->is_new ? "written" : "updated";
    if (what->count == 0) {
        cli_path(&c->out, what->path, ": nothing to change\n");
    } else {
        cli_path(&c->out, what->path, ": %s%s", verb, dry ? "\n" : " (");
        for (size_t i = 0; i < what->count; i++) {
            if (!dry && i > 0) cli_text(&c->out, ", ");
            cli_text(&c->out, dry ? "  " : "");
            cli_escaped(&c->out, what->items[i].key);
            if (dry) cli_fill(&c->out, ": %\n", what->items[i].value);
        }
        if (!dry) cli_text(&c->out, ")\n");
    }
    for (size_t i = 0; i < what->kept_count; i++)
        cli_fill(&c->out, "  % has another value; --force replaces it\n", what->kept[i]);
}

static void say_saved(cli_saving *saving, const saved *what) {
    static const char *const formats[] = { "", "civitai", "lora-manager", "a1111", "modelspec" };
    cli *c = saving->c;
    cli_object object;
    if (!cli_is_json(c)) {
        say_human(saving, what);
        return;
    }
    sfti_json_writer *w = cli_object_begin(&object, c, saving->model->path);
    sfti_json_put_open(w, "saved", '{');
    sfti_json_put_cstr(w, "as", formats[c->set.save_as]);
    sfti_json_put_cstr(w, "output", what->path);
    sfti_json_put_bool(w, "changed", what->count > 0);
    sfti_json_put_bool(w, "dry_run", c->set.dry_run != 0);
    sfti_json_put_open(w, "keys", '[');
    for (size_t i = 0; i < what->count; i++) sfti_json_span(w, what->items[i].key);
    sfti_json_close(w, ']');
    sfti_json_put_open(w, "kept", '[');
    for (size_t i = 0; i < what->kept_count; i++) sfti_json_span(w, what->kept[i]);
    sfti_json_close(w, ']');
    const sft_pair *pairs = what->all ? what->all : what->items;
    size_t count = what->all ? what->all_count : what->count;
    if (c->set.dry_run) sfti_json_put_open(w, "content", '{');
    for (size_t i = 0; c->set.dry_run && i < count; i++) {
        sfti_json_key_span(w, pairs[i].key);
        if (what->is_json) sfti_json_text(w, pairs[i].value);
        else sfti_json_span(w, pairs[i].value);
    }
    if (c->set.dry_run) sfti_json_close(w, '}');
    sfti_json_close(w, '}');
    cli_object_end(&object);
}

/* ── A sidecar ── */

typedef struct save_texts {
    sft_buffer known, defaults, marked, base, merged;
    sfti_derived was, now; /* of known, as it was written last, and as it is */
} save_texts;

static sft_code render(cli_saving *saving, void (*put)(cli_saving *, sfti_json_writer *),
                       sft_buffer *out, sft_error *err) {
    sft_sink sink = sft_sink_memory(out);
    sfti_json_writer w;
    sfti_json_write(&w, &sink, 0, err);
    sfti_json_open(&w, '{');
    put(saving, &w);
    sfti_json_close(&w, '}');
    return sfti_json_done(&w);
}

static sft_span span_of(const sft_buffer *text) {
    return (sft_span){ text->data, text->len };
}

static sft_code render_known(cli_saving *saving, void *ctx, sft_buffer *out, sft_error *err) {
    const cli_sidecar_format *format = ctx;
    return render(saving, format->known, out, err);
}

/* What is known, and the mark that says of what it is derived. */
static sft_code mark(cli_saving *saving, const cli_sidecar_format *format, save_texts *texts,
                     sft_error *err) {
    sft_buffer origins = { .alloc = saving->c->alloc };
    sft_sink sink = sft_sink_memory(&texts->marked);
    sfti_json_writer w;
    sft_code code = cli_derive(saving, render_known, (void *)format, &origins, &texts->now, err);
    sfti_json_write(&w, &sink, 0, err);
    sfti_json_open(&w, '{');
    sfti_json_put_open(&w, SFTI_DERIVED, '{');
    sfti_json_key(&w, "derived");
    sfti_json_raw(&w, span_of(&origins));
    cli_put_apart(saving, &w);
    sfti_json_close(&w, '}');
    sfti_json_close(&w, '}');
    sft_code done = code ? SFT_OK : sfti_json_done(&w);
    sft_buffer_free(&origins);
    return code ? code : done;
}

/* What is there is added to only if it is of this model and of this program, and if all that it
 * tells is among the facts: then nothing of it is replaced unseen. */
static sft_code check_there(const cli_saving *saving, const cli_sidecar_format *format,
                            const cli_sidecar *there, sft_error *err) {
    static const char skeleton[] = "a skeleton";
    const sft_node *entry = cli_first(saving->root, "sidecars"); /* of the result object */
    while (entry && !cli_is(sft_node_text(entry, "path"), there->path)) entry = entry->next;
    sft_span versions, error = sft_node_text(entry, "error");
    sft_code code = SFT_OK;
    bool is_empty = sft_span_equal(there->object, sft_span_cstr("{}"));
    bool is_skeleton = error.len > sizeof skeleton
                    && memcmp(error.data, skeleton, sizeof skeleton - 1) == 0;
    bool is_read = entry && (error.len == 0 || is_skeleton);
    if (!there->exists) return SFT_OK;
    bool is_other = there->object.len > 0 && !is_empty && entry
                 && !cli_is(sft_node_text(entry, "kind"), format->kind);
    if (is_other || cli_raw_member(there->object, "modelVersions", &versions)) {
        code = sfti_fail(err, SFT_EXISTS, "expected a sidecar of %s, found a file of another kind",
                         format->program);
        cli_hint(err, CLI_HINT_MOVE_AWAY);
    } else if (there->object.data == saving->old.data
               && cli_is(sft_node_text(entry, "match"), "differs")) {
        code = sfti_fail(err, SFT_EXISTS,
                         "expected a sidecar of this model, found another model's digest in it");
        cli_hint(err, CLI_HINT_MOVE_AWAY);
    } else if (there->object.len > 0 && !is_empty && !is_read) {
        code = sfti_fail(err, SFT_IO_READ,
                         "expected a sidecar that was read, found one that could not be");
    } else if (!saving->c->set.force) {
        code = sfti_fail(err, SFT_EXISTS, "already exists");
        cli_hint(err, CLI_HINT_MERGE);
    }
    return code;
}

/* Whether two values hold the same scalars at the same places, however they are spelled. */
static bool tell_the_same(cli_saving *saving, sft_span a, sft_span b) {
    sfti_derived first, second;
    if (sft_span_equal(a, b)) return true;
    saving->is_full = !sfti_derived_of(a, &saving->arena, &first)
                   || !sfti_derived_of(b, &saving->arena, &second) || saving->is_full;
    return !saving->is_full && first.count == second.count
        && memcmp(first.digests, second.digests, first.count * sizeof *first.digests) == 0;
}

/* What is known, and what the program expects, that is not there with the same value,
 * or at all; then what was written once, and is known no longer. */
static sft_code list_changes(cli_saving *saving, const save_texts *texts, sft_span there,
                             saved *out, sft_error *err) {
    cli_raw raw, left;
    sft_span known = span_of(&texts->known), defaults = span_of(&texts->defaults), value;
    size_t count = 0;
    for (cli_raw_begin(&raw, known); cli_raw_next(&raw);) count++;
    for (cli_raw_begin(&raw, defaults); cli_raw_next(&raw);) count++;
    for (cli_raw_begin(&raw, there); cli_raw_next(&raw);) count++;
    out->all = out->items = sfti_arena_array(&saving->arena, count, sizeof *out->items);
    if (!out->items) return sfti_fail_memory(err, count);
    for (cli_raw_begin(&raw, known); cli_raw_next(&raw);)
        if (!cli_raw_has(there, raw.key, raw.value))
            out->items[out->count++] = (sft_pair){ raw.key, raw.value };
    /* old has the keys of there in their order, without those whose values all were written once */
    cli_raw_begin(&left, saving->old);
    bool has = texts->was.count > 0 && cli_raw_next(&left);
    for (cli_raw_begin(&raw, there); texts->was.count > 0 && cli_raw_next(&raw);) {
        bool is_left = has && cli_raw_is_key(left.key, raw.key);
        bool is_same = is_left && tell_the_same(saving, raw.value, left.value);
        sft_span now = is_left ? left.value : sft_span_cstr("null");
        if (is_left) has = cli_raw_next(&left);
        if (is_same || cli_is(raw.key, SFTI_DERIVED) || cli_raw_find(known, raw.key, &value))
            continue;
        if (!is_left && cli_raw_find(defaults, raw.key, &value)) now = value;
        if (!sft_span_equal(raw.value, now))
            out->items[out->count++] = (sft_pair){ raw.key, now };
    }
    out->all_count = out->count;
    for (cli_raw_begin(&raw, defaults); cli_raw_next(&raw);)
        if (!cli_raw_find(there, raw.key, &value) && !cli_raw_find(known, raw.key, &value))
            out->items[out->all_count++] = (sft_pair){ raw.key, raw.value };
    return saving->is_full ? sfti_fail_memory(err, there.len) : SFT_OK;
}

static sft_code save_text(cli_saving *saving, const cli_sidecar_format *format,
                          const cli_sidecar *there, save_texts *texts, sft_error *err) {
    cli *c = saving->c;
    saved what = { .path = there->path, .is_new = !there->exists, .is_json = true };
    sft_code code = render(saving, format->known, &texts->known, err);
    if (!code) code = render(saving, format->defaults, &texts->defaults, err);
    if (!code && saving->is_full) code = sfti_fail_memory(err, texts->known.len);
    if (!code) code = mark(saving, format, texts, err);
    bool is_stale = false; /* something was known when it was written last, and is no longer */
    for (size_t i = 0; i < texts->was.count && !is_stale; i++) {
        size_t j = 0;
        while (j < texts->now.count && texts->now.digests[j] != texts->was.digests[i]) j++;
        is_stale = j == texts->now.count;
    }
    bool is_done = !is_stale
                && (saving->count == 0
                    || (there->object.len > 0
                        && cli_raw_covers(there->object, span_of(&texts->known))));
    if (!code && !is_done) code = check_there(saving, format, there, err);
    /* what is known over what others wrote over what the program expects, and the mark */
    sft_buffer all = { .alloc = c->alloc };
    if (!code && !is_done)
        code = cli_merge_text(span_of(&texts->defaults), saving->old, format->keep, &texts->base,
                              err);
    if (!code && !is_done)
        code = cli_merge_text(span_of(&texts->base), span_of(&texts->known), format->keep, &all,
                              err);
    if (!code && !is_done)
        code = cli_merge_text(span_of(&texts->marked), span_of(&all), NULL, &texts->merged, err);
    sft_buffer_free(&all);
    if (!code && !is_done) code = list_changes(saving, texts, there->object, &what, err);
    if (!code && !is_done && !c->set.dry_run)
        code = cli_write_beside(c, saving->model, NULL, there->path, span_of(&texts->merged),
                                c->set.force && there->exists, err);
    saved nothing = { .path = NULL };
    bool is_known = saving->count > 0 || there->exists;
    if (!code && (is_known || cli_is_json(c)))
        say_saved(saving, is_known ? &what : &nothing);
    else if (!code)
        cli_path(&c->out, saving->model->path, ": nothing to write: no fact with a "
                 "trust of %d or more has a field in this format\n", (int)saving->least);
    return code;
}

static sft_code save_sidecar(cli_saving *saving, cli_sidecar *there, sft_error *err) {
    cli *c = saving->c;
    const cli_sidecar_format *format = cli_sidecar_format_of(c->set.save_as);
    save_texts texts = { .known.alloc = c->alloc, .defaults.alloc = c->alloc,
                         .marked.alloc = c->alloc, .base.alloc = c->alloc,
                         .merged.alloc = c->alloc };
    sft_code code = cli_sidecar_open(c, saving->model, &saving->arena, format->suffix, there, err);
    if (!code) {
        sft_span name = cli_name_of(there->path);
        char *own = sfti_arena_take(&saving->arena, name.len + sizeof "sidecar:");
        if (!own) code = sfti_fail_memory(err, name.len);
        else saving->own = (sft_span){ own, name.len + sizeof "sidecar:" - 1 };
        if (own) memcpy(own, "sidecar:", sizeof "sidecar:" - 1);
        if (own) memcpy(own + sizeof "sidecar:" - 1, name.data, name.len);
    }
    if (!code) code = cli_underive(saving, there->object, render_known, (void *)format, &texts.was,
                                   &saving->old, err);
    if (!code) code = save_text(saving, format, there, &texts, err);
    sft_buffer_free(&texts.known);
    sft_buffer_free(&texts.defaults);
    sft_buffer_free(&texts.marked);
    sft_buffer_free(&texts.base);
    sft_buffer_free(&texts.merged);
    cli_sidecar_close(there);
    return code;
}

/* ── The header ── */

static sft_code save_header(cli_saving *saving, sft_error *err) {
    cli *c = saving->c;
    cli_spec spec;
    saving->own = sft_span_cstr("header:modelspec.");
    sft_code code = cli_spec_begin(saving, &spec, err);
    saved what = { .path = saving->model->path, .items = spec.pairs, .count = spec.count,
                   .kept = spec.kept, .kept_count = spec.kept_count };
    if (!code && saving->is_full) code = sfti_fail_memory(err, sizeof spec);
    bool sets = !code && spec.count > 0;
    sft_edit *edit = NULL;
    sft_edit_report report;
    sft_edit_options options = cli_edit_options(c);
    if (sets) code = sft_edit_open(what.path, &options, &edit, err);
    for (size_t i = 0; sets && !code && i < spec.count; i++)
        code = sft_edit_set(edit, spec.pairs[i].key, spec.pairs[i].value, err);
    if (sets && !code)
        code = sft_edit_set(edit, sft_span_cstr(SFTI_DERIVED_HEADER), spec.mark, err);
    if (edit) sft_edit_limit_mode(edit, cli_output_mode_of_model(saving->model));
    if (sets && !code) code = cli_edit_finish(c, what.path, edit, &report, err);
    sft_edit_close(edit);
    if (!code) say_saved(saving, &what);
    return code;
}

/* ── One model ── */

void cli_save_model(cli *c, const cli_model *model, uint64_t least) {
    cli_saving saving = { .c = c, .model = model, .root = sft_tree_root(model->tree),
                          .arena.alloc = c->alloc, .least = least };
    cli_sidecar there = { .path = NULL };
    sft_error err = SFT_ERROR_INIT;
    sft_code code = SFT_OK;
    saving.own = saving.old = saving.without = (sft_span){ "", 0 };
    bool is_one_file = model->input->kind == CLI_FILE && !model->inputs && model->set
                       && sft_set_shard_count(model->set) == 1;
    if (!is_one_file)
        code = sfti_fail(&err, SFT_BAD_ARGUMENT,
                         "expected a model in one file for --save-as, found several files");
    else if (c->set.save_as == CLI_SAVE_MODELSPEC) code = save_header(&saving, &err);
    else code = save_sidecar(&saving, &there, &err);
    if (code) cli_fail_input(c, there.path ? there.path : model->path, &err);
    sfti_arena_free(&saving.arena);
}
