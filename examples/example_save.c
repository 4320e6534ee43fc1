/* Save tensors as they are computed, in any order, to a file that appears whole or not
 * at all; nothing larger than one row is ever in memory.
 *     example_save OUT */
#include <safetensors.h>
#include <stdio.h>

#define ROWS 1000
#define COLUMNS 256

static sft_code put_weight(sft_writer *writer, size_t tensor, sft_error *err) {
    float row[COLUMNS];
    sft_code code = SFT_OK;
    for (int r = 0; r < ROWS && code == SFT_OK; r++) {
        for (int c = 0; c < COLUMNS; c++) row[c] = (float)(r - c);
        code = sft_writer_put(writer, tensor, row, sizeof row, err); /* little-endian host */
    }
    return code;
}

static sft_code save(const char *path, sft_error *err) {
    static const uint64_t matrix[] = {ROWS, COLUMNS}, scalar[] = {1};
    const sft_spec specs[] = {
        {sft_span_cstr("step"), SFT_I64, 1, scalar},
        {sft_span_cstr("weight"), SFT_F32, 2, matrix},
    };
    const sft_pair metadata[] = {{sft_span_cstr("format"), sft_span_cstr("pt")}};
    static const unsigned char step[8] = {42};
    sft_plan *plan;
    sft_sink sink;
    sft_writer *writer;
    sft_code code = sft_plan_new(specs, 2, metadata, 1, NULL, &plan, err);
    if (code != SFT_OK) return code;
    code = sft_sink_path(path, NULL, &sink, err);
    if (code == SFT_OK) code = sft_writer_begin(plan, sink, &writer, err);
    if (code == SFT_OK) {
        code = put_weight(writer, sft_plan_position(plan, 1), err);
        if (code == SFT_OK)
            code = sft_writer_put(writer, sft_plan_position(plan, 0), step, sizeof step, err);
        if (code == SFT_OK)
            code = sft_writer_finish(writer, err);
        else
            sft_writer_abandon(writer);
    }
    sft_plan_free(plan);
    return code;
}

int main(int argc, char **argv) {
    char text[1024];
    sft_error err = SFT_ERROR_INIT;
    if (argc != 2) return 2;
    if (save(argv[1], &err) == SFT_OK) return 0;
    sft_error_text(&err, argv[1], text, sizeof text);
    fprintf(stderr, "%s\n", text);
    return 1;
}
