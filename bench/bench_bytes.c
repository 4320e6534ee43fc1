/* Bytes of tensors: bench_bytes MODE FILE [SLICE]. Every mode sums all it reads.
 *   map-sum   a plain map of the file, summed
 *   view-sum  sft_view of each tensor, summed
 *   pread     plain pread of each tensor's range into one buffer, summed
 *   read-into sft_read_into of each tensor into one buffer, summed
 *   slice, slice-map   sft_slice_read of the only tensor, summed */
#include "worker.h" /* first: it asks for POSIX */

#include "safetensors.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct byte_case {
    sft_file *file;
    int fd;
    const char *map;
    size_t map_len;
    char *buffer; /* the largest tensor */
    sft_span slice;
} byte_case;

static size_t tensor_len(const sft_tensor *t) {
    return (size_t)(t->end - t->begin);
}

static uint64_t run_map(void *ctx) {
    byte_case *r = ctx;
    uint64_t from = sft_file_data_offset(r->file);
    return bench_sum(r->map + from, (size_t)sft_file_data_bytes(r->file));
}

static uint64_t run_view(void *ctx) {
    byte_case *r = ctx;
    uint64_t sum = 0;
    for (size_t i = 0; i < sft_file_tensor_count(r->file); i++) {
        const sft_tensor *t = sft_file_tensor_at(r->file, i);
        const void *at;
        if (sft_view(r->file, t, &at, NULL)) bench_die("view", "failed");
        sum += bench_sum(at, tensor_len(t));
    }
    return sum;
}

static uint64_t run_pread(void *ctx) {
    byte_case *r = ctx;
    uint64_t sum = 0;
    for (size_t i = 0; i < sft_file_tensor_count(r->file); i++) {
        const sft_tensor *t = sft_file_tensor_at(r->file, i);
        size_t len = tensor_len(t);
        for (size_t at = 0; at < len;) {
            ssize_t got = pread(r->fd, r->buffer + at, len - at, (off_t)(t->offset + at));
            if (got <= 0) bench_die("pread", "failed");
            at += (size_t)got;
        }
        sum += bench_sum(r->buffer, len);
    }
    return sum;
}

static uint64_t run_read(void *ctx) {
    byte_case *r = ctx;
    uint64_t sum = 0;
    for (size_t i = 0; i < sft_file_tensor_count(r->file); i++) {
        const sft_tensor *t = sft_file_tensor_at(r->file, i);
        if (sft_read_into(r->file, t, r->buffer, tensor_len(t), NULL)) bench_die("read", "failed");
        sum += bench_sum(r->buffer, tensor_len(t));
    }
    return sum;
}

static uint64_t run_slice(void *ctx) {
    byte_case *r = ctx;
    const sft_tensor *t = sft_file_tensor_at(r->file, 0);
    sft_slice slice;
    uint64_t len = 0;
    if (sft_slice_parse(t->shape, t->rank, r->slice, &slice, NULL) ||
        sft_slice_size(&slice, t->dtype, NULL, &len, NULL) ||
        sft_slice_read(r->file, t, &slice, r->buffer, (size_t)len, NULL))
        bench_die("slice", "failed");
    return bench_sum(r->buffer, (size_t)len);
}

static const struct mode {
    const char *name;
    bench_run run;
    sft_mode open;
} modes[] = {
    { "map-sum", run_map, SFT_MAP },    { "view-sum", run_view, SFT_MAP },
    { "pread", run_pread, SFT_READ },   { "read-into", run_read, SFT_READ },
    { "slice", run_slice, SFT_READ },   { "slice-map", run_slice, SFT_MAP },
};

static void prepare(byte_case *r, const char *path, sft_mode mode) {
    sft_open_options options = SFT_OPEN_OPTIONS_INIT;
    sft_error error = SFT_ERROR_INIT;
    options.mode = mode;
    if (sft_open(path, &options, &r->file, &error)) bench_die(path, error.message);
    r->fd = open(path, O_RDONLY | O_CLOEXEC);
    r->map_len = (size_t)sft_file_size(r->file);
    r->map = mmap(NULL, r->map_len, PROT_READ, MAP_SHARED, r->fd, 0);
    if (r->fd < 0 || r->map == MAP_FAILED) bench_die(path, "cannot map");
    size_t most = 1;
    for (size_t i = 0; i < sft_file_tensor_count(r->file); i++) {
        size_t len = tensor_len(sft_file_tensor_at(r->file, i));
        if (len > most) most = len;
    }
    r->buffer = malloc(most);
    if (!r->buffer) bench_die(path, "out of memory");
    memset(r->buffer, 1, most);
}

int main(int argc, char **argv) {
    if (argc < 3) bench_die("usage", "bench_bytes MODE FILE [SLICE]");
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        if (strcmp(argv[1], modes[i].name)) continue;
        byte_case r;
        memset(&r, 0, sizeof r);
        r.slice = sft_span_cstr(argc > 3 ? argv[3] : "...");
        prepare(&r, argv[2], modes[i].open);
        bench_serve(modes[i].run, &r);
        sft_close(r.file);
        munmap((void *)(uintptr_t)r.map, r.map_len);
        close(r.fd);
        free(r.buffer);
        return 0;
    }
    bench_die(argv[1], "unknown mode");
}
