/* Scans: the verdict is the one of opening, every finding is there, notes are right. */
#define _GNU_SOURCE
#include "file/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/make_file.h"
#include "unit/temp_dir.h"

#define ENTRY(name, dtype, shape, begin, end)                                                  \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":[" shape "],\"data_offsets\":[" begin ","   \
    end "]}"

static sft_scan *scan_at(const void *bytes, size_t len, sft_level level) {
    sft_open_options o = SFT_OPEN_OPTIONS_INIT;
    sft_scan *scan = NULL;
    o.level = level;
    sft_source source = sft_source_memory(bytes, len);
    assert_int_equal(sft_scan_open_source(source, &o, &scan, NULL), SFT_OK);
    assert_int_equal(sft_scan_level(scan), level);
    return scan;
}

static sft_scan *scan_of(const test_file *f) {
    return scan_at(f->bytes, f->len, SFT_LEVEL_DEFAULT);
}

static const sft_note *note_named(const sft_scan *scan, const char *name) {
    for (size_t i = 0; i < sft_scan_note_count(scan); i++)
        if (strcmp(sft_scan_note_at(scan, i)->name, name) == 0) return sft_scan_note_at(scan, i);
    return NULL;
}

static void a_good_file(void **state) {
    (void)state;
    static const char head[] = "{" ENTRY("a", "U8", "2,1", "0", "2") " }";
    assert_int_equal((sizeof head - 1) % 8, 0);
    test_file f = make_file(head, NULL, 2);
    sft_scan *scan = scan_of(&f);
    assert_null(sft_scan_error(scan));
    assert_int_equal(sft_scan_finding_count(scan), 0);
    assert_int_equal(sft_scan_note_count(scan), 0);
    assert_null(sft_scan_finding_at(scan, 0));
    assert_null(sft_scan_note_at(scan, 0));
    assert_int_equal(sft_scan_entry_count(scan), 1);
    const sft_scan_entry first = sft_scan_entry_at(scan, 0), *e = &first;
    assert_int_equal(e->name.len, 3);
    assert_memory_equal(e->name.data, "\"a\"", 3);
    assert_memory_equal(e->dtype.data, "\"U8\"", 4);
    assert_int_equal(e->shape.len, 5);
    assert_memory_equal(e->shape.data, "[2,1]", 5);
    assert_memory_equal(e->offsets.data, "[0,2]", 5);
    assert_memory_equal(f.bytes + e->name_begin, "\"a\":{", 5);
    assert_int_equal(f.bytes[e->value_begin], '{');
    assert_int_equal(f.bytes[e->value_end - 1], '}');
    assert_null(sft_scan_entry_at(scan, 1).name.data);
    sft_scan_close(scan);
    sft_scan_close(NULL);
    free_file(&f);
}

/* Entries of another shape are errors; what they would say is told by its place. */
static void entries_as_lists(void **state) {
    (void)state;
    test_file f = make_file("{\"a\":[\"U8\",[2],[0,2]],\"b\":[\"U8\"],\"c\":[],\"d\":[7,{}",
                            NULL, 2);
    sft_scan *scan = scan_of(&f);
    assert_int_equal(sft_scan_error(scan)->code, SFT_ENTRY_NOT_OBJECT);
    const sft_scan_entry whole = sft_scan_entry_at(scan, 0), one = sft_scan_entry_at(scan, 1);
    assert_memory_equal(whole.dtype.data, "\"U8\"", 4);
    assert_memory_equal(whole.shape.data, "[2]", 3);
    assert_memory_equal(whole.offsets.data, "[0,2]", 5);
    assert_memory_equal(one.dtype.data, "\"U8\"", 4);
    assert_null(one.shape.data);
    assert_null(one.offsets.data);
    assert_null(sft_scan_entry_at(scan, 2).dtype.data);
    sft_scan_close(scan);
    free_file(&f);
}

