/* Under which names adapters know a layer of a model: as the model names it, as diffusers and the
 * original code of an architecture name it, and rows of what one of them fuses. */
#include "adapter/adapter.h"

#include "base/json_lex.h"
#include "label/info.h"

#include <string.h>

#define OF(part) (1u << SFTI_PART_##part)

/* ── Texts ── */

/* One way's path as it is made; too long a one is none. */
typedef struct way_text {
    sfti_lora_ways *ways;
    size_t begin;
    bool over;
} way_text;

static way_text way_begin(sfti_lora_ways *ways) {
    return (way_text){ ways, ways->used, false };
}

static void way_put(way_text *text, sft_span more) {
    sfti_lora_ways *ways = text->ways;
    if (more.len > sizeof ways->text - ways->used) text->over = true;
    if (text->over || more.len == 0) return;
    memcpy(ways->text + ways->used, more.data, more.len);
    ways->used += more.len;
}

static void way_words(way_text *text, const char *words) {
    way_put(text, sft_span_cstr(words));
}

static void way_digits(way_text *text, uint64_t number) {
    char digits[20];
    size_t at = sizeof digits;
    do digits[--at] = (char)('0' + number % 10); while (number /= 10);
    way_put(text, (sft_span){ digits + at, sizeof digits - at });
}

static void way_end(way_text *text, sfti_lora_way way) {
    sfti_lora_ways *ways = text->ways;
    if (text->over || ways->count == SFTI_LORA_WAYS) {
        ways->used = text->begin;
        return;
    }
    way.path = (sft_span){ ways->text + text->begin, ways->used - text->begin };
    ways->ways[ways->count++] = way;
    if (!sfti_ends(way.path, ".to_out.0") || ways->count == SFTI_LORA_WAYS) return;
    way.path.len -= strlen(".0");
    ways->ways[ways->count++] = way;
}

static bool take(sft_span *rest, const char *words) {
    if (!sfti_begins(*rest, words)) return false;
    *rest = sfti_from(*rest, strlen(words));
    return true;
}

/* "12." or a last "12". */
static bool way_number(sft_span *rest, uint64_t *out) {
    size_t i = 0;
    *out = 0;
    for (; i < rest->len && i < 6 && sfti_lex_digit(rest->data[i]); i++)
        *out = *out * 10 + (uint64_t)(rest->data[i] - '0');
    if (i == 0 || (i < rest->len && rest->data[i] != '.')) return false;
    *rest = sfti_from(*rest, i < rest->len ? i + 1 : i);
    return true;
}

/* ── Names that differ, and rows of fused layers ── */

typedef enum piece {
    WHOLE, Q, K, V,           /* of three equal ones */
    Q_OF_4, K_OF_4, V_OF_4,   /* as many rows as there are columns, thrice, */
    MLP, QKV_OF_4,            /* and the rest; the first three */
    FIRST_HALF, SECOND_HALF,
    SWAPPED,                  /* halves the other way round, */
    SWAPPED_PAIR              /* if there are twice as many rows as columns */
} piece;

/* '#' is a number. The first is the original code's. */
typedef struct name_pair {
    const char *fused, *other;
    piece piece;
} name_pair;

