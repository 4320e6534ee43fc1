/* Which journals are followed: names, heads, and what is played is what was verified. (Owners
 * are tests/faults/test_journal.c and tests/attack.) */
#define _GNU_SOURCE
#include "edit/edit.h"
#include "base/siphash.h"
#include "safetensors_io.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/make_file.h"
#include "unit/make_journal.h"
#include "unit/temp_dir.h"

#include <errno.h>
#include <fcntl.h>

#define FILE_NAME "m.safetensors"
#define JOURNAL ".m.safetensors.sft-journal"
#define HEADER(name, len) \
    "{\"" name "\":{\"dtype\":\"U8\",\"shape\":[" len "],\"data_offsets\":[0," len "]}}"
#define LARGE ((size_t)900000)
#define LARGE_TEXT "900000"

static const sft_allocator system_alloc = { sfti_os_resize, NULL };

/* ── Names ── */

static void journal_of(const char *name, char out[SFTI_JOURNAL_PATH]) {
    assert_true(sfti_journal_path(name, out));
    assert_true(strlen(strrchr(out, '/') ? strrchr(out, '/') + 1 : out) <= 255);
}

static void test_names(void **state) {
    static char a[SFTI_JOURNAL_PATH], b[SFTI_JOURNAL_PATH];
    char long_a[256], long_b[256];
    (void)state;
    journal_of("d/m.safetensors", a);
    assert_string_equal(a, "d/.m.safetensors.sft-journal");
    for (size_t len = 190; len < 256; len++) {
        for (int odd = 0; odd < 2; odd++) {
            memset(long_a, odd ? '\x80' : 'x', sizeof long_a);
            memcpy(long_b, long_a, sizeof long_b);
            long_a[len - 1] = 'a', long_b[len - 1] = 'b';
            long_a[len] = long_b[len] = '\0';
            journal_of(long_a, a);
            journal_of(long_b, b);
            assert_string_not_equal(a, b);
            a[strlen(a) - strlen(".sft-journal")] = '\0';
            journal_of(a + 1, b); /* a file that is named so has another journal */
            assert_memory_not_equal(a, b, strlen(a) + 2);
        }
    }
}

/* Two that differ in their last bytes only: the torn one is told, the other one is read. */
static void test_long_siblings(void **state) {
    char torn[256], other[256], path[SFTI_JOURNAL_PATH];
    static char header[] = HEADER("a", "10");
    (void)state;
    memset(torn, 'n', 230);
    memcpy(torn + 230, "1.safetensors", 14);
    memcpy(other, torn, sizeof torn);
    other[230] = '2';
    test_file f = make_file(header, "nnnnoooooo", 10);
    temp_write(torn, f.bytes, f.len);
    temp_write(other, f.bytes, f.len);
    test_journal journal = { .old = header, .new = header, .size = f.len, .at = f.len - 10,
                             .len = 10, .old_bytes = "oooooooooo", .new_bytes = "nnnnnnnnnn" };
    journal_of(torn, path);
    (void)make_journal(&journal, torn, path);
    free_file(&f);
    sft_file *file = NULL;
    assert_int_equal(sft_open(temp_path(torn), NULL, &file, NULL), SFT_EDIT_INTERRUPTED);
    assert_int_equal(sft_open(temp_path(other), NULL, &file, NULL), SFT_OK);
    sft_close(file);
    assert_int_equal(sft_edit_recover(temp_path(other), NULL, NULL, NULL), SFT_OK);
    assert_int_equal(temp_dir_count(), 3);
    assert_int_equal(sft_edit_recover(temp_path(torn), NULL, NULL, NULL), SFT_OK);
    assert_int_equal(temp_dir_count(), 2);
}

/* ── Heads ── */

