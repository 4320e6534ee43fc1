/* What os_linux*.c does beyond the contract of os.h. */
#include "os/os.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* Large blocks begin where huge pages do, also after they have grown. */
static void test_huge_pages(void **state) {
    static const size_t sizes[] = { 1572864, 1572865, 4194304, 5242880, 6300000, 20000000 };
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        void *at = os_resize(NULL, NULL, 0, sizes[i]);
        assert_non_null(at);
        assert_int_equal((uintptr_t)at % (2u << 20), 0);
        at = os_resize(NULL, at, sizes[i], 2 * sizes[i]);
        assert_non_null(at);
        assert_int_equal((uintptr_t)at % (2u << 20), 0);
        assert_null(os_resize(NULL, at, 2 * sizes[i], 0));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_huge_pages) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
