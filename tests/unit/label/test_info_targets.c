/* What an adapter changes: layers, blocks, components, learned words. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "label/tensors/adapters.h"
#include "unit/compose.h"

#include "label/tensors/fitting.h"

/* A pair in kohya's, PEFT's and diffusers' naming. */
#define KO(m, r, in, out) m ".lora_down.weight[" r "," in "] " m ".lora_up.weight[" out "," r "] "
#define PE(m, r, in, out) m ".lora_A.weight[" r "," in "] " m ".lora_B.weight[" out "," r "] "
#define DI(m, r, in, out) \
    m "_lora.down.weight[" r "," in "] " m "_lora.up.weight[" out "," r "] "
#define UNET "lora_unet_down_blocks_0_attentions_0_transformer_blocks_0_"
#define XL "lora_unet_input_blocks_4_1_transformer_blocks_0_"
#define DM "diffusion_model."
#define TF "transformer."
#define LLM "base_model.model.model.layers."

/* ── Lists ── */

static const char *joined_notes(const sfti_list *list, char *out, size_t size) {
    size_t len = 0;
    out[0] = 0;
    for (const sfti_note *n = list->first; n; n = n->next)
        len += (size_t)snprintf(out + len, size - len, "%s%.*s", len ? " " : "",
                                (int)n->text.len, n->text.data);
    return out;
}

static void targets_and_blocks(void **state) {
    static const struct { const char *tensors, *targets, *blocks; } cases[] = {
        { KO("lora_unet_double_blocks_{0-2}_img_attn_qkv", "4", "3072", "9216")
          KO("lora_unet_double_blocks_5_img_mlp_0", "4", "3072", "12288")
          KO("lora_unet_single_blocks_7_linear1", "4", "3072", "21504"),
          "img_mlp.0 linear1 qkv", "double_blocks.0-2 double_blocks.5 single_blocks.7" },
        { PE(DM "double_blocks.{0-2}.img_attn.qkv", "4", "3072", "9216")
          PE(DM "double_blocks.5.img_mlp.0", "4", "3072", "12288"),
          "img_mlp.0 qkv", "double_blocks.0-2 double_blocks.5" },
        { KO(UNET "attn2_to_out_0", "4", "320", "320") KO(UNET "ff_net_0_proj", "4", "320", "2560")
          KO("lora_unet_mid_block_attentions_0_proj_in", "4", "1280", "1280")
          KO("lora_te_text_model_encoder_layers_3_mlp_fc1", "4", "768", "3072"),
          "fc1 proj proj_in to_out.0", "down_blocks.0 mid_block" },
        { DI("unet.up_blocks.1.attentions.0.transformer_blocks.0.attn1.processor.to_out", "4",
        "9", "9"),
          "to_out", "up_blocks.1" },
        { PE(LLM "{0-3}.self_attn.q_proj", "4", "64", "64") PE(LLM "{0-3}.self_attn.v_proj",
        "4", "64", "64"),
          "q_proj v_proj", "layers.0-3" },
        { "unet:0:down[4,320] unet:0:up[320,4]", "", "" },
        { KO("lora_unet_blocks_0_cross_attn_q", "4", "5120", "5120")
          KO("lora_unet_blocks_0_ffn_2", "4", "13824", "5120"), "ffn.2 q", "blocks.0" },
    };
    char got[512];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        composed *made = compose(cases[i].tensors);
        assert_string_equal(joined_notes(&made->info.adapter.targets, got, sizeof got),
                            cases[i].targets);
        assert_string_equal(joined_notes(&made->info.adapter.blocks, got, sizeof got),
                            cases[i].blocks);
        compose_end(made);
    }
}

static void components_of_adapters(void **state) {
    (void)state;
    composed *made = compose(KO(XL "attn2_to_k", "8", "2048", "640")
                             KO("lora_te1_text_model_encoder_layers_0_mlp_fc1", "8", "768", "3072")
                             KO("lora_te2_text_model_encoder_layers_0_mlp_fc1", "8", "1280",
                             "5120"));
    const sfti_component *c = made->info.adapter.components.first;
    assert_int_equal(made->info.adapter.components.count, 3);
    assert_string_equal(c->part, "unet");
    assert_string_equal(c->architecture, "sdxl");
    assert_int_equal(c->weights.known, 8 * (2048 + 640));
    assert_string_equal(c->next->part, "text_encoder");
    assert_string_equal(c->next->next->part, "text_encoder_2");
    compose_end(made);
    made = compose(PE(TF "single_transformer_blocks.0.attn.to_q", "16", "3072", "3072"));
    c = made->info.adapter.components.first;
    assert_string_equal(c->part, "transformer");
    compose_end(made);
    made = compose(PE(LLM "0.self_attn.q_proj", "16", "4096", "4096"));
    assert_int_equal(made->info.adapter.components.count, 0);
    assert_true(made->info.has_llm);
    assert_int_equal(made->info.llm.hidden, 4096);
    assert_int_equal(made->info.llm.layers, 0);
    compose_end(made);
}