static void every_finding(void **state) {
    (void)state;
    test_file f = make_file("{" ENTRY("a", "U9", "2", "0", "2") "," ENTRY("b", "U8", "3", "2", "4")
                            "," ENTRY("c", "U8", "-1", "4", "5") ",\"d\":7,"
                            ENTRY("b", "U8", "1", "4", "5") "}", NULL, 9);
    sft_scan *scan = scan_of(&f);
    static const sft_code want[] = { SFT_DTYPE_UNKNOWN, SFT_SHAPE_TYPE, SFT_ENTRY_TYPE,
                                     SFT_TENSOR_DUPLICATE };
    bool seen[4] = { false };
    uint64_t last = 0;
    for (size_t i = 0; i < sft_scan_finding_count(scan); i++) {
        const sft_error *e = &sft_scan_finding_at(scan, i)->error;
        for (size_t k = 0; k < 4; k++) seen[k] |= e->code == want[k];
        assert_true(e->offset >= last);
        last = e->offset;
    }
    for (size_t k = 0; k < 4; k++) assert_true(seen[k]);
    assert_int_equal(sft_scan_error(scan)->code, SFT_DTYPE_UNKNOWN);
    assert_int_equal(sft_scan_entry_count(scan), 5);
    sft_scan_close(scan);
    free_file(&f);
}

/* What a limit or an option forbids is told of each entry, and reading goes on. */
static void findings_of_limits(void **state) {
    (void)state;
    test_file f = make_file("{" ENTRY("long", "U8", "2", "0", "2") "," ENTRY("a", "float16", "1",
                            "2", "4") "," ENTRY("longer", "uint8", "1", "4", "5") "}", NULL, 5);
    static const struct {
        sft_code code;
        const char *tensor;
    } want[] = { { SFT_NAME_TOO_LONG, "long" }, { SFT_LEGACY_LAYOUT, "a" },
                 { SFT_NAME_TOO_LONG, "longer" }, { SFT_LEGACY_LAYOUT, "longer" } };
    sft_open_options o = SFT_OPEN_OPTIONS_INIT;
    sft_scan *scan;
    o.max_name_bytes = 3;
    assert_int_equal(sft_scan_open_source(sft_source_memory(f.bytes, f.len), &o, &scan, NULL),
                     SFT_OK);
    assert_int_equal(sft_scan_error(scan)->code, SFT_NAME_TOO_LONG);
    assert_int_equal(sft_scan_finding_count(scan), 4);
    for (size_t i = 0; i < 4; i++) {
        const sft_error *e = &sft_scan_finding_at(scan, i)->error;
        assert_int_equal(e->code, want[i].code);
        assert_string_equal(e->tensor, want[i].tensor);
    }
    assert_int_equal(sft_scan_entry_count(scan), 3);
    sft_scan_close(scan);
    free_file(&f);
}

/* Bytes of an entry that is refused are not told as a hole, nor as bytes after the last tensor;
 * what its neighbours say of themselves is told. */
static void bytes_of_refused_entries(void **state) {
    (void)state;
    static const struct {
        const char *entries;
        size_t data;
        sft_code also; /* besides SFT_DTYPE_UNKNOWN */
    } rows[] = {
        { ENTRY("a", "U9", "2", "0", "2") "," ENTRY("b", "U8", "2", "2", "4"), 4, SFT_OK },
        { ENTRY("b", "U8", "2", "0", "2") "," ENTRY("a", "U9", "2", "2", "4"), 4, SFT_OK },
        { ENTRY("b", "U8", "2", "0", "2") "," ENTRY("a", "U9", "2", "2", "4"), 1,
          SFT_DATA_TRUNCATED },
        { ENTRY("a", "U9", "2", "0", "2") "," ENTRY("b", "U8", "2", "3", "2"), 4,
          SFT_OFFSETS_REVERSED },
        { ENTRY("a", "U9", "2", "0", "2") "," ENTRY("b", "U8", "2", "2", "4") ","
          ENTRY("c", "U8", "2", "3", "5"), 5, SFT_OFFSETS_OVERLAP },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char header[256];
        (void)snprintf(header, sizeof header, "{%s}", rows[i].entries);
        test_file f = make_file(header, NULL, rows[i].data);
        sft_scan *scan = scan_of(&f);
        assert_int_equal(sft_scan_error(scan)->code, SFT_DTYPE_UNKNOWN);
        assert_int_equal(sft_scan_finding_count(scan), rows[i].also ? 2 : 1);
        assert_int_equal(sft_scan_finding_at(scan, 0)->error.code, SFT_DTYPE_UNKNOWN);
        if (rows[i].also)
            assert_int_equal(sft_scan_finding_at(scan, 1)->error.code, rows[i].also);
        sft_scan_close(scan);
        free_file(&f);
    }
}