static const name_pair flux_pairs[] = {
    { "double_blocks.#.img_attn.qkv", "transformer_blocks.#.attn.to_q", Q },
    { "double_blocks.#.img_attn.qkv", "transformer_blocks.#.attn.to_k", K },
    { "double_blocks.#.img_attn.qkv", "transformer_blocks.#.attn.to_v", V },
    { "double_blocks.#.txt_attn.qkv", "transformer_blocks.#.attn.add_q_proj", Q },
    { "double_blocks.#.txt_attn.qkv", "transformer_blocks.#.attn.add_k_proj", K },
    { "double_blocks.#.txt_attn.qkv", "transformer_blocks.#.attn.add_v_proj", V },
    { "double_blocks.#.img_attn.proj", "transformer_blocks.#.attn.to_out.0", WHOLE },
    { "double_blocks.#.txt_attn.proj", "transformer_blocks.#.attn.to_add_out", WHOLE },
    { "double_blocks.#.img_mlp.0", "transformer_blocks.#.ff.net.0.proj", WHOLE },
    { "double_blocks.#.img_mlp.2", "transformer_blocks.#.ff.net.2", WHOLE },
    { "double_blocks.#.txt_mlp.0", "transformer_blocks.#.ff_context.net.0.proj", WHOLE },
    { "double_blocks.#.txt_mlp.2", "transformer_blocks.#.ff_context.net.2", WHOLE },
    { "double_blocks.#.img_mod.lin", "transformer_blocks.#.norm1.linear", WHOLE },
    { "double_blocks.#.txt_mod.lin", "transformer_blocks.#.norm1_context.linear", WHOLE },
    { "single_blocks.#.linear1", "single_transformer_blocks.#.attn.to_q", Q_OF_4 },
    { "single_blocks.#.linear1", "single_transformer_blocks.#.attn.to_k", K_OF_4 },
    { "single_blocks.#.linear1", "single_transformer_blocks.#.attn.to_v", V_OF_4 },
    { "single_blocks.#.linear1", "single_transformer_blocks.#.proj_mlp", MLP },
    { "single_blocks.#.linear2", "single_transformer_blocks.#.proj_out", WHOLE },
    { "single_blocks.#.modulation.lin", "single_transformer_blocks.#.norm.linear", WHOLE },
    { "img_in", "x_embedder", WHOLE },
    { "txt_in", "context_embedder", WHOLE },
    { "time_in.in_layer", "time_text_embed.timestep_embedder.linear_1", WHOLE },
    { "time_in.out_layer", "time_text_embed.timestep_embedder.linear_2", WHOLE },
    { "vector_in.in_layer", "time_text_embed.text_embedder.linear_1", WHOLE },
    { "vector_in.out_layer", "time_text_embed.text_embedder.linear_2", WHOLE },
    { "guidance_in.in_layer", "time_text_embed.guidance_embedder.linear_1", WHOLE },
    { "guidance_in.out_layer", "time_text_embed.guidance_embedder.linear_2", WHOLE },
    { "final_layer.linear", "proj_out", WHOLE },
    { "final_layer.adaLN_modulation.1", "norm_out.linear", SWAPPED },
    /* XLabs, without "processor." */
    { "double_blocks.#.img_attn.qkv", "double_blocks.#.qkv_lora1", WHOLE },
    { "double_blocks.#.txt_attn.qkv", "double_blocks.#.qkv_lora2", WHOLE },
    { "double_blocks.#.img_attn.proj", "double_blocks.#.proj_lora1", WHOLE },
    { "double_blocks.#.txt_attn.proj", "double_blocks.#.proj_lora2", WHOLE },
    { "single_blocks.#.linear1", "single_blocks.#.qkv", QKV_OF_4 },
};

static const name_pair sd3_pairs[] = {
    { "joint_blocks.#.x_block.attn.qkv", "transformer_blocks.#.attn.to_q", Q },
    { "joint_blocks.#.x_block.attn.qkv", "transformer_blocks.#.attn.to_k", K },
    { "joint_blocks.#.x_block.attn.qkv", "transformer_blocks.#.attn.to_v", V },
    { "joint_blocks.#.x_block.attn2.qkv", "transformer_blocks.#.attn2.to_q", Q },
    { "joint_blocks.#.x_block.attn2.qkv", "transformer_blocks.#.attn2.to_k", K },
    { "joint_blocks.#.x_block.attn2.qkv", "transformer_blocks.#.attn2.to_v", V },
    { "joint_blocks.#.context_block.attn.qkv", "transformer_blocks.#.attn.add_q_proj", Q },
    { "joint_blocks.#.context_block.attn.qkv", "transformer_blocks.#.attn.add_k_proj", K },
    { "joint_blocks.#.context_block.attn.qkv", "transformer_blocks.#.attn.add_v_proj", V },
    { "joint_blocks.#.x_block.attn.proj", "transformer_blocks.#.attn.to_out.0", WHOLE },
    { "joint_blocks.#.x_block.attn2.proj", "transformer_blocks.#.attn2.to_out.0", WHOLE },
    { "joint_blocks.#.context_block.attn.proj", "transformer_blocks.#.attn.to_add_out", WHOLE },
    { "joint_blocks.#.x_block.mlp.fc1", "transformer_blocks.#.ff.net.0.proj", WHOLE },
    { "joint_blocks.#.x_block.mlp.fc2", "transformer_blocks.#.ff.net.2", WHOLE },
    { "joint_blocks.#.context_block.mlp.fc1", "transformer_blocks.#.ff_context.net.0.proj", WHOLE },
    { "joint_blocks.#.context_block.mlp.fc2", "transformer_blocks.#.ff_context.net.2", WHOLE },
    { "joint_blocks.#.x_block.adaLN_modulation.1", "transformer_blocks.#.norm1.linear", WHOLE },
    { "joint_blocks.#.context_block.adaLN_modulation.1",
      "transformer_blocks.#.norm1_context.linear", SWAPPED_PAIR }, /* of the last block */
    { "x_embedder.proj", "pos_embed.proj", WHOLE },
    { "t_embedder.mlp.0", "time_text_embed.timestep_embedder.linear_1", WHOLE },
    { "t_embedder.mlp.2", "time_text_embed.timestep_embedder.linear_2", WHOLE },
    { "y_embedder.mlp.0", "time_text_embed.text_embedder.linear_1", WHOLE },
    { "y_embedder.mlp.2", "time_text_embed.text_embedder.linear_2", WHOLE },
};

