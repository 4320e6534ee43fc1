/* The report of an import, as a tree and as JSON. */
#include "base/result.h"
#include "base/tree.h"
#include "formats/parts/state.h"

static void put_left(sfti_json_writer *w, const sft_import *im) {
    static const char *const reasons[] = { "branch", "skipped", "value", "record", "note" };
    sfti_json_put_open(w, "left_out", '[');
    for (size_t i = 0; i < im->left.count; i++) {
        const sft_import_left *left = &im->left.at[i];
        sfti_json_open(w, '{');
        sfti_json_put_cstr(w, "reason", reasons[left->reason]);
        sfti_json_put_text(w, "path", left->path);
        sfti_json_put_cstr(w, "text", left->text);
        sfti_json_put_uint(w, "count", left->count);
        sfti_json_put_uint(w, "bytes", left->bytes);
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, ']');
}

static void put_globals(sfti_json_writer *w, const sft_import *im) {
    sfti_json_put_open(w, "globals", '[');
    for (size_t i = 0; i < im->globals.count; i++) {
        const sft_import_global *global = &im->globals.at[i];
        sfti_json_open(w, '{');
        sfti_json_put_text(w, "module", global->module);
        sfti_json_put_text(w, "name", global->name);
        sfti_json_put_uint(w, "named", global->named);
        sfti_json_put_uint(w, "calls", global->calls);
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, ']');
}

static void report_all(sfti_json_writer *w, const sft_import *im, const char *path) {
    const sft_import_format_info *format = im->describe(im->format);
    uint64_t bytes = 0;
    for (size_t i = 0; i < im->parts.count; i++) {
        const sft_spec *spec = &im->parts.at[i].spec;
        uint64_t more;
        if (!sft_shape_size(spec->dtype, spec->shape, spec->rank, NULL, &more, NULL))
            sfti_total_add(&bytes, more);
    }
    sfti_result_begin(w, path, true);
    sfti_json_put_cstr(w, "format", format->name);
    sfti_json_put_cstr(w, "title", format->title);
    sfti_json_put_uint(w, "tensors", im->parts.count);
    sfti_json_put_uint(w, "bytes", bytes);
    sfti_json_put_uint(w, "input_bytes", im->input_bytes);

    sfti_json_put_open(w, "branches", '[');
    for (size_t i = 0; i < im->branches.count; i++) {
        const sft_import_branch *branch = &im->branches.at[i];
        sfti_json_open(w, '{');
        sfti_json_put_text(w, "path", branch->path);
        sfti_json_put_uint(w, "tensors", branch->tensors);
        sfti_json_put_uint(w, "bytes", branch->bytes);
        sfti_json_put_bool(w, "chosen", branch->chosen);
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, ']');

    sfti_json_put_open(w, "aliases", '[');
    for (size_t i = 0; i < im->aliases.count; i++) {
        const sft_import_alias *alias = &im->aliases.at[i];
        sfti_json_open(w, '{');
        sfti_json_put_text(w, "name", alias->name);
        sfti_json_put_text(w, "of", alias->of);
        sfti_json_put_bool(w, "copied", alias->copied);
        sfti_json_put_bool(w, "partial", alias->partial);
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, ']');

    put_left(w, im);
    put_globals(w, im);
    sfti_json_put_open(w, "metadata", '{');
    for (size_t i = 0; i < im->metadata.count; i++) {
        sfti_json_key_span(w, im->metadata.at[i].key);
        sfti_json_span(w, im->metadata.at[i].value);
    }
    sfti_json_close(w, '}');
}

sft_code sft_import_tree(const sft_import *import, const char *path, sft_tree *tree,
                         sft_error *err) {
    sfti_json_writer w;
    sfti_json_write_tree(&w, tree, err);
    report_all(&w, import, path);
    return sfti_result_end(&w);
}

sft_code sft_import_json(const sft_import *import, const char *path, sft_sink *sink,
                         sft_error *err) {
    sfti_json_writer w;
    sfti_json_write(&w, sink, 0, err);
    report_all(&w, import, path);
    return sfti_result_end(&w);
}
