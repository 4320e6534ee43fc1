/* Rows become files in batch mode: tails, casts, errors; the files are opened and compared. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "unit/shards_case.h"
#include "unit/storage_table.h"

/* ── Batch mode ── */

static void test_batches(void **unused) {
    (void)unused;
    OPEN(pair_type(), "batch_size=3");
    append(pair_rows(0, 0));
    append(pair_rows(0, 2));
    append(pair_rows(2, 5));
    assert_int_equal(am_released, 2); /* the last is kept for its tail */
    close_writer(NULL);
    assert_int_equal(receipt_count, 3);
    open_shard(0);
    TENSOR("n", SFT_I64, "[3]", int64_t, (INT64_C(1) << 53) + 1, INT64_MIN, INT64_MAX);
    TENSOR("v", SFT_I16, "[3, 2]", int16_t, 2, 3, 4, 5, 6, 7);
    metadata_is("libsafetensors.dataset", "1");
    metadata_is("mode", "batch");
    metadata_is("samples", "3");
    metadata_is("valid_samples", NULL);
    assert_true(strncmp(receipts[0].name.data, "part-00010-0000-", 16) == 0);
    open_shard(1);
    TENSOR("v", SFT_I16, "[3, 2]", int16_t, 8, 9, 10, 11, 12, 13);
    open_shard(2);
    TENSOR("n", SFT_I64, "[1]", int64_t, 7);
    metadata_is("samples", "1");
    assert_int_equal(receipts[2].samples, 1);
    assert_int_equal(receipts[2].column_count, 2);
    assert_int_equal(receipts[2].columns[1].shape[0], 2);
    assert_int_equal(receipts[2].columns[1].dtype, SFT_I16);
    assert_true(receipts[0].columns[0].has_shape && receipts[0].columns[0].rank == 0);
}

static void test_one_large_batch(void **unused) {
    (void)unused;
    OPEN(pair_type(), "batch_size=2", "columns=v");
    append(pair_rows(0, 7));
    close_writer(NULL);
    assert_int_equal(receipt_count, 4);
    open_shard(3);
    TENSOR("v", SFT_I16, "[1, 2]", int16_t, 14, 15);
}

static void test_tails(void **unused) {
    (void)unused;
    OPEN(pair_type(), "batch_size=4", "tail_strategy=pad");
    append(pair_rows(0, 3));
    append(pair_rows(3, 2));
    close_writer(NULL);
    assert_int_equal(receipt_count, 2);
    open_shard(1);
    TENSOR("n", SFT_I64, "[4]", int64_t, 5, 0, 0, 0);
    TENSOR("v", SFT_I16, "[4, 2]", int16_t, 10, 11, 0, 0, 0, 0, 0, 0);
    metadata_is("samples", "4");
    metadata_is("valid_samples", "1");
    assert_int_equal(receipts[1].samples, 4);
    assert_int_equal(receipts[1].valid_samples, 1);
}

static void test_dropped(void **unused) {
    (void)unused;
    OPEN(pair_type(), "batch_size=4", "tail_strategy=drop");
    append(pair_rows(0, 6));
    close_writer(NULL);
    assert_int_equal(receipt_count, 1);
    assert_int_equal(receipts[0].dropped, 2);
}

/* A task that wrote no file still reports its drops. */
static void test_all_dropped(void **unused) {
    (void)unused;
    OPEN(pair_type(), "batch_size=4", "tail_strategy=drop");
    append(pair_rows(0, 3));
    close_writer(NULL);
    assert_int_equal(receipt_count, 1);
    assert_null(receipts[0].name.data);
    assert_int_equal(receipts[0].partition, 3);
    assert_int_equal(receipts[0].dropped, 3);
    assert_int_equal(temp_dir_count(), 0);
}

static void test_nothing(void **unused) {
    (void)unused;
    OPEN(pair_type(), "batch_size=4");
    close_writer(NULL);
    assert_int_equal(receipt_count, 0);
    assert_int_equal(temp_dir_count(), 0);
}