/* A second __metadata__ is told, and what is wrong within it besides. */
static void second_metadata(void **state) {
    static const struct {
        const char *value, *message;
    } rows[] = { { "{}", NULL }, { "[1,{\"a\":2}]", NULL },
                 { "tru", "expected a JSON value, found tru" },
                 { "[1", "expected ',' or ']', found }" } };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char header[96];
        (void)snprintf(header, sizeof header, "{\"__metadata__\":{},\"__metadata__\":%s}",
                       rows[i].value);
        test_file f = make_file(header, NULL, 0);
        sft_scan *scan = scan_of(&f);
        assert_int_equal(sft_scan_finding_count(scan), rows[i].message ? 2 : 1);
        assert_int_equal(sft_scan_finding_at(scan, 0)->error.code, SFT_METADATA_DUPLICATE);
        if (rows[i].message)
            assert_string_equal(sft_scan_finding_at(scan, 1)->error.message, rows[i].message);
        sft_scan_close(scan);
        free_file(&f);
    }
}

static void findings_are_bounded(void **state) {
    (void)state;
    enum { COUNT = 3000 };
    char *header = malloc(COUNT * 16 + 4);
    size_t n = 0;
    header[n++] = '{';
    for (int i = 0; i < COUNT; i++)
        n += (size_t)snprintf(header + n, 16, "%s\"%d\":0", i ? "," : "", i);
    memcpy(header + n, "}", 2);
    test_file f = make_file(header, NULL, 0);
    sft_scan *scan = scan_of(&f);
    assert_int_equal(sft_scan_finding_count(scan), 1000);
    assert_int_equal(sft_scan_finding_at(scan, 999)->error.code, SFT_ENTRY_TYPE);
    assert_int_equal(sft_scan_entry_count(scan), COUNT);
    sft_scan_close(scan);
    free_file(&f);
    free(header);
}

/* Verdicts equal those of opening, for every cut and many flips of a file. */
static void expect_same_verdict(const void *bytes, size_t len, sft_level level) {
    sft_open_options o = SFT_OPEN_OPTIONS_INIT;
    sft_error err = SFT_ERROR_INIT;
    sft_source source = sft_source_memory(bytes, len);
    sft_file *file;
    o.level = level;
    sft_code code = sft_open_memory(bytes, len, &o, &file, &err);
    sft_scan *scan = scan_at(bytes, len, level);
    const sft_error *verdict = sft_scan_error(scan);
    assert_int_equal(verdict == NULL, code == SFT_OK);
    if (verdict) {
        sft_diagnose(&source, &err);
        assert_int_equal(verdict->code, err.code);
        assert_int_equal(verdict->offset, err.offset);
        assert_string_equal(verdict->message, err.message);
        assert_true(sft_scan_finding_count(scan) > 0);
        bool found = false;
        for (size_t i = 0; i < sft_scan_finding_count(scan); i++)
            found |= strcmp(sft_scan_finding_at(scan, i)->error.message, err.message) == 0;
        assert_true(found);
    } else {
        assert_int_equal(sft_scan_finding_count(scan), 0);
    }
    sft_scan_close(scan);
    sft_close(file);
}

static void verdicts_equal_opening(void **state) {
    (void)state;
    test_file f = make_file("{\"__metadata__\":{\"k\":\"v\"}," ENTRY("a", "F4", "2,2", "0", "2") ","
                            ENTRY("b", "U8", "1", "2", "3") "}", NULL, 3);
    for (sft_level level = SFT_LEVEL_COMPAT; level <= SFT_LEVEL_STRICT; level++) {
        for (size_t len = 0; len <= f.len; len++) expect_same_verdict(f.bytes, len, level);
        static const unsigned char puts[] = { 0, ' ', '"', '{', '}', '[', '9', '-', 0xFF, ',' };
        for (size_t at = 0; at < f.len; at++)
            for (size_t p = 0; p < sizeof puts; p++) {
                unsigned char old = f.bytes[at];
                f.bytes[at] = puts[p];
                expect_same_verdict(f.bytes, f.len, level);
                f.bytes[at] = old;
            }
    }
    free_file(&f);
}