static const name_pair pixart_pairs[] = {
    { "blocks.#.attn.qkv", "transformer_blocks.#.attn1.to_q", Q },
    { "blocks.#.attn.qkv", "transformer_blocks.#.attn1.to_k", K },
    { "blocks.#.attn.qkv", "transformer_blocks.#.attn1.to_v", V },
    { "blocks.#.attn.proj", "transformer_blocks.#.attn1.to_out.0", WHOLE },
    { "blocks.#.cross_attn.q_linear", "transformer_blocks.#.attn2.to_q", WHOLE },
    { "blocks.#.cross_attn.kv_linear", "transformer_blocks.#.attn2.to_k", FIRST_HALF },
    { "blocks.#.cross_attn.kv_linear", "transformer_blocks.#.attn2.to_v", SECOND_HALF },
    { "blocks.#.cross_attn.proj", "transformer_blocks.#.attn2.to_out.0", WHOLE },
    { "blocks.#.mlp.fc1", "transformer_blocks.#.ff.net.0.proj", WHOLE },
    { "blocks.#.mlp.fc2", "transformer_blocks.#.ff.net.2", WHOLE },
    { "t_embedder.mlp.0", "adaln_single.emb.timestep_embedder.linear_1", WHOLE },
    { "t_embedder.mlp.2", "adaln_single.emb.timestep_embedder.linear_2", WHOLE },
    { "csize_embedder.mlp.0", "adaln_single.emb.resolution_embedder.linear_1", WHOLE },
    { "csize_embedder.mlp.2", "adaln_single.emb.resolution_embedder.linear_2", WHOLE },
    { "ar_embedder.mlp.0", "adaln_single.emb.aspect_ratio_embedder.linear_1", WHOLE },
    { "ar_embedder.mlp.2", "adaln_single.emb.aspect_ratio_embedder.linear_2", WHOLE },
    { "t_block.1", "adaln_single.linear", WHOLE },
    { "y_embedder.y_proj.fc1", "caption_projection.linear_1", WHOLE },
    { "y_embedder.y_proj.fc2", "caption_projection.linear_2", WHOLE },
};

static const name_pair wan_pairs[] = {
    { "blocks.#.self_attn.q", "blocks.#.attn1.to_q", WHOLE },
    { "blocks.#.self_attn.k", "blocks.#.attn1.to_k", WHOLE },
    { "blocks.#.self_attn.v", "blocks.#.attn1.to_v", WHOLE },
    { "blocks.#.self_attn.o", "blocks.#.attn1.to_out.0", WHOLE },
    { "blocks.#.cross_attn.q", "blocks.#.attn2.to_q", WHOLE },
    { "blocks.#.cross_attn.k", "blocks.#.attn2.to_k", WHOLE },
    { "blocks.#.cross_attn.v", "blocks.#.attn2.to_v", WHOLE },
    { "blocks.#.cross_attn.o", "blocks.#.attn2.to_out.0", WHOLE },
    { "blocks.#.cross_attn.k_img", "blocks.#.attn2.add_k_proj", WHOLE },
    { "blocks.#.cross_attn.v_img", "blocks.#.attn2.add_v_proj", WHOLE },
    { "blocks.#.ffn.0", "blocks.#.ffn.net.0.proj", WHOLE },
    { "blocks.#.ffn.2", "blocks.#.ffn.net.2", WHOLE },
    { "time_embedding.0", "condition_embedder.time_embedder.linear_1", WHOLE },
    { "time_embedding.2", "condition_embedder.time_embedder.linear_2", WHOLE },
    { "text_embedding.0", "condition_embedder.text_embedder.linear_1", WHOLE },
    { "text_embedding.2", "condition_embedder.text_embedder.linear_2", WHOLE },
    { "time_projection.1", "condition_embedder.time_proj", WHOLE },
};

