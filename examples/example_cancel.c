/* A checksum of the tensors' bytes with progress, which the user may stop.
 *     example_cancel FILE [STOP-AFTER-BYTES] */
#include <safetensors.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct progress {
    uint64_t stop_after;
} progress;

static sft_code add(void *ctx, const void *bytes, size_t len, sft_error *err) {
    const unsigned char *at = bytes;
    uint64_t hash = *(uint64_t *)ctx; /* FNV-1a, 64 bits */
    (void)err;
    for (size_t i = 0; i < len; i++) hash = (hash ^ at[i]) * UINT64_C(1099511628211);
    *(uint64_t *)ctx = hash;
    return SFT_OK;
}

static bool tick(void *ctx, uint64_t done, uint64_t total) {
    fprintf(stderr, "\r%llu of %llu", (unsigned long long)done, (unsigned long long)total);
    return done < ((progress *)ctx)->stop_after;
}

static sft_code checksum(const sft_file *file, const sft_job *job, uint64_t *hash,
                         sft_error *err) {
    sft_source bytes = sft_file_source(file);
    sft_sink sink;
    *hash = UINT64_C(14695981039346656037);
    sft_code code = sft_sink_callback(add, hash, NULL, &sink, err);
    if (code != SFT_OK) return code;
    return sft_copy(&bytes, sft_file_data_offset(file), SFT_SIZE_UNKNOWN, sink, job, err);
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    sft_file *file;
    sft_error err = SFT_ERROR_INIT;
    progress seen = {argc > 2 ? strtoull(argv[2], NULL, 10) : UINT64_MAX};
    sft_job job = SFT_JOB_INIT;
    job.tick = tick;
    job.ctx = &seen;
    uint64_t hash = 0;
    sft_code code = sft_open(argv[1], NULL, &file, &err);
    if (code == SFT_OK) {
        code = checksum(file, &job, &hash, &err);
        sft_close(file);
    }
    if (code == SFT_OK) printf("%016llx\n", (unsigned long long)hash);
    if (code == SFT_CANCELLED) printf("cancelled\n");
    if (code != SFT_OK) {
        char text[1024];
        sft_error_text(&err, argv[1], text, sizeof text);
        fprintf(stderr, "\n%s\n", text);
    }
    return code == SFT_CANCELLED ? 130 : code != SFT_OK;
}
