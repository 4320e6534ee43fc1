/* One model with the names of another: what merging by value reads. Whole models of diffusers are
 * compared in tests/layout. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "layout/layout.h"

#include <stdlib.h>
#include <string.h>

#define COUNT(rows) (sizeof (rows) / sizeof *(rows))
static sft_buffer kept[16]; /* of the models, to the end */
static size_t kept_count;

/* A tensor of U8: rows and columns (0: a vector), and its bytes. */
typedef struct row {
    const char *name;
    uint64_t rows, cols;
    const char *bytes;
} row;

static sft_set *model(const row *rows, size_t count, const char *path) {
    sft_part parts[16];
    sft_source sources[16];
    uint64_t shapes[16][2];
    sft_buffer bytes = { .alloc = sfti_allocator(NULL) };
    sft_file *file;
    sft_set *set;
    assert_true(count <= 16);
    for (size_t i = 0; i < count; i++) {
        shapes[i][0] = rows[i].rows, shapes[i][1] = rows[i].cols;
        sources[i] = sft_source_memory(rows[i].bytes, strlen(rows[i].bytes));
        parts[i] = (sft_part){ { sft_span_cstr(rows[i].name), SFT_U8, rows[i].cols ? 2 : 1,
                                 shapes[i] }, &sources[i], 0 };
    }
    assert_int_equal(sft_save_parts(parts, count, NULL, 0, NULL, sft_sink_memory(&bytes), NULL,
                                    NULL), SFT_OK);
    assert_true(kept_count < COUNT(kept));
    kept[kept_count++] = bytes;
    assert_int_equal(sft_open_memory(bytes.data, bytes.len, NULL, &file, NULL), SFT_OK);
    assert_int_equal(sft_set_from_file(file, path, &set, NULL), SFT_OK);
    return set;
}

static void holds(const sft_set *set, const row *rows, size_t count) {
    char bytes[64];
    assert_int_equal(sft_set_tensor_count(set), count);
    for (size_t i = 0; i < count; i++) {
        const sft_tensor *tensor = sft_set_find(set, sft_span_cstr(rows[i].name), NULL);
        if (!tensor) print_error("no %s\n", rows[i].name);
        assert_non_null(tensor);
        assert_int_equal(tensor->rank, rows[i].cols ? 2 : 1);
        assert_int_equal(tensor->shape[0], rows[i].rows);
        size_t len = strlen(rows[i].bytes);
        assert_int_equal(tensor->end - tensor->begin, len);
        assert_int_equal(sft_read_bytes(sft_set_shard_at(set, 0), tensor->offset, bytes, len, NULL),
                         SFT_OK);
        assert_memory_equal(bytes, rows[i].bytes, len);
    }
}

#define P "model.diffusion_model."
static const row single[] = {
    { P "double_blocks.0.img_attn.qkv.weight", 6, 2, "QqQqKkKkVvVv" },
    { P "double_blocks.0.txt_attn.qkv.weight", 6, 2, "112233445566" },
    { P "single_blocks.0.linear1.weight", 8, 2, "aaaabbbbccccdddd" },
    { P "final_layer.adaLN_modulation.1.weight", 4, 1, "wxyz" },
    { P "vector_in.in_layer.weight", 2, 2, "vvvv" },
    { P "own.weight", 2, 0, "ow" },
};
static const row cut[] = {
    { "transformer_blocks.0.attn.to_q.weight", 2, 2, "QqQq" },
    { "transformer_blocks.0.attn.to_k.weight", 2, 2, "KkKk" },
    { "transformer_blocks.0.attn.to_v.weight", 2, 2, "VvVv" },
    { "transformer_blocks.0.attn.add_q_proj.weight", 2, 2, "1122" },
    { "transformer_blocks.0.attn.add_k_proj.weight", 2, 2, "3344" },
    { "transformer_blocks.0.attn.add_v_proj.weight", 2, 2, "5566" },
    { "single_transformer_blocks.0.attn.to_q.weight", 2, 2, "aaaa" },
    { "single_transformer_blocks.0.attn.to_k.weight", 2, 2, "bbbb" },
    { "single_transformer_blocks.0.attn.to_v.weight", 2, 2, "cccc" },
    { "single_transformer_blocks.0.proj_mlp.weight", 2, 2, "dddd" },
    { "norm_out.linear.weight", 4, 1, "yzwx" },
    { "time_text_embed.text_embedder.linear_1.weight", 2, 2, "vvvv" },
    { "own.weight", 2, 0, "ow" },
};

