/* Prints what the library makes of many small files, one line each: the driver of the
 * corpus, differential and mutation tests. Uses the public header only.
 *
 *   verdict [--level compat|default|strict|all] [--legacy] [--scan] [--mode-check] <records
 *   verdict --codes        the error table
 *   verdict [--level L] --set PATH...   per path and level: code, or ok and the names
 *
 * A record is a length (32 bits, little-endian) and that many bytes. For each record and
 * level one line comes out:
 *   ok [[["name","I32",[2],0,8],...],{"key":"value",...}|null]
 *   data_truncated
 * tensors in offset order. With --scan a second line per record and level:
 *   scan CODE|ok FINDING,...|- NOTE,...|-
 * With --mode-check every record is also opened as a source without a base, as one of
 * unknown length, header-only, and scanned; a line "differs ..." on stderr and exit 3 follow
 * when they do not agree.
 */
#include "safetensors.h"
#include "safetensors_scan.h"
#include "safetensors_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct verdict_text {
    char *data;
    size_t len, cap;
} verdict_text;

typedef struct verdict_run {
    sft_open_options options;
    unsigned levels; /* bit per level */
    bool scan, mode_check;
    unsigned long long record, differences;
} verdict_run;

static void die(const char *why) {
    fprintf(stderr, "verdict: %s\n", why);
    exit(2);
}

static void put(verdict_text *text, const char *bytes, size_t len) {
    if (text->cap - text->len < len) {
        size_t cap = (text->len + len) * 2 + 256;
        char *data = realloc(text->data, cap);
        if (!data) die("out of memory");
        text->data = data;
        text->cap = cap;
    }
    memcpy(text->data + text->len, bytes, len);
    text->len += len;
}

static void put_cstr(verdict_text *text, const char *string) {
    put(text, string, strlen(string));
}

static void put_number(verdict_text *text, uint64_t value) {
    char digits[20];
    size_t at = sizeof digits;
    do digits[--at] = (char)('0' + value % 10);
    while ((value /= 10) > 0);
    put(text, digits + at, sizeof digits - at);
}

static void put_json(verdict_text *text, sft_span span) {
    put_cstr(text, "\"");
    for (size_t i = 0; i < span.len; i++) {
        unsigned char c = (unsigned char)span.data[i];
        char escape[8];
        if (c == '"' || c == '\\' || c < 0x20) {
            snprintf(escape, sizeof escape, "\\u%04x", c);
            put_cstr(text, escape);
        } else put(text, &span.data[i], 1);
    }
    put_cstr(text, "\"");
}

/* ── The canonical line ── */

static void put_tensor(verdict_text *text, const sft_tensor *tensor) {
    put_cstr(text, "[");
    put_json(text, tensor->name);
    put_cstr(text, ",\"");
    put_cstr(text, sft_dtype_describe(tensor->dtype)->name);
    put_cstr(text, "\",[");
    for (uint32_t d = 0; d < tensor->rank; d++) {
        if (d > 0) put_cstr(text, ",");
        put_number(text, tensor->shape[d]);
    }
    put_cstr(text, "],");
    put_number(text, tensor->begin);
    put_cstr(text, ",");
    put_number(text, tensor->end);
    put_cstr(text, "]");
}

static void put_metadata(verdict_text *text, const sft_file *file) {
    if (!sft_file_has_metadata(file)) {
        put_cstr(text, "null");
        return;
    }
    put_cstr(text, "{");
    for (size_t i = 0; i < sft_file_metadata_count(file); i++) {
        sft_pair pair = sft_file_metadata_at(file, i);
        if (i > 0) put_cstr(text, ",");
        put_json(text, pair.key);
        put_cstr(text, ":");
        put_json(text, pair.value);
    }
    put_cstr(text, "}");
}

