/* Members that JSON results share. Tests: test_set.c. */
#include "base/result.h"

#include "base/options.h"

void sfti_result_begin(sfti_json_writer *w, const char *path, bool ok) {
    sfti_json_open(w, '{');
    sfti_json_path(w, path);
    sfti_json_put_bool(w, "ok", ok);
}

sft_code sfti_result_end(sfti_json_writer *w) {
    sfti_json_close(w, '}');
    return sfti_json_done(w);
}

void sfti_result_tensor(sfti_json_writer *w, const sft_error *error) {
    bool known = error->tensor_len != SFT_NO_TENSOR;
    sfti_json_put_text(w, "tensor",
                       known ? (sft_span){ error->tensor, error->tensor_len }
                             : (sft_span){ NULL, 0 });
}

/* In the words of whom it is written for. */
static const char *result_hint(const sfti_json_writer *w, sft_hint hint) {
    const sft_sink *sink = w->sink;
    bool has_words = sink && hint != SFT_HINT_NONE && SFTI_CAN(sink, sft_sink_vtable, words);
    const char *words = has_words ? sink->vtable->words(sink->ctx, hint) : NULL;
    return words ? words : sft_hint_text(hint);
}

void sfti_result_finding(sfti_json_writer *w, const sft_error *error, bool rule) {
    const sft_code_info *info = sft_code_describe(error->code);
    sfti_json_open(w, '{');
    sfti_json_put_cstr(w, "code", info->name);
    if (rule) sfti_json_put_cstr(w, "rule", info->rule);
    sfti_json_put_known(w, "offset", error->offset);
    sfti_result_tensor(w, error);
    sfti_json_put_cstr(w, "message", error->message);
    sfti_json_put_cstr(w, "hint", result_hint(w, error->hint));
    sfti_json_close(w, '}');
}

void sfti_result_error(sfti_json_writer *w, const char *key, const sft_error *error) {
    sfti_json_key(w, key);
    if (error) sfti_result_finding(w, error, false);
    else sfti_json_null(w);
}

static void result_pair(sfti_json_writer *w, const char *key, uint64_t a, uint64_t b) {
    sfti_json_key(w, key);
    sfti_json_open(w, '[');
    sfti_json_uint(w, a);
    sfti_json_uint(w, b);
    sfti_json_close(w, ']');
}

void sfti_result_listed(sfti_json_writer *w, const sft_tensor *tensor, const char *shard) {
    uint64_t bytes = tensor->end - tensor->begin;
    sfti_json_put_text(w, "name", tensor->name);
    sfti_json_put_cstr(w, "dtype", sft_dtype_describe(tensor->dtype)->name);
    sfti_json_put_shape(w, "shape", tensor->shape, tensor->rank);
    result_pair(w, "data_offsets", tensor->begin, tensor->end);
    result_pair(w, "file_offsets", tensor->offset, tensor->offset + bytes);
    sfti_json_put_uint(w, "bytes", bytes);
    if (shard) sfti_json_put_cstr(w, "shard", shard);
}
