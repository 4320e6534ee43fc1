/* A file of a URL, as the library reads it: tests/remote drives it.
 *
 *   remote_read [-l] [-v] [-a] [-w] [-n CONNECTIONS] URL [BEGIN END]...
 *
 * Without ranges one line with the SHA-256 of all bytes and their number; else such a line for
 * each range. -l lists a folder instead. -v: each exchange on standard error. -a: anonymous.
 * -w: once the file is open, say "open" and wait for a line on standard input. The environment is
 * this process's own. What fails: exit status 1, and on standard error a line
 * "CODE: message" and one with the hint, if there is one. */
#include "safetensors_hash.h"
#include "safetensors_io.h"
#include "safetensors_remote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIECE ((size_t)8 << 20)

static sft_code say_range(const sft_source *source, uint64_t begin, uint64_t end,
                          sft_error *err) {
    sft_hasher *hasher = NULL;
    sft_hashes sums;
    char *piece = malloc(PIECE);
    sft_code code = sft_hasher_new(SFT_HASH_BIT(SFT_HASH_SHA256), NULL, &hasher, err);
    uint64_t at = begin;
    while (!code && at < end) {
        size_t len = end - at < PIECE ? (size_t)(end - at) : PIECE;
        size_t got = 0;
        code = sft_source_read(source, at, piece, len, &got, err);
        if (!code) sft_hasher_update(hasher, piece, got);
        at += got;
        if (got < len) break;
    }
    if (!code) {
        sft_hasher_result(hasher, &sums);
        printf("%s %llu\n", sft_hashes_get(&sums, SFT_HASH_SHA256),
               (unsigned long long)(at - begin));
    }
    sft_hasher_free(hasher);
    free(piece);
    return code;
}

static bool say_entry(void *ctx, const sft_listed *entry) {
    (void)ctx;
    if (entry->folder) printf("%s/\n", entry->name);
    else printf("%s %llu\n", entry->name, (unsigned long long)entry->bytes);
    return true;
}

static void say_exchange(void *ctx, const sft_exchange *exchange) {
    (void)ctx;
    fprintf(stderr, "%s %s %llu-%llu -> %d, %llu bytes, attempt %u\n", exchange->method,
            exchange->url, (unsigned long long)exchange->begin, (unsigned long long)exchange->end,
            exchange->status, (unsigned long long)exchange->bytes, exchange->attempt);
}

static const char *variable(void *ctx, const char *name) {
    (void)ctx;
    return getenv(name);
}

static bool waits; /* -w */

static void wait_for_line(void) {
    puts("open");
    fflush(stdout);
    while (getchar() != '\n' && !feof(stdin)) continue;
}

static sft_code read_file(const sft_files *files, const char *name, char **ranges, int count,
                          sft_error *err) {
    sft_open_options how = SFT_OPEN_OPTIONS_INIT;
    sft_source source;
    how.files = files;
    sft_code code = sft_source_path(name, &how, &source, err);
    if (code) return code;
    if (waits) wait_for_line();
    if (count == 0) code = say_range(&source, 0, source.size, err);
    for (int i = 0; !code && i + 1 < count; i += 2)
        code = say_range(&source, strtoull(ranges[i], NULL, 10), strtoull(ranges[i + 1], NULL, 10),
                         err);
    sft_source_close(&source);
    return code;
}

int main(int argc, char **argv) {
    sft_remote_options options = SFT_REMOTE_OPTIONS_INIT;
    sft_remote *remote = NULL;
    sft_error err = { 0 };
    const char *name;
    bool list = false;
    int at = 1;
    options.environment = variable;
    for (; at < argc && argv[at][0] == '-'; at++) {
        if (strcmp(argv[at], "-l") == 0) list = true;
        else if (strcmp(argv[at], "-v") == 0) options.on_exchange = say_exchange;
        else if (strcmp(argv[at], "-a") == 0) options.anonymous = true;
        else if (strcmp(argv[at], "-w") == 0) waits = true;
        else if (strcmp(argv[at], "-n") == 0 && at + 1 < argc)
            options.connections = (uint32_t)strtoul(argv[++at], NULL, 10);
        else return 2;
    }
    if (at == argc) return 2;
    sft_code code = sft_remote_open(&options, &remote, &err);
    if (!code) code = sft_remote_name(remote, argv[at], &name, &err);
    if (!code) {
        const sft_files *files = sft_remote_files(remote);
        code = list ? files->vtable->list(files->ctx, name, say_entry, NULL, &err)
                    : read_file(files, name, argv + at + 1, argc - at - 1, &err);
    }
    if (code) {
        const char *hint = sft_hint_text(err.hint);
        fprintf(stderr, "%s: %s\n%s%s", sft_code_describe(code)->name, err.message,
                hint ? hint : "", hint ? "\n" : "");
    }
    if (remote) sft_remote_close(remote);
    return code ? 1 : 0;
}