static void check_lookups(verdict_run *run, const sft_file *file) {
    for (size_t i = 0; i < sft_file_tensor_count(file); i++) {
        const sft_tensor *tensor = sft_file_tensor_at(file, i);
        if (sft_file_find(file, tensor->name) == tensor &&
            tensor->offset == sft_file_data_offset(file) + tensor->begin)
            continue;
        fprintf(stderr, "differs: record %llu: tensor %zu is not found\n", run->record, i);
        run->differences++;
    }
    for (size_t i = 0; i < sft_file_metadata_count(file); i++) {
        sft_pair pair = sft_file_metadata_at(file, i);
        sft_span value;
        if (sft_file_metadata_get(file, pair.key, &value) && sft_span_equal(value, pair.value))
            continue;
        fprintf(stderr, "differs: record %llu: pair %zu is not found\n", run->record, i);
        run->differences++;
    }
}

static void put_file(verdict_run *run, verdict_text *text, sft_code code, sft_file *file) {
    if (code != SFT_OK) {
        put_cstr(text, sft_code_describe(code)->name);
        if (file) die("a failed open gave a file");
        return;
    }
    put_cstr(text, "ok [[");
    for (size_t i = 0; i < sft_file_tensor_count(file); i++) {
        if (i > 0) put_cstr(text, ",");
        put_tensor(text, sft_file_tensor_at(file, i));
    }
    put_cstr(text, "],");
    put_metadata(text, file);
    put_cstr(text, "]");
    if (run->mode_check) check_lookups(run, file);
    sft_close(file);
}

/* ── Ways to open the same bytes ── */

typedef struct verdict_bytes {
    const uint8_t *data;
    size_t len;
} verdict_bytes;

static sft_code read_bytes(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                           sft_error *err) {
    const verdict_bytes *bytes = ctx;
    (void)err;
    *got = 0;
    if (offset >= bytes->len) return SFT_OK;
    *got = bytes->len - (size_t)offset < len ? bytes->len - (size_t)offset : len;
    memcpy(into, bytes->data + offset, *got);
    return SFT_OK;
}

static const sft_source_vtable bytes_source_vtable = {
    sizeof(sft_source_vtable), read_bytes, NULL, NULL, NULL
};

static sft_source bytes_source(verdict_bytes *bytes, bool known) {
    sft_source source = { bytes, &bytes_source_vtable, known ? bytes->len : SFT_SIZE_UNKNOWN,
                          NULL, false };
    return source;
}

static void open_memory(verdict_run *run, const verdict_bytes *bytes, verdict_text *text,
                        bool header_only) {
    sft_open_options options = run->options;
    sft_file *file = NULL;
    options.header_only = header_only;
    sft_code code = sft_open_memory(bytes->data, bytes->len, &options, &file, NULL);
    put_file(run, text, code, file);
}

static void open_source(verdict_run *run, verdict_bytes *bytes, verdict_text *text, bool known) {
    sft_file *file = NULL;
    sft_error error = SFT_ERROR_INIT;
    sft_code code = sft_open_source(bytes_source(bytes, known), &run->options, &file, &error);
    if (code != SFT_OK && (error.code != code || error.message[0] == '\0'))
        die("an error without code or message");
    put_file(run, text, code, file);
}

/* ── Scan ── */

static void put_codes(verdict_text *text, const sft_scan *scan) {
    for (size_t i = 0; i < sft_scan_finding_count(scan); i++) {
        if (i > 0) put_cstr(text, ",");
        put_cstr(text, sft_code_describe(sft_scan_finding_at(scan, i)->error.code)->name);
    }
    if (sft_scan_finding_count(scan) == 0) put_cstr(text, "-");
    put_cstr(text, " ");
    for (size_t i = 0; i < sft_scan_note_count(scan); i++) {
        if (i > 0) put_cstr(text, ",");
        put_cstr(text, sft_scan_note_at(scan, i)->name);
    }
    if (sft_scan_note_count(scan) == 0) put_cstr(text, "-");
}