/* ── Learned tokens ── */

static const char *joined_tokens(const sft_info *info, char *out, size_t size) {
    size_t len = 0;
    out[0] = 0;
    for (const sfti_trigger *t = info->triggers.first; t; t = t->next)
        len += (size_t)snprintf(out + len, size - len, "%s%.*s@%d(%.*s)", len ? " " : "",
                                (int)t->text.len, t->text.data, t->trust, (int)t->source.len,
                                t->source.data);
    return out;
}

static void learned_tokens(void **state) {
    static const sft_pair metadata[] = {
        { { "<s2>", 4 }, { "<embed>", 7 } }, { { "<s3>", 4 }, { "<embed>", 7 } },
        { { "unet:0:rank", 11 }, { "4", 1 } },
    };
    char got[512];
    (void)state;
    composed *made = compose(KO(UNET "attn2_to_k", "8", "768", "320")
                             "bundle_emb.my.cat.clip_l[4,768] bundle_emb.my.cat.clip_g[4,1280] "
                             "bundle_emb.dog.string_to_param.*[2,768] bundle.x[1]");
    assert_string_equal(joined_tokens(&made->info, got, sizeof got),
                        "dog@90(tensors) my.cat@90(tensors)");
    compose_end(made);
    made = compose_with("<s1>:F32[768] <s2>:F32[768] unet:0:down[4,320] unet:0:up[320,4] "
                        "text_encoder:0:down[4,768] text_encoder:0:up[768,4]", metadata, 3, NULL,
                        0, "x/lora");
    sfti_info_tensors(&made->info);
    assert_string_equal(joined_tokens(&made->info, got, sizeof got),
                        "<s1>@90(tensors) <s2>@90(tensors) <s3>@90(header:<s3>)");
    compose_end(made);
    made = compose_with(KO(UNET "attn2_to_k", "8", "768", "320"), metadata, 3, NULL, 0, "x/lora");
    sfti_info_tensors(&made->info);
    assert_int_equal(made->info.triggers.count, 0); /* only the first scripts write so */
    compose_end(made);
}

/* The lines that were cut when the library was built are those that would be cut now. */
static void lines_as_cut(void **state) {
    sfti_arena arena = { .alloc = sfti_allocator(NULL) };
    const sfti_fit_lines *made = &sfti_made_fit_lines;
    const sfti_fit_lines *cut = sfti_fit_lines_cut(&arena, sfti_records_built_in(), true);
    (void)state;
    assert_non_null(cut);
    for (size_t i = 0; made->count > 0 && i < cut->count; i++) {
        const sfti_fit_line *x = &made->lines[i], *y = &cut->lines[i];
        assert_memory_equal(x->begins, y->begins, sizeof x->begins);
        assert_true(x->sizes[0] == y->sizes[0] && x->sizes[1] == y->sizes[1]);
        assert_int_equal(x->at, y->at);
        assert_int_equal(x->len, y->len);
        assert_int_equal(x->row, y->row);
        assert_int_equal(x->model, y->model);
    }
    if (made->count > 0) {
        assert_int_equal(made->count, cut->count);
        assert_int_equal(made->model_count, cut->model_count);
        assert_int_equal(made->heir_count, cut->heir_count);
        assert_memory_equal(made->models, cut->models, cut->model_count * sizeof *cut->models);
        assert_memory_equal(made->heirs, cut->heirs, cut->heir_count * sizeof *cut->heirs);
    }
    sfti_arena_free(&arena);
}

