/* Edits of a file in place or with -o, and what is printed of them. */
#include "support/edit.h"

#include "base/files.h"
#include "edit/dropped.h"
#include "os/io.h"
#include "set/index_edit.h"
#include "support/adapters.h"
#include "support/beside.h"
#include "support/cli.h"
#include "support/guard.h"
#include "support/output.h"

#include <inttypes.h>
#include <string.h>

const cli_option cli_editing_options[] = {
    CLI_ON(0, "safe", safe,
      "write a new file and rename it over the old one, even if the change would fit in place"),
    CLI_ON(0, "copy", copy, "with -o: write OUT even if nothing would change"),
    CLI_OPTIONS_END,
};

/* ── One file ── */

static sft_code begin_edit(cli_output *out, cli *c, const char *path, const sft_edit *edit,
                           sft_error *err) {
    sft_code code = cli_output_no_stream(c, err);
    if (code) return code;
    code = cli_output_begin(out, c, path, CLI_TARGET_EDIT, err);
    if (!code && !out->in_place) code = cli_check_adapter_config(c, &path, 1, out->path, err);
    if (!code && !out->in_place && edit)
        code = cli_check_file_quantiser(c, sft_edit_file(edit), path, out->path, err);
    if (code) c->blame = out->blame;
    return code;
}

/* With -o nothing is written where nothing would change, unless --copy is given: report->method
 * tells. */
sft_code cli_edit_finish(cli *c, const char *path, sft_edit *edit, sft_edit_report *report,
                         sft_error *err) {
    cli_output out;
    cli_progress progress;
    sft_code code = SFT_OK;
    if (c->read_mode) sft_edit_limit_mode(edit, c->read_mode);
    code = c->set.output ? begin_edit(&out, c, path, edit, err) : cli_check_dataset(path, err);
    if (!code && (c->set.output || c->set.dry_run)) code = sft_edit_plan(edit, report, err);
    bool same = c->set.output && !code && report->method == SFT_EDIT_NONE;
    if (!code && (!same || c->set.copy) && !c->set.dry_run) {
        sft_job job = cli_progress_begin(&progress, c, c->set.output ? out.path : path);
        code = c->set.output ? sft_edit_save(edit, out.path, &out.options, &job, report, err)
                             : sft_edit_apply(edit, &job, report, err);
        cli_progress_end(&progress);
        bool opens = code == SFT_NOT_FOUND || code == SFT_IO_OPEN || code == SFT_IO_NOT_FILE;
        if (c->set.output && opens) c->blame = out.path; /* the input is open */
    }
    c->dropped = code ? 0 : sfti_edit_dropped(edit);
    c->same = same && !code;
    return code;
}

/* ── Results ── */

static void say_list(cli *c, const char *did, const sft_span *keys, size_t count,
                     const char *const *reasons) {
    for (size_t i = 0; i < count; i++) {
        cli_printf(&c->out, "%s ", did);
        cli_escaped(&c->out, keys[i]);
        if (reasons) cli_printf(&c->out, ": %s", reasons[i]);
        cli_text(&c->out, "\n");
    }
}

/* "sidecar:x.json:/model/name" is in x.json, "header:KEY" in KEY. */
static sft_span source_words(sft_span source) {
    static const char *const begins[] = { "sidecar:", "header:" };
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        size_t len = strlen(begins[i]);
        if (source.len < len || memcmp(source.data, begins[i], len) != 0) continue;
        source = (sft_span){ source.data + len, source.len - len };
        const char *end = source.len ? memchr(source.data, ':', source.len) : NULL;
        if (end && end[1] == '/') source.len = (size_t)(end - source.data);
        break;
    }
    return source;
}

static void write_keys(sfti_json_writer *w, const char *name, const sft_span *keys,
                       size_t count) {
    sfti_json_put_open(w, name, '[');
    for (size_t i = 0; i < count; i++) sfti_json_span(w, keys[i]);
    sfti_json_close(w, ']');
}

