/* Looking at a file must agree with opening it: same verdict, or the name of what the file
 * really is; and every finding, note and entry must lie inside the file. */
#include "fuzz.h"
#include "safetensors_scan.h"

#include <string.h>

static void check_error(const sft_error *error, size_t size) {
    FUZZ_CHECK(error->offset == SFT_NO_OFFSET || error->offset <= size);
    FUZZ_CHECK(memchr(error->message, 0, sizeof error->message));
    FUZZ_CHECK(error->tensor_len == SFT_NO_TENSOR || error->tensor_len <= sizeof error->tensor);
}

static void check_span(sft_span span, const char *begin, const char *end) {
    FUZZ_CHECK(!span.len || (span.data >= begin && span.data + span.len <= end));
}

static void walk_findings(const sft_scan *scan, size_t size) {
    for (size_t i = 0; i < sft_scan_finding_count(scan); i++) {
        const sft_error *error = &sft_scan_finding_at(scan, i)->error;
        FUZZ_CHECK(error->code && error->message[0]);
        check_error(error, size);
    }
    for (size_t i = 0; i < sft_scan_note_count(scan); i++) {
        const sft_note *note = sft_scan_note_at(scan, i);
        FUZZ_CHECK(note->name && !note->error.code);
        check_error(&note->error, size);
    }
    FUZZ_CHECK(!sft_scan_finding_at(scan, sft_scan_finding_count(scan)));
    FUZZ_CHECK(!sft_scan_note_at(scan, sft_scan_note_count(scan)));
}

static void walk_entries(const sft_scan *scan, const uint8_t *data, size_t size) {
    for (size_t i = 0; i < sft_scan_entry_count(scan); i++) {
        const sft_scan_entry one = sft_scan_entry_at(scan, i), *e = &one;
        FUZZ_CHECK(e->name_begin >= 8 && e->name_begin < e->value_begin);
        FUZZ_CHECK(e->value_begin <= e->value_end && e->value_end <= size);
        FUZZ_CHECK(!memcmp(data + e->name_begin, e->name.data, e->name.len));
        check_span(e->dtype, e->name.data, e->name.data + (e->value_end - e->name_begin));
        check_span(e->shape, e->name.data, e->name.data + (e->value_end - e->name_begin));
        check_span(e->offsets, e->name.data, e->name.data + (e->value_end - e->name_begin));
    }
    FUZZ_CHECK(!sft_scan_entry_at(scan, sft_scan_entry_count(scan)).name.data);
}

static void agree(const sft_scan *scan, sft_code opened) {
    const sft_error *error = sft_scan_error(scan);
    FUZZ_CHECK(!error == !opened);
    if (!error) {
        FUZZ_CHECK(sft_scan_finding_count(scan) == 0);
        return;
    }
    bool refined = sft_code_describe(error->code)->cls == SFT_CLASS_UNSUPPORTED;
    FUZZ_CHECK(error->code == opened || refined);
    FUZZ_CHECK(sft_scan_finding_count(scan) > 0 && sft_scan_finding_count(scan) <= 1000);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    for (int i = 0; i < 6; i++) {
        sft_open_options options = SFT_OPEN_OPTIONS_INIT;
        options.level = (sft_level)(i / 2);
        options.legacy = i % 2;
        sft_file *file;
        sft_scan *scan;
        sft_code opened = sft_open_memory(data, size, &options, &file, NULL);
        sft_close(file);
        FUZZ_CHECK(!sft_scan_open_source(sft_source_memory(data, size), &options, &scan, NULL));
        agree(scan, opened);
        walk_findings(scan, size);
        walk_entries(scan, data, size);
        sft_scan_close(scan);
    }
    return 0;
}