/* Layouts of diffusion models; `mark` is a tensor of those in diffusers' naming. */
static const struct pair_table {
    const name_pair *pairs;
    size_t count;
    const char *mark;
} pair_tables[] = {
    { flux_pairs, SFTI_COUNT(flux_pairs), "single_transformer_blocks.0.proj_mlp.weight" },
    { sd3_pairs, SFTI_COUNT(sd3_pairs), "pos_embed.proj.weight" },
    { pixart_pairs, SFTI_COUNT(pixart_pairs), "adaln_single.linear.weight" },
    { wan_pairs, SFTI_COUNT(wan_pairs), "blocks.0.attn1.to_q.weight" },
};

static const name_pair clip_pairs[] = { /* OpenCLIP's, and those of transformers */
    { "transformer.resblocks.#.attn.in_proj_weight",
      "text_model.encoder.layers.#.self_attn.q_proj", Q },
    { "transformer.resblocks.#.attn.in_proj_weight",
      "text_model.encoder.layers.#.self_attn.k_proj", K },
    { "transformer.resblocks.#.attn.in_proj_weight",
      "text_model.encoder.layers.#.self_attn.v_proj", V },
    { "transformer.resblocks.#.attn.out_proj",
      "text_model.encoder.layers.#.self_attn.out_proj", WHOLE },
    { "transformer.resblocks.#.mlp.c_fc", "text_model.encoder.layers.#.mlp.fc1", WHOLE },
    { "transformer.resblocks.#.mlp.c_proj", "text_model.encoder.layers.#.mlp.fc2", WHOLE },
    { "transformer.resblocks.#.ln_1", "text_model.encoder.layers.#.layer_norm1", WHOLE },
    { "transformer.resblocks.#.ln_2", "text_model.encoder.layers.#.layer_norm2", WHOLE },
};

static bool pair_fits(const char *pattern, sft_span path, uint64_t *number) {
    const char *hash = strchr(pattern, '#');
    size_t before = hash ? (size_t)(hash - pattern) : strlen(pattern);
    *number = 0;
    if (path.len < before || memcmp(path.data, pattern, before) != 0) return false;
    sft_span rest = sfti_from(path, before);
    if (!hash) return rest.len == 0;
    return way_number(&rest, number) && sfti_is(rest, hash + 2);
}

static void put_pattern(way_text *text, const char *pattern, uint64_t number) {
    const char *hash = strchr(pattern, '#');
    if (!hash) {
        way_words(text, pattern);
        return;
    }
    way_put(text, (sft_span){ pattern, (size_t)(hash - pattern) });
    way_digits(text, number);
    way_words(text, hash + 1);
}

/* The rows of a fused tensor that an adapter of the other naming changes. */
static sfti_lora_way piece_of_fused(piece what, uint64_t rows, uint64_t cols) {
    uint64_t third = rows / 3, head = cols;
    sfti_lora_way way = { .rows = 0 };
    switch (what) {
    case Q: case K: case V:
        way.row = third * (uint64_t)(what - Q), way.rows = third;
        break;
    case Q_OF_4: case K_OF_4: case V_OF_4:
        way.row = head * (uint64_t)(what - Q_OF_4), way.rows = head;
        break;
    case QKV_OF_4: way.rows = head * 3; break;
    case FIRST_HALF: case SECOND_HALF:
        way.rows = rows / 2, way.row = what == SECOND_HALF ? rows / 2 : 0;
        break;
    case MLP:
        way.row = head * 3, way.rows = rows > head * 3 ? rows - head * 3 : 0;
        break;
    case WHOLE: case SWAPPED: case SWAPPED_PAIR: break;
    }
    return way;
}

