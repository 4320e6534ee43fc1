/* Where the file system gives no file another's name: sft_sink_path says so, and with
 * in_place_unsafe writes over the file; again and again while something else fails. */
#include "faults.h"
#include "safetensors_io.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *plain_resize(void *ctx, void *ptr, size_t old_size, size_t new_size) {
    (void)ctx, (void)old_size;
    if (new_size > 0) return realloc(ptr, new_size);
    free(ptr);
    return NULL;
}

static const sft_allocator plain = { plain_resize, NULL };

static void set_store(bool old_file, bool unnamed, int error) {
    os_fake_reset();
    os_fake_add_dir("/dir");
    os_fake_no_unnamed(!unnamed);
    os_fake_no_rename(error);
    if (!old_file) return;
    os_fake_add_file("/dir/target", "old", 3);
    os_fake_set_mode("/dir/target", 0640);
}

static sft_code write_target(bool unsafe, bool no_clobber, sft_error *err) {
    sft_path_options options = SFT_PATH_OPTIONS_INIT;
    sft_sink sink;
    options.in_place_unsafe = unsafe;
    options.no_clobber = no_clobber;
    options.alloc = &plain;
    sft_code code = sft_sink_path("/dir/target", &options, &sink, err);
    if (code) return code;
    code = sft_sink_write(&sink, 0, "new file", 8, err);
    if (!code) return sft_sink_finish(&sink, err);
    sft_sink_abandon(&sink);
    return code;
}

static bool target_is(const char *text) {
    size_t len;
    const void *bytes = os_fake_file("/dir/target", &len);
    return bytes && len == strlen(text) && memcmp(bytes, text, len) == 0;
}

static const int unrenamed[] = { ENOSYS, EPERM, EOPNOTSUPP, EXDEV };

/* Nothing changes, and the message tells what to do. */
static void test_refused(void **state) {
    (void)state;
    for (int i = 0; i < 16; i++) {
        sft_error err = SFT_ERROR_INIT;
        bool old_file = i & 1, unnamed = i & 2;
        set_store(old_file, unnamed, unrenamed[i / 4]);
        assert_int_equal(write_target(false, !old_file, &err), SFT_IO_PUBLISH);
        assert_int_equal(err.os_errno, unrenamed[i / 4]);
        assert_non_null(strstr(err.message, "lets a file take another's name"));
        assert_int_equal(err.hint, SFT_HINT_OBJECT_STORE);
        assert_int_equal(os_fake_count_files(), old_file ? 1 : 0);
        if (old_file) assert_true(target_is("old"));
        assert_int_equal(os_fake_open_fds(), 0);
    }
}

/* Any other failure is told as it is. */
static void test_other_failure(void **state) {
    sft_error err = SFT_ERROR_INIT;
    (void)state;
    set_store(true, true, EIO);
    assert_int_equal(write_target(true, false, &err), SFT_IO_PUBLISH);
    assert_int_equal(err.os_errno, EIO);
    assert_null(strstr(err.message, "another's name"));
    assert_true(target_is("old"));
    assert_int_equal(os_fake_count_files(), 1);
}

static void test_written_over(void **state) {
    os_info info;
    (void)state;
    for (int i = 0; i < 8; i++) {
        sft_error err = SFT_ERROR_INIT;
        bool old_file = i & 1;
        set_store(old_file, true, unrenamed[i / 2]);
        assert_int_equal(write_target(true, !old_file, &err), SFT_OK);
        assert_true(target_is("new file"));
        assert_int_equal(os_fake_count_files(), 1);
        assert_int_equal(sfti_os_info_path("/dir/target", false, &info), 0);
        if (old_file) assert_int_equal(info.mode, 0640);
    }
    set_store(true, true, ENOSYS);
    sft_error err = SFT_ERROR_INIT;
    assert_int_equal(write_target(true, true, &err), SFT_EXISTS);
    assert_true(target_is("old"));
    assert_int_equal(os_fake_count_files(), 1);
}

/* Where there is renaming it is used. */
static void test_renamed(void **state) {
    sft_error err = SFT_ERROR_INIT;
    (void)state;
    set_store(true, true, 0);
    os_fake_fail_call("sfti_os_unlink", 1, EIO, true);
    assert_int_equal(write_target(true, false, &err), SFT_OK);
    assert_true(target_is("new file"));
}

static const char *hidden_name(char *buffer, size_t len, const sft_error *err) {
    const char *at = strstr(err->message, " in .target.sft-");
    snprintf(buffer, len, at ? "/dir/%.*s" : "%.*s", 18, at ? at + 4 : "");
    return buffer;
}

