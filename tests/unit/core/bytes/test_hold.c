/* The lock on a file that is replaced: who has it, and that it is on the file of the path. */
#define _GNU_SOURCE
#include "bytes/hold.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/temp_dir.h"

#include <errno.h>

static void test_held(void **state) {
    sfti_file_lock one, other;
    sft_error err = SFT_ERROR_INIT;
    int edit;
    (void)state;
    temp_write("file", "bytes", 5);
    assert_int_equal(sfti_hold_take(temp_path("file"), &one, NULL), SFT_OK);
    assert_true(one.fd >= 0);
    assert_int_equal(sfti_hold_take(temp_path("file"), &other, &err), SFT_EDIT_BUSY);
    assert_int_equal(err.os_errno, EAGAIN);
    /* It is the lock of an edit. */
    assert_int_equal(sfti_os_open_write(temp_path("file"), &edit), 0);
    assert_int_equal(sfti_os_lock(edit), EAGAIN);
    sfti_hold_end(&one);
    sfti_hold_end(&one);
    assert_int_equal(sfti_os_lock(edit), 0);
    assert_int_equal(sfti_hold_take(temp_path("file"), &other, NULL), SFT_EDIT_BUSY);
    assert_int_equal(sfti_os_close(edit), 0);
    assert_int_equal(sfti_hold_take(temp_path("file"), &other, NULL), SFT_OK);
    sfti_hold_end(&other);
    assert_int_equal(temp_dir_count(), 1);
}

/* Once the file is replaced, the lock on the old one keeps nobody out. */
static void test_replaced(void **state) {
    sfti_file_lock one, other;
    (void)state;
    temp_write("file", "bytes", 5);
    temp_write("new", "bytes", 5);
    assert_int_equal(sfti_hold_take(temp_path("file"), &one, NULL), SFT_OK);
    assert_int_equal(sfti_os_rename(temp_path("new"), temp_path("file"), false), 0);
    assert_int_equal(sfti_hold_take(temp_path("file"), &other, NULL), SFT_OK);
    assert_false(sfti_is_same_file(&one.info, &other.info));
    sfti_hold_end(&one);
    sfti_hold_end(&other);
}

static void test_nothing_there(void **state) {
    sfti_file_lock one;
    (void)state;
    assert_int_equal(sfti_hold_take(temp_path("none"), &one, NULL), SFT_OK);
    assert_int_equal(one.fd, -1);
    sfti_hold_end(&one);
}

static void test_same(void **state) {
    const os_info then = { .size = 5, .device = 1, .inode = 2, .mtime_ns = 3, .ctime_ns = 4 };
    os_info now[6] = { then, then, then, then, then, then };
    (void)state;
    now[1].size++, now[2].device++, now[3].inode++, now[4].mtime_ns++, now[5].ctime_ns++;
    for (size_t i = 0; i < 6; i++) assert_int_equal(sfti_is_same_file(&then, &now[i]), i == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_held, temp_dir_make, temp_dir_remove),
        cmocka_unit_test_setup_teardown(test_replaced, temp_dir_make, temp_dir_remove),
        cmocka_unit_test_setup_teardown(test_nothing_there, temp_dir_make, temp_dir_remove),
        cmocka_unit_test(test_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
