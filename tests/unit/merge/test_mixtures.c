/* Small models whose mixture is found, with the weights, or not, with the reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "safetensors_merge.h"
#include "unit/text_model.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))

/* Which sum of the models the first one is: the weights in all of it ("nan": not told), or why that
 * is not found. */
static void finds_mixtures(void **state) {
    static const struct {
        const char *models[4], *says;
        bool fits;
        size_t left_out, blames;
    } cases[] = {
        { { "w F32 4 #0.25,0.75,2.25,0.5", "w F32 4 #1,0,0,2", "w F32 4 #0,1,3,0" }, "=0.25,0.75",
          true, 0, 0 },
        { { "w F32 4 #1,1,5,2", "w F32 4 #1,0,0,2", "w F32 4 #0,1,3,0" }, "=", false, 0, 0 },
        { { "w F32 4 #1,0,0,2", "w F32 4 #1,0,0,2" }, "=1", true, 0, 0 },
        { { "w F32 4 #1,0,0,2", "w F32 4 #1,0,0,2", "w F32 4 #1,0,0,2" }, "=nan,nan", true, 0, 0 },
        { { "w F32 4 #2,0,0,4", "w F32 4 #1,0,0,2" }, "=2", true, 0, 0 },
        { { "w F32 0", "w F32 0" }, "=nan", true, 0, 0 },
        { { "w F32 4 #0.25,0.75,2.25,0.5;v F32 1;i I32 1", "w F32 4 #1,0,0,2;i I32 1",
            "w F32 4 #0,1,3,0;i I32 1" }, "=0.25,0.75", true, 2, 0 },
        { { "w F32 4;m.0.w F32 2 #1,3", "w F32 4;m.0.w F32 2 #2,0", "w F32 4;m.0.w F32 2 #0,6" },
          "=0.5,0.5", true, 0, 0 },
        { { "w F64 1 #9112896989213093888", "w F64 1" }, "w: expected differences from 1e-140 to",
          false, 0, 0 },
        { { "w F32 2 #1,nan", "w F32 2" }, "w: expected finite values, found NaN", false, 0, 0 },
        { { "w F32 2", "w F32 2 #inf" }, "w: expected finite values, found an infinity", false, 0,
          1 },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        case_model models[4];
        const sft_set *sets[4];
        sft_error err = SFT_ERROR_INIT;
        sft_mixture *mixture;
        size_t count = 0, who;
        char found[256] = "=";
        for (; count < 4 && cases[i].models[count]; count++) {
            models[count] = case_open(cases[i].models[count], NULL);
            sets[count] = models[count].set;
        }
        sft_code code = sft_mixture_new(sets[0], sets + 1, count - 1, NULL, NULL, &mixture, &who,
                                        &err);
        if (code) {
            (void)snprintf(found, sizeof found, "%.*s: %.200s", (int)err.tensor_len, err.tensor,
                           err.message);
            if (who != cases[i].blames) print_error("case %zu: %s: %zu\n", i, found, who);
            assert_int_equal(who, cases[i].blames);
            assert_null(mixture);
        } else {
            const sft_mixture_block *all = sft_mixture_at(mixture, sft_mixture_count(mixture) - 1);
            for (size_t k = 0, at = 1; k < count - 1; k++)
                at += (size_t)snprintf(found + at, sizeof found - at, "%s%.4g", k ? "," : "",
                                       all->weights[k]);
            if (all->fits != cases[i].fits) print_error("case %zu: fits %d\n", i, all->fits);
            assert_int_equal(all->fits, cases[i].fits);
            assert_int_equal(sft_mixture_left_out(mixture), cases[i].left_out);
            sft_mixture_free(mixture);
        }
        if (strncmp(found, cases[i].says, strlen(cases[i].says)) != 0)
            fail_msg("case %zu: expected %s, found %s", i, cases[i].says, found);
        while (count > 0) case_close(&models[--count]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(finds_mixtures) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
