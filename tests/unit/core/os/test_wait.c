/* Who is asked whether to go on waiting: each user of a process for what it opened, and nobody for
 * what another did. */
#define _GNU_SOURCE
#include "os/io.h"
#include "safetensors_io.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "unit/make_file.h"
#include "unit/temp_dir.h"

#define HEADER "{\"a\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]}}"

/* A user of the library: whether it still waits, and how often it was asked. */
typedef struct user {
    sft_wait wait;
    atomic_bool stops;
    atomic_uint asked;
    int ends[2]; /* of its pipe */
    sft_code code;
    sft_error err;
} user;

static bool user_goes_on(void *ctx) {
    user *u = ctx;
    atomic_fetch_add(&u->asked, 1);
    return !atomic_load(&u->stops);
}

static bool process_goes_on(void *ctx) {
    atomic_fetch_add((atomic_uint *)ctx, 1);
    return false;
}

static void user_begin(user *u) {
    memset(u, 0, sizeof *u);
    u->wait = (sft_wait){ user_goes_on, u };
    atomic_init(&u->stops, false);
    atomic_init(&u->asked, 0);
    assert_int_equal(pipe(u->ends), 0);
}

static void user_end(user *u) {
    assert_int_equal(close(u->ends[0]), 0);
    assert_int_equal(close(u->ends[1]), 0);
}

static void user_opens(void *ctx) {
    user *u = ctx;
    sft_open_options options = SFT_OPEN_OPTIONS_INIT;
    sft_file *file;
    options.wait = &u->wait;
    u->code = sft_open_fd(u->ends[0], &options, &file, &u->err);
    sft_close(file);
}

static void until_asked(user *u) {
    for (unsigned before = atomic_load(&u->asked); atomic_load(&u->asked) == before;)
        sfti_os_sleep_ms(1);
}

/* One of two users gives up; the other goes on, gets its bytes, and the process's callback, which
 * would end every wait, is asked by neither. */
static void two_users(void **state) {
    (void)state;
    test_file f = make_file(HEADER, NULL, 3);
    user users[2];
    os_thread threads[2];
    atomic_uint process_asked;
    atomic_init(&process_asked, 0);
    sft_on_wait(process_goes_on, &process_asked);
    for (size_t i = 0; i < 2; i++) {
        user_begin(&users[i]);
        assert_int_equal(sfti_os_thread_start(&threads[i], user_opens, &users[i]), 0);
    }
    until_asked(&users[0]);
    until_asked(&users[1]);
    atomic_store(&users[0].stops, true);
    sfti_os_thread_join(&threads[0]);
    assert_int_equal(users[0].code, SFT_IO_READ);
    assert_int_equal(users[0].err.os_errno, EINTR);
    until_asked(&users[1]);
    assert_int_equal(write(users[1].ends[1], f.bytes, f.len), f.len);
    sfti_os_thread_join(&threads[1]);
    assert_int_equal(users[1].code, SFT_OK);
    assert_int_equal(atomic_load(&process_asked), 0);
    sft_on_wait(NULL, NULL);
    user_end(&users[0]);
    user_end(&users[1]);
    free_file(&f);
}

/* Reading what was opened asks, too; and so does opening and reading a path. */
static void reads_and_paths(void **state) {
    (void)state;
    test_file f = make_file(HEADER, NULL, 3);
    sft_open_options options = SFT_OPEN_OPTIONS_INIT;
    sft_file *file;
    sft_source source;
    user u;
    char bytes[3];
    size_t got;
    user_begin(&u);
    options.wait = &u.wait;
    assert_int_equal(write(u.ends[1], f.bytes, f.len - 3), f.len - 3);
    assert_int_equal(sft_open_fd(u.ends[0], &options, &file, NULL), SFT_OK);
    assert_int_equal(atomic_load(&u.asked), 0);
    atomic_store(&u.stops, true);
    assert_int_equal(sft_read_into(file, sft_file_tensor_at(file, 0), bytes, 3, NULL), SFT_IO_READ);
    assert_true(atomic_load(&u.asked) > 0);
    sft_close(file);

    char path[64];
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", u.ends[0]);
    assert_int_equal(sft_source_path(path, &options, &source, NULL), SFT_OK);
    unsigned before = atomic_load(&u.asked);
    assert_int_equal(sft_source_read(&source, 0, bytes, 3, &got, NULL), SFT_IO_READ);
    assert_true(atomic_load(&u.asked) > before);
    sft_source_close(&source);
    user_end(&u);
    free_file(&f);
}

/* A thread asks whom it was told to, and whom it asked before once that is put back. */
static void nested(void **state) {
    (void)state;
    user a, b;
    atomic_uint process_asked;
    const sft_wait none = { NULL, NULL };
    atomic_init(&process_asked, 0);
    user_begin(&a);
    user_begin(&b);
    assert_null(sfti_os_wait_as(&a.wait));
    assert_false(sfti_os_wait_over());
    atomic_store(&b.stops, true);
    assert_true(sfti_wait_over(&b.wait));
    assert_false(sfti_os_wait_over());
    assert_int_equal(atomic_load(&a.asked), 2);
    assert_int_equal(atomic_load(&b.asked), 1);
    sft_on_wait(process_goes_on, &process_asked);
    assert_false(sfti_os_wait_over());
    assert_true(sfti_wait_over(NULL));
    assert_true(sfti_wait_over(&none));
    assert_int_equal(atomic_load(&process_asked), 2);
    sft_on_wait(NULL, NULL);
    assert_ptr_equal(sfti_os_wait_as(NULL), &a.wait);
    assert_null(sfti_os_wait_as(NULL));
    user_end(&a);
    user_end(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_users),
        cmocka_unit_test(reads_and_paths),
        cmocka_unit_test(nested),
    };
    return cmocka_run_group_tests(tests, temp_dir_make, temp_dir_remove);
}
