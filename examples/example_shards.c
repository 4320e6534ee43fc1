/* Write the tensors of a model, of one file or many, as shards of at most so many bytes and an
 * index.
 *     example_shards MODEL FOLDER BYTES */
#include <safetensors_set.h>
#include <stdio.h>
#include <stdlib.h>

static sft_code save(const sft_part *parts, size_t count, uint64_t most, const char *folder,
                     sft_error *err) {
    uint32_t shards = 0, *shard_of = calloc(count + 1, sizeof *shard_of);
    if (!shard_of) return sft_error_set(err, SFT_OUT_OF_MEMORY, 0, "no memory for the shards");
    sft_code code = sft_cut_parts(parts, count, most, shard_of, &shards, err);
    if (!code)
        code = sft_save_set(folder, parts, shard_of, count, shards, NULL, 0, NULL, NULL, err);
    free(shard_of);
    if (!code) printf("%zu tensors in %u shards\n", count, (unsigned)shards);
    return code;
}

/* Each tensor becomes a part that copies it from the file it is in. */
static sft_code divide(const sft_set *set, uint64_t most, const char *folder, sft_error *err) {
    size_t files = sft_set_shard_count(set), count = sft_set_tensor_count(set);
    sft_source *sources = calloc(files + 1, sizeof *sources);
    sft_part *parts = calloc(count + 1, sizeof *parts);
    sft_code code;
    if (!sources || !parts) {
        code = sft_error_set(err, SFT_OUT_OF_MEMORY, 0, "no memory for the tensors");
    } else {
        for (size_t i = 0; i < files; i++) sources[i] = sft_file_source(sft_set_shard_at(set, i));
        for (size_t i = 0; i < count; i++)
            parts[i] = sft_part_of(sft_set_tensor_at(set, i),
                                   &sources[sft_set_tensor_shard(set, i)]);
        code = save(parts, count, most, folder, err);
    }
    free(parts);
    free(sources); /* borrowed from the files: nothing to close */
    return code;
}

int main(int argc, char **argv) {
    sft_set *set;
    sft_error err = SFT_ERROR_INIT;
    if (argc != 4) return 2;
    uint64_t most = strtoull(argv[3], NULL, 10);
    const char *path = argv[1];
    sft_code code = sft_set_open(path, NULL, &set, &err);
    if (!code) {
        path = argv[2];
        code = divide(set, most, path, &err);
        sft_set_close(set);
    }
    if (code) {
        char text[1024];
        sft_error_text(&err, path, text, sizeof text);
        fprintf(stderr, "%s\n", text);
    }
    return code != SFT_OK;
}
