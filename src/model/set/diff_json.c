/* The result object of diff. Tests: test_diff.c. */
#include "base/result.h"
#include "base/tree.h"
#include "set/diff.h"
#include "set/image.h"

static void djson_shape(sfti_json_writer *w, const sft_tensor *tensor) {
    sfti_json_open(w, '[');
    for (uint32_t d = 0; d < tensor->rank; d++) sfti_json_uint(w, tensor->shape[d]);
    sfti_json_close(w, ']');
}

/* Dtype and shape of the tensors that are there: of one alone, or of both as pairs. */
static void djson_form(sfti_json_writer *w, const sft_tensor *a, const sft_tensor *b) {
    const sft_tensor *one = a ? a : b;
    sfti_json_key(w, "dtype");
    if (a && b) sfti_json_open(w, '[');
    sfti_json_cstr(w, sft_dtype_describe(one->dtype)->name);
    if (a && b) sfti_json_cstr(w, sft_dtype_describe(b->dtype)->name);
    if (a && b) sfti_json_close(w, ']');
    sfti_json_key(w, "shape");
    if (a && b) sfti_json_open(w, '[');
    djson_shape(w, one);
    if (a && b) djson_shape(w, b);
    if (a && b) sfti_json_close(w, ']');
}

/* null where there is none. */
static void djson_number(sfti_json_writer *w, const char *key, double value) {
    if (value == value) sfti_json_put_double(w, key, value);
    else sfti_json_put_null(w, key);
}

static void djson_values(sfti_json_writer *w, const sft_diff_tensor *t) {
    sfti_json_key(w, "values");
    if (!t->compared) {
        sfti_json_null(w);
        return;
    }
    sfti_json_open(w, '{');
    sfti_json_put_uint(w, "compared", t->values);
    sfti_json_put_uint(w, "differing", t->differing);
    sfti_json_put_uint(w, "beyond", t->beyond);
    sfti_json_put_uint(w, "nan", t->nan);
    sfti_json_put_known(w, "first", t->first);
    sfti_json_put_double(w, "max_abs", t->max_abs);
    sfti_json_put_double(w, "max_rel", t->max_rel);
    djson_number(w, "rms", t->rms);
    djson_number(w, "cosine", t->cosine);
    sfti_json_close(w, '}');
}

/* 0: in both. */
static void djson_list(sfti_json_writer *w, const sft_diff *diff, const char *key, uint32_t side) {
    sfti_json_put_open(w, key, '[');
    for (size_t i = 0; i < diff->count && !w->code; i++) {
        const sft_diff_tensor *t = &diff->tensors[i];
        if ((t->what & (SFT_DIFF_ADDED | SFT_DIFF_REMOVED)) != side) continue;
        sfti_json_open(w, '{');
        sfti_json_put_text(w, "name", t->name);
        if (side == 0) {
            sfti_json_put_open(w, "what", '[');
            if (t->what & SFT_DIFF_DTYPE) sfti_json_cstr(w, "dtype");
            if (t->what & SFT_DIFF_SHAPE) sfti_json_cstr(w, "shape");
            if (t->what & SFT_DIFF_DATA) sfti_json_cstr(w, "data");
            sfti_json_close(w, ']');
        }
        djson_form(w, t->a, t->b);
        if (side == 0) djson_values(w, t);
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, ']');
}

static sft_code djson_result(sfti_json_writer *w, const sft_diff *diff, const char *path,
                             const char *other) {
    sfti_json_open(w, '{');
    sfti_json_path(w, path);
    sfti_json_put_open(w, "other", '{');
    sfti_json_path(w, other);
    sfti_json_close(w, '}');
    sfti_json_put_bool(w, "ok", true);
    bool is_partial = sfti_set_is_partial(diff->sides[0].set) ||
                      sfti_set_is_partial(diff->sides[1].set);
    if (sft_diff_same(diff) && is_partial) sfti_json_put_null(w, "same");
    else sfti_json_put_bool(w, "same", sft_diff_same(diff));
    sfti_json_put_uint(w, "equal", diff->equal);
    sfti_json_put_uint(w, "close", diff->close);
    sfti_json_put_double(w, "max_abs", diff->max_abs);
    sfti_json_put_double(w, "max_rel", diff->max_rel);
    sfti_json_put_open(w, "summary", '{');
    sfti_json_put_uint(w, "tensors", sft_diff_compared_count(diff));
    sfti_json_put_uint(w, "changed", diff->changed);
    sfti_json_put_uint(w, "removed", diff->removed);
    sfti_json_put_uint(w, "added", diff->added);
    sfti_json_put_double(w, "share", sft_diff_share(diff));
    sfti_json_close(w, '}');
    djson_list(w, diff, "removed", SFT_DIFF_REMOVED);
    djson_list(w, diff, "added", SFT_DIFF_ADDED);
    djson_list(w, diff, "changed", 0);
    sfti_json_put_open(w, "metadata", '[');
    for (size_t i = 0; i < diff->pair_count && !w->code; i++) {
        sft_diff_pair pair = sft_diff_pair_at(diff, i);
        sfti_json_open(w, '{');
        sfti_json_put_text(w, "key", pair.key);
        sfti_json_put_text(w, "a", pair.a);
        sfti_json_put_text(w, "b", pair.b);
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, ']');
    return sfti_result_end(w);
}

sft_code sft_diff_json(const sft_diff *diff, const char *path, const char *other,
                       sft_sink *sink, sft_error *err) {
    sfti_json_writer w;
    sfti_json_write(&w, sink, 0, err);
    return djson_result(&w, diff, path, other);
}

sft_code sft_diff_tree(const sft_diff *diff, const char *path, const char *other,
                       sft_tree *tree, sft_error *err) {
    sfti_json_writer w;
    sfti_json_write_tree(&w, tree, err);
    return djson_result(&w, diff, path, other);
}
