/* Reading other formats: bench_import FILE [DTYPE]. Opens the file and reads the bytes of all
 * tensors in pieces of 8 MiB, blocks computed as DTYPE (F16). */
#include "worker.h" /* first: it asks for POSIX */

#include "safetensors_import.h"

#define PIECE ((size_t)8 << 20)

typedef struct importing {
    const char *path;
    sft_import_options options;
    char *piece;
} importing;

static uint64_t read_tensor(const importing *job, sft_part part) {
    sft_error err = SFT_ERROR_INIT;
    uint64_t bytes;
    size_t got;
    if (sft_shape_size(part.spec.dtype, part.spec.shape, part.spec.rank, NULL, &bytes, &err))
        bench_die(job->path, err.message);
    for (uint64_t at = 0; at < bytes; at += got) {
        size_t some = bytes - at < PIECE ? (size_t)(bytes - at) : PIECE;
        if (sft_source_read(part.source, part.begin + at, job->piece, some, &got, &err)
            || got == 0)
            bench_die(job->path, err.message);
    }
    return bytes;
}

static uint64_t run_import(void *ctx) {
    const importing *job = ctx;
    sft_error err = SFT_ERROR_INIT;
    sft_import *import;
    uint64_t sum = 0;
    if (sft_import_open(job->path, &job->options, &import, &err))
        bench_die(job->path, err.message);
    for (size_t i = 0; i < sft_import_tensor_count(import); i++)
        sum += read_tensor(job, sft_import_part(import, i));
    sft_import_close(import);
    return sum;
}

int main(int argc, char **argv) {
    importing job = { .options = SFT_IMPORT_OPTIONS_INIT };
    if (argc < 2) bench_die("usage", "bench_import FILE [DTYPE]");
    job.path = argv[1];
    if (argc > 2 && !sft_dtype_parse(sft_span_cstr(argv[2]), &job.options.dequantised))
        bench_die(argv[2], "is no dtype");
    job.piece = bench_buffer(PIECE);
    bench_serve(run_import, &job);
    free(job.piece);
    return 0;
}