/* Elements that are not packed are copied and kept until their file is written. */
static void test_loose(void **unused) {
    static const uint8_t bits[] = { 0xb5, 0x62 };
    struct ArrowSchema *schema = am_of(am_type("+s", ""), am_type("b", "x"));
    (void)unused;
    OPEN(am_of(schema, am_dictionary("C", am_type("s", "d"))), "batch_size=5");
    for (int i = 0; i < 3; i++) {
        static const uint8_t keys[] = { 2, 1, 0, 2 };
        struct ArrowArray *top = am_make(4, 0, NULL);
        am_with(top, am_make(4, 3, NULL, bits));
        append(am_with(top, am_look_up(am_make(4, 0, NULL, keys), am_make(3, 4, NULL, shorts))));
    }
    close_writer(NULL);
    assert_int_equal(receipt_count, 3);
    open_shard(0);
    TENSOR("x", SFT_BOOL, "[5]", char, 0, 1, 1, 0, 0);
    TENSOR("d", SFT_I16, "[5]", int16_t, 6, 5, 4, 6, 6);
    open_shard(1);
    TENSOR("x", SFT_BOOL, "[5]", char, 1, 1, 0, 0, 1);
    TENSOR("d", SFT_I16, "[5]", int16_t, 5, 4, 6, 6, 5);
    open_shard(2);
    TENSOR("x", SFT_BOOL, "[2]", char, 1, 0);
}

static void test_ragged(void **unused) {
    static const int32_t offsets[] = { 0, 2, 4, 7 };
    static const int32_t even[] = { 0, 2, 3, 4 };
    static const uint8_t mask[] = { 0xfd };
    struct ArrowSchema *schema =
        am_of(am_type("+s", ""), am_list("+l", "v", am_type("s", "item")));
    (void)unused;
    OPEN(schema, "batch_size=9", "dtype=F4");
    append(am_with(am_make(3, 0, NULL), am_with(am_make(3, 0, NULL, even),
                                                am_make(8, 0, NULL, shorts))));
    close_fails(SFT_ROW_SHAPE, "column \"v\": expected lists of one length, or a dtype of whole "
                               "bytes, found F4");
    sft_dataset_options_free(options);
    struct ArrowSchema *nested = am_of(
        am_type("+s", ""), am_list("+l", "v", am_list("+w:1", "item", am_type("s", "item"))));
    OPEN(nested, "batch_size=3");
    append(am_with(am_make(3, 0, NULL),
                   am_with(am_make(3, 0, mask, offsets),
                           am_with(am_make(8, 0, NULL), am_make(8, 0, NULL, shorts)))));
    append(am_with(am_make(3, 0, NULL),
                   am_with(am_make(3, 0, NULL, offsets),
                           am_with(am_make(8, 0, NULL), am_make(8, 0, NULL, shorts)))));
    close_writer(NULL);
    open_shard(0); /* a null list: lists of lists */
    TENSOR("v.offsets", SFT_I64, "[4]", int64_t, 0, 2, 2, 5);
    TENSOR("v.valid", SFT_BOOL, "[3]", uint8_t, 1, 0, 1);
    TENSOR("v.item.offsets", SFT_I64, "[6]", int64_t, 0, 1, 2, 3, 4, 5);
    TENSOR("v.item.item", SFT_I16, "[5]", int16_t, 0, 1, 4, 5, 6);
    open_shard(1); /* the third is longer: those before it were gathered as [2, 1] */
    TENSOR("v.offsets", SFT_I64, "[4]", int64_t, 0, 2, 4, 7);
    TENSOR("v.item.offsets", SFT_I64, "[8]", int64_t, 0, 1, 2, 3, 4, 5, 6, 7);
    TENSOR("v.item.item", SFT_I16, "[7]", int16_t, 0, 1, 2, 3, 4, 5, 6);
    assert_int_equal(receipts[1].columns[0].encoding, SFTI_ENCODING_NESTED);
    sft_dataset_options_free(options);
    OPEN(schema, "batch_size=9", "shapes={\"v\":[2,1]}");
    refuse(am_with(am_make(3, 0, NULL),
                   am_with(am_make(3, 0, NULL, offsets), am_make(8, 0, NULL, shorts))),
           SFT_ROW_SHAPE, "column \"v\", row 2: expected shape [2, 1], found [3]");
    sft_dataset_options_free(options);
    OPEN(schema, "batch_size=9");
    refuse(am_with(am_make(3, 0, mask),
                   am_with(am_make(3, 0, NULL, offsets), am_make(8, 0, NULL, shorts))),
           SFT_ROW_NULL, "row 1: expected a row, found null");
}

