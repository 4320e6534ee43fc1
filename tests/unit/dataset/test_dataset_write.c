/* The edges of a shard writer: casts at the ends of ranges, pieces of memory, sizes beyond 64 bits,
 * batches that are none of the schema. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/shards_case.h"

/* ── Casts ── */

static void test_ranges(void **unused) {
    static const struct {
        sft_dtype from, to;
        double value;
        bool truncate, fits;
    } all[] = {
        { SFT_F64, SFT_F4, 6, false, true },           { SFT_F64, SFT_F4, 6.9, false, true },
        { SFT_F64, SFT_F4, 7, false, false },          { SFT_F64, SFT_F4, -7, false, false },
        { SFT_F64, SFT_F6_E2M3, 7.5, false, true },    { SFT_F64, SFT_F6_E2M3, 7.7, false, true },
        { SFT_F64, SFT_F6_E2M3, 7.75, false, false },  { SFT_F64, SFT_F6_E3M2, 28, false, true },
        { SFT_F64, SFT_F6_E3M2, 29, false, true },     { SFT_F64, SFT_F6_E3M2, 30, false, false },
        { SFT_F64, SFT_F16, 65504, false, true },      { SFT_F64, SFT_F16, 65536, false, false },
        { SFT_F64, SFT_F16, 65536, true, true },       { SFT_F64, SFT_BF16, 1e39, true, true },
        { SFT_F64, SFT_BF16, 1e39, false, false },     { SFT_F64, SFT_F32, 1e39, true, false },
        { SFT_F64, SFT_F64, 1e300, true, true },       { SFT_F64, SFT_I8, 2.5, false, false },
        { SFT_F64, SFT_I8, 2, true, true },            { SFT_F64, SFT_BOOL, 2, false, false },
        { SFT_F64, SFT_BOOL, 1, false, true },         { SFT_F64, SFT_I8, 2.5, true, false },
    };
    (void)unused;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        double in[4] = { all[i].value, 1, 1, 1 };
        char made[32];
        uint64_t element = 0;
        sft_code code = sfti_ds_cast(all[i].from, in, all[i].to, made, 4, all[i].truncate,
                                     &element, &err);
        if ((code == SFT_OK) != all[i].fits || (code && code != SFT_CAST_VALUE))
            fail_msg("case %zu: %d", i, (int)code);
        if (code && !strstr(err.message, "in element 0")) fail_msg("case %zu: %s", i, err.message);
    }
    /* Truth has no range, and halves as they are are not rounded. */
    static const uint8_t truth[] = { 0, 1, 1, 0 };
    static const uint16_t halves[] = { 0x7c00, 0x0001 };
    uint16_t same[2] = { 0 };
    float made[4] = { 9, 9, 9, 9 };
    uint64_t element = 0;
    assert_int_equal(sfti_ds_cast(SFT_BOOL, truth, SFT_F32, made, 4, false, &element, &err),
                     SFT_OK);
    assert_true(made[0] == 0 && made[1] == 1 && made[3] == 0);
    assert_int_equal(sfti_ds_cast(SFT_F16, halves, SFT_F16, same, 2, true, &element, &err), SFT_OK);
    assert_memory_equal(same, halves, 4);
}

/* ── Pieces ── */

static void test_pieces(void **unused) {
    static const char bytes[] = "abcdefgh";
    shard_held one = { .live = 0 }, other = { .live = 0 };
    const sft_allocator alloc = sfti_allocator(NULL);
    const struct {
        shard_piece a, b;
        bool joins;
    } all[] = {
        { { &one, bytes, 0, 2 }, { &one, bytes + 2, 0, 2 }, true },
        { { &one, bytes, 0, 2 }, { &other, bytes + 2, 0, 2 }, true }, /* one block of memory */
        { { &one, bytes, 0, 2 }, { &one, bytes + 3, 0, 2 }, false },
        { { &one, NULL, 0, 2 }, { &one, NULL, 2, 2 }, true },
        { { &one, NULL, 0, 2 }, { &one, NULL, 3, 2 }, false },
        { { &one, NULL, 0, 2 }, { &other, NULL, 2, 2 }, false },
        { { &one, NULL, 0, 2 }, { &one, bytes + 2, 2, 2 }, false },
        { { &one, bytes, 0, 2 }, { &one, NULL, 2, 2 }, false },
        { { NULL, NULL, 0, 2 }, { NULL, NULL, 0, 3 }, true }, /* zeros */
        { { NULL, NULL, 0, 2 }, { &one, NULL, 2, 2 }, false },
        { { &one, NULL, 0, 2 }, { NULL, NULL, 2, 2 }, false },
        { { &one, NULL, 0, 2 }, { &other, bytes, 0, 0 }, true }, /* nothing */
    };
    (void)unused;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        shard_pieces pieces = { NULL, 0, 0 };
        assert_true(sfti_pieces_put(&pieces, all[i].a, &alloc));
        assert_true(sfti_pieces_put(&pieces, all[i].b, &alloc));
        if ((pieces.count == 1) != all[i].joins) fail_msg("case %zu", i);
        if (all[i].joins) assert_int_equal(pieces.items[0].len, all[i].a.len + all[i].b.len);
        sfti_pieces_free(&pieces, &alloc);
    }
}