/* Old, or new, or gone with the new one whole beside it, and the message naming that. */
static void expect_whole(bool old_file, sft_code code, const sft_error *err, bool leftovers) {
    char name[64];
    size_t len;
    if (code == SFT_OK) {
        assert_true(target_is("new file"));
        return;
    }
    assert_true(strlen(err->message) > 0);
    const char *hidden = hidden_name(name, sizeof name, err);
    if (*hidden) {
        const void *bytes = os_fake_file(hidden, &len);
        assert_non_null(bytes);
        assert_int_equal(len, 8);
        assert_memory_equal(bytes, "new file", 8);
        return;
    }
    if (target_is("new file")) return; /* only its folder is not synced */
    if (old_file) assert_true(target_is("old"));
    else assert_false(os_fake_exists("/dir/target"));
    if (!leftovers) assert_int_equal(os_fake_count_files(), old_file ? 1 : 0);
}

static void test_failures(void **state) {
    static const int errnos[] = { EIO, ENOSPC, EACCES, EROFS, ENOENT, EEXIST, EINTR };
    size_t points = 0;
    (void)state;
    for (int way = 0; way < 4; way++) {
        for (size_t e = 0; e < sizeof errnos / sizeof *errnos; e++) {
            for (size_t n = 1;; n++) {
                sft_error err = SFT_ERROR_INIT;
                bool old_file = way & 1, forever = way & 2;
                set_store(old_file, true, ENOSYS);
                os_fake_fail(n, errnos[e], forever);
                sft_code code = write_target(true, false, &err);
                size_t failed = os_fake_failed();
                os_fake_heal();
                bool unlinking = failed > 0 && strcmp(os_fake_call_name(n), "sfti_os_unlink") == 0;
                expect_whole(old_file, code, &err, forever || unlinking);
                assert_int_equal(os_fake_open_fds(), 0);
                if (failed == 0) break;
                points++;
            }
        }
    }
    print_message("%zu points of failure\n", points);
    assert_true(points > 400);
}

/* The commands: refused with the hint, done with --in-place-unsafe. */
static void test_commands(void **state) {
    static const char *const lines[] = {
        "safetensors merge /m/a.safetensors -o /dir/o.safetensors",
        "safetensors merge /m/a.safetensors -o /m/many.safetensors --force",
        "safetensors select /m/a.safetensors --in-place --drop w",
        "safetensors convert /m/a.safetensors -o /dir/o.safetensors --dtype F64 --threads 1",
        "safetensors split /m/a.safetensors -o /dir/new --count 2",
        "safetensors meta set /m/a.safetensors key value --safe",
        "safetensors rename /set/m.safetensors.index.json --add-prefix x.",
        "safetensors repair /m/twice.safetensors -o /dir/o.safetensors",
    };
    char line[256];
    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        os_fake_reset();
        fault_world();
        os_fake_no_rename(EPERM);
        size_t len, files = os_fake_count_files();
        (void)snprintf(line, sizeof line, "%s", lines[i]);
        assert_int_equal(fault_command(line), 2);
        const char *said = os_fake_output(2, &len);
        assert_non_null(said);
        (void)snprintf(line, sizeof line, "%.*s", len < 250 ? (int)len : 250, said);
        assert_non_null(strstr(line, "lets a file take another's name"));
        assert_int_equal(os_fake_count_files(), files);
        (void)snprintf(line, sizeof line, "%s --in-place-unsafe", lines[i]);
        int status = fault_command(line);
        said = os_fake_output(2, &len);
        if (status) print_error("%s: %.*s\n", lines[i], (int)len, said);
        assert_int_equal(status, 0);
        assert_int_equal(os_fake_open_fds(), 0);
    }
}

/* A mode that cannot be set: where files have modes nothing is published that was to be private.
 * What has no modes says so, or gives the file an owner of its own choice. */
static void test_private(void **state) {
    static const int errors[] = { EPERM, EACCES, EIO, ENOSYS, EOPNOTSUPP };
    (void)state;
    for (int i = 0; i < 10; i++) {
        sft_error err = SFT_ERROR_INIT;
        sft_sink sink;
        int error = errors[i / 2];
        bool of_another = i & 1;
        bool fine = error == ENOSYS || error == EOPNOTSUPP || (error == EPERM && of_another);
        set_store(false, true, 0);
        assert_int_equal(sft_sink_path("/dir/target", NULL, &sink, &err), SFT_OK);
        os_fake_set_user(of_another ? 1001 : 1000);
        os_fake_fail_call("sfti_os_set_mode", 1, error, false);
        assert_int_equal(sft_sink_limit_mode(&sink, 0600, &err), fine ? SFT_OK : SFT_IO_WRITE);
        if (!fine) assert_int_equal(err.os_errno, error);
        if (!fine) assert_int_equal(sft_sink_finish(&sink, &err), SFT_WRITER_FAILED);
        else assert_int_equal(sft_sink_finish(&sink, &err), SFT_OK);
        assert_int_equal(os_fake_count_files(), fine);
        assert_int_equal(os_fake_open_fds(), 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused),     cmocka_unit_test(test_other_failure),
        cmocka_unit_test(test_written_over), cmocka_unit_test(test_renamed),
        cmocka_unit_test(test_failures),      cmocka_unit_test(test_commands),
        cmocka_unit_test(test_private),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