static bool ends_in(sft_span name, const char *end) {
    size_t len = strlen(end);
    return name.len >= len && memcmp(name.data + name.len - len, end, len) == 0;
}

static void matches_layouts(void **unused) {
    (void)unused;
    for (int way = 0; way < 2; way++) {
        const row *from = way ? single : cut, *to = way ? cut : single;
        size_t count = way ? COUNT(single) : COUNT(cut);
        size_t want = way ? COUNT(cut) : COUNT(single);
        sft_set *reference = model(to, want, NULL), *set = model(from, count, NULL), *out;
        sfti_arena work = { .alloc = sfti_allocator(NULL) };
        sfti_layout_origin *origins;
        assert_int_equal(sfti_layout_like(reference, &set, 1, NULL, &work, &origins, &out, NULL),
                         SFT_OK);
        assert_ptr_not_equal(out, set);
        holds(out, to, want);
        static const char *const ends[][2] = { /* and what they come from */
            { "attn.to_k.weight", "img_attn.qkv.weight" }, { "norm_out.linear.weight", "1.weight" },
            { "img_attn.qkv.weight", "0.attn.to_q.weight" }, { "own.weight", "own.weight" },
        };
        for (size_t i = 0; i < want; i++)
            for (size_t k = 0; k < COUNT(ends); k++) {
                sft_span made = sft_set_tensor_at(out, i)->name;
                sft_span of = sft_set_tensor_at(set, origins[i].tensor)->name;
                assert_int_equal(origins[i].set, 0);
                if (ends_in(made, ends[k][0]) && made.data[0] != 's')
                    assert_true(ends_in(of, ends[k][1]));
            }
        sfti_arena_free(&work);
        sft_set_close(out);
        sft_set_close(reference);
    }
}

static void leaves_what_fits(void **unused) {
    sft_set *reference = model(single, COUNT(single), NULL), *out;
    sft_set *set = model(single, COUNT(single), NULL);
    (void)unused;
    assert_int_equal(sfti_layout_like(reference, &set, 1, NULL, NULL, NULL, &out, NULL), SFT_OK);
    assert_ptr_equal(out, set);
    sft_set_close(out);
    static const row other[] = { { "a.weight", 2, 0, "aa" }, { "b.weight", 1, 0, "b" } };
    set = model(other, 2, NULL);
    assert_int_equal(sfti_layout_like(reference, &set, 1, NULL, NULL, NULL, &out, NULL), SFT_OK);
    assert_ptr_equal(out, set);
    sft_set_close(out);
    sft_set_close(reference);
}

/* Components of a folder become one file's tensors. */
static void joins_components(void **unused) {
    static const row clip[] = {
        { "text_model.final_layer_norm.bias", 2, 0, "nb" },
        { "text_model.embeddings.token_embedding.weight", 1, 768, NULL },
    };
    char *table = malloc(769);
    row rows[2] = { clip[0], clip[1] };
    sft_set *sets[2], *out;
    (void)unused;
    assert_non_null(table);
    memset(table, 't', 768);
    table[768] = '\0';
    rows[1].bytes = table;
    sets[0] = model(cut, COUNT(cut), "m/transformer/x.safetensors");
    sets[1] = model(rows, 2, "m/text_encoder/x.safetensors");
    sfti_arena work = { .alloc = sfti_allocator(NULL) };
    sfti_layout_origin *origins;
    assert_int_equal(sfti_layout_like(NULL, sets, 2, NULL, &work, &origins, &out, NULL), SFT_OK);
    assert_int_equal(sft_set_tensor_count(out), COUNT(single) + 2);
    for (size_t i = 0; i < COUNT(single) + 2; i++)
        assert_int_equal(origins[i].set, ends_in(sft_set_tensor_at(out, i)->name, "norm.bias")
                                             || ends_in(sft_set_tensor_at(out, i)->name,
                                                        "token_embedding.weight"));
    sfti_arena_free(&work);
    assert_non_null(sft_set_find(out, sft_span_cstr(single[0].name), NULL));
    assert_non_null(sft_set_find(out, sft_span_cstr("text_encoders.clip_l.transformer."
                                                    "text_model.final_layer_norm.bias"), NULL));
    sft_set_close(out);
    free(table);
}