static void test_bad_batches(void **unused) {
    struct ArrowArray *bad[4];
    (void)unused;
    bad[0] = one_rows(2, longs);
    bad[1] = pair_rows(5, 4); /* longer than its columns */
    bad[2] = pair_rows(0, 2), bad[2]->children[1] = NULL;
    bad[3] = pair_rows(0, 2), bad[3]->children[0]->n_buffers = 1;
    for (int i = 0; i < 4; i++) {
        OPEN(pair_type(), "batch_size=2");
        append(pair_rows(0, 3));
        assert_int_equal(give(bad[i], NULL), SFT_BAD_ARGUMENT);
        assert_int_equal(give(pair_rows(0, 1), NULL), SFT_BAD_ARGUMENT);
        assert_non_null(strstr(err.message, "can only be abandoned"));
        sft_shard_writer_abandon(writer);
        writer = NULL;
        assert_int_equal(am_given, am_released);
        sft_dataset_options_free(options);
    }
    options = NULL;
    assert_int_equal(storage.vtable->remove(storage.ctx, FOLDER, true, &err), SFT_OK);
    assert_int_equal(temp_dir_count(), 0);
}

/* ── Casts ── */

static void test_casts(void **unused) {
    (void)unused;
    OPEN(pair_type(), "batch_size=4", "dtype={\"v\":\"F64\",\"n\":\"U8\"}", "columns=v");
    append(pair_rows(0, 3));
    append(pair_rows(3, 1));
    close_writer(NULL);
    open_shard(0);
    TENSOR("v", SFT_F64, "[4, 2]", double, 2, 3, 4, 5, 6, 7, 8, 9);
}

static void test_cast_value(void **unused) {
    (void)unused;
    OPEN(pair_type(), "batch_size=4", "dtype=I8", "columns=n");
    append(pair_rows(3, 2)); /* -1, 5 */
    refuse(pair_rows(1, 2), SFT_ROW_VALUE,
           "column \"n\", row 2: expected values of I8 (-128 to 127), found -9223372036854775808 "
           "in element 0");
}

static void test_cast_value_later(void **unused) {
    static int16_t many[40000];
    (void)unused;
    many[39999] = -7;
    OPEN(am_of(am_type("+s", ""), am_list("+w:2", "v", am_type("s", "item"))),
         "batch_size=50000", "dtype=U8");
    append(am_with(am_make(20000, 0, NULL),
                   am_with(am_make(20000, 0, NULL), am_make(40000, 0, NULL, many))));
    close_fails(SFT_ROW_VALUE, "column \"v\", row 19999: expected values of U8 (0 to 255), found "
                               "-7 in element 1");
}

/* Rows of x in one batch, the last of which does not fit the dtype. */
typedef struct unfit {
    const char *format, *dtype; /* of Arrow, "dtype=…" */
    const void *values;
    int64_t rows;
    const char *said; /* the text after "row N: " */
} unfit;