static void conformance_verdicts(void **state) {
    (void)state;
    const char *shared = getenv("SFT_SHARED");
    char path[512];
    static char line[1 << 20];
    static unsigned char bytes[1 << 19];
    snprintf(path, sizeof path, "%s/conformance/headers.tsv", shared ? shared : "../shared");
    FILE *in = fopen(path, "r");
    if (!in) skip();
    size_t rows = 0;
    while (fgets(line, sizeof line, in)) {
        char *at = line[0] == '#' ? NULL : strchr(line, '\t');
        if (at) at = strchr(at + 1, '\t');
        if (!at) continue;
        size_t len = 0;
        unsigned byte;
        for (at++; sscanf(at, "%2x", &byte) == 1 && *at != '\t'; at += 2)
            bytes[len++] = (unsigned char)byte;
        for (sft_level level = SFT_LEVEL_COMPAT; level <= SFT_LEVEL_STRICT; level++)
            expect_same_verdict(bytes, len, level);
        rows++;
    }
    fclose(in);
    assert_true(rows > 100);
}

static void a_pipe_is_read_to_its_end(void **state) {
    (void)state;
    static const char *const heads[] = {
        "{" ENTRY("a", "U8", "200000", "0", "200000") "}",
        "{" ENTRY("a", "U8", "3", "0", "3") "}",
    };
    for (size_t h = 0; h < 2; h++)
        for (int extra = -1; extra <= 1; extra++) {
            size_t want = h ? 3 : 200000;
            test_file f = make_file(heads[h], NULL, (size_t)((int)want + extra));
            test_source s = make_source(&f);
            s.forward_only = true;
            sft_scan *scan;
            sft_source source = source_of(&s, SFT_SIZE_UNKNOWN);
            assert_int_equal(sft_scan_open_source(source, NULL, &scan, NULL), SFT_OK);
            const sft_error *e = sft_scan_error(scan);
            sft_code code = extra < 0 ? SFT_DATA_TRUNCATED : SFT_DATA_TRAILING;
            assert_int_equal(e ? e->code : SFT_OK, extra ? code : SFT_OK);
            assert_int_equal(s.closed, 1);
            if (extra < 0) assert_non_null(strstr(e->message, "cut short by 1 byte "));
            sft_scan_close(scan);
            free_file(&f);
        }
}

/* A header of exactly n bytes, padded with spaces, with `data` bytes of one tensor. */
static test_file file_with_length(size_t n, size_t data) {
    char entry[96], *header = malloc(n + 1);
    assert_non_null(header);
    int put = snprintf(entry, sizeof entry,
                       "{\"a\":{\"dtype\":\"U8\",\"shape\":[%zu],\"data_offsets\":[0,%zu]}}",
                       data, data);
    memset(header, ' ', n);
    memcpy(header, entry, (size_t)put);
    header[n] = '\0';
    test_file f = make_file(header, NULL, data);
    free(header);
    return f;
}

static void a_pipe_cut_in_its_header(void **state) {
    (void)state;
    test_file f = file_with_length(20000, 8);
    test_source s = make_source(&f);
    s.forward_only = true;
    s.ends_at = 10000;
    sft_scan *scan;
    assert_int_equal(sft_scan_open_source(source_of(&s, SFT_SIZE_UNKNOWN), NULL, &scan, NULL),
                     SFT_OK);
    assert_int_equal(sft_scan_error(scan)->code, SFT_HEADER_TRUNCATED);
    assert_string_equal(sft_scan_error(scan)->message,
                        "expected at least 20008 bytes, found 10000: the download is cut short "
                        "by at least 10008 bytes (50.0 %)");
    sft_scan_close(scan);
    free_file(&f);
}

