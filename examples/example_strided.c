/* Save what does not lie in memory as in a file, without a packed copy of it: a matrix that
 * is kept column by column, and every second element of its first row.
 *     example_strided OUT */
#include <safetensors.h>
#include <safetensors_io.h>
#include <stdio.h>

#define ROWS 3
#define COLUMNS 4

static sft_code save(const char *path, const float *columns, sft_error *err) {
    static const uint64_t shape[] = {ROWS, COLUMNS}, half[] = {COLUMNS / 2};
    static const int64_t strides[] = {sizeof(float), ROWS * sizeof(float)};
    static const int64_t steps[] = {2 * ROWS * sizeof(float)};
    sft_source matrix = {0}, some = {0};
    sft_sink sink;
    sft_code code = sft_source_strided(SFT_F32, shape, 2, columns, strides, NULL, &matrix, err);
    if (code == SFT_OK)
        code = sft_source_strided(SFT_F32, half, 1, columns, steps, NULL, &some, err);
    if (code == SFT_OK) code = sft_sink_path(path, NULL, &sink, err);
    if (code == SFT_OK) {
        const sft_part parts[] = {
            {{sft_span_cstr("matrix"), SFT_F32, 2, shape}, &matrix, 0},
            {{sft_span_cstr("some"), SFT_F32, 1, half}, &some, 0},
        };
        code = sft_save_parts(parts, 2, NULL, 0, NULL, sink, NULL, err);
    }
    sft_source_close(&matrix);
    sft_source_close(&some);
    return code;
}

int main(int argc, char **argv) {
    float columns[COLUMNS * ROWS];
    char text[1024];
    sft_error err = SFT_ERROR_INIT;
    if (argc != 2) return 2;
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLUMNS; c++) columns[c * ROWS + r] = (float)(10 * r + c);
    if (save(argv[1], columns, &err) == SFT_OK) return 0;
    sft_error_text(&err, argv[1], text, sizeof text);
    fprintf(stderr, "%s\n", text);
    return 1;
}
