#include "base/result.h"

void sfti_result_begin(sfti_json_writer *w, const char *path) {
    sfti_json_open(w, '{');
    sfti_json_path(w, path);
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

void sfti_result_finding(sfti_json_writer *w, const sft_error *error, bool rule) {
    const sft_code_info *info = sft_code_describe(error->code);
    sfti_json_open(w, '{');
    sfti_json_put_cstr(w, "code", info->name);
    if (rule) sfti_json_put_cstr(w, "rule", info->rule);
    sfti_json_put_known(w, "offset", error->offset);
    sfti_result_tensor(w, error);
    sfti_json_put_cstr(w, "message", error->message);
    sfti_json_put_cstr(w, "hint", sft_hint_text(error->hint));
    sfti_json_close(w, '}');
}

void sfti_result_error(sfti_json_writer *w, const char *key, const sft_error *error) {
    sfti_json_key(w, key);
    if (error) sfti_result_finding(w, error, false);
    else sfti_json_null(w);
}
