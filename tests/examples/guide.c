/* Runs what docs/c.md shows: its blocks, which guide.py puts together, are included here, and each
 * function is called.
 *     guide FOLDER MODEL INDEX TENSOR */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#ifdef _WIN32
#include <fcntl.h>
#include <io.h>
#endif
#include <unistd.h>
#define main guide_main
#include "guide_blocks.h"
#undef main

static int passed, failed;

static void check(bool ok, const char *what) {
    passed += ok;
    failed += !ok;
    if (!ok) printf("failed: %s\n", what);
}

static void in_folder(char *out, size_t cap, const char *folder, const char *name) {
    (void)snprintf(out, cap, "%s/%s", folder, name);
}

static void try_opening(const char *path, const char *absent) {
    char name[] = "guide", option[4096], other[4096];
    (void)snprintf(option, sizeof option, "%s", path);
    (void)snprintf(other, sizeof other, "%s", absent);
    check(guide_main(2, (char *[]){ name, option, NULL }) == 0, "a file is opened");
    check(guide_main(2, (char *[]){ name, other, NULL }) == 1, "a missing file is reported");
    check(guide_main(1, (char *[]){ name, NULL }) == 2, "without a file: usage");
    sft_file *file;
    check(!open_upload(path, &file, NULL), "within the limits");
    sft_close(file);
}

static void try_reading(const sft_file *file, sft_error *err) {
    const sft_tensor *weight;
    void *bytes;
    float *values;
    size_t len;
    list(file);
    check(find_matrix(file, "absent", 3, &weight, err) == SFT_TENSOR_NOT_FOUND, "not found");
    check(find_matrix(file, "weight", 4, &weight, err) == SFT_BAD_ARGUMENT, "another shape");
    if (find_matrix(file, "weight", 3, &weight, err)) {
        check(false, "a matrix is found");
        return;
    }
    const float all[] = { 1, 2, 3, 4, 5, 6 };
    check(!read_tensor(file, weight, &bytes, err), "a tensor is read");
    check(memcmp(bytes, all, sizeof all) == 0, "its bytes");
    free(bytes);
    check(!read_as_floats(file, weight, &values, err), "a tensor is cast");
    check(memcmp(values, all, sizeof all) == 0, "its values");
    free(values);
    const float column[] = { 2, 5 };
    check(!read_slice(file, weight, "[:, 1]", &bytes, &len, err), "a slice is read");
    check(len == sizeof column && memcmp(bytes, column, len) == 0, "the bytes of a slice");
    free(bytes);
    check(read_slice(file, weight, "[7]", &bytes, &len, err) == SFT_SLICE_BOUNDS, "no such row");
}

static void try_set(const char *path, sft_error *err) {
    float *values[LAYERS];
    progress p = { false, 0, 0 };
    sft_set *set;
    if (sft_set_open(path, NULL, &set, err)) {
        check(false, "a model in shards is opened");
        return;
    }
    check(sft_set_shard_count(set) == LAYERS && sft_set_tensor_count(set) == LAYERS, "its shards");
    list_model(set);
    check(!load_floats(set, values, &p, err), "all tensors are loaded");
    check(values[2][5] == 25 && p.done == 72 && p.total == 72, "their values and the progress");
    for (size_t i = 0; i < LAYERS; i++) free(values[i]);
    atomic_store(&p.stop, true);
    check(load_floats(set, values, &p, err) == SFT_CANCELLED && values[0] && !values[1],
          "loading is stopped");
    free(values[0]);
    sft_set_close(set);
}

static void try_shards(const char *folder, sft_error *err) {
    const float weights[LAYERS][6] = { { 0, 1, 2, 3, 4, 5 }, { 10, 11, 12, 13, 14, 15 },
                                       { 20, 21, 22, 23, 24, 25 } };
    char shards[4096], path[4200], text[8192];
    in_folder(shards, sizeof shards, folder, "shards");
    in_folder(path, sizeof path, shards, "model.safetensors.index.json");
    check(!save_shards(shards, weights, 24, err), "shards are written");
    check(save_shards(shards, weights, 0, err) == SFT_EXISTS, "but not over others");
    try_set(path, err);
    sft_set *set;
    char shard[4200];
    in_folder(shard, sizeof shard, shards, "model-00002-of-00003.safetensors");
    FILE *broken = fopen(shard, "r+b");
    check(broken && fseek(broken, 8, SEEK_SET) == 0 && fputc('[', broken) == '[', "broken");
    if (broken) (void)fclose(broken);
    check(sft_set_open(path, NULL, &set, err) == SFT_HEADER_NOT_OBJECT, "a broken shard");
    sft_error_text(err, path, text, sizeof text);
    const char *found = strstr(text, "model-00002-of-00003.safetensors: byte 8: ");
    check(found && strncmp(text, path, strlen(path)) == 0, text);
    check(sft_set_open(shards, NULL, &set, err) == SFT_IO_NOT_FILE
              && err->hint == SFT_HINT_FOLDER, "a folder is not opened");
}