/* With a right checksum, and bytes that each are the old or the new one. */
static void test_heads(void **state) {
    static const char header[] = HEADER("abcd", "10");
    static const char *const others[] = {
        HEADER("abce", "99"), /* beyond the data */
        "{\"abce\":{\"dtype\":\"U8\",\"shape\":[10],\"data_offsets\":[0,10]}]",
        "                                                            ",
        "{\"abce\":{\"dtype\":\"F9\",\"shape\":[10],\"data_offsets\":[0,10]}}",
        "{}                                                       ",
    };
    (void)state;
    for (size_t i = 0; i < 2 * sizeof others / sizeof *others; i++) {
        char bad[128];
        sft_error err = SFT_ERROR_INIT;
        unsigned char found[512];
        (void)snprintf(bad, sizeof bad, "%-*.*s", (int)strlen(header), (int)strlen(header),
                       others[i / 2]);
        test_file f = make_file(header, NULL, 10);
        f.bytes[11] = (unsigned char)bad[3]; /* neither head alone */
        temp_write(FILE_NAME, f.bytes, f.len);
        test_journal journal = { .old = i % 2 ? bad : header, .new = i % 2 ? header : bad,
                                 .size = f.len };
        (void)make_journal(&journal, FILE_NAME, JOURNAL);
        assert_int_equal(sft_edit_recover(temp_path(FILE_NAME), NULL, NULL, &err),
                         SFT_EDIT_INTERRUPTED);
        assert_non_null(strstr(err.message, "one whose headers are none"));
        assert_int_equal(temp_read(FILE_NAME, (char *)found, sizeof found), f.len);
        assert_memory_equal(found, f.bytes, f.len);
        assert_int_equal(temp_dir_count(), 2);
        free_file(&f);
    }
}

/* ── Words, ranges and lengths ── */

typedef struct patch {
    size_t at; /* a byte of the journal; 0: none */
    uint64_t value;
} patch;

#define WORD(name) (8 * (size_t)SFTI_JW_##name)
#define RANGE SFTI_JOURNAL_FIXED

/* The journal of FILE_NAME, patched, with a right checksum. */
static void patch_journal(const test_journal *journal, const patch *patches, size_t count) {
    static unsigned char text[JOURNAL_SIZE];
    struct stat st;
    assert_int_equal(stat(temp_path(FILE_NAME), &st), 0);
    size_t len = journal_text(journal, (uint64_t)st.st_dev, (uint64_t)st.st_ino, text);
    for (size_t i = 0; i < count && patches[i].at; i++)
        (void)journal_word(text, patches[i].at, patches[i].value);
    (void)journal_word(text, len - 8, journal_crc(text, len - 8));
    temp_write(JOURNAL, text, len);
}

