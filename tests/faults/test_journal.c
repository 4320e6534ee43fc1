/* Whose journals are followed: owner, mode and names of the journal beside a torn file, for each
 * user who could come by. */
#define _GNU_SOURCE
#include "os_fake.h"
#include "safetensors.h"
#include "safetensors_edit.h"
#include "safetensors_scan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/make_journal.h"

#include <errno.h>

#define TARGET "/t/m.safetensors"
#define JOURNAL "/t/.m.safetensors.sft-journal"
#define HEADER "{\"a\":{\"dtype\":\"U8\",\"shape\":[10],\"data_offsets\":[0,10]}}"
#define LEN (8 + sizeof HEADER - 1 + 10)

enum { ROOT = 0, OWNER = 1000, OTHER = 1001, THIRD = 1002 };

static unsigned char model[LEN], journal[JOURNAL_SIZE];
static size_t journal_len;

/* The file half old and half new by its journal; both belong to whom the row says. */
static void tear(uint32_t model_owner, uint32_t model_mode, uint32_t owner, uint32_t mode) {
    os_fake_reset();
    os_fake_add_dir("/t");
    memset(model, 0, 8);
    model[0] = sizeof HEADER - 1;
    memcpy(model + 8, HEADER, sizeof HEADER - 1);
    memcpy(model + LEN - 10, "nnnnoooooo", 10);
    os_fake_add_file(TARGET, model, LEN);
    test_journal j = { .old = HEADER, .new = HEADER, .size = LEN, .at = LEN - 10, .len = 10,
                       .old_bytes = "oooooooooo", .new_bytes = "nnnnnnnnnn" };
    journal_len = journal_text(&j, 1, os_fake_inode(TARGET), journal);
    os_fake_add_file(JOURNAL, journal, journal_len);
    os_fake_set_owner(TARGET, model_owner);
    os_fake_set_mode(TARGET, model_mode);
    os_fake_set_owner(JOURNAL, owner);
    os_fake_set_mode(JOURNAL, mode);
}

static void expect_untouched(void) {
    size_t len;
    const void *bytes = os_fake_file(TARGET, &len);
    assert_int_equal(len, LEN);
    assert_memory_equal(bytes, model, LEN);
    bytes = os_fake_file(JOURNAL, &len);
    assert_int_equal(len, journal_len);
    assert_memory_equal(bytes, journal, journal_len);
}

static void expect_foreign(const sft_error *err, const char *found) {
    assert_int_equal(err->code, SFT_EDIT_INTERRUPTED);
    if (!strstr(err->message, found)) print_error("%s\n", err->message);
    assert_non_null(strstr(err->message, found));
    assert_int_equal(err->hint, SFT_HINT_JOURNAL_OWNER);
}

#define ANOTHER "one of another user"
#define OPEN "one that others may write to"

typedef struct row {
    uint32_t user, model_owner, model_mode, owner, mode;
    const char *found; /* NULL: it is followed */
    bool read;         /* who only reads does not mind it */
} row;

static const row rows[] = {
    { OWNER, OWNER, 0644, OWNER, 0644, NULL, false },
    { OTHER, OWNER, 0664, OWNER, 0644, NULL, false },
    { OTHER, OWNER, 0664, OTHER, 0644, NULL, false },
    { ROOT, OWNER, 0644, OWNER, 0600, NULL, false },
    { ROOT, OWNER, 0644, ROOT, 0644, NULL, false },
    { ROOT, ROOT, 0644, ROOT, 0644, NULL, false },
    { OWNER, OWNER, 0666, OWNER, 0666, NULL, false }, /* no modes, as on FAT */
    /* planted */
    { OWNER, OWNER, 0644, OTHER, 0644, ANOTHER, true },
    { OWNER, OWNER, 0600, OTHER, 0644, ANOTHER, true },
    { ROOT, OWNER, 0644, OTHER, 0644, ANOTHER, true },
    { ROOT, ROOT, 0644, OTHER, 0644, ANOTHER, true },
    { THIRD, OWNER, 0644, OTHER, 0644, ANOTHER, true },
    /* of who may have edited it */
    { OWNER, OWNER, 0664, OTHER, 0644, ANOTHER, false },
    { OWNER, OWNER, 0646, OTHER, 0644, ANOTHER, false },
    { OWNER, OWNER, 0644, ROOT, 0644, ANOTHER, false },
    { THIRD, OWNER, 0644, ROOT, 0644, ANOTHER, false },
    /* written to by who knows whom */
    { OWNER, OWNER, 0644, OWNER, 0646, OPEN, false },
    { OWNER, OWNER, 0644, OWNER, 0664, OPEN, false },
    { ROOT, OWNER, 0664, OWNER, 0664, OPEN, false },
};
#define ROWS (sizeof rows / sizeof *rows)

static void tear_row(const row *r) {
    tear(r->model_owner, r->model_mode, r->owner, r->mode);
    os_fake_set_user(r->user);
}

static void expect_reader(const row *r) {
    sft_error err = SFT_ERROR_INIT;
    sft_file *file = NULL;
    sft_scan *scan = NULL;
    bool noted = false;
    sft_code code = sft_open(TARGET, NULL, &file, &err);
    sft_close(file);
    assert_int_equal(code, r->read ? SFT_OK : SFT_EDIT_INTERRUPTED);
    if (r->found && !r->read) expect_foreign(&err, r->found);
    assert_int_equal(sft_scan_open(TARGET, NULL, &scan, &err), SFT_OK);
    assert_int_equal(sft_scan_error(scan) == NULL, r->read);
    for (size_t i = 0; i < sft_scan_note_count(scan); i++)
        noted = noted || strcmp(sft_scan_note_at(scan, i)->name, "foreign_journal") == 0;
    assert_int_equal(noted, r->read);
    sft_scan_close(scan);
    expect_untouched();
}