#ifdef _WIN32
#define pipe(ends) _pipe(ends, 4096, _O_BINARY)
#endif

/* Nobody writes to the pipe, and it is no longer wanted. */
static void try_waiting(sft_error *err) {
    progress p = { true, 0, 0 };
    const sft_wait wait = { still_wanted, &p };
    sft_file *file;
    int ends[2];
    if (pipe(ends)) {
        check(false, "a pipe");
        return;
    }
    check(open_pipe(ends[0], &wait, &file, err) == SFT_IO_READ, "a wait is ended");
    check(err->os_errno == EINTR, "and says so");
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static void try_jobs(const sft_file *file, sft_error *err) {
    float bias[2], weight[6];
    progress p = { false, 0, 0 };
    void *buffers[2];
    for (size_t i = 0; i < 2; i++)
        buffers[i] = sft_file_tensor_at(file, i)->rank == 2 ? (void *)weight : (void *)bias;
    check(!read_all(file, buffers, &p, err), "all tensors are read");
    check(weight[5] == 6 && bias[1] == 8, "the values of all tensors");
    check(p.done == 32 && p.total == 32, "progress");
    atomic_store(&p.stop, true);
    check(read_all(file, buffers, &p, err) == SFT_CANCELLED, "a call is cancelled");
    check(exit_status(err) == 130, "the exit status of a cancelled call");
}

static void try_own_io(const char *model, const char *folder, sft_error *err) {
    char path[4096], copy[4096];
    size_t len = 0;
    in_folder(path, sizeof path, folder, "archive");
    FILE *from = fopen(model, "rb"), *archive = fopen(path, "w+b");
    if (from && archive) {
        len = fread(copy, 1, sizeof copy, from);
        check(fwrite("12345", 1, 5, archive) == 5 && fwrite(copy, 1, len, archive) == len,
              "an archive is written");
        member m = { archive, 5 };
        sft_file *file;
        check(!open_member(&m, len, &file, err), "a member of an archive is opened");
        const float first[] = { 7, 8 };
        const sft_tensor *bias = sft_file_find_cstr(file, "bias");
        void *bytes = NULL;
        check(bias && !read_tensor(file, bias, &bytes, err), "and read");
        check(bytes && memcmp(bytes, first, sizeof first) == 0, "the bytes of a member");
        free(bytes);
        sft_close(file);
        check(open_member(&m, len - 1, &file, err) == SFT_DATA_TRUNCATED, "a shorter member");
        check(exit_status(err) == 3, "the exit status of an invalid file");
    }
    if (from) (void)fclose(from);
    if (archive) (void)fclose(archive);
    check(from && archive, "the files of an archive");
}

static void try_budget(const char *path, sft_error *err) {
    budget b = { 100000 };
    sft_file *file;
    check(!open_within(path, &b, &file, err), "opened within a budget");
    check(b.left < 100000, "the budget is used");
    sft_close(file);
    check(b.left == 100000, "and given back");
    b.left = 10;
    check(open_within(path, &b, &file, err) == SFT_OUT_OF_MEMORY, "a small budget is kept to");
    check(b.left == 10 && exit_status(err) == 1, "and nothing is lost");
}

int main(int argc, char **argv) {
    char path[4096], ramp[4096], absent[4096];
    sft_error err = SFT_ERROR_INIT;
    sft_file *file;
    void *bytes;
    size_t len;
    double sum;
    if (argc != 5) return 2;
    in_folder(path, sizeof path, argv[1], "layer.safetensors");
    in_folder(ramp, sizeof ramp, argv[1], "ramp.safetensors");
    in_folder(absent, sizeof absent, argv[1], "absent/x.safetensors");
    const float weight[6] = { 1, 2, 3, 4, 5, 6 }, bias[2] = { 7, 8 };
    check(!save_layer(path, weight, bias, &err), "arrays are saved");
    check(save_layer(absent, weight, bias, &err) != SFT_OK, "no folder to save to");
    check(!write_ramp(ramp, 100, &err), "a file is written in pieces");
    check(write_ramp(absent, 1, &err) != SFT_OK, "no folder to write to");
    check(!sum_of(ramp, "ramp", &sum, &err) && sum == 3 * 4950 + 75, "what was written");
    check(sum_of(ramp, "x", &sum, &err) == SFT_TENSOR_NOT_FOUND, "nothing to add up");
    try_opening(path, absent);
    if (!sft_open(path, NULL, &file, &err)) {
        try_reading(file, &err);
        try_jobs(file, &err);
        sft_close(file);
    }
    const char *const models[] = { argv[2], argv[3] };
    for (size_t i = 0; i < 2; i++) {
        bool there = !read_from_model(models[i], argv[4], &bytes, &len, &err);
        check(there == (i == 1), models[i]);
        free(bytes);
    }
    try_shards(argv[1], &err);
    try_waiting(&err);
    try_own_io(path, argv[1], &err);
    try_budget(path, &err);
    printf("%d passed, %d failed\n", passed, failed);
    return failed > 0;
}