/* No journal whose numbers do not fit each other is followed, by readers nor by recovery. */
static void test_numbers(void **state) {
    static const char old[] = HEADER("a", "10"), new[] = HEADER("b", "10");
    enum { HEAD = sizeof old - 1 + 8 };
    static const char length[] = "one of another length", bytes[] = "one of bytes that the file "
                                 "has not", heads[] = "one whose headers are none";
    static const struct {
        patch patches[4];
        const char *wrong;
    } rows[] = {
        { { { WORD(VERSION), 1 } }, "one of another version" },
        { { { WORD(RANGES), SFTI_JOURNAL_RANGES + 1 } }, length },
        { { { WORD(RANGES), UINT64_MAX } }, length },
        { { { WORD(RANGES), 2 } }, length },
        { { { WORD(DATA), HEAD + 11 } }, length },
        { { { WORD(DATA), 9 } }, length },
        { { { WORD(SIZE), UINT64_MAX }, { WORD(DATA), UINT64_MAX } }, length },
        { { { WORD(SIZE), UINT64_MAX }, { WORD(DATA), UINT64_C(1) << 63 } }, length },
        { { { WORD(BEFORE), HEAD + 8 } }, length },
        { { { WORD(SIZE), HEAD - 1 } }, length },
        { { { WORD(BEFORE), 7 }, { WORD(AFTER), 7 } }, length },
        { { { WORD(AFTER), HEAD + (UINT64_C(1) << 31) }, { WORD(GROWN), UINT64_C(1) << 31 } },
          length },
        { { { WORD(GROWN), 8 } }, length },
        { { { WORD(AFTER), HEAD + 8 }, { WORD(GROWN), 8 } }, length },
        { { { RANGE, HEAD - 1 } }, bytes },
        { { { RANGE, HEAD + 1 } }, bytes },
        { { { RANGE + 8, 0 } }, bytes },
        { { { RANGE + 8, 9 } }, bytes },
        { { { RANGE, UINT64_MAX - 5 } }, bytes },
        { { { RANGE + 16, HEAD } }, heads },
        { { { RANGE + 16 + HEAD, HEAD } }, heads },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sft_error err = SFT_ERROR_INIT;
        sft_file *file;
        test_file f = make_file(old, "nnnnnooooo", 10);
        test_journal journal = { .old = old, .new = new, .size = f.len, .at = f.len - 10,
                                 .len = 10, .old_bytes = "oooooooooo", .new_bytes = "nnnnnnnnnn" };
        temp_write(FILE_NAME, f.bytes, f.len);
        free_file(&f);
        patch_journal(&journal, rows[i].patches, 4);
        assert_int_equal(sft_open(temp_path(FILE_NAME), NULL, &file, &err), SFT_EDIT_INTERRUPTED);
        if (!strstr(err.message, rows[i].wrong)) fail_msg("row %zu: %s", i, err.message);
        assert_int_equal(sft_edit_recover(temp_path(FILE_NAME), NULL, NULL, &err),
                         SFT_EDIT_INTERRUPTED);
        if (!strstr(err.message, rows[i].wrong)) fail_msg("row %zu: %s", i, err.message);
        assert_int_equal(err.hint, SFT_HINT_JOURNAL_REMOVE);
    }
    patch_journal(&(test_journal){ .old = old, .new = new, .size = HEAD + 10, .at = HEAD, .len = 10,
                                   .old_bytes = "oooooooooo", .new_bytes = "nnnnnnnnnn" }, NULL, 0);
    assert_int_equal(sft_edit_recover(temp_path(FILE_NAME), NULL, NULL, NULL), SFT_OK);
    assert_int_equal(temp_dir_count(), 1);
}

/* ── States of a file beside a journal ── */

#define GROWN ((size_t)80 << 10) /* more than one piece of what is compared at once */

typedef enum torn_head { HEAD_OLD, HEAD_NEW, HEAD_MIXED, HEAD_OTHER, HEAD_LONGER } torn_head;

typedef struct torn {
    bool grows, came_in; /* the new header is longer; the file is, by as much */
    torn_head head;
    size_t cut; /* bytes that are missing at the end */
    sft_code read, recover;
    sft_edit_found found;
    const char *words;
} torn;

/* The file of that state: its header lies at its front, or behind what came in. */
static void write_torn(const torn *row, const char *old, const char *new) {
    static unsigned char bytes[4 * GROWN];
    size_t before = strlen(old) + 8, after = strlen(new) + 8, at = 0;
    size_t front = row->came_in ? after - before : 0;
    memset(bytes, 0, sizeof bytes);
    if (row->head != HEAD_NEW) (void)journal_head(bytes, front, old);
    if (row->head == HEAD_NEW || row->head == HEAD_MIXED) (void)journal_head(bytes, 0, new);
    if (row->head == HEAD_MIXED) (void)journal_bytes(bytes, 18, old + 10, before - 18);
    if (row->head == HEAD_OTHER) bytes[front + 12] ^= 1;
    if (row->head == HEAD_LONGER) bytes[0] = (unsigned char)(before - 8 + 4);
    at = journal_bytes(bytes, front + before, "0123456789", 10);
    temp_write(FILE_NAME, bytes, at - row->cut);
}