/* Markers and what only training needs belong to no component: they stay as they are called. */
static void keeps_others(void **unused) {
    row from[COUNT(cut) + 3], to[COUNT(single) + 3];
    static const row others[] = {
        { "v_pred", 1, 0, "v" }, { "model_ema.decay", 2, 0, "em" }, { "ztsnr", 1, 0, "z" },
    };
    (void)unused;
    memcpy(from, cut, sizeof cut);
    memcpy(from + COUNT(cut), others, sizeof others);
    memcpy(to, single, sizeof single);
    memcpy(to + COUNT(single), others, sizeof others);
    sft_set *reference = model(single, COUNT(single), NULL), *out;
    sft_set *set = model(from, COUNT(from), NULL);
    sfti_arena work = { .alloc = sfti_allocator(NULL) };
    sfti_layout_origin *origins;
    assert_int_equal(sfti_layout_like(reference, &set, 1, NULL, &work, &origins, &out, NULL),
                     SFT_OK);
    holds(out, to, COUNT(to));
    for (size_t i = 0; i < COUNT(to); i++) {
        sft_span made = sft_set_tensor_at(out, i)->name;
        for (size_t k = 0; k < COUNT(others); k++)
            if (sft_span_equal(made, sft_span_cstr(others[k].name)))
                assert_true(sft_span_equal(sft_set_tensor_at(set, origins[i].tensor)->name, made));
    }
    sfti_arena_free(&work);
    sft_set_close(out);
    sft_set_close(reference);
    /* as all-in-one files have them: what is one already stays, and the others with it */
    set = model(to, COUNT(to), NULL);
    assert_int_equal(sfti_layout_like(NULL, &set, 1, NULL, NULL, NULL, &out, NULL), SFT_OK);
    assert_ptr_equal(out, set);
    sft_set_close(out);
    set = model(from, COUNT(from), NULL);
    assert_int_equal(sfti_layout_like(NULL, &set, 1, NULL, NULL, NULL, &out, NULL), SFT_OK);
    assert_int_equal(sft_set_tensor_count(out), COUNT(to));
    for (size_t k = 0; k < COUNT(others); k++)
        assert_non_null(sft_set_find(out, sft_span_cstr(others[k].name), NULL));
    sft_set_close(out);
}

/* A piece that is missing: an error that names it, and nothing is left open. */
static void refuses_pieces(void **unused) {
    sft_set *set = model(cut + 1, COUNT(cut) - 1, NULL), *out;
    sft_error err = SFT_ERROR_INIT;
    (void)unused;
    assert_int_equal(sfti_layout_like(NULL, &set, 1, NULL, NULL, NULL, &out, &err),
                     SFT_INCOMPLETE);
    assert_non_null(strstr(err.message, "to_q"));
    assert_null(out);
    assert_int_equal(sfti_layout_like(NULL, &set, 0, NULL, NULL, NULL, &out, &err),
                     SFT_BAD_ARGUMENT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matches_layouts), cmocka_unit_test(leaves_what_fits),
        cmocka_unit_test(joins_components), cmocka_unit_test(keeps_others),
        cmocka_unit_test(refuses_pieces),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    while (kept_count > 0) sft_buffer_free(&kept[--kept_count]);
    return failed;
}