/* Rows of data/adapters.txt: all are read, none is cut. */
static void rows_of_layouts(void **state) {
    static const struct { const char *name, *leaf; } leaves[] = {
        { "x_img_mlp_0", "img_mlp.0" }, { "a_mlp_layer1", "layer1" }, { "a_layer1", NULL },
        { "x_attn_qkv", "qkv" }, { "mlp_down", NULL }, { "x_attn_to_q", "to_q" }, { "q", NULL },
    };
    static const struct { const char *name, *cut; } cuts[] = {
        { "lora_unet_x", "lora_unet_" }, { "lora_te1_x", "" }, { "lycoris_text_encoder_x", "" },
        { "lycoris_x", "lycoris_" }, { "double_blocks.0", "" }, { "unet.unet.x", "unet.unet." },
        { "transformer.h.0", "transformer." }, { "x", "" },
    };
    /* Those of methods that a merge knows, but without a place in it. */
    static const char *const unmerged[] = { ".lora_E", ".lora_a", ".lora_b", ".oft_diag", ".oft_R",
                                            ".oft_r", ".oft_s", ".set_weight", ".lora_down",
                                            ".lora_up", ".proj_down", ".proj_up" };
    static const struct { const char *end; sfti_adapter_slot slot; } slots[] = {
        { ".lora_A.weight", SFTI_SLOT_DOWN }, { ".lora_B.weight", SFTI_SLOT_UP },
        { ".lora_embedding_A", SFTI_SLOT_UP }, { ".lora_embedding_B", SFTI_SLOT_DOWN },
        { ".lora_mid.weight", SFTI_SLOT_MID }, { ".lora_B.bias", SFTI_SLOT_BIAS },
        { ".hada_w1_b", SFTI_SLOT_HADA_1B }, { ".hada_t2", SFTI_SLOT_HADA_T2 },
        { ".lokr_w1", SFTI_SLOT_KRON_1 }, { ".lokr_w2", SFTI_SLOT_KRON_2 },
        { ".lokr_t2", SFTI_SLOT_KRON_T2 }, { ".a1.weight", SFTI_SLOT_GLORA_A1 },
        { ".b1.weight", SFTI_SLOT_GLORA_B1 }, { ".b2.weight", SFTI_SLOT_GLORA_B2 },
        { ".oft_R.weight", SFTI_SLOT_OFT_PACKED }, { ".rescale", SFTI_SLOT_OFT_RESCALE },
        { ".on_input", SFTI_SLOT_IA3_ON_INPUT }, { ".ia3_l", SFTI_SLOT_IA3_FACTOR },
        { ".w_norm", SFTI_SLOT_DIFF }, { ".b_norm", SFTI_SLOT_DIFF_BIAS },
        { ".alpha", SFTI_SLOT_ALPHA }, { ".dora_scale", SFTI_SLOT_MAGNITUDE },
    };
    size_t count;
    (void)state;
    const sfti_name_layout *layouts = sfti_layout_rows(&count);
    assert_in_range(count, 41, 63);
    for (size_t i = 0; i < count; i++) {
        assert_in_range(strlen(layouts[i].prefix), 1, SFTI_ADAPTER_NAME - 1);
        assert_in_range(layouts[i].part, 0, SFTI_ADAPTER_PARTS - 1);
        assert_int_equal(layouts[i].format == SFTI_FORMAT_PEFT,
                         strstr(layouts[i].prefix, "base_model.") != NULL
                         || strcmp(layouts[i].prefix, "transformer.h.") == 0);
    }
    const sfti_suffix *suffixes = sfti_suffix_rows(&count);
    assert_in_range(count, 110, 250);
    size_t slots_seen = 0;
    for (size_t i = 0; i < count; i++) {
        assert_in_range(suffixes[i].type, 0, SFTI_TYPE_OTHER);
        assert_in_range(suffixes[i].role, SFTI_ROLE_PART, SFTI_ROLE_SHARED);
        bool lora = suffixes[i].type == SFTI_TYPE_LORA && suffixes[i].role == SFTI_ROLE_FIRST;
        if (lora) assert_true(*suffixes[i].other);
        bool placed = suffixes[i].type < SFTI_TYPE_OTHER && suffixes[i].type != SFTI_TYPE_BOFT
                   && !SFTI_ONE_OF(suffixes[i].end, unmerged, sfti_is);
        assert_int_equal(suffixes[i].slot != SFTI_SLOT_NONE, placed);
        for (size_t k = 0; k < SFTI_COUNT(slots); k++) {
            if (!sfti_is(suffixes[i].end, slots[k].end)) continue;
            assert_int_equal(suffixes[i].slot, slots[k].slot);
            slots_seen++;
        }
        for (size_t k = 0; k < i; k++)
            assert_false(sft_span_equal(suffixes[i].end, suffixes[k].end));
    }
    assert_int_equal(slots_seen, SFTI_COUNT(slots));
    for (size_t i = 0; i < SFTI_COUNT(leaves); i++) {
        sft_span leaf = sfti_flat_leaf(sft_span_cstr(leaves[i].name));
        assert_true(leaves[i].leaf ? sfti_is(leaf, leaves[i].leaf) : leaf.len == 0);
    }
    for (size_t i = 0; i < SFTI_COUNT(cuts); i++)
        assert_string_equal(sfti_layout_cut(sft_span_cstr(cuts[i].name)), cuts[i].cut);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(targets_and_blocks),
        cmocka_unit_test(lines_as_cut),
        cmocka_unit_test(components_of_adapters),
        cmocka_unit_test(learned_tokens),
        cmocka_unit_test(rows_of_layouts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
