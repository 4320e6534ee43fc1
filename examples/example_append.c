/* Save tensors whose number is not known beforehand: room is kept for the header, tensors
 * are added one after another, the header is written last.
 *     example_append OUT COUNT */
#include <safetensors.h>
#include <stdio.h>
#include <stdlib.h>

static sft_code add_step(sft_writer *writer, int step, sft_error *err) {
    char name[32];
    const uint64_t shape[] = {(uint64_t)step + 1};
    size_t tensor;
    (void)snprintf(name, sizeof name, "step.%d", step);
    const sft_spec spec = {sft_span_cstr(name), SFT_F32, 1, shape};
    sft_code code = sft_writer_add(writer, &spec, &tensor, err);
    for (int i = 0; i <= step && code == SFT_OK; i++) {
        float value = (float)(step * 10 + i);
        code = sft_writer_put(writer, tensor, &value, sizeof value, err); /* little-endian host */
    }
    return code;
}

static sft_code save(const char *path, int count, sft_error *err) {
    const sft_pair metadata[] = {{sft_span_cstr("format"), sft_span_cstr("pt")}};
    sft_writer_options options = SFT_WRITER_OPTIONS_INIT;
    sft_sink sink;
    sft_writer *writer;
    options.header_bytes = 4096; /* a tensor takes about 110 bytes and its name */
    options.metadata = metadata;
    options.metadata_count = 1;
    sft_code code = sft_sink_path(path, NULL, &sink, err);
    if (code == SFT_OK) code = sft_writer_begin_unplanned(&options, sink, &writer, err);
    if (code != SFT_OK) return code;
    for (int i = 0; i < count && code == SFT_OK; i++) code = add_step(writer, i, err);
    if (code == SFT_OK) return sft_writer_finish(writer, err);
    sft_writer_abandon(writer);
    return code;
}

int main(int argc, char **argv) {
    char text[1024];
    sft_error err = SFT_ERROR_INIT;
    if (argc != 3) return 2;
    if (save(argv[1], (int)strtol(argv[2], NULL, 10), &err) == SFT_OK) return 0;
    sft_error_text(&err, argv[1], text, sizeof text);
    fprintf(stderr, "%s\n", text);
    return 1;
}