static void test_unfit(void **unused) {
    static const double third[] = { -0.0, 3, -7, 2.5 }, nan_too[] = { 1, (double)NAN };
    static const double exact[] = { 1, 4294967295.5 }, wide[] = { 65519, -65520 };
    static const double wider[] = { 3.4e38, 3.5e38 };
    static const float infinite[] = { 1, INFINITY }, seven[] = { -6.5F, 7 };
    static const float zero[] = { 1, 0 }, half[] = { 0, 1, -0.0F, 0.5F }, e4m3[] = { 448, 480 };
    static const int64_t two[] = { 0, 1, 2 }, large[] = { 65504, 70000 };
    static const unfit cases[] = {
        { "g", "dtype=I64", third, 4, "expected whole numbers to convert to I64, found 2.5 in " },
        { "g", "dtype=U8", nan_too, 2, "expected values of U8 (0 to 255), found NaN in " },
        { "g", "dtype=U32", exact, 2,
          "expected whole numbers to convert to U32, found 4294967295.5 in " },
        { "f", "dtype=I8", infinite, 2, "expected values of I8 (-128 to 127), found inf in " },
        { "f", "dtype=BOOL", half, 4, "expected 0 or 1 to convert to BOOL, found 0.5 in " },
        { "l", "dtype=BOOL", two, 3, "expected 0 or 1 to convert to BOOL, found 2 in " },
        { "l", "dtype=F16", large, 2,
          "expected numbers within its range to convert to F16, found 70000 in " },
        { "g", "dtype=F16", wide, 2,
          "expected numbers within its range to convert to F16, found -65520 in " },
        { "g", "dtype=F32", wider, 2,
          "expected numbers within its range to convert to F32, found 3.5e+38 in " },
        { "f", "dtype=F8_E4M3", e4m3, 2,
          "expected numbers within its range to convert to F8_E4M3, found 480 in " },
        { "f", "dtype=F8_E4M3", infinite, 2,
          "expected numbers within its range to convert to F8_E4M3, found inf in " },
        { "f", "dtype=F8_E8M0", zero, 2,
          "expected numbers within its range to convert to F8_E8M0, found 0 in " },
        { "f", "dtype=F4", seven, 2,
          "expected numbers within its range to convert to F4, found 7 in " },
    };
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const unfit *c = &cases[i];
        char said[200];
        (void)snprintf(said, sizeof said, "column \"x\", row %d: %selement 0", (int)c->rows - 1,
                       c->said);
        OPEN(one_type(c->format), "batch_size=100", c->dtype);
        append(one_rows(c->rows, c->values));
        close_fails(SFT_ROW_VALUE, said);
        sft_dataset_options_free(options);
        options = NULL;
    }
}

/* Floats round, infinities and NaN stay, and whole numbers become integers. */
static void test_fit(void **unused) {
    static const double whole[] = { -0.0, 9007199254740993.0, -3 };
    static const float all[] = { 65519, -INFINITY, NAN, 1e-20F };
    (void)unused;
    OPEN(one_type("g"), "batch_size=3", "dtype=I64", "rounding=truncate");
    append(one_rows(3, whole));
    close_writer(NULL);
    open_shard(0);
    TENSOR("x", SFT_I64, "[3]", int64_t, 0, INT64_C(1) << 53, -3);
    sft_dataset_options_free(options);
    OPEN(one_type("f"), "batch_size=4", "dtype=F16");
    append(one_rows(4, all));
    close_writer(NULL);
    open_shard(0);
    TENSOR("x", SFT_F16, "[4]", uint16_t, 0x7bff, 0xfc00, 0x7e00, 0);
}

