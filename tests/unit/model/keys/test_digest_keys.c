/* Digests that a header records of its own file: which keys, what they are of, and when the data
 * written anew are the same. */
#include "keys/digest_keys.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#define COUNT(list) (sizeof(list) / sizeof *(list))

static void test_keys(void **state) {
    (void)state;
    static const struct { const char *key; unsigned of; } keys[] = {
        { "sshs_model_hash", SFTI_DIGEST_SSHS_MODEL },
        { "sshs_legacy_hash", SFTI_DIGEST_SSHS_LEGACY },
        { "modelspec.hash_sha256", SFTI_DIGEST_MODELSPEC },
        { "modelspec.hash_blake3", SFTI_DIGEST_MODELSPEC },
        { "modelspec.hash", 0 }, { "modelspec.title", 0 }, { "sshs_model_hash_of", 0 },
        { "sshs_model", 0 }, { "ss_sd_model_hash", 0 }, { "ss_new_vae_hash", 0 }, { "", 0 },
    };
    for (size_t i = 0; i < COUNT(keys); i++)
        assert_int_equal(sfti_digest_key_of(sft_span_cstr(keys[i].key)), keys[i].of);
    assert_true(sfti_is_training_key(sft_span_cstr("ss_epoch")));
    assert_true(sfti_is_training_key(sft_span_cstr("ss_")));
    assert_false(sfti_is_training_key(sft_span_cstr("ss")));
    assert_false(sfti_is_training_key(sft_span_cstr("sshs_model_hash")));
    assert_false(sfti_is_training_key((sft_span){ NULL, 0 }));
}

static bool is_official(const sft_tensor *tensors, size_t count, uint64_t bytes) {
    sfti_layout layout = SFTI_LAYOUT_INIT;
    for (size_t i = 0; i < count; i++) sfti_layout_add(&layout, &tensors[i]);
    return sfti_layout_is_official(&layout, bytes);
}

static sft_tensor tensor(const char *name, sft_dtype dtype, uint64_t begin, uint64_t end) {
    return (sft_tensor){ .name = sft_span_cstr(name), .dtype = dtype, .begin = begin, .end = end };
}

static void test_layout(void **state) {
    (void)state;
    sft_tensor sorted[] = { tensor("b", SFT_F32, 0, 8), tensor("a", SFT_U8, 8, 9),
                            tensor("b2", SFT_U8, 9, 12) };
    assert_true(is_official(NULL, 0, 0));
    assert_true(is_official(sorted, 3, 12));
    assert_false(is_official(sorted, 3, 13)); /* bytes after the last */
    assert_false(is_official(sorted, 2, 12));
    sft_tensor names[] = { tensor("b", SFT_U8, 0, 8), tensor("a", SFT_U8, 8, 9) };
    assert_false(is_official(names, 2, 9));
    sft_tensor dtypes[] = { tensor("a", SFT_U8, 0, 8), tensor("b", SFT_F32, 8, 12) };
    assert_false(is_official(dtypes, 2, 12));
    sft_tensor hole[] = { tensor("a", SFT_F32, 0, 8), tensor("b", SFT_F32, 12, 16) };
    assert_false(is_official(hole, 2, 16));
    sft_tensor shared[] = { tensor("a", SFT_F32, 0, 8), tensor("b", SFT_F32, 4, 12) };
    assert_false(is_official(shared, 2, 12));
    /* What has no bytes is nowhere. */
    sft_tensor empty[] = { tensor("z", SFT_U8, 0, 0), tensor("a", SFT_F32, 0, 8),
                           tensor("0", SFT_F64, 8, 8) };
    assert_true(is_official(empty, 3, 8));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_layout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