/* The rows of a fused adapter's change that go to a tensor of the other naming. */
static sfti_lora_way piece_of_other(piece what, uint64_t rows, uint64_t cols) {
    sfti_lora_way way = { .rows = what == WHOLE ? 0 : rows };
    if (what >= Q && what <= V) way.from = rows * (uint64_t)(what - Q);
    else if (what >= Q_OF_4 && what <= V_OF_4) way.from = cols * (uint64_t)(what - Q_OF_4);
    else if (what == MLP) way.from = cols * 3;
    else if (what == SECOND_HALF) way.from = rows;
    return way;
}

static void add_pairs(sfti_lora_ways *ways, const name_pair *pairs, size_t count, unsigned parts,
                      sft_span path, const sft_tensor *tensor, bool from_fused) {
    uint64_t rows = 1, cols = 1, number;
    if (!sfti_lora_shape(tensor, &rows, &cols) || cols > UINT64_MAX / 4 || rows > UINT64_MAX / 4)
        return;
    for (size_t i = 0; i < count; i++) {
        const name_pair *pair = &pairs[i];
        if (!pair_fits(from_fused ? pair->fused : pair->other, path, &number)) continue;
        const char *name = from_fused ? pair->other : pair->fused;
        sfti_lora_way way = from_fused ? piece_of_fused(pair->piece, rows, cols)
                                       : piece_of_other(pair->piece, rows, cols);
        bool swapped = pair->piece == SWAPPED
                    || (pair->piece == SWAPPED_PAIR && rows == 2 * cols);
        bool lacking = way.rows == 0 && pair->piece >= Q && pair->piece < SWAPPED;
        if (lacking || (!from_fused && pair->piece == QKV_OF_4)) continue;
        if (pair->piece == SWAPPED_PAIR) way.rows = 0;
        way.parts = parts;
        for (uint64_t half = 0; half < (swapped ? 2 : 1); half++) {
            if (swapped) {
                if (rows % 2) continue;
                way.rows = rows / 2;
                way.row = half * way.rows;
                way.from = (1 - half) * way.rows;
            }
            way_text text = way_begin(ways);
            put_pattern(&text, name, number);
            way_end(&text, way);
        }
    }
}

/* ── U-Nets ── */

static const char *const block_names[][2] = {
    { "in_layers.0", "norm1" }, { "in_layers.2", "conv1" }, { "out_layers.0", "norm2" },
    { "out_layers.3", "conv2" }, { "emb_layers.1", "time_emb_proj" },
    { "skip_connection", "conv_shortcut" },
};

static const char *const unet_names[][2] = {
    { "input_blocks.0.0", "conv_in" }, { "time_embed.0", "time_embedding.linear_1" },
    { "time_embed.2", "time_embedding.linear_2" }, { "label_emb.0.0", "add_embedding.linear_1" },
    { "label_emb.0.2", "add_embedding.linear_2" }, { "out.0", "conv_norm_out" },
    { "out.2", "conv_out" },
};

/* The name in the other column, or the same. */
static void put_other(way_text *text, const char *const (*names)[2], size_t count, int from,
                      sft_span rest) {
    for (size_t i = 0; i < count; i++)
        if (sfti_is(rest, names[i][from])) {
            way_words(text, names[i][1 - from]);
            return;
        }
    way_put(text, rest);
}

static void put_numbers(way_text *text, const char *a, uint64_t n, const char *b, uint64_t m) {
    way_words(text, a);
    way_digits(text, n);
    way_words(text, b);
    way_digits(text, m);
}

/* From the original names to those of diffusers: three blocks a level, on the way down the third
 * makes it smaller. */