/* The last element of a chunk that is cast, and of a block that is checked. */
static void test_unfit_later(void **unused) {
    static float many[40000];
    static const int at[] = { 511, 512, 16383, 16384, 39999 };
    (void)unused;
    for (int i = 0; i < 5; i++) {
        char said[120];
        many[at[i]] = 1e30F;
        (void)snprintf(said, sizeof said, "column \"x\", row %d: expected numbers within its "
                       "range to convert to F16, found 1.00000002e+30 in element 0", at[i]);
        OPEN(one_type("f"), "batch_size=50000", "dtype=F16");
        append(one_rows(40000, many));
        close_fails(SFT_ROW_VALUE, said);
        sft_dataset_options_free(options);
        options = NULL;
        many[at[i]] = 0;
    }
}

/* Elements smaller than a byte: rows that end inside one, in separate pieces. */
static struct ArrowArray *triple_rows(int64_t from) {
    static const float values[] = { 0, 1, 2, 3, 4, 6, 99, 99, 99, -1, -2, -3 };
    static const int32_t offsets[] = { 0, 3, 6, 9, 12 };
    return am_with(am_make(1, from, NULL),
                   am_with(am_make(4, 0, NULL, offsets), am_make(12, 0, NULL, values)));
}

static void test_cast_small(void **unused) {
    struct ArrowSchema *schema =
        am_of(am_type("+s", ""), am_list("+l", "v", am_type("f", "item")));
    (void)unused;
    OPEN(schema, "batch_size=3", "dtype=F4");
    append(triple_rows(0));
    append(triple_rows(3));
    refuse(triple_rows(1), SFT_ROW_SHAPE,
           "column \"v\", row 0: expected whole bytes, found 36 bits of F4");
    sft_dataset_options_free(options);
    OPEN(schema, "batch_size=2", "dtype=F4", "tail_strategy=pad");
    append(triple_rows(0));
    append(triple_rows(3));
    append(triple_rows(1));
    close_writer(NULL);
    assert_int_equal(receipt_count, 2);
    open_shard(0);
    TENSOR("v", SFT_F4, "[2, 3]", uint8_t, 0x20, 0xa4, 0xdc);
    open_shard(1);
    TENSOR("v", SFT_F4, "[2, 3]", uint8_t, 0x65, 0x07, 0x00);
}

/* The connector's bits: truncated, subnormals zero, 65536 infinite. */
static void test_truncated(void **unused) {
    static const uint32_t bits[] = { 0x3fffffff, 0xbfffffff, 0x387fffff, 0x38800000, 0x477fffff,
                                     0x47800000, 0xff800000, 0x7fc00001, 0xff800001, 0x80000001 };
    static const uint16_t half[] = { 0x3fff, 0xbfff, 0, 0x0400, 0x7bff, 0x7c00, 0xfc00, 0x7e00,
                                     0xfe00, 0x8000 };
    static const uint16_t brain[] = { 0x3fff, 0xbfff, 0x387f, 0x3880, 0x477f, 0x4780, 0xff80,
                                      0x7fc0, 0xff80, 0x8000 };
    (void)unused;
    OPEN(one_type("f"), "batch_size=10", "dtype=F16", "rounding=truncate");
    append(one_rows(10, bits));
    close_writer(NULL);
    open_shard(0);
    tensor_is("x", SFT_F16, "[10]", half, sizeof half);
    sft_dataset_options_free(options);
    OPEN(one_type("f"), "batch_size=10", "dtype=BF16", "rounding=truncate");
    append(one_rows(10, bits));
    close_writer(NULL);
    open_shard(0);
    tensor_is("x", SFT_BF16, "[10]", brain, sizeof brain);
}