static void write_result(cli *c, const cli_edit_result *result) {
    cli_object object;
    sfti_json_writer *w = cli_object_begin(&object, c, result->path);
    const sft_edit_report *report = result->report;
    sfti_json_put_cstr(w, "output", result->changed ? c->set.output : NULL);
    sfti_json_put_bool(w, "changed", result->changed && !c->same);
    sfti_json_put_bool(w, "dry_run", c->set.dry_run != 0);
    if (report) {
        sfti_json_put_cstr(w, "method", sft_edit_method_name(report->method));
        sfti_json_put_uint(w, "header_bytes_before", report->header_before);
        sfti_json_put_uint(w, "header_bytes", report->header_after);
        sfti_json_put_uint(w, "spare", report->spare);
        sfti_json_put_uint(w, "bytes", report->file_after);
    }
    if (result->what) write_keys(w, result->what, result->listed, result->listed_count);
    if (result->rewritten)
        write_keys(w, "rewritten", result->rewritten, result->rewritten_count);
    if (result->renamed) sfti_json_put_open(w, "renamed", '[');
    for (size_t i = 0; i < result->renamed_count; i++) {
        sfti_json_open(w, '{');
        sfti_json_put_text(w, "from", result->renamed[i].key);
        sfti_json_put_text(w, "to", result->renamed[i].value);
        sfti_json_close(w, '}');
    }
    if (result->renamed) sfti_json_close(w, ']');
    if (result->sha256) sfti_json_put_cstr(w, "sha256", result->sha256);
    if (result->still) sfti_json_put_open(w, "still_shown", '[');
    for (size_t i = 0; i < result->still_count; i++) {
        sfti_json_open(w, '{');
        sfti_json_put_text(w, "key", result->still[i].key);
        sfti_json_put_text(w, "field", result->still[i].field);
        sfti_json_put_text(w, "value", result->still[i].value);
        sfti_json_put_text(w, "source", result->still[i].source);
        sfti_json_close(w, '}');
    }
    if (result->still) sfti_json_close(w, ']');
    if (result->kept) write_keys(w, "kept", result->kept, result->kept_count);
    if (result->beside) write_keys(w, "beside", result->beside, result->beside_count);
    if (c->dropped && result->changed) cli_put_dropped(c, w);
    cli_object_end(&object);
    c->same = false;
}

void cli_edit_say(cli *c, const cli_edit_result *result) {
    static const char *const methods[] = {
        [SFT_EDIT_REFLINK] = " (file rewritten, data shared by reflink)",
        [SFT_EDIT_INSERT] = " in place (header grown)", [SFT_EDIT_COPY] = " (file rewritten)",
    };
    if (result->changed) c->changed++;
    else c->unchanged++;
    if (!result->changed) c->beside = (cli_beside){ .left = NULL };
    cli_say_beside(c);
    if (cli_is_json(c)) {
        write_result(c, result);
        c->dropped = 0;
        return;
    }
    bool dry = c->set.dry_run != 0;
    say_list(c, dry ? "would remove" : "removed", result->listed, result->listed_count,
             result->reasons);
    say_list(c, dry ? "would rewrite" : "rewritten", result->rewritten, result->rewritten_count,
             result->rewritten_reasons);
    say_list(c, dry ? "would keep" : "kept", result->kept, result->kept_count,
             result->kept_reasons);
    for (size_t i = 0; i < result->beside_count; i++) {
        cli_text(&c->out, "not touched ");
        cli_path_text(&c->out, result->beside[i]);
        cli_text(&c->out, ": beside the file\n");
    }

    size_t method = result->report ? (size_t)result->report->method : 0;
    bool named = method < sizeof methods / sizeof *methods && methods[method];
    const char *path = c->set.output && result->changed ? c->set.output : result->path;
    cli_path_text(&c->out, sft_span_cstr(path));
    if (!result->changed && c->set.output)
        cli_text(&c->out, ": nothing to change, not written (--copy writes it all the same)");
    else if (!result->changed)
        cli_text(&c->out, ": nothing to change");
    else if (c->set.output)
        cli_text(&c->out, c->set.dry_run ? ": would be written" : ": written");
    else
        cli_printf(&c->out, ": %s%s", c->set.dry_run ? "would be updated" : "updated",
                   !result->report ? " (index rewritten)" : named ? methods[method] : " in place");
    size_t renamed = result->renamed_count - result->renamed_aliases;
    if (renamed > 0 && result->changed)
        cli_printf(&c->out, ", %zu tensor%s renamed", renamed, renamed == 1 ? "" : "s");
    if (result->report && !result->same_header && result->changed)
        cli_printf(&c->out, "; %" PRIu64 " spare byte%s in the header", result->report->spare,
                   result->report->spare == 1 ? "" : "s");
    cli_text(&c->out, "\n");
    if (result->sha256) cli_printf(&c->out, "sha256 %s\n", result->sha256);

    for (size_t i = 0; i < result->still_count; i++) {
        const cli_edit_still *still = &result->still[i];
        cli_fill(&c->out, "  info still shows % ", still->field);
        cli_text(&c->out, "\"");
        cli_escaped_cut(&c->out, still->value, 60);
        cli_fill(&c->out, "\", from %\n", source_words(still->source));
    }
    if (c->dropped && result->changed)
        cli_say_dropped(c, c->set.output ? c->set.output : result->path);
    c->dropped = 0;
}