static void test_states(void **state) {
    static const char old[] = HEADER("a", "10");
    static const char same[] = "{\"b\":{\"dtype\":\"I8\",\"shape\":[10],\"data_offsets\":[0,10]}}";
    static char longer[GROWN + sizeof old];
    static const char none[] = "bytes that are neither the old nor the new ones";
    static const torn rows[] = {
        { false, false, HEAD_OLD, 0, SFT_OK, SFT_OK, SFT_EDIT_OLD, NULL },
        { false, false, HEAD_NEW, 0, SFT_OK, SFT_OK, SFT_EDIT_NEW, NULL },
        { false, false, HEAD_MIXED, 0, SFT_EDIT_INTERRUPTED, SFT_OK, SFT_EDIT_NEW, NULL },
        { false, false, HEAD_OTHER, 0, SFT_EDIT_INTERRUPTED, SFT_EDIT_INTERRUPTED, 0, none },
        { false, false, HEAD_LONGER, 0, SFT_EDIT_INTERRUPTED, SFT_EDIT_INTERRUPTED, 0, none },
        { false, false, HEAD_OLD, 3, SFT_EDIT_INTERRUPTED, SFT_EDIT_INTERRUPTED, 0,
          "one of another length" },
        { true, false, HEAD_OLD, 0, SFT_OK, SFT_OK, SFT_EDIT_OLD, NULL },
        { true, false, HEAD_OTHER, 0, SFT_EDIT_INTERRUPTED, SFT_EDIT_INTERRUPTED, 0, none },
        { true, true, HEAD_NEW, 0, SFT_OK, SFT_OK, SFT_EDIT_NEW, NULL },
        { true, true, HEAD_OLD, 0, SFT_EDIT_INTERRUPTED, SFT_OK, SFT_EDIT_NEW, NULL },
        { true, true, HEAD_OTHER, 0, SFT_EDIT_INTERRUPTED, SFT_EDIT_INTERRUPTED, 0, none },
        { true, true, HEAD_OLD, 3, SFT_EDIT_INTERRUPTED, SFT_EDIT_INTERRUPTED, 0,
          "one of another length" },
    };
    (void)state;
    memset(longer, ' ', sizeof longer - 1);
    memcpy(longer, same, strlen(same));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const torn *row = &rows[i];
        const char *new = row->grows ? longer : same;
        sft_edit_options options = SFT_EDIT_OPTIONS_INIT;
        sft_edit_found found = SFT_EDIT_CLEAN;
        sft_error err = SFT_ERROR_INIT;
        sft_file *file = NULL;
        write_torn(row, old, new);
        test_journal journal = { .old = old, .new = new, .size = strlen(old) + 8 + 10 };
        patch_journal(&journal, NULL, 0);
        sft_code code = sft_open(temp_path(FILE_NAME), NULL, &file, &err);
        if (code != row->read) fail_msg("row %zu: opened with %d, %s", i, code, err.message);
        sft_close(file);
        assert_int_equal(sft_edit_check(temp_path(FILE_NAME), NULL, &err), row->read);
        options.no_sync = i % 2;
        code = sft_edit_recover(temp_path(FILE_NAME), &options, &found, &err);
        if (code != row->recover) fail_msg("row %zu: %d, %s", i, code, err.message);
        assert_int_equal(found, row->found);
        if (row->words) assert_non_null(strstr(err.message, row->words));
        assert_int_equal(temp_dir_count(), code ? 2 : 1);
        if (code) continue;
        assert_int_equal(sft_open(temp_path(FILE_NAME), NULL, &file, NULL), SFT_OK);
        assert_int_equal(*sft_file_tensor_at(file, 0)->name.data,
                         found == SFT_EDIT_OLD ? 'a' : 'b');
        assert_int_equal(sft_file_data_offset(file),
                         strlen(found == SFT_EDIT_OLD ? old : new) + 8);
        sft_close(file);
    }
}