static void other_formats_are_named(void **state) {
    (void)state;
    static const char page[] = "<!doctype html><title>PK\5\6</title>";
    sft_scan *scan = scan_at(page, sizeof page - 1, SFT_LEVEL_COMPAT);
    assert_int_equal(sft_scan_error(scan)->code, SFT_FOUND_HTML);
    assert_int_equal(sft_scan_finding_count(scan), 1);
    assert_int_equal(sft_scan_finding_at(scan, 0)->error.code, SFT_FOUND_HTML);
    assert_int_equal(sft_scan_note_count(scan), 0);
    sft_scan_close(scan);
    /* Pointers of Git LFS, with a size or with what is none; and blanks beyond a short header. */
    static const struct {
        const char *text, *words;
    } rows[] = {
        { "version https://git-lfs.github.com/spec/v1\nsize 1234", "model (1.2 KB elsewhere)" },
        { "version https://git-lfs.github.com/spec/v1\nsize 12x4", "model (12 bytes elsewhere)" },
        { "version https://git-lfs.github.com/spec/v1\nsize 99999999999999999999",
          "not the model" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        scan = scan_at(rows[i].text, strlen(rows[i].text), SFT_LEVEL_COMPAT);
        assert_int_equal(sft_scan_error(scan)->code, SFT_FOUND_GIT_LFS);
        if (!strstr(sft_scan_error(scan)->message, rows[i].words))
            fail_msg("row %zu: %s", i, sft_scan_error(scan)->message);
        sft_scan_close(scan);
    }
    scan = scan_at("\2\0\0\0\0\0\0\0   {}", 13, SFT_LEVEL_COMPAT);
    assert_int_equal(sft_scan_error(scan)->code, SFT_JSON_SYNTAX);
    sft_scan_close(scan);
    temp_write("page", page, sizeof page - 1);
    assert_int_equal(sft_scan_open(temp_path("page"), NULL, &scan, NULL), SFT_OK);
    assert_int_equal(sft_scan_error(scan)->code, SFT_FOUND_HTML);
    sft_scan_close(scan);
}

static void alignment_notes(void **state) {
    (void)state;
    test_file f = make_file("{" ENTRY("a", "U8", "1", "0", "1") "," ENTRY("z", "F64", "0", "1", "1")
                            "," ENTRY("b", "F32", "1", "1", "5") ","
                            ENTRY("c", "F64", "1", "5", "13") "   }", NULL, 13);
    sft_scan *scan = scan_of(&f);
    assert_null(sft_scan_error(scan));
    const sft_note *note = note_named(scan, "unaligned");
    assert_non_null(note);
    assert_int_equal(note->error.code, SFT_OK);
    assert_int_equal(note->error.tensor_len, 1);
    assert_int_equal(note->error.tensor[0], 'b');
    assert_int_equal(note->error.offset, f.data + 1);
    assert_non_null(strstr(note->error.message, "2 of 4 tensors"));
    assert_null(note_named(scan, "header_unpadded"));
    sft_scan_close(scan);
    free_file(&f);
    f = make_file("{}", NULL, 0);
    scan = scan_of(&f);
    assert_int_equal(sft_scan_note_count(scan), 1);
    note = note_named(scan, "header_unpadded");
    assert_non_null(note);
    assert_string_equal(note->error.message,
                        "expected a header length that is a multiple of 8, found 2");
    sft_scan_close(scan);
    free_file(&f);
}

static void unsorted_and_control(void **state) {
    (void)state;
    test_file f = make_file("{" ENTRY("b\\u0000", "U8", "1", "1", "2") ","
                            ENTRY("a", "U8", "1", "0", "1") "}", NULL, 2);
    sft_scan *scan = scan_of(&f);
    assert_null(sft_scan_error(scan));
    assert_non_null(note_named(scan, "unsorted"));
    assert_non_null(note_named(scan, "name_control"));
    sft_scan_close(scan);
    free_file(&f);
}

static void polyglots(void **state) {
    (void)state;
    static const struct {
        size_t n; /* header length: what its bytes look like */
        size_t at;
        const char *put;
        size_t len;
        const char *note;
        uint64_t offset;
    } rows[] = {
        { 96, 2000, "%PDF-1.4", 8, NULL, 0 },
        { 96, 1019, "%PDF-1.4", 8, "polyglot_pdf", 1019 },
        { 96, 1020, "%PDF-1.4", 8, NULL, 0 },
        { 96, 257, "ustar", 5, "polyglot_tar", 257 },
        { 96, 256, "ustar", 5, NULL, 0 },
        { 96, 69978, "PK\5\6\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 22, "polyglot_zip", 69978 },
        { 96, 69979, "PK\5\6\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 21, NULL, 0 },
        { 96, 69978, "PK\5\6\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0", 22, NULL, 0 },
        { 96, 69977, "PK\5\6\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0", 22, "polyglot_zip", 69977 },
        { 96, 4443, "PK\5\6\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 22, "polyglot_zip", 4443 },
        { 96, 4442, "PK\5\6\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 22, NULL, 0 },
        { 0x5A4D, 0, "", 0, "polyglot_magic", 0 },   /* MZ */
        { 0x088B1F, 0, "", 0, "polyglot_magic", 0 }, /* gzip */
        { 0x0280, 0, "", 0, NULL, 0 },               /* 640: no pickle goes on with NUL */
        { 0x010280, 0, "", 0, "polyglot_magic", 0 },
        { 0x9C78, 0, "", 0, NULL, 0 },
        { 0x019C78, 0, "", 0, "polyglot_magic", 0 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        test_file f = file_with_length(rows[i].n, 70000 - 96 - 8);
        memset(f.bytes + f.data, 0x11, f.len - f.data);
        memcpy(f.bytes + (rows[i].len ? rows[i].at : 0), rows[i].len ? rows[i].put
                                                                     : (char *)f.bytes,
               rows[i].len ? rows[i].len : 1);
        for (int pipe = 0; pipe < 2; pipe++) {
            test_source s = make_source(&f);
            sft_scan *scan;
            s.forward_only = pipe;
            sft_source source = source_of(&s, pipe ? SFT_SIZE_UNKNOWN : f.len);
            assert_int_equal(sft_scan_open_source(source, NULL, &scan, NULL), SFT_OK);
            assert_null(sft_scan_error(scan));
            size_t polyglot = 0;
            for (size_t k = 0; k < sft_scan_note_count(scan); k++)
                polyglot += strncmp(sft_scan_note_at(scan, k)->name, "polyglot", 8) == 0;
            if (polyglot != (rows[i].note != NULL))
                fail_msg("row %zu: %zu polyglot notes", i, polyglot);
            if (rows[i].note) {
                assert_non_null(note_named(scan, rows[i].note));
                assert_int_equal(note_named(scan, rows[i].note)->error.offset, rows[i].offset);
            }
            sft_scan_close(scan);
        }
        free_file(&f);
    }
}

static void bad_calls(void **state) {
    (void)state;
    sft_scan *scan = (sft_scan *)1;
    test_file f = make_file("{}", NULL, 0);
    test_source s = make_source(&f);
    sft_open_options o = SFT_OPEN_OPTIONS_INIT;
    sft_error err = SFT_ERROR_INIT;
    assert_int_equal(sft_scan_open(NULL, NULL, &scan, NULL), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_scan_open(temp_path("none"), NULL, &scan, NULL), SFT_NOT_FOUND);
    assert_null(scan);
    assert_int_equal(sft_scan_open_source(source_of(&s, f.len), NULL, NULL, NULL),
                     SFT_BAD_ARGUMENT);
    assert_int_equal(s.closed, 1);
    o.level = (sft_level)7;
    assert_int_equal(sft_scan_open_source(source_of(&s, f.len), &o, &scan, NULL), SFT_BAD_ARGUMENT);
    assert_int_equal(s.closed, 2);
    s.fail_at = 9;
    assert_int_equal(sft_scan_open_source(source_of(&s, f.len), NULL, &scan, &err), SFT_IO_READ);
    assert_string_equal(err.message, "the test says so");
    assert_int_equal(s.closed, 3);
    assert_int_equal(sft_scan_open_source(source_of(&s, f.len), NULL, &scan, NULL), SFT_IO_READ);
    assert_int_equal(sft_scan_open(temp_path("none"), NULL, NULL, NULL), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_scan_open(temp_path("none"), &o, &scan, NULL), SFT_BAD_ARGUMENT);
    sft_source mute = source_of(&s, f.len);
    static const sft_source_vtable no_reading = {
        sizeof no_reading, NULL, close_test_source, NULL, NULL
    };
    mute.vtable = &no_reading;
    assert_int_equal(sft_scan_open_source(mute, NULL, &scan, NULL), SFT_BAD_ARGUMENT);
    assert_int_equal(s.closed, 5);
    /* A pipe that breaks after its header; and one of 8 zero bytes. */
    test_file long_file = make_file("{" ENTRY("a", "U8", "200000", "0", "200000") "}", NULL,
                                    200000);
    s = make_source(&long_file);
    s.fail_at = 150000;
    assert_int_equal(sft_scan_open_source(source_of(&s, SFT_SIZE_UNKNOWN), NULL, &scan, NULL),
                     SFT_IO_READ);
    memset(long_file.bytes, 0, 8);
    s = make_source(&long_file);
    s.ends_at = 8;
    assert_int_equal(sft_scan_open_source(source_of(&s, SFT_SIZE_UNKNOWN), NULL, &scan, NULL),
                     SFT_OK);
    assert_int_equal(sft_scan_error(scan)->code, SFT_JSON_SYNTAX);
    sft_scan_close(scan);
    scan = NULL;
    free_file(&long_file);
    assert_null(scan);
    free_file(&f);
}

static void header_only_scan(void **state) {
    (void)state;
    test_file f = make_file("{" ENTRY("a", "U8", "9", "0", "9") "}", NULL, 3);
    sft_open_options o = SFT_OPEN_OPTIONS_INIT;
    sft_scan *scan;
    o.header_only = true;
    sft_source source = sft_source_memory(f.bytes, f.len);
    assert_int_equal(sft_scan_open_source(source, &o, &scan, NULL), SFT_OK);
    assert_null(sft_scan_error(scan));
    sft_scan_close(scan);
    free_file(&f);
}

static void every_allocation_of_a_scan_fails(void **state) {
    (void)state;
    test_file f = make_file("{" ENTRY("a", "U8", "1", "0", "2") "," ENTRY("b", "F32", "1", "2", "5")
                            ",\"c\":[]}", NULL, 5);
    test_memory m = { 0 };
    sft_allocator alloc = { resize_test_memory, &m };
    sft_open_options o = SFT_OPEN_OPTIONS_INIT;
    sft_scan *scan = NULL;
    sft_code code = SFT_OUT_OF_MEMORY;
    o.alloc = &alloc;
    for (m.fail_on = 1; m.fail_on < 100 && code != SFT_OK; m.fail_on++) {
        sft_error err = SFT_ERROR_INIT;
        m.calls = 0;
        sft_source source = sft_source_memory(f.bytes, f.len);
        code = sft_scan_open_source(source, &o, &scan, &err);
        assert_int_equal(err.code, code);
        if (code == SFT_OK) break;
        assert_int_equal(code, SFT_OUT_OF_MEMORY);
        assert_null(scan);
        assert_int_equal(m.held, 0);
    }
    assert_int_equal(code, SFT_OK);
    assert_true(m.fail_on > 7);
    sft_scan_close(scan);
    assert_int_equal(m.held, 0);
    free_file(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_file),
        cmocka_unit_test(entries_as_lists),
        cmocka_unit_test(every_finding), cmocka_unit_test(findings_of_limits),
        cmocka_unit_test(bytes_of_refused_entries), cmocka_unit_test(second_metadata),
        cmocka_unit_test(findings_are_bounded),
        cmocka_unit_test(verdicts_equal_opening),
        cmocka_unit_test(conformance_verdicts),
        cmocka_unit_test(a_pipe_is_read_to_its_end),
        cmocka_unit_test(a_pipe_cut_in_its_header),
        cmocka_unit_test(other_formats_are_named),
        cmocka_unit_test(alignment_notes),
        cmocka_unit_test(unsorted_and_control),
        cmocka_unit_test(polyglots),
        cmocka_unit_test(bad_calls),
        cmocka_unit_test(header_only_scan),
        cmocka_unit_test(every_allocation_of_a_scan_fails),
    };
    return cmocka_run_group_tests(tests, temp_dir_make, temp_dir_remove);
}
