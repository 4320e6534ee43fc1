/* The blocks that the Python package keeps (kept.c), over a system that only counts them. */
#include "../../bindings/python/src/kept.c"
#include "os/os.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>

#define UNIT ((size_t)1 << 20)
#define PLACES ((size_t)512) /* of 2 MiB, which is more than their blocks have */

static struct {
    atomic_size_t length[PLACES]; /* of the block that is mapped there */
    atomic_bool owned[PLACES];
    atomic_size_t count, errors; /* count: blocks that are mapped */
    size_t most;                 /* there is memory for so many */
    bool alike;                  /* all blocks have one address, and lengths do not matter */
} host;

const bool pysft_host_lends = true;

static size_t place_of(const char *at) {
    return (uintptr_t)at / ALIGNMENT - 1;
}

char *pysft_host_map(size_t bytes) {
    size_t place = 0, none = 0;
    if (atomic_load(&host.count) >= host.most) return NULL;
    atomic_fetch_add(&host.count, 1);
    while (!host.alike && !atomic_compare_exchange_strong(&host.length[place], &none, bytes)) {
        place = (place + 1) % PLACES;
        none = 0;
    }
    return (char *)(ALIGNMENT * (place + 1));
}

static void expect(bool ok) {
    if (!ok) atomic_fetch_add(&host.errors, 1);
}

void pysft_host_unmap(char *at, size_t bytes) {
    size_t left = (uintptr_t)at % ALIGNMENT; /* or the end of the block */
    if (left == 0) atomic_fetch_sub(&host.count, 1);
    if (!host.alike) expect(atomic_exchange(&host.length[place_of(at)], left) == left + bytes);
}

bool pysft_host_lend(char *at, size_t bytes) {
    (void)at, (void)bytes;
    return true;
}

static int begin(void **state) {
    (void)state;
    memset(&host, 0, sizeof host);
    host.most = SIZE_MAX;
    return 0;
}

static int end(void **state) {
    (void)state;
    (void)pysft_kept_release();
    assert_int_equal(atomic_load(&host.count), 0);
    assert_int_equal(atomic_load(&host.errors), 0);
    assert_int_equal(atomic_load(&mapped), 0);
    assert_int_equal(atomic_load(&kept_bytes), 0);
    return 0;
}

/* ── How many ── */

/* Blocks until there are no more, MAPPED_MOST + 1 at most. */
static size_t take_all(size_t len) {
    size_t count = 0;
    bool again;
    while (count <= MAPPED_MOST && pysft_kept_take(len, &again)) count++;
    return count;
}

static void give_all(size_t count, size_t len) {
    for (; count > 0; count--) pysft_kept_give((char *)ALIGNMENT, len);
}

static void test_limit_of_maps(void **state) {
    bool again;
    (void)state;
    host.alike = true;
    assert_int_equal(take_all(UNIT), MAPPED_MOST);
    assert_int_equal(atomic_load(&host.count), MAPPED_MOST);
    give_all(1, UNIT); /* one that is kept can be had */
    assert_non_null(pysft_kept_take(UNIT, &again));
    assert_true(again);
    assert_null(pysft_kept_take(UNIT, &again));
    give_all(MAPPED_MOST, UNIT);
    assert_int_equal(atomic_load(&host.count), KEPT_SLOTS);
    assert_int_equal(take_all(UNIT), MAPPED_MOST);
    give_all(MAPPED_MOST, UNIT);
}

/* Where there is memory for no other, those that are kept make room. */
static void test_room(void **state) {
    bool again;
    (void)state;
    host.alike = true;
    host.most = 2;
    assert_int_equal(take_all(UNIT), 2);
    give_all(2, UNIT);
    assert_non_null(pysft_kept_take(4 * UNIT, &again));
    assert_false(again);
    assert_int_equal(atomic_load(&host.count), 1);
    give_all(1, 4 * UNIT);
}

/* What is not there does not count. */
static void test_no_memory(void **state) {
    bool again;
    (void)state;
    host.alike = true;
    host.most = 0;
    for (size_t i = 0; i < MAPPED_MOST; i++) assert_null(pysft_kept_take(UNIT, &again));
    host.most = SIZE_MAX;
    assert_int_equal(take_all(UNIT), MAPPED_MOST);
    give_all(MAPPED_MOST, UNIT);
}

static void test_limit_of_bytes(void **state) {
    bool again;
    (void)state;
    host.alike = true;
    for (size_t i = 0; i < 5; i++) assert_non_null(pysft_kept_take(KEPT_MOST, &again));
    give_all(5, KEPT_MOST);
    assert_int_equal(atomic_load(&host.count), 4);
    assert_int_equal(pysft_kept_release(), KEPT_ALL);
    atomic_fetch_add(&kept_bytes, KEPT_ALL); /* another thread's, not yet in their slots */
    assert_int_equal(take_all(UNIT), MAPPED_MOST);
    give_all(MAPPED_MOST, UNIT);
    assert_int_equal(atomic_load(&host.count), 0);
    atomic_fetch_sub(&kept_bytes, KEPT_ALL);
}

static void test_lengths(void **state) {
    (void)state;
    assert_int_equal(pysft_kept_length(KEPT_LEAST - 1), 0);
    assert_int_equal(pysft_kept_length(KEPT_LEAST), KEPT_LEAST);
    assert_int_equal(pysft_kept_length(KEPT_LEAST + 1), KEPT_LEAST + KEPT_UNIT);
    assert_int_equal(pysft_kept_length(KEPT_MOST), KEPT_MOST);
    assert_int_equal(pysft_kept_length(KEPT_MOST + 1), 0);
}

/* ── Threads ── */

#define THREADS 4
#define HELD 4
#define ROUNDS 20000

/* The longer may be cut to be the shorter. */
static size_t length_of(size_t held) {
    return (held % 2 ? 28 : 31) * KEPT_UNIT;
}

static void own(char *at, bool is, size_t len) {
    expect(atomic_exchange(&host.owned[place_of(at)], is) != is);
    expect(atomic_load(&host.length[place_of(at)]) == len);
}

static void take_and_give(void *ctx) {
    char *held[HELD] = { NULL };
    bool again;
    (void)ctx;
    for (size_t i = 0; i < ROUNDS; i++) {
        char **one = &held[i % HELD];
        size_t len = length_of(i % HELD);
        if (*one) own(*one, false, len);
        if (*one) pysft_kept_give(*one, len);
        *one = i + HELD < ROUNDS ? pysft_kept_take(len, &again) : NULL;
        if (*one) own(*one, true, len);
        if (i % 997 == 0) (void)pysft_kept_release();
    }
}

/* No block is two threads' at a time, none is lost. */
static void test_threads(void **state) {
    os_thread threads[THREADS];
    (void)state;
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(sfti_os_thread_start(&threads[i], take_and_give, NULL), 0);
    for (size_t i = 0; i < THREADS; i++) sfti_os_thread_join(&threads[i]);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(test_limit_of_maps),  CASE(test_room),    CASE(test_no_memory),
        CASE(test_limit_of_bytes), CASE(test_lengths), CASE(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