/* A journal of another file, or of one on another device: a copy of both is told as such. */
static void test_of_another(void **state) {
    static const char old[] = HEADER("a", "10"), new[] = HEADER("b", "10");
    static const struct {
        uint64_t device_more, inode_more, size_more;
        const char *words;
        sft_hint hint;
    } rows[] = {
        { 1, 0, 0, "found the same on another device;", SFT_HINT_RECOVER_OR_REMOVE },
        { 0, 1, 0, "found another file;", SFT_HINT_RECOVER_OR_REMOVE },
        { 1, 1, 1, "found another file;", SFT_HINT_JOURNAL_REMOVE },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sft_edit_options options = SFT_EDIT_OPTIONS_INIT;
        sft_edit_found found = SFT_EDIT_CLEAN;
        sft_error err = SFT_ERROR_INIT;
        write_torn(&(torn){ .head = HEAD_OLD }, old, new);
        test_journal journal = { .old = old, .new = new,
                                 .size = strlen(old) + 8 + 10 + rows[i].size_more,
                                 .device_more = rows[i].device_more,
                                 .inode_more = rows[i].inode_more };
        patch_journal(&journal, NULL, 0);
        assert_int_equal(sft_edit_recover(temp_path(FILE_NAME), NULL, &found, &err),
                         SFT_EDIT_INTERRUPTED);
        if (!strstr(err.message, rows[i].words)) fail_msg("row %zu: %s", i, err.message);
        assert_int_equal(err.hint, rows[i].hint);
        assert_int_equal(found, SFT_EDIT_CLEAN);
        options.force = true;
        sft_code code = sft_edit_recover(temp_path(FILE_NAME), &options, &found, &err);
        assert_int_equal(code, rows[i].size_more ? SFT_EDIT_INTERRUPTED : SFT_OK);
        assert_int_equal(found, rows[i].size_more ? SFT_EDIT_CLEAN : SFT_EDIT_OLD);
    }
    /* An odd one of another file matters to who cannot read this one. */
    test_journal journal = { .old = old, .new = new, .size = strlen(old) + 8 + 10,
                             .inode_more = 1 };
    patch_journal(&journal, &(patch){ WORD(GROWN), 8 }, 1);
    sft_file *file;
    sft_error err = SFT_ERROR_INIT;
    assert_int_equal(sft_open(temp_path(FILE_NAME), NULL, &file, &err), SFT_OK);
    sft_close(file);
    temp_write(FILE_NAME, "\3\0\0\0\0\0\0\0{} x", 12);
    assert_int_equal(sft_open(temp_path(FILE_NAME), NULL, &file, &err), SFT_EDIT_INTERRUPTED);
    assert_non_null(strstr(err.message, "one of another length"));
}

/* Paths that are none, or that no journal has a name beside. */
static void test_paths(void **state) {
    static char path[SFTI_JOURNAL_PATH + 200], name[SFTI_JOURNAL_PATH];
    sft_error err = SFT_ERROR_INIT;
    (void)state;
    assert_int_equal(sft_edit_check(NULL, NULL, &err), SFT_BAD_ARGUMENT);
    assert_string_equal(err.message, "expected a path, found NULL");
    assert_int_equal(sft_edit_recover(NULL, NULL, NULL, &err), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_edit_check(temp_path(""), NULL, &err), SFT_OK); /* a folder has none */
    for (size_t i = 0; i < sizeof path - 1; i++) path[i] = i % 2 ? '/' : 'd';
    assert_false(sfti_journal_path(path, name));
    assert_int_equal(sft_edit_check(path, NULL, &err), SFT_IO_OPEN);
    assert_int_equal(err.os_errno, ENAMETOOLONG);
    assert_int_equal(sft_edit_recover(path, NULL, NULL, &err), SFT_IO_OPEN);
    sfti_journal_file j;
    os_info info = { .kind = OS_FILE };
    assert_int_equal(sfti_journal_open(path, &info, &system_alloc, &j, &err), SFT_OK);
    assert_int_equal(j.state, SFTI_JOURNAL_NONE);
    sfti_journal_close(&j);
    assert_int_equal(sfti_journal_remove(path), 0);
}

/* ── What is played is what was verified ── */

static char old_bytes[LARGE], new_bytes[LARGE];

static size_t tear_large(size_t len, const char *header, size_t *journal_len) {
    memset(old_bytes, 'o', LARGE);
    memset(new_bytes, 'n', LARGE);
    test_file f = make_file(header, old_bytes, len);
    f.bytes[f.len - 1] = 'n';
    temp_write(FILE_NAME, f.bytes, f.len);
    size_t size = f.len;
    free_file(&f);
    test_journal journal = { .old = header, .new = header, .size = size, .at = size - len,
                             .len = len, .old_bytes = old_bytes, .new_bytes = new_bytes };
    *journal_len = make_journal(&journal, FILE_NAME, JOURNAL);
    return size;
}