/* ── Indexes ── */

sft_code cli_edit_index(cli *c, const char *path, const sft_index_changes *changes,
                        bool *changed, sft_error *err) {
    cli_output out;
    sft_code code = begin_edit(&out, c, path, NULL, err);
    if (code) return code;
    if (out.in_place && c->read_mode) out.options.mode = cli_output_mode_of(path);
    if (out.options.mode) sfti_mode_common(&out.options.mode, c->read_mode);
    const char *to = out.in_place ? NULL : out.path;
    c->same = false;
    if (to) { /* written where nothing changes by --copy alone */
        sft_index_changes plan = *changes;
        plan.dry_run = true;
        code = sfti_index_rewrite_held(path, &plan, to, &out.options, changed, err);
        c->same = !*changed;
        if (code || (!*changed && !c->set.copy)) return code;
    }
    code = sfti_index_rewrite_held(path, changes, to, &out.options, changed, err);
    if (to && code) c->blame = to; /* the index was read above */
    if (to) *changed = true;
    return code;
}

static sft_span name_now(const void *ctx, uint32_t entry) {
    return ((const sft_span *)ctx)[entry];
}

sft_code cli_edit_names_free(const sft_set *set, const sft_pair *names, size_t count,
                             sfti_arena *arena, sft_error *err) {
    sfti_names table;
    size_t all = sft_set_tensor_count(set), at = 0;
    sft_span *now = sfti_arena_array(arena, all, sizeof *now);
    if (!now || !sfti_names_draw(&table, all, name_now, now, arena))
        return sfti_fail_memory(err, all * sizeof *now);
    for (uint32_t i = 0; i < all; i++) {
        now[i] = sft_set_tensor_at(set, i)->name;
        if (at < count && sft_span_equal(now[i], names[at].key)) now[i] = names[at++].value;
        if (sft_span_equal(now[i], sft_span_cstr("__metadata__")))
            return sfti_fail_tensor(err, SFT_NAME_RESERVED, SFT_NO_OFFSET, names[at - 1].key,
                                    "expected a new name, found the reserved __metadata__");
        if (sfti_names_add(&table, now[i], i) != i)
            return sfti_fail_tensor(err, SFT_TENSOR_DUPLICATE, SFT_NO_OFFSET, now[i],
                                    "expected a free name, found that two tensors would have it");
    }
    return SFT_OK;
}

void cli_edit_fail(cli *c, const char *path, const sft_error *err) {
    sft_code code = err->code;
    bool output = code == SFT_EXISTS || code == SFT_IS_LINK || code == SFT_HARD_LINKS ||
                  code == SFT_IO_WRITE || code == SFT_IO_SYNC || code == SFT_IO_PUBLISH;
    const char *about = c->set.output && output ? c->set.output : path;
    cli_fail_input(c, c->blame ? c->blame : about, err);
    c->blame = NULL;
}

sft_code cli_edit_each_shard(cli *c, const char *path, cli_edit_fn each, void *ctx,
                             sft_error *err) {
    sft_set_options options = cli_set_options(c);
    sft_set *set = NULL;
    sfti_arena arena = { .alloc = c->alloc };
    size_t done = 0;
    sft_code code = cli_edit_recover(c, path, err);
    if (!code) code = cli_guard_lock(c, path, err);
    if (!code) code = sft_set_open(path, &options, &set, err);
    if (!code) code = cli_edit_beneath(c, &arena, path, err);
    if (code) {
        sft_set_close(set);
        return code;
    }
    while (!code && done < sft_set_shard_count(set)) {
        code = each(c, sft_set_shard_path(set, done), ctx, err);
        done += !code;
    }
    if (code) {
        cli_edit_fail(c, sft_set_shard_path(set, done), err);
        /* Each file is whole, whatever happens; the model of them is not. */
        if (done > 0 && !c->set.dry_run) {
            cli_text(&c->err, "safetensors: note: ");
            cli_path(&c->err, path,
                     ": %zu of %zu files were updated before the failure; each is intact, but "
                     "they no longer match\n", done, sft_set_shard_count(set));
        }
    }
    c->edit_open.beneath = NULL;
    sfti_arena_free(&arena);
    sft_set_close(set);
    return SFT_OK;
}
