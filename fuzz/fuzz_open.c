/* Header open at every level, with and without the old layout. Each input is also opened
 * with a space after every colon, which sends every entry down the generic path: verdict
 * and tensors must be those of the fast one. What a level accepts, a milder one does. */
#include "base/endian.h"
#include "fuzz.h"

#include <string.h>

static void same(const sft_file *a, const sft_file *b) {
    FUZZ_CHECK(sft_file_tensor_count(a) == sft_file_tensor_count(b));
    FUZZ_CHECK(sft_file_metadata_count(a) == sft_file_metadata_count(b));
    for (size_t i = 0; i < sft_file_tensor_count(a); i++) {
        const sft_tensor *x = sft_file_tensor_at(a, i), *y = sft_file_tensor_at(b, i);
        FUZZ_CHECK(sft_span_equal(x->name, y->name) && x->dtype == y->dtype);
        FUZZ_CHECK(x->rank == y->rank && x->begin == y->begin && x->end == y->end);
        FUZZ_CHECK(!x->rank || !memcmp(x->shape, y->shape, x->rank * sizeof *x->shape));
    }
}

/* The file with a space after each colon outside strings; NULL when there is no header. */
static uint8_t *spaced(const uint8_t *data, size_t size, size_t *out_size) {
    uint64_t n = size < 8 ? size : sfti_get_u64(data);
    uint8_t *out = size < 8 || n > size - 8 ? NULL : malloc(2 * size);
    if (!out) return NULL;
    size_t at = 8;
    bool string = false;
    for (size_t i = 8; i < size; i++) {
        out[at++] = data[i];
        if (i >= 8 + n) continue;
        if (string && data[i] == '\\' && i + 1 < 8 + n) out[at++] = data[++i];
        else if (data[i] == '"') string = !string;
        else if (data[i] == ':' && !string) out[at++] = ' ';
    }
    sfti_put_u64(out, at - 8 - (size - 8 - n));
    *out_size = at;
    return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    size_t wide_size = 0;
    uint8_t *wide = spaced(data, size, &wide_size);
    bool refused[2] = { false, false };
    for (int i = 0; i < 6; i++) {
        sft_open_options options = SFT_OPEN_OPTIONS_INIT;
        options.level = (sft_level)(i / 2);
        options.legacy = i % 2;
        sft_file *file, *other = NULL;
        sft_error error = SFT_ERROR_INIT;
        sft_code code = sft_open_memory(data, size, &options, &file, &error);
        if (wide) FUZZ_CHECK(sft_open_memory(wide, wide_size, &options, &other, NULL) == code);
        if (wide && !code) same(file, other);
        FUZZ_CHECK(code == error.code && !code == !!file);
        FUZZ_CHECK(code || !refused[i % 2]);
        refused[i % 2] = code != SFT_OK;
        sft_close(other);
        sft_close(file);
    }
    free(wide);
    return 0;
}