/* ── Sizes ── */

static void test_sizes(void **unused) {
    static const float floats[] = { 1, 2, 3 };
    static const int32_t ends[] = { 0, 1, 3 };
    (void)unused;
    OPEN(one_type("l"), "batch_size=4611686018427387904", "tail_strategy=pad");
    append(one_rows(1, longs));
    close_fails(SFT_SIZE_OVERFLOW, "expected a batch within 64 bits, found more");
    sft_dataset_options_free(options);
    /* Four bits an element: rows are whole bytes. */
    struct ArrowSchema *keyed = am_of(am_of(am_type("+s", ""), am_type("u", "id")),
                                      am_list("+w:1", "v", am_type("f", "item")));
    OPEN(keyed, "name_col=id", "dtype=F4");
    struct ArrowArray *rows = am_make(1, 0, NULL);
    am_with(rows, am_make(1, 0, NULL, ends, "a"));
    am_with(rows, am_with(am_make(1, 0, NULL), am_make(1, 0, NULL, floats)));
    refuse(rows, SFT_ROW_SHAPE,
           "column \"v\", row 0: expected whole bytes, found 4 bits of F4");
}

/* More rows than the first table of names holds, most of which are replaced. */
static void test_many_replaced(void **unused) {
    static int32_t at[601];
    static char letters[600];
    static int64_t numbers[600];
    struct ArrowSchema *keyed = am_of(am_of(am_type("+s", ""), am_type("u", "id")),
                                      am_type("l", "n"));
    (void)unused;
    for (int i = 0; i < 600; i++) {
        at[i] = i;
        letters[i] = (char)('a' + i % 7);
        numbers[i] = i;
    }
    at[600] = 600;
    OPEN(keyed, "name_col=id", "duplicatesStrategy=lastWin");
    struct ArrowArray *rows = am_make(600, 0, NULL);
    am_with(rows, am_make(600, 0, NULL, at, letters));
    append(am_with(rows, am_make(600, 0, NULL, numbers)));
    close_writer(NULL);
    assert_int_equal(receipts[0].samples, 7);
    open_shard(0);
    TENSOR("a__n", SFT_I64, "[]", int64_t, 595);
    TENSOR("e__n", SFT_I64, "[]", int64_t, 599);
    TENSOR("f__n", SFT_I64, "[]", int64_t, 593);
}

/* ── Batches and arguments ── */

static void test_batches(void **unused) {
    static const uint8_t all[] = { 0xff }, first[] = { 0xfe };
    struct ArrowArray *bad[5];
    (void)unused;
    for (int i = 0; i < 5; i++) bad[i] = pair_rows(0, 2);
    bad[0]->length = -1;
    bad[1]->offset = -1;
    bad[2]->children = NULL;
    bad[3]->buffers = NULL;
    bad[4]->n_children = -1;
    for (int i = 0; i < 5; i++) {
        OPEN(pair_type(), "batch_size=2");
        refuse(bad[i], SFT_BAD_ARGUMENT,
               "expected a struct array of the schema's 2 columns, found another");
        sft_dataset_options_free(options);
    }
    OPEN(pair_type(), "batch_size=2");
    struct ArrowArray *rows = am_with(am_with(am_make(2, 0, all), am_make(7, 1, NULL, longs)),
                                      am_with(am_make(7, 0, NULL), am_make(14, 2, NULL, shorts)));
    append(rows); /* a mask that leaves all rows */
    rows = am_with(am_with(am_make(2, 0, first), am_make(7, 1, NULL, longs)),
                   am_with(am_make(7, 0, NULL), am_make(14, 2, NULL, shorts)));
    refuse(rows, SFT_ROW_NULL, "row 2: expected a row, found null");
    sft_dataset_options_free(options);
    OPEN(pair_type(), "batch_size=2");
    append(pair_rows(0, 2));
    assert_int_equal(sft_shard_writer_finish(writer, NULL, NULL, &err), SFT_BAD_ARGUMENT);
    assert_string_equal(err.message, "expected a place for the receipts, found NULL");
    writer = NULL;
    assert_int_equal(sft_shard_writer_begin(options, &storage, sft_span_cstr(JOB_TEXT), 0,
                                            pair_type(), NULL, NULL, &err), SFT_BAD_ARGUMENT);
    assert_string_equal(err.message, "expected options and a place for the writer, found NULL");
    assert_int_equal(sft_shard_writer_begin(options, &storage, (sft_span){ NULL, 0 }, 0,
                                            pair_type(), NULL, &writer, &err), SFT_BAD_ARGUMENT);
    assert_string_equal(err.message, "expected the text of sft_commit_job, found \"\"");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_ranges), TEST(test_pieces), TEST(test_sizes), TEST(test_many_replaced),
        TEST(test_batches),
    };
    return cmocka_run_group_tests_name("dataset_write", tests, NULL, NULL);
}