/* The scan's verdict as a code; its line into text, if any. */
static sft_code scan_bytes(const verdict_run *run, const verdict_bytes *bytes,
                           verdict_text *text) {
    sft_scan *scan = NULL;
    sft_source source = sft_source_memory(bytes->data, bytes->len);
    if (sft_scan_open_source(source, &run->options, &scan, NULL) != SFT_OK) die("scan failed");
    const sft_error *error = sft_scan_error(scan);
    sft_code code = error ? error->code : SFT_OK;
    if (text) {
        put_cstr(text, "scan ");
        put_cstr(text, sft_code_describe(code)->name);
        put_cstr(text, " ");
        put_codes(text, scan);
    }
    if ((code != SFT_OK) != (sft_scan_finding_count(scan) > 0)) code = SFT_BAD_ARGUMENT;
    sft_scan_close(scan);
    return code;
}

/* ── Agreement ── */

static bool text_is(const verdict_text *text, const char *string) {
    size_t len = strlen(string);
    return text->len == len && memcmp(text->data, string, len) == 0;
}

static int shown(const verdict_text *text) {
    return text->len < 200 ? (int)text->len : 200;
}

static void demand(verdict_run *run, bool agree, const char *what, const verdict_text *first,
                   const verdict_text *second) {
    if (agree) return;
    run->differences++;
    fprintf(stderr, "differs: record %llu, level %d, %s: \"%.*s\" but \"%.*s\"\n", run->record,
            (int)run->options.level, what, shown(first), first->data, shown(second),
            second->data);
}

static bool same_text(const verdict_text *a, const verdict_text *b) {
    return a->len == b->len && memcmp(a->data, b->data, a->len) == 0;
}

/* Without the data's length the two rules of coverage fall away, and no other. */
static bool same_but_coverage(const verdict_text *whole, const verdict_text *part) {
    if (text_is(whole, "data_truncated") || text_is(whole, "data_trailing"))
        return part->len > 3 && memcmp(part->data, "ok ", 3) == 0;
    return same_text(whole, part);
}

/* What a file is instead is not looked for where the bytes may be gone, as in a pipe: the length of
 * the header, or of the file, is what is wrong. */
static bool same_if_gone(const verdict_text *whole, const verdict_text *part) {
    if (whole->len > 6 && memcmp(whole->data, "found_", 6) == 0)
        return text_is(part, "header_too_large") || text_is(part, "header_truncated") ||
               text_is(part, "header_too_small");
    return same_but_coverage(whole, part);
}

static bool scan_agrees(const verdict_text *opened, sft_code code) {
    const char *name = sft_code_describe(code)->name;
    bool ok = opened->len > 3 && memcmp(opened->data, "ok ", 3) == 0;
    if (ok) return code == SFT_OK;
    return text_is(opened, name) || (code >= SFT_FOUND_GIT_LFS && code <= SFT_FOUND_INDEX);
}

static void check_modes(verdict_run *run, verdict_bytes *bytes, const verdict_text *first,
                        verdict_text *other) {
    other->len = 0;
    open_source(run, bytes, other, true);
    demand(run, same_text(first, other), "memory, source", first, other);
    other->len = 0;
    open_source(run, bytes, other, false);
    demand(run, same_if_gone(first, other), "memory, unknown length", first, other);
    other->len = 0;
    open_memory(run, bytes, other, true);
    demand(run, same_but_coverage(first, other), "memory, header only", first, other);
    sft_code code = scan_bytes(run, bytes, NULL);
    other->len = 0;
    put_cstr(other, sft_code_describe(code)->name);
    demand(run, scan_agrees(first, code), "memory, scan", first, other);
}

/* ── Records ── */

