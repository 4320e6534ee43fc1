/* Load a model into one block of memory, with all processors, and keep what the program knows of
 * each tensor in an array of its own; SIGINT ends it.
 *     example_load FILE TENSOR... */
#include <safetensors.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct weights {
    unsigned char *memory; /* of all tensors, each at a multiple of 16 bytes */
    size_t *at;            /* by index of the tensor: where it begins */
} weights;

static volatile sig_atomic_t interrupted;

static void interrupt(int number) {
    (void)number;
    interrupted = 1;
}

static bool go_on(void *ctx, uint64_t done, uint64_t total) {
    (void)ctx;
    fprintf(stderr, "\r%3.0f %%", total > 0 ? 100.0 * (double)done / (double)total : 100.0);
    return !interrupted;
}

/* On failure w may hold memory, too. */
static sft_code load(const sft_file *file, weights *w, sft_error *err) {
    size_t count = sft_file_tensor_count(file);
    sft_read *reads = calloc(count + 1, sizeof *reads);
    uint64_t end = 0;
    sft_job job = SFT_JOB_INIT;
    job.threads = 0;
    job.tick = go_on;
    w->at = calloc(count + 1, sizeof *w->at);
    for (size_t i = 0; w->at && i < count; i++) {
        w->at[i] = (size_t)end;
        end = (end + sft_tensor_bytes(sft_file_tensor_at(file, i)) + 15) & ~(uint64_t)15;
    }
    if (end < SIZE_MAX) w->memory = malloc((size_t)end + 1);
    sft_code code;
    if (!reads || !w->at || !w->memory) {
        code = sft_error_set(err, SFT_OUT_OF_MEMORY, 0, "no memory for the tensors");
    } else {
        for (size_t i = 0; i < count; i++) {
            const sft_tensor *tensor = sft_file_tensor_at(file, i);
            reads[i] = (sft_read){ tensor, w->memory + w->at[i],
                                   (size_t)sft_tensor_bytes(tensor) };
        }
        code = sft_read_many(file, reads, count, &job, err);
    }
    free(reads);
    return code;
}

/* A layer finds its weight by name, and the program's own facts by the tensor's index. */
static void tell(const sft_file *file, const weights *w, const char *name) {
    const sft_tensor *tensor = sft_file_find_cstr(file, name);
    if (!tensor || sft_tensor_bytes(tensor) == 0) return;
    size_t at = w->at[sft_file_tensor_index(file, tensor)];
    printf("%s begins at %zu with byte %u\n", name, at, (unsigned)w->memory[at]);
}

int main(int argc, char **argv) {
    sft_file *file;
    sft_error err = SFT_ERROR_INIT;
    weights w = { NULL, NULL };
    if (argc < 2) return 2;
    (void)signal(SIGINT, interrupt);
    sft_code code = sft_open(argv[1], NULL, &file, &err);
    if (!code) code = load(file, &w, &err);
    for (int i = 2; !code && i < argc; i++) tell(file, &w, argv[i]);
    free(w.memory);
    free(w.at);
    sft_close(file);
    if (code) {
        char text[1024];
        sft_error_text(&err, argv[1], text, sizeof text);
        fprintf(stderr, "%s\n", text);
    }
    return code != SFT_OK;
}