static bool put_diffusers(way_text *text, sft_span path) {
    uint64_t n, k;
    for (size_t i = 0; i < SFTI_COUNT(unet_names); i++)
        if (sfti_is(path, unet_names[i][0])) {
            way_words(text, unet_names[i][1]);
            return true;
        }
    if (take(&path, "middle_block.") && way_number(&path, &k) && k < 3) {
        way_words(text, k == 1 ? "mid_block.attentions.0." : k == 0 ? "mid_block.resnets.0."
                                                                     : "mid_block.resnets.1.");
    } else if (take(&path, "input_blocks.") && way_number(&path, &n) && n > 0
               && way_number(&path, &k) && k < 2) {
        if (k == 0 && sfti_is(path, "op")) {
            put_numbers(text, "down_blocks.", (n - 1) / 3, ".downsamplers.", 0);
            way_words(text, ".conv");
            return true;
        }
        put_numbers(text, "down_blocks.", (n - 1) / 3, k ? ".attentions." : ".resnets.",
                    (n - 1) % 3);
        way_words(text, ".");
    } else if (take(&path, "output_blocks.") && way_number(&path, &n) && way_number(&path, &k)) {
        if (sfti_is(path, "conv")) {
            put_numbers(text, "up_blocks.", n / 3, ".upsamplers.", 0);
            way_words(text, ".conv");
            return true;
        }
        put_numbers(text, "up_blocks.", n / 3, k ? ".attentions." : ".resnets.", n % 3);
        way_words(text, ".");
    } else {
        return false;
    }
    put_other(text, block_names, SFTI_COUNT(block_names), 0, path);
    return true;
}

/* And back. upsampler: which of its two places an upsampler has, 1 or 2. */
static bool put_original(way_text *text, sft_span path, uint64_t upsampler) {
    uint64_t level, k;
    for (size_t i = 0; i < SFTI_COUNT(unet_names); i++)
        if (sfti_is(path, unet_names[i][1])) {
            way_words(text, unet_names[i][0]);
            return upsampler == 1;
        }
    bool down = take(&path, "down_blocks."), up = !down && take(&path, "up_blocks.");
    if (take(&path, "mid_block.attentions.0.")) {
        way_words(text, "middle_block.1.");
    } else if (take(&path, "mid_block.resnets.") && way_number(&path, &k) && k < 2) {
        way_words(text, k == 0 ? "middle_block.0." : "middle_block.2.");
    } else if ((down || up) && way_number(&path, &level)) {
        if (sfti_is(path, "downsamplers.0.conv") && down) {
            put_numbers(text, "input_blocks.", level * 3 + 3, ".", 0);
            way_words(text, ".op");
            return upsampler == 1;
        }
        if (sfti_is(path, "upsamplers.0.conv") && up) {
            put_numbers(text, "output_blocks.", level * 3 + 2, ".", upsampler);
            way_words(text, ".conv");
            return true;
        }
        bool attention = take(&path, "attentions.");
        if (!(attention || take(&path, "resnets.")) || !way_number(&path, &k)) return false;
        put_numbers(text, down ? "input_blocks." : "output_blocks.", level * 3 + k + (down ? 1 : 0),
                    ".", attention);
        way_words(text, ".");
    } else {
        return false;
    }
    put_other(text, block_names, SFTI_COUNT(block_names), 1, path);
    return upsampler == 1;
}

/* ── Models ── */

/* How the names of a model's parts begin. */
static const struct model_prefix {
    const char *prefix;
    unsigned parts;
} model_prefix_rows[] = {
    { "", OF(MAIN) },
    { "model.diffusion_model.", OF(MAIN) },
    { "diffusion_model.", OF(MAIN) },
    { "model.language_model.", OF(MAIN) },
    { "language_model.model.", OF(MAIN) },
    { "language_model.", OF(MAIN) },
    { "model.", OF(MAIN) },
    { "transformer.", OF(MAIN) },
    { "unet.", OF(MAIN) },
    { "net.", OF(MAIN) },
    { "cond_stage_model.transformer.", OF(TE) | OF(TE1) },
    { "cond_stage_model.model.", OF(TE) | OF(TE1) },
    { "conditioner.embedders.0.transformer.", OF(TE) | OF(TE1) },
    { "conditioner.embedders.0.model.", OF(TE) | OF(TE1) | OF(TE2) }, /* a refiner's only one */
    { "conditioner.embedders.1.model.", OF(TE2) },
    { "text_encoders.clip_l.transformer.", OF(TE) | OF(TE1) },
    { "text_encoders.clip_g.transformer.", OF(TE2) },
    { "text_encoders.t5xxl.transformer.", OF(TE2) | OF(TE3) },
    { "text_encoder.", OF(TE) | OF(TE1) },
    { "text_encoder_2.", OF(TE2) },
    { "text_encoder_3.", OF(TE3) },
};

