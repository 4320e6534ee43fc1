/* Opening: bench_open path|memory|count FILE [compat|default]
 *   path    sft_open and sft_close: open, read, parse, validate, index
 *   memory  the same over a header already in memory
 *   count   prints peak bytes and allocations of sft_open, its header copy included */
#include "worker.h" /* first: it asks for POSIX */

#include "safetensors.h"

typedef struct counted {
    size_t now, peak, calls;
} counted;

static void *counted_resize(void *ctx, void *ptr, size_t old_size, size_t new_size) {
    counted *c = ctx;
    if (new_size) c->calls++;
    c->now += new_size - old_size;
    if (c->now > c->peak) c->peak = c->now;
    if (new_size) return realloc(ptr, new_size);
    free(ptr);
    return NULL;
}

typedef struct opening {
    const char *path;
    char *bytes; /* prefix and header, for memory */
    size_t len;
    sft_open_options options;
} opening;

static uint64_t finish_open(sft_code code, sft_file *file, const sft_error *error) {
    if (code) bench_die("open", error->message);
    uint64_t count = sft_file_tensor_count(file);
    sft_close(file);
    return count;
}

static uint64_t run_path(void *ctx) {
    opening *o = ctx;
    sft_file *file;
    sft_error error = SFT_ERROR_INIT;
    sft_code code = sft_open(o->path, &o->options, &file, &error);
    return finish_open(code, file, &error);
}

static uint64_t run_memory(void *ctx) {
    opening *o = ctx;
    sft_file *file;
    sft_error error = SFT_ERROR_INIT;
    sft_code code = sft_open_memory(o->bytes, o->len, &o->options, &file, &error);
    return finish_open(code, file, &error);
}

static void print_count(opening *o) {
    counted c = { 0, 0, 0 };
    sft_allocator alloc = { counted_resize, &c };
    o->options.alloc = &alloc;
    uint64_t tensors = run_path(o);
    printf("{\"peak\": %zu, \"calls\": %zu, \"left\": %zu, \"tensors\": %" PRIu64 "}\n", c.peak,
           c.calls, c.now, tensors);
}

static void load_header(opening *o) {
    size_t n;
    char *text = bench_header(o->path, &n);
    o->bytes = malloc(n + 8);
    if (!o->bytes) bench_die(o->path, "out of memory");
    for (int i = 0; i < 8; i++) o->bytes[i] = (char)(n >> 8 * i);
    memcpy(o->bytes + 8, text, n);
    free(text);
    o->len = n + 8;
    o->options.header_only = true;
}

int main(int argc, char **argv) {
    if (argc < 3) bench_die("usage", "bench_open path|memory|count FILE [compat|default]");
    opening o = { argv[2], NULL, 0, SFT_OPEN_OPTIONS_INIT };
    if (argc > 3 && !strcmp(argv[3], "compat")) o.options.level = SFT_LEVEL_COMPAT;
    if (!strcmp(argv[1], "count")) {
        print_count(&o);
    } else if (!strcmp(argv[1], "memory")) {
        load_header(&o);
        bench_serve(run_memory, &o);
    } else {
        bench_serve(run_path, &o);
    }
    free(o.bytes);
    return 0;
}
