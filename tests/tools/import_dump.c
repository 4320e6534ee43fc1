/* Imports files of other formats, for the test scripts. Reads lines "OPTIONS\tINPUT[\tOUTPUT]"
 * from standard input; OPTIONS are words with commas between them, or "-":
 *   all skip scalars  root=PATH shared=copy|refuse  quantised=parts|values  sparse=parts|values
 *   max=BYTES  prefix=TEXT
 * Writes one line of JSON for each: the report, {"error":CODE,"message":…,"offset":N} of what
 * failed, with "hint"; the tensors are written to OUTPUT as a safetensors file. */
#include "safetensors_import.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void die(const char *why) {
    fprintf(stderr, "import_dump: %s\n", why);
    exit(2);
}

static sft_import_special special(const char *word) {
    return strcmp(word, "parts") == 0 ? SFT_IMPORT_SPECIAL_PARTS : SFT_IMPORT_SPECIAL_VALUES;
}

static void take_option(sft_import_options *options, char *word) {
    char *value = strchr(word, '=');
    if (value) *value++ = '\0';
    if (strcmp(word, "all") == 0) options->all = true;
    else if (strcmp(word, "skip") == 0) options->skip = true;
    else if (strcmp(word, "scalars") == 0) options->scalars = true;
    else if (!value) die(word);
    else if (strcmp(word, "root") == 0) options->root = value;
    else if (strcmp(word, "prefix") == 0) options->strip_prefix = value;
    else if (strcmp(word, "shared") == 0)
        options->shared = strcmp(value, "copy") == 0 ? SFT_IMPORT_COPY : SFT_IMPORT_REFUSE;
    else if (strcmp(word, "quantised") == 0) options->quantised = special(value);
    else if (strcmp(word, "sparse") == 0) options->sparse = special(value);
    else if (strcmp(word, "max") == 0) options->max_output = strtoull(value, NULL, 10);
    else die(word);
}

static void put_error(const sft_error *err) {
    printf("{\"error\":\"%s\",\"offset\":%" PRIu64 ",\"hint\":%d,\"message\":\"",
           sft_code_describe(err->code)->name, err->offset, (int)err->hint);
    for (const char *c = err->message; *c; c++) printf(*c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
    printf("\"}\n");
}

static sft_code one_file(const sft_import_options *options, const char *input,
                         const char *output, sft_error *err) {
    sft_import *import;
    sft_sink sink;
    sft_buffer report = { 0 };
    sft_code code = sft_import_open(input, options, &import, err);
    if (code) return code;
    if (output) code = sft_sink_path(output, NULL, &sink, err);
    if (!code && output) code = sft_import_save(import, sink, NULL, NULL, err);
    if (!code) {
        sft_sink text = sft_sink_memory(&report);
        code = sft_import_json(import, input, &text, err);
    }
    if (!code) fwrite(report.data, 1, report.len, stdout);
    if (!code) fputc('\n', stdout);
    sft_buffer_free(&report);
    sft_import_close(import);
    return code;
}

int main(void) {
    static char line[8192];
    while (fgets(line, sizeof line, stdin)) {
        sft_import_options options = SFT_IMPORT_OPTIONS_INIT;
        sft_error err = SFT_ERROR_INIT;
        line[strcspn(line, "\n")] = '\0';
        char *input = strchr(line, '\t');
        if (!input) die("expected OPTIONS, a tab and INPUT");
        *input++ = '\0';
        char *output = strchr(input, '\t');
        if (output) *output++ = '\0';
        for (char *word = line, *end; word && strcmp(word, "-") != 0; word = end) {
            end = strchr(word, ',');
            if (end) *end++ = '\0';
            take_option(&options, word);
        }
        if (one_file(&options, input, output, &err)) put_error(&err);
        fflush(stdout);
    }
    return 0;
}