static void test_readers(void **state) {
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        tear_row(&rows[i]);
        expect_reader(&rows[i]);
    }
}

static void expect_followed(void) {
    size_t len;
    const unsigned char *bytes = os_fake_file(TARGET, &len);
    assert_int_equal(len, LEN);
    assert_memory_equal(bytes + LEN - 10, "nnnnnnnnnn", 10);
    assert_false(os_fake_exists(JOURNAL));
}

static void test_recover(void **state) {
    (void)state;
    for (size_t i = 0; i < 2 * ROWS; i++) {
        const row *r = &rows[i / 2];
        sft_error err = SFT_ERROR_INIT;
        sft_edit_options options = SFT_EDIT_OPTIONS_INIT;
        options.force = i % 2;
        tear_row(r);
        sft_code code = sft_edit_recover(TARGET, &options, NULL, &err);
        if (code != SFT_OK && !r->found) print_error("row %zu: %s\n", i / 2, err.message);
        assert_int_equal(code, r->found ? SFT_EDIT_INTERRUPTED : SFT_OK);
        if (!r->found) expect_followed();
        if (r->found) expect_foreign(&err, r->found);
        if (r->found) expect_untouched();
    }
}

static void test_edit(void **state) {
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        sft_error err = SFT_ERROR_INIT;
        sft_edit *edit = NULL;
        tear_row(&rows[i]);
        sft_code code = sft_edit_open(TARGET, NULL, &edit, &err);
        sft_edit_close(edit);
        assert_int_equal(code, rows[i].found ? SFT_EDIT_INTERRUPTED : SFT_OK);
        if (!rows[i].found) expect_followed();
        if (rows[i].found) expect_foreign(&err, rows[i].found);
        if (rows[i].found) expect_untouched();
    }
}

/* Without locks an edit that goes on looks as one that was interrupted. */
static void test_lockless(void **state) {
    (void)state;
    for (int force = 0; force < 2; force++) {
        sft_error err = SFT_ERROR_INIT;
        sft_edit_options options = SFT_EDIT_OPTIONS_INIT;
        sft_edit *edit = NULL;
        options.force = force;
        for (int how = 0; how < 2; how++) {
            tear(OWNER, 0644, OWNER, 0644);
            os_fake_set_user(OWNER);
            os_fake_fail_call("sfti_os_lock", 1, EOPNOTSUPP, true);
            sft_code code = how ? sft_edit_open(TARGET, &options, &edit, &err)
                                : sft_edit_recover(TARGET, &options, NULL, &err);
            os_fake_heal();
            sft_edit_close(edit);
            assert_int_equal(code, force ? SFT_OK : SFT_EDIT_BUSY);
            if (force) expect_followed();
            else expect_untouched();
            if (!force) assert_int_equal(err.hint, SFT_HINT_RECOVER_UNLOCKED);
            edit = NULL;
        }
    }
    os_fake_reset();
}

/* Another user's journal that cannot even be read keeps nobody from reading the file. */
static void test_unreadable(void **state) {
    sft_error err = SFT_ERROR_INIT;
    sft_file *file = NULL;
    (void)state;
    tear_row(&rows[7]);
    os_fake_fail_call("sfti_os_open_no_link", 1, 13 /* EACCES */, false);
    assert_int_equal(sft_open(TARGET, NULL, &file, &err), SFT_OK);
    sft_close(file);
    os_fake_fail_call("sfti_os_open_no_link", 2, 13, false);
    assert_int_equal(sft_edit_recover(TARGET, NULL, NULL, &err), SFT_EDIT_INTERRUPTED);
    os_fake_heal();
    expect_foreign(&err, ANOTHER);
    expect_untouched();
}

static void test_names(void **state) {
    sft_error err = SFT_ERROR_INIT;
    (void)state;
    tear(OWNER, 0644, OWNER, 0644);
    os_fake_add_inode(JOURNAL, 77, journal, journal_len);
    os_fake_add_inode("/t/kept", 77, journal, journal_len);
    os_fake_set_owner(JOURNAL, OWNER);
    assert_int_equal(sft_edit_recover(TARGET, NULL, NULL, &err), SFT_EDIT_INTERRUPTED);
    expect_foreign(&err, "several names");
    expect_untouched();
}

/* The journal of an edit is writable by nobody else, whatever the model's mode is. */
static uint32_t journal_mode;

static void watch_mode(const os_fake_op *op) {
    if (op->did == OS_DID_MODE) journal_mode = (uint32_t)op->at;
}

static void test_mode(void **state) {
    static const uint32_t modes[][2] = { { 0644, 0644 }, { 0664, 0644 }, { 0660, 0640 },
                                         { 0600, 0600 }, { 0666, 0666 } };
    (void)state;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        sft_edit *edit = NULL;
        sft_source source = sft_source_memory("0123456789", 10);
        tear(OWNER, modes[i][0], OWNER, 0644);
        assert_int_equal(sft_edit_open(TARGET, NULL, &edit, NULL), SFT_OK);
        assert_int_equal(sft_edit_put(edit, sft_span_cstr("a"), &source, NULL), SFT_OK);
        journal_mode = 0;
        os_fake_watch(watch_mode);
        assert_int_equal(sft_edit_apply(edit, NULL, NULL, NULL), SFT_OK);
        os_fake_watch(NULL);
        sft_edit_close(edit);
        assert_int_equal(journal_mode, modes[i][1]);
    }
    os_fake_reset();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_readers),    cmocka_unit_test(test_recover),
        cmocka_unit_test(test_edit),       cmocka_unit_test(test_unreadable),
        cmocka_unit_test(test_names),      cmocka_unit_test(test_mode),
        cmocka_unit_test(test_lockless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