static void one_record(verdict_run *run, verdict_bytes *bytes, verdict_text *first,
                       verdict_text *other) {
    for (unsigned level = 0; level < 3; level++) {
        if (!(run->levels >> level & 1)) continue;
        run->options.level = (sft_level)level;
        first->len = 0;
        open_memory(run, bytes, first, false);
        if (run->mode_check) check_modes(run, bytes, first, other);
        if (run->scan) {
            put_cstr(first, "\n");
            (void)scan_bytes(run, bytes, first);
        }
        put_cstr(first, "\n");
        fwrite(first->data, 1, first->len, stdout);
    }
}

static void all_records(verdict_run *run) {
    verdict_text first = { 0 }, other = { 0 };
    uint8_t *data = NULL;
    size_t cap = 0;
    uint8_t prefix[4];
    while (fread(prefix, 1, 4, stdin) == 4) {
        size_t len = prefix[0] | (size_t)prefix[1] << 8 | (size_t)prefix[2] << 16 |
                     (size_t)prefix[3] << 24;
        if (len > cap || !data) {
            cap = len + 4096;
            free(data);
            if (!(data = malloc(cap))) die("out of memory");
        }
        if (fread(data, 1, len, stdin) != len) die("a record is cut short");
        /* at the end of the block, where a sanitizer sees a read past it */
        verdict_bytes bytes = { memmove(data + cap - len, data, len), len };
        one_record(run, &bytes, &first, &other);
        run->record++;
    }
    free(data);
    free(first.data);
    free(other.data);
}

static void one_set(verdict_run *run, const char *path) {
    verdict_text text = { 0 };
    for (unsigned level = 0; level < 3; level++) {
        if (!(run->levels >> level & 1)) continue;
        sft_set_options options = SFT_SET_OPTIONS_INIT;
        sft_open_options open = SFT_OPEN_OPTIONS_INIT;
        sft_set *set = NULL;
        options.open = &open;
        open.level = (sft_level)level;
        sft_code code = sft_set_open(path, &options, &set, NULL);
        text.len = 0;
        put_cstr(&text, sft_code_describe(code)->name);
        for (size_t i = 0; set && i < sft_set_tensor_count(set); i++) {
            put_cstr(&text, i == 0 ? " [" : ",");
            put_json(&text, sft_set_tensor_at(set, i)->name);
        }
        put_cstr(&text, set && sft_set_tensor_count(set) > 0 ? "]\n" : "\n");
        fwrite(text.data, 1, text.len, stdout);
        sft_set_close(set);
    }
    free(text.data);
}

static void all_codes(void) {
    const sft_code_info *row;
    for (size_t i = 0; (row = sft_code_at(i)) != NULL; i++)
        printf("%d\t%s\t%d\t%s\t%d\t%s\t%d\n", (int)row->code, row->name, (int)row->cls,
               row->rule ? row->rule : "-", (int)row->level, row->sentence, (int)row->hint);
}

static unsigned level_bits(const char *name) {
    static const char *const names[] = { "compat", "default", "strict" };
    for (unsigned i = 0; i < 3; i++)
        if (strcmp(name, names[i]) == 0) return 1u << i;
    if (strcmp(name, "all") == 0) return 7;
    die("expected --level compat, default, strict or all");
    return 0;
}

int main(int argc, char **argv) {
    verdict_run run = { .options = SFT_OPEN_OPTIONS_INIT, .levels = 7 };
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--level") == 0 && i + 1 < argc) run.levels = level_bits(argv[++i]);
        else if (strcmp(argv[i], "--legacy") == 0) run.options.legacy = true;
        else if (strcmp(argv[i], "--scan") == 0) run.scan = true;
        else if (strcmp(argv[i], "--mode-check") == 0) run.mode_check = true;
        else if (strcmp(argv[i], "--codes") == 0) {
            all_codes();
            return 0;
        } else if (strcmp(argv[i], "--set") == 0) {
            while (++i < argc) one_set(&run, argv[i]);
            return 0;
        } else die("unknown option");
    }
    all_records(&run);
    if (fflush(stdout) != 0) die("cannot write");
    return run.differences > 0 ? 3 : 0;
}