/* Verified, then written to by somebody who also makes the checksum right. */
static void open_and_change(sfti_journal_file *j, size_t journal_len) {
    static unsigned char text[JOURNAL_SIZE];
    os_info info;
    assert_int_equal(sfti_os_info_path(temp_path(FILE_NAME), false, &info), 0);
    assert_int_equal(sfti_journal_open(temp_path(FILE_NAME), &info, &system_alloc, j, NULL), 0);
    assert_int_equal(j->state, SFTI_JOURNAL_SOUND);
    assert_int_equal(sfti_journal_verify(j, true, NULL), SFT_OK);
    assert_int_equal(j->state, SFTI_JOURNAL_SOUND);
    int fd = open(temp_path(JOURNAL), O_RDWR);
    assert_int_equal(read(fd, text, sizeof text), journal_len);
    for (size_t i = 88; i < journal_len; i++)
        if (text[i] == 'n') text[i] = 'e';
    (void)journal_word(text, journal_len - 8, journal_crc(text, journal_len - 8));
    assert_int_equal(pwrite(fd, text, journal_len, 0), journal_len);
    close(fd);
}

static size_t count_evil(void) {
    static char found[LARGE + 4096];
    size_t count = 0;
    long len = temp_read(FILE_NAME, found, sizeof found);
    for (long i = len - 10; i < len; i++) count += found[i] == 'e';
    for (long i = 200; i < len; i++) count += found[i] == 'e';
    return count;
}

static void test_changed_after(void **state) {
    static const char small[] = HEADER("a", "10"), large[] = HEADER("a", LARGE_TEXT);
    (void)state;
    for (int big = 0; big < 2; big++) {
        sfti_journal_file j;
        size_t journal_len;
        (void)tear_large(big ? LARGE : 10, big ? large : small, &journal_len);
        open_and_change(&j, journal_len);
        int fd = open(temp_path(FILE_NAME), O_RDWR);
        int error = sfti_journal_apply_data(&j, fd, false);
        assert_int_equal(error, big ? EIO : 0); /* small: all of it is in memory */
        assert_int_equal(count_evil(), 0);
        close(fd);
        sfti_journal_close(&j);
    }
}

/* The vectors of SipHash's authors: key 00..0f, bytes 00, 01, … */
static void test_hash(void **state) {
    static const uint64_t key[2] = { UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908) };
    unsigned char bytes[64];
    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)i;
    assert_true(sfti_siphash(key, bytes, 0) == UINT64_C(0x726fdb47dd0e0e31));
    assert_true(sfti_siphash(key, bytes, 1) == UINT64_C(0x74f839c593dc67fd));
    assert_true(sfti_siphash(key, bytes, 8) == UINT64_C(0x93f5f5799a932462));
    assert_true(sfti_siphash(key, bytes, 15) == UINT64_C(0xa129ca6149be45e5));
}

/* ── Links ── */

static void test_links(void **state) {
    os_info info;
    sft_error err = SFT_ERROR_INIT;
    int fd;
    (void)state;
    temp_write("other", "bytes", 5);
    assert_int_equal(symlink("other", temp_path(FILE_NAME)), 0);
    for (int writable = 0; writable < 2; writable++) {
        const char *path = temp_path(FILE_NAME);
        assert_int_equal(sfti_edit_open_file(path, NULL, writable, &fd, &info, &err),
                         SFT_EDIT_BUSY);
        assert_int_equal(fd, -1);
        assert_non_null(strstr(err.message, "symbolic link"));
    }
    assert_int_equal(sfti_edit_open_file(temp_path("other"), NULL, true, &fd, &info, &err), SFT_OK);
    assert_int_equal(info.size, 5);
    close(fd);
}

#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, temp_dir_make, temp_dir_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names), IN_DIR(test_long_siblings), IN_DIR(test_heads),
        IN_DIR(test_numbers),         IN_DIR(test_states),         IN_DIR(test_of_another),
        IN_DIR(test_paths),
        IN_DIR(test_changed_after),   cmocka_unit_test(test_hash), IN_DIR(test_links),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
