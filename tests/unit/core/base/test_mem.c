#include "base/checked.h"
#include "base/endian.h"
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* An allocator that counts what is out and can refuse. */
typedef struct counter {
    size_t out, calls, refuse_from;
} counter;

static void *count_resize(void *ctx, void *ptr, size_t old_size, size_t new_size) {
    counter *c = ctx;
    sft_allocator libc = sfti_allocator(NULL);
    if (new_size > 0 && ++c->calls >= c->refuse_from) return NULL;
    c->out += new_size;
    c->out -= old_size;
    return libc.resize(libc.ctx, ptr, old_size, new_size);
}

static void arena_gives_back_all(void **state) {
    (void)state;
    counter c = { 0, 0, SIZE_MAX };
    sfti_arena arena = { 0 };
    arena.alloc.resize = count_resize;
    arena.alloc.ctx = &c;
    for (size_t size = 0; size < 20000; size += 7) {
        unsigned char *p = sfti_arena_take(&arena, size);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 8, 0);
        memset(p, 0xAA, size);
    }
    assert_int_equal(arena.bytes, c.out);
    assert_true(sfti_arena_reserve(&arena, 1 << 20));
    size_t calls = c.calls;
    assert_non_null(sfti_arena_take(&arena, 1 << 20));
    assert_int_equal(c.calls, calls);
    sfti_arena_free(&arena);
    assert_int_equal(c.out, 0);
}

static void texts_are_joined(void **state) {
    sfti_arena arena = { .alloc = sfti_allocator(NULL) };
    static const sft_span none = { NULL, 0 };
    (void)state;
    assert_string_equal(sfti_arena_join(&arena, sft_span_cstr("a/"), sft_span_cstr("b")), "a/b");
    assert_string_equal(sfti_arena_join(&arena, none, sft_span_cstr("b")), "b");
    assert_string_equal(sfti_arena_join(&arena, none, none), "");
    sfti_arena_free(&arena);
}

static void arena_can_fail(void **state) {
    (void)state;
    counter c = { 0, 0, 1 };
    sfti_arena arena = { 0 };
    arena.alloc.resize = count_resize;
    arena.alloc.ctx = &c;
    assert_null(sfti_arena_take(&arena, 8));
    assert_null(sfti_arena_take(&arena, SIZE_MAX));
    assert_null(sfti_arena_take(&arena, SIZE_MAX - 8));
    assert_false(sfti_arena_reserve(&arena, SIZE_MAX));
    assert_false(sfti_arena_reserve(&arena, SIZE_MAX / 2 + 1));
    assert_null(sfti_arena_array(&arena, UINT64_MAX, 8));
    assert_null(sfti_arena_array(&arena, UINT64_MAX / 8, 8));
    c.refuse_from = SIZE_MAX;
    assert_non_null(sfti_arena_array(&arena, 3, 8));
    assert_non_null(sfti_arena_array(&arena, 0, 8));
    sfti_arena_free(&arena);
    assert_int_equal(c.out, 0);
}

static void buffer_grows(void **state) {
    (void)state;
    counter c = { 0, 0, SIZE_MAX };
    sft_buffer buffer = { NULL, 0, 0, { count_resize, &c } };
    for (int i = 0; i < 1000; i++) assert_true(sfti_buffer_put(&buffer, "0123456789", 10));
    assert_int_equal(buffer.len, 10000);
    assert_memory_equal(buffer.data + 9990, "0123456789", 10);
    assert_true(c.calls < 20);
    assert_true(sfti_buffer_put(&buffer, NULL, 0));
    assert_false(sfti_buffer_reserve(&buffer, SIZE_MAX));
    assert_false(sfti_buffer_reserve(&buffer, SIZE_MAX / 2));
    c.refuse_from = 0;
    assert_false(sfti_buffer_reserve(&buffer, 1 << 20));
    assert_false(sfti_buffer_reserve(&buffer, SIZE_MAX / 2 - buffer.len));
    assert_false(sfti_buffer_put(&buffer, "x", (size_t)1 << 20));
    assert_int_equal(buffer.len, 10000);
    sft_buffer_free(&buffer);
    assert_int_equal(c.out, 0);
}

static void sums_and_products_are_checked(void **state) {
    (void)state;
    uint64_t out = 7;
    assert_true(sfti_add(UINT64_MAX - 1, 1, &out) && out == UINT64_MAX);
    assert_false(sfti_add(UINT64_MAX, 1, &out));
    assert_int_equal(out, UINT64_MAX);
    assert_true(sfti_mul(UINT64_C(1) << 32, UINT64_C(1) << 31, &out));
    assert_int_equal(out, UINT64_C(1) << 63);
    assert_false(sfti_mul(UINT64_C(1) << 32, UINT64_C(1) << 32, &out));
    assert_true(sfti_mul(0, UINT64_MAX, &out) && out == 0);
    assert_true(sfti_align_up(9, 8, &out) && out == 16);
    assert_false(sfti_align_up(UINT64_MAX - 3, 8, &out));
    assert_true(sfti_fits_size(SIZE_MAX / 2) && !sfti_fits_size(UINT64_MAX));
}

static void integers_are_little_endian(void **state) {
    (void)state;
    uint8_t bytes[9] = { 0, 1, 2, 3, 4, 5, 6, 7, 8 };
    assert_int_equal(sfti_get_u16(bytes + 1), 0x0201);
    assert_int_equal(sfti_get_u32(bytes + 1), 0x04030201);
    assert_int_equal(sfti_get_u64(bytes + 1), UINT64_C(0x0807060504030201));
    sfti_put_u64(bytes, UINT64_C(0x1122334455667788));
    assert_int_equal(bytes[0], 0x88);
    assert_int_equal(bytes[7], 0x11);
    assert_int_equal(bytes[8], 8);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arena_gives_back_all),
        cmocka_unit_test(texts_are_joined),
        cmocka_unit_test(arena_can_fail),
        cmocka_unit_test(buffer_grows),
        cmocka_unit_test(sums_and_products_are_checked),
        cmocka_unit_test(integers_are_little_endian),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