/* All numbers go through F64 and F32 before truncation; other targets round as usual. */
static void test_truncated_wide(void **unused) {
    static const double doubles[] = { 1.0 + 0x1.ffffffp-12, 0x1.fffffffffffffp-1, 3.0 };
    static const int64_t numbers[] = { 2049, -4095, 65535 };
    static const double third[] = { 1.0 / 3, 2, 3 };
    (void)unused;
    OPEN(one_type("g"), "batch_size=3", "dtype=BF16", "rounding=truncate");
    append(one_rows(3, doubles));
    close_writer(NULL);
    open_shard(0);
    TENSOR("x", SFT_BF16, "[3]", uint16_t, 0x3f80, 0x3f80, 0x4040);
    sft_dataset_options_free(options);
    OPEN(one_type("l"), "batch_size=3", "dtype=F16", "rounding=truncate");
    append(one_rows(3, numbers));
    close_writer(NULL);
    open_shard(0);
    TENSOR("x", SFT_F16, "[3]", uint16_t, 0x6800, 0xebff, 0x7bff);
    sft_dataset_options_free(options);
    OPEN(one_type("g"), "batch_size=3", "dtype=F32", "rounding=truncate");
    append(one_rows(3, third));
    close_writer(NULL);
    open_shard(0);
    TENSOR("x", SFT_F32, "[3]", float, (float)(1.0 / 3), 2, 3);
}

/* ── Tensors ── */

static void test_tensors(void **unused) {
    struct ArrowSchema *schema = am_of(am_type("+s", ""), am_tensor_type("t"));
    (void)unused;
    OPEN(schema, "batch_size=2");
    append(tensor_rows(1, 1));
    append(tensor_rows(1, 1));
    append(tensor_rows(2, 1));
    append(tensor_rows(0, 0));
    close_writer(NULL);
    open_shard(0);
    TENSOR("t", SFT_I16, "[2, 2]", int16_t, 3, 4, 3, 4);
    open_shard(1);
    TENSOR("t", SFT_F32, "[1, 2]", float, 1, 2);
    sft_dataset_options_free(options);
    OPEN(schema, "batch_size=2", "dtype=F64", "shapes={\"t\":[2]}");
    append(tensor_rows(2, 1));
    append(tensor_rows(2, 1));
    append(tensor_rows(1, 1));
    close_writer(NULL);
    open_shard(0);
    TENSOR("t", SFT_F64, "[2, 2]", double, 1, 2, 1, 2);
    open_shard(1);
    TENSOR("t", SFT_F64, "[1, 2]", double, 3, 4);
}

static void test_tensors_refused(void **unused) {
    struct ArrowSchema *schema = am_of(am_type("+s", ""), am_tensor_type("t"));
    (void)unused;
    OPEN(schema, "batch_size=3");
    refuse(tensor_rows(1, 2), SFT_ROW_SHAPE,
           "column \"t\", row 1: expected I16 [2] as in the rows before it, found F32 [2]");
    sft_dataset_options_free(options);
    OPEN(schema, "batch_size=3", "shapes={\"t\":[2]}");
    refuse(tensor_rows(0, 1), SFT_ROW_SHAPE,
           "column \"t\", row 0: expected shape [2], found [1, 2]");
    sft_dataset_options_free(options);
    OPEN(schema, "batch_size=3", "dtype=C64");
    refuse(tensor_rows(0, 1), SFT_COLUMN_TYPE,
           "column \"t\", row 0: there is no cast from I16 to C64");
}

/* ── Jobs, endings ── */

typedef struct ticks {
    int count, stop_at;
    uint64_t last;
} ticks;

static bool tick(void *ctx, uint64_t done, uint64_t total) {
    ticks *t = ctx;
    assert_int_equal(total, SFT_SIZE_UNKNOWN);
    assert_true(done >= t->last && done - t->last <= (8 << 20));
    t->last = done;
    return ++t->count != t->stop_at;
}

enum { WIDE = 5 << 20 };
static int32_t wide[WIDE];

static void test_ticks(void **unused) {
    ticks seen = { 0, 0, 0 };
    sft_job job = { sizeof job, tick, &seen, 2 };
    (void)unused;
    for (int i = 0; i < WIDE; i++) wide[i] = i ^ i << 7;
    OPEN(one_type("i"), "batch_size=3145728");
    assert_int_equal(give(one_rows(WIDE, wide), &job), SFT_OK);
    close_writer(&job);
    assert_int_equal(receipt_count, 2);
    assert_int_equal(seen.last, sizeof wide);
    assert_int_equal(seen.count, 4); /* 8 MiB, a file, 8 MiB, a file */
    open_shard(0);
    tensor_is("x", SFT_I32, "[3145728]", wide, 3145728 * 4);
    open_shard(1);
    tensor_is("x", SFT_I32, "[2097152]", wide + 3145728, 2097152 * 4);
}

