/* All that can be asked of an open file: tensors in offset order, look-up, orders, metadata,
 * and the result objects as JSON, read back by the library's own reader. */
#include "base/json.h"
#include "base/utf8.h"
#include "fuzz.h"
#include "safetensors_report.h"
#include "safetensors_set.h"

#include <string.h>

static void walk_tensors(const sft_file *file) {
    uint64_t at = 0, bytes;
    for (size_t i = 0; i < sft_file_tensor_count(file); i++) {
        const sft_tensor *t = sft_file_tensor_at(file, i);
        FUZZ_CHECK(t->begin == at && t->offset == sft_file_data_offset(file) + at);
        FUZZ_CHECK(sft_file_find(file, t->name) == t);
        FUZZ_CHECK(sfti_utf8_check(t->name.data, t->name.len) == t->name.len);
        FUZZ_CHECK(!sft_shape_size(t->dtype, t->shape, t->rank, NULL, &bytes, NULL));
        FUZZ_CHECK(t->end - t->begin == bytes);
        at = t->end;
    }
    FUZZ_CHECK(at == sft_file_data_bytes(file));
    FUZZ_CHECK(sft_file_tensor_at(file, sft_file_tensor_count(file)) == NULL);
}

static void walk_orders(const sft_file *file) {
    size_t count = sft_file_tensor_count(file);
    uint32_t *out = malloc((count + 1) * sizeof *out);
    bool *seen = malloc(count + 1);
    for (int order = SFT_ORDER_OFFSET; out && seen && order <= SFT_ORDER_HEADER; order++) {
        FUZZ_CHECK(!sft_file_order(file, (sft_order)order, out, NULL));
        memset(seen, 0, count + 1);
        for (size_t i = 0; i < count; i++) {
            FUZZ_CHECK(out[i] < count && !seen[out[i]]);
            seen[out[i]] = true;
        }
    }
    free(seen);
    free(out);
}

static void walk_metadata(const sft_file *file) {
    for (size_t i = 0; i < sft_file_metadata_count(file); i++) {
        sft_pair pair = sft_file_metadata_at(file, i);
        sft_span value;
        FUZZ_CHECK(sft_file_metadata_get(file, pair.key, &value));
        FUZZ_CHECK(sft_span_equal(value, pair.value));
    }
    FUZZ_CHECK(!sft_file_metadata_at(file, sft_file_metadata_count(file)).key.data);
}

static void check_json(sft_buffer *buffer) {
    sfti_json json;
    FUZZ_CHECK(sfti_utf8_check(buffer->data, buffer->len) == buffer->len);
    sfti_json_begin(&json, buffer->data, buffer->len);
    while (sfti_json_next(&json) != SFTI_JSON_END) FUZZ_CHECK(json.type != SFTI_JSON_ERROR);
    sft_buffer_free(buffer);
}

static void render(sft_file *file) {
    sft_set *set;
    if (sft_set_from_file(file, "fuzz", &set, NULL)) return;
    sft_buffer buffer = { 0 };
    sft_sink sink = sft_sink_memory(&buffer);
    FUZZ_CHECK(!sft_set_json(set, "fuzz", 4096, &sink, NULL));
    FUZZ_CHECK(!sft_sink_finish(&sink, NULL));
    check_json(&buffer);
    sink = sft_sink_memory(&buffer);
    FUZZ_CHECK(!sft_set_ls_json(set, "fuzz", SFT_ORDER_NATURAL, NULL, NULL, &sink, NULL));
    FUZZ_CHECK(!sft_sink_finish(&sink, NULL));
    check_json(&buffer);
    sft_set_close(set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    for (int i = 0; i < 2; i++) {
        sft_open_options options = SFT_OPEN_OPTIONS_INIT;
        options.level = SFT_LEVEL_COMPAT;
        options.legacy = i;
        sft_file *file;
        if (sft_open_memory(data, size, &options, &file, NULL)) continue;
        walk_tensors(file);
        walk_orders(file);
        walk_metadata(file);
        render(file);
    }
    return 0;
}
