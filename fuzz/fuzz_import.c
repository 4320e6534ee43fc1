/* Models in other formats: whatever opens must be what it says, its parts readable and as large as
 * their shapes, its report and the file made of it well-formed. */
#include "fuzz.h"
#include "safetensors_import.h"

#include <string.h>

#define MOST_OUTPUT (UINT64_C(1) << 22)

static void check_import_error(const sft_error *err, sft_code code) {
    FUZZ_CHECK(err->code == code && err->message[0]);
    FUZZ_CHECK(memchr(err->message, 0, sizeof err->message));
    FUZZ_CHECK(err->tensor_len == SFT_NO_TENSOR || err->tensor_len <= sizeof err->tensor);
}

static sft_import_options options_of(int way) {
    sft_import_options options = SFT_IMPORT_OPTIONS_INIT;
    options.max_output = MOST_OUTPUT;
    if (way == 0) return options;
    options.skip = options.all = options.scalars = true;
    options.shared = SFT_IMPORT_COPY;
    options.dequantised = SFT_F32;
    options.quantised = options.sparse = SFT_IMPORT_SPECIAL_VALUES;
    if (way == 1) return options;
    options.quantised = options.sparse = SFT_IMPORT_SPECIAL_PARTS;
    options.strip_prefix = "model.";
    options.separator = "/";
    return options;
}

/* A part's first and last bytes, and none behind them. */
static void read_ends(sft_part part, uint64_t bytes) {
    uint8_t buffer[512];
    size_t got, some = bytes < sizeof buffer ? (size_t)bytes : sizeof buffer;
    FUZZ_CHECK(part.begin <= part.source->size && bytes <= part.source->size - part.begin);
    if (!sft_source_read(part.source, part.begin + bytes - some, buffer, some, &got, NULL))
        FUZZ_CHECK(got == some);
    if (!sft_source_read(part.source, part.begin, buffer, some, &got, NULL))
        FUZZ_CHECK(got == some);
}

static uint64_t walk_parts(const sft_import *import) {
    uint64_t sum = 0, bytes;
    size_t count = sft_import_tensor_count(import);
    for (size_t i = 0; i < count; i++) {
        sft_part part = sft_import_part(import, i);
        FUZZ_CHECK(part.source && part.spec.name.len > 0);
        FUZZ_CHECK(sft_import_shard(import, i) < sft_import_shard_count(import));
        FUZZ_CHECK(!sft_shape_size(part.spec.dtype, part.spec.shape, part.spec.rank, NULL, &bytes,
                                   NULL));
        if (bytes > 0 && i < 64) read_ends(part, bytes);
        sum += bytes;
    }
    FUZZ_CHECK(!sft_import_part(import, count).source && !sft_import_note(import, count));
    for (size_t i = 0; i < sft_import_left_count(import); i++)
        FUZZ_CHECK(sft_import_left_at(import, i)->text && sft_import_left_at(import, i)->count > 0);
    FUZZ_CHECK(!sft_import_left_at(import, sft_import_left_count(import)));
    return sum;
}

static void write_report(const sft_import *import) {
    sft_buffer text = { 0 };
    sft_sink sink = sft_sink_memory(&text);
    if (!sft_import_json(import, "model", &sink, NULL)) FUZZ_CHECK(!sft_sink_finish(&sink, NULL));
    else sft_sink_abandon(&sink);
    sft_buffer_free(&text);
}

/* What is made of it must open, with as many tensors. */
static void save(const sft_import *import) {
    sft_error err = SFT_ERROR_INIT;
    sft_buffer made = { 0 };
    sft_file *file = NULL;
    sft_code code = sft_import_save(import, sft_sink_memory(&made), NULL, NULL, &err);
    if (code) {
        check_import_error(&err, code);
    } else {
        FUZZ_CHECK(!sft_open_memory(made.data, made.len, NULL, &file, &err));
        FUZZ_CHECK(sft_file_tensor_count(file) == sft_import_tensor_count(import));
    }
    sft_close(file);
    sft_buffer_free(&made);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    for (int way = 0; way < 3; way++) {
        sft_import_options options = options_of(way);
        sft_error err = SFT_ERROR_INIT;
        sft_import *import;
        sft_code code = sft_import_open_source(sft_source_memory(data, size), &options, &import,
                                               &err);
        FUZZ_CHECK(!code == (import != NULL));
        if (code) {
            check_import_error(&err, code);
            continue;
        }
        FUZZ_CHECK(sft_import_format_describe(sft_import_format_of(import)));
        uint64_t bytes = walk_parts(import);
        write_report(import);
        if (bytes <= 8 * MOST_OUTPUT) save(import);
        sft_import_close(import);
    }
    return 0;
}