static void test_cancelled(void **unused) {
    (void)unused;
    for (int at = 1; at <= 2; at++) {
        ticks seen = { 0, at, 0 };
        sft_job job = { sizeof job, tick, &seen, 1 };
        OPEN(one_type("i"), "batch_size=3145728");
        assert_int_equal(give(one_rows(WIDE, wide), &job), SFT_CANCELLED);
        sft_shard_writer_abandon(writer);
        writer = NULL;
        assert_int_equal(am_given, am_released);
        sft_dataset_options_free(options);
    }
    options = NULL;
    assert_int_equal(storage.vtable->remove(storage.ctx, FOLDER, true, &err), SFT_OK);
    assert_int_equal(temp_dir_count(), 0);
}

static void test_abandoned(void **unused) {
    (void)unused;
    OPEN(pair_type(), "batch_size=2");
    append(pair_rows(0, 7));
    sft_shard_writer_abandon(writer);
    writer = NULL;
    assert_int_equal(am_given, am_released);
    assert_int_equal(rmdir(temp_path(FOLDER)), 0); /* it is empty */
    sft_shard_writer_abandon(NULL);
}

/* Without move files have their final names at once. */
static void test_final_names(void **unused) {
    (void)unused;
    storage_own(&storage)->move = NULL;
    OPEN(pair_type(), "batch_size=20");
    append(pair_rows(0, 7));
    close_writer(NULL);
    assert_true(sft_span_equal(receipts[0].name, receipts[0].stored));
    open_shard(0);
    TENSOR("n", SFT_I64, "[7]", int64_t, longs[1], longs[2], longs[3], longs[4], 5, 6, 7);
}

static bool count_one(void *ctx, const sft_stored *object) {
    (void)object;
    ++*(size_t *)ctx;
    return true;
}

static size_t stored_count(void) {
    size_t count = 0;
    if (storage.vtable->list(storage.ctx, FOLDER, count_one, &count, &err))
        fail_msg("%s", err.message);
    return count;
}

/* The last few files are finished while the next are written; all exist in the end. */
static void test_finished_later(void **unused) {
    (void)unused;
    OPEN(pair_type(), "batch_size=1");
    for (int i = 0; i < 3; i++) append(pair_rows(0, 7));
    assert_int_equal(stored_count(), 21 - SFTI_UNFINISHED);
    close_writer(NULL);
    assert_int_equal(receipt_count, 21);
    assert_int_equal(stored_count(), 21);
    for (size_t i = 0; i < 21; i++) open_shard(i);
    storage_own(&storage)->move = NULL;
    sft_dataset_options_free(options);
    OPEN(pair_type(), "batch_size=1");
    append(pair_rows(0, 7));
    assert_int_equal(temp_dir_count(), 1 + 7); /* under their own names, at once */
}

static sft_code never_finish(void *ctx, sft_error *error) {
    sft_sink *inner = ctx;
    sft_sink_abandon(inner);
    error->code = SFT_IO_SYNC;
    return SFT_IO_SYNC;
}

static sft_sink real[64];
static size_t real_count;

static sft_code real_write(void *ctx, uint64_t at, const void *bytes, size_t len, sft_error *e) {
    sft_sink *inner = ctx;
    return sft_sink_write(inner, at, bytes, len, e);
}

static void real_abandon(void *ctx) {
    sft_sink *inner = ctx;
    sft_sink_abandon(inner);
}

