/* What a small program needs of the library: opens, checks and lists a file; with PART_HASH hashes
 * it, with PART_LABEL says what it is, too. For tests/parts.py. */
#include <safetensors.h>
#ifdef PART_HASH
#include <safetensors_hash.h>
#endif
#ifdef PART_LABEL
#include <safetensors_info.h>
#endif
#ifndef SFT_EXPERIMENTAL_SCAN /* which the two-file form has in safetensors.h */
#include <safetensors_scan.h>
#endif
#include <stdio.h>

static int fail(const sft_error *err) {
    printf("%s\n", sft_code_describe(err->code)->name);
    return 1;
}

int main(int argc, char **argv) {
    sft_error err = SFT_ERROR_INIT;
    sft_file *file;
    sft_scan *scan;
    if (argc < 2 || sft_scan_open(argv[1], NULL, &scan, &err)) return fail(&err);
    const sft_error *wrong = sft_scan_error(scan);
    printf("%s\n", wrong ? sft_code_describe(wrong->code)->name : "valid");
    sft_scan_close(scan);
    if (sft_open(argv[1], NULL, &file, &err)) return fail(&err);
    for (size_t i = 0; i < sft_file_tensor_count(file); i++) {
        const sft_tensor *tensor = sft_file_tensor_at(file, i);
        printf("%.*s\n", (int)tensor->name.len, tensor->name.data);
    }
    sft_close(file);
#ifdef PART_HASH
    sft_hashes hashes;
    if (sft_hash_path(argv[1], SFT_HASH_ALL, NULL, &hashes, NULL, &err)) return fail(&err);
    printf("%s\n", sft_hashes_get(&hashes, SFT_HASH_SHA256));
#endif
#ifdef PART_LABEL
    sft_buffer text = { 0 };
    sft_sink sink = sft_sink_memory(&text);
    sft_set *set;
    sft_info *info;
    if (sft_set_open(argv[1], NULL, &set, &err)) return fail(&err);
    if (sft_info_open(set, argv[1], NULL, NULL, &info, &err)) return fail(&err);
    if (sft_info_json(info, argv[1], false, &sink, &err)) return fail(&err);
    printf("%zu\n", text.len);
    sft_info_close(info);
    sft_set_close(set);
    sft_buffer_free(&text);
#endif
    return 0;
}
