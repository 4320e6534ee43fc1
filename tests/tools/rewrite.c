/* Reads files and writes them anew from their parts, for tests/python/roundtrip.py.
 * A line of standard input: IN, a tab, OUT. A line of standard output for each: "ok" or the
 * code's name. */
#include "safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static sft_code write_parts(const sft_file *file, const char *path, sft_error *err) {
    sft_plan_options plan = SFT_PLAN_OPTIONS_INIT;
    sft_path_options options = SFT_PATH_OPTIONS_INIT;
    size_t count = sft_file_count(file), pairs = sft_file_metadata_count(file);
    sft_part *parts = calloc(count + 1, sizeof *parts);
    sft_pair *metadata = calloc(pairs + 1, sizeof *metadata);
    sft_source source = sft_file_source(file);
    sft_sink sink;
    if (!parts || !metadata) abort();
    for (size_t i = 0; i < count; i++)
        parts[i] = sft_part_of(sft_file_tensor(file, count - 1 - i), &source);
    for (size_t i = 0; i < pairs; i++) metadata[i] = sft_file_metadata_at(file, pairs - 1 - i);
    plan.has_metadata = sft_file_has_metadata(file);
    options.no_sync = true;
    sft_code code = sft_sink_path(path, &options, &sink, err);
    if (!code) code = sft_save_parts(parts, count, metadata, pairs, &plan, sink, NULL, err);
    free(parts);
    free(metadata);
    return code;
}

static sft_code rewrite(const char *from, const char *to, sft_error *err) {
    sft_file *file;
    sft_code code = sft_open(from, NULL, &file, err);
    if (!code) code = write_parts(file, to, err);
    sft_close(file);
    return code;
}

int main(void) {
    static char line[16384];
    while (fgets(line, sizeof line, stdin)) {
        sft_error err = SFT_ERROR_INIT;
        line[strcspn(line, "\n")] = '\0';
        char *tab = strchr(line, '\t');
        if (!tab) return 2;
        *tab = '\0';
        sft_code code = rewrite(line, tab + 1, &err);
        printf("%s\n", code ? sft_code_describe(code)->name : "ok");
        if (code) fprintf(stderr, "%s: %s\n", line, err.message);
    }
    return 0;
}