static const sft_sink_vtable real_sink_vtable = {
    sizeof(sft_sink_vtable), NULL, real_write, never_finish, real_abandon, NULL, NULL
};

static sft_code create_real(void *ctx, const char *name, bool replace, sft_sink *out,
                            sft_error *error) {
    sft_storage local;
    sft_sink *inner = &real[real_count++];
    (void)ctx;
    sft_code code = sft_storage_local(temp_dir, true, NULL, &local, error);
    if (code == SFT_OK) code = local.vtable->create(local.ctx, name, replace, inner, error);
    sft_storage_close(&local);
    *out = (sft_sink){ inner, &real_sink_vtable, false };
    return code;
}

/* A disk that fails after the next file was begun: nothing stays, and the writer has failed. */
static void test_finish_fails_later(void **unused) {
    const sft_storage_vtable *was = storage.vtable;
    (void)unused;
    storage_own(&storage)->create = create_real;
    real_count = 0;
    OPEN(pair_type(), "batch_size=1");
    append(pair_rows(0, 7));
    assert_int_equal(give(pair_rows(0, 7), NULL), SFT_IO_SYNC);
    assert_int_equal(sft_shard_writer_finish(writer, NULL, NULL, &err), SFT_IO_SYNC);
    sft_dataset_options_free(options);
    OPEN(pair_type(), "batch_size=1");
    append(pair_rows(0, 5));
    assert_int_equal(sft_shard_writer_finish(writer, NULL, NULL, &err), SFT_IO_SYNC);
    writer = NULL;
    assert_int_equal(stored_count(), 0);
    storage.vtable = was;
}

static void test_arguments(void **unused) {
    sft_pair pair = { { "batch_size", 10 }, { "2", 1 } };
    struct ArrowArray gone = { .release = NULL };
    (void)unused;
    assert_int_equal(sft_dataset_options_new(&pair, 1, NULL, &options, &err), SFT_OK);
    assert_int_equal(sft_shard_writer_begin(options, &storage, sft_span_cstr(JOB), 0, pair_type(),
                                            NULL, &writer, &err), SFT_BAD_ARGUMENT);
    assert_null(writer);
    assert_int_equal(sft_shard_writer_begin(NULL, &storage, sft_span_cstr(JOB_TEXT), 0,
                                            pair_type(), NULL, &writer, &err), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_shard_writer_begin(options, &storage, sft_span_cstr(JOB_TEXT), UINT64_MAX,
                                            pair_type(), NULL, &writer, &err), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_shard_writer_begin(options, &storage, sft_span_cstr(JOB_TEXT), 0,
                                            one_type("tiM"), NULL, &writer, &err), SFT_COLUMN_TYPE);
    assert_int_equal(sft_shard_writer_begin(options, &storage, sft_span_cstr(JOB_TEXT), 0,
                                            pair_type(), NULL, &writer, &err), SFT_OK);
    assert_int_equal(sft_shard_writer_append(writer, &gone, NULL, &err), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_shard_writer_append(writer, NULL, NULL, &err), SFT_BAD_ARGUMENT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_batches), TEST(test_one_large_batch), TEST(test_tails), TEST(test_dropped),
        TEST(test_all_dropped),
        TEST(test_nothing), TEST(test_loose), TEST(test_ragged), TEST(test_bad_batches),
        TEST(test_casts), TEST(test_cast_value), TEST(test_cast_value_later),
        TEST(test_unfit), TEST(test_fit), TEST(test_unfit_later),
        TEST(test_cast_small), TEST(test_truncated), TEST(test_truncated_wide),
        TEST(test_tensors), TEST(test_tensors_refused), TEST(test_ticks), TEST(test_cancelled),
        TEST(test_abandoned), TEST(test_final_names), TEST(test_finished_later),
        TEST(test_finish_fails_later), TEST(test_arguments),
    };
    return cmocka_run_group_tests_name("dataset_shards", tests, NULL, NULL);
}