/* An encoder in a file of its own: the wide one of SDXL and SD 3 is the second. */
static unsigned lone_encoder(const sft_set *model, sft_span path) {
    const sft_tensor *wide = sft_set_find(
        model, sft_span_cstr("text_model.embeddings.position_embedding.weight"), NULL);
    if (sfti_begins(path, "encoder.block.")) return OF(TE2) | OF(TE3);
    if (!sfti_begins(path, "text_model.") || !wide || wide->rank != 2) return 0;
    return wide->shape[1] == 1280 ? OF(TE2) : OF(TE) | OF(TE1);
}

static bool has_marked(const sft_set *model, const char *prefix, const char *mark) {
    char name[128];
    size_t len = strlen(prefix), more = strlen(mark);
    memcpy(name, prefix, len);
    memcpy(name + len, mark, more);
    return sft_set_find(model, (sft_span){ name, len + more }, NULL) != NULL;
}

static void add_main(sfti_lora_ways *ways, const sft_set *model, const sft_tensor *tensor,
                     const char *prefix, sft_span path) {
    static const char *const original[] = { "input_blocks.", "middle_block.", "output_blocks.",
                                            "time_embed.", "label_emb.", "out." };
    static const char *const diffusers[] = { "down_blocks.", "mid_block.", "up_blocks.",
                                             "time_embedding.", "add_embedding.", "conv_in",
                                             "conv_out", "conv_norm_out" };
    sfti_lora_way way = { .parts = OF(MAIN) };
    if (SFTI_ONE_OF(path, original, sfti_begins)) {
        way_text text = way_begin(ways);
        if (put_diffusers(&text, path)) way_end(&text, way);
        else ways->used = text.begin;
    } else if (SFTI_ONE_OF(path, diffusers, sfti_begins)) {
        for (uint64_t place = 1; place <= 2; place++) {
            way_text text = way_begin(ways);
            if (put_original(&text, path, place)) way_end(&text, way);
            else ways->used = text.begin;
        }
    }
    for (size_t i = 0; i < SFTI_COUNT(pair_tables); i++) {
        const struct pair_table *table = &pair_tables[i];
        add_pairs(ways, table->pairs, table->count, OF(MAIN), path, tensor, true);
        if (has_marked(model, prefix, table->mark))
            add_pairs(ways, table->pairs, table->count, OF(MAIN), path, tensor, false);
    }
}

static void add_encoder(sfti_lora_ways *ways, const sft_tensor *tensor, unsigned parts,
                        sft_span path) {
    if (sfti_begins(path, "encoder.layers.") || sfti_begins(path, "embeddings.")) {
        way_text text = way_begin(ways); /* old files leave it out */
        way_words(&text, "text_model.");
        way_put(&text, path);
        way_end(&text, (sfti_lora_way){ .parts = parts });
    }
    add_pairs(ways, clip_pairs, SFTI_COUNT(clip_pairs), parts, path, tensor, true);
}

void sfti_lora_ways_of(const sft_set *model, const sft_tensor *tensor, sfti_lora_ways *out) {
    sft_span name = tensor->name;
    out->count = out->used = 0;
    if (name.len == 0 || name.len > SFTI_LORA_NAME || sfti_ends(name, ".bias")
        || sfti_ends(name, ".in_proj_bias"))
        return;
    if (sfti_ends(name, ".weight")) name.len -= strlen(".weight");
    for (size_t i = 0; i < SFTI_COUNT(model_prefix_rows); i++) {
        const struct model_prefix *row = &model_prefix_rows[i];
        if (!sfti_begins(name, row->prefix) || name.len == strlen(row->prefix)) continue;
        sft_span path = sfti_from(name, strlen(row->prefix));
        unsigned parts = row->parts;
        if (*row->prefix == '\0') parts |= lone_encoder(model, path);
        way_text text = way_begin(out);
        way_put(&text, path);
        way_end(&text, (sfti_lora_way){ .parts = parts });
        if (parts & OF(MAIN)) add_main(out, model, tensor, row->prefix, path);
        if (parts & ~OF(MAIN)) add_encoder(out, tensor, parts & ~OF(MAIN), path);
    }
}
