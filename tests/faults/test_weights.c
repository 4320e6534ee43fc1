/* Quantising, layouts, adapters and merges over a system of which the nth allocation or call
 * fails, or which is told to stop: what stood there stands there still, or what was to come is
 * there whole; no hidden file is left, and the exit status tells. */
#include "faults.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "reshape_world.h"
#include "unit/make_file.h"

#include <stdio.h>
#include <string.h>

/* ── Models ── */

typedef struct matrix {
    const char *name; /* of a tensor; NULL ends a model */
    unsigned size[4]; /* up to the first 0; of none a scalar */
    bool f32;         /* else BF16 */
} matrix;

typedef struct model {
    const char *path;
    unsigned salt; /* other values */
    matrix tensors[8];
} model;

#define LAYER "layers.0.attn.to_q"
#define KEY "lora_unet_layers_0_attn_to_q"
#define PARTS(which, factor) \
    "transformer.transformer_blocks.0.attn.to_" which ".lora_" factor ".weight"
#define FLUX_KEY "lora_unet_double_blocks_0_img_attn_qkv"

static const model models[] = {
    { "/w/a.safetensors", 1,
      { { LAYER ".weight", { 32, 16 }, false }, { LAYER ".bias", { 32 }, false },
        { "layers.1.attn.to_q.weight", { 16, 16 }, true } } },
    { "/w/b.safetensors", 2,
      { { LAYER ".weight", { 32, 16 }, false }, { LAYER ".bias", { 32 }, false },
        { "layers.1.attn.to_q.weight", { 16, 16 }, true } } },
    { "/w/wide.safetensors", 3,
      { { LAYER ".weight", { 128, 128 }, false },
        { "layers.0.norm.weight", { 128 }, false } } },
    { "/w/wide2.safetensors", 4,
      { { LAYER ".weight", { 128, 128 }, false },
        { "layers.0.norm.weight", { 128 }, false } } },
    { "/w/lora.safetensors", 5,
      { { KEY ".lora_down.weight", { 2, 16 }, true },
        { KEY ".lora_up.weight", { 32, 2 }, true } } },
    { "/w/wide-lora.safetensors", 5,
      { { KEY ".lora_down.weight", { 2, 128 }, true },
        { KEY ".lora_up.weight", { 128, 2 }, true } } },
    { "/w/loha.safetensors", 6,
      { { KEY ".hada_w1_a", { 32, 2 }, true }, { KEY ".hada_w1_b", { 2, 16 }, true },
        { KEY ".hada_w2_a", { 32, 2 }, true }, { KEY ".hada_w2_b", { 2, 16 }, true } } },
    { "/w/lokr.safetensors", 7,
      { { KEY ".lokr_w1", { 4, 4 }, true }, { KEY ".lokr_w2_a", { 8, 2 }, true },
        { KEY ".lokr_w2_b", { 2, 4 }, true } } },
    { "/w/oft.safetensors", 11, { { KEY ".oft_blocks", { 4, 8, 8 }, true } } },
    { "/w/boft.safetensors", 12, { { KEY ".oft_blocks", { 2, 4, 8, 8 }, true } } },
    { "/w/glora.safetensors", 13,
      { { KEY ".a1.weight", { 2, 16 }, true }, { KEY ".a2.weight", { 16, 2 }, true },
        { KEY ".b1.weight", { 2, 16 }, true }, { KEY ".b2.weight", { 32, 2 }, true } } },
    { "/w/dora.safetensors", 14,
      { { KEY ".lora_down.weight", { 2, 16 }, true }, { KEY ".lora_up.weight", { 32, 2 }, true },
        { KEY ".dora_scale", { 1, 16 }, true } } },
    { "/w/full.safetensors", 15,
      { { KEY ".diff", { 32, 16 }, true }, { KEY ".diff_b", { 32 }, true } } },
    { "/w/parts.safetensors", 16,
      { { PARTS("q", "A"), { 2, 32 }, false }, { PARTS("q", "B"), { 32, 2 }, false },
        { PARTS("k", "A"), { 2, 32 }, false }, { PARTS("k", "B"), { 32, 2 }, false },
        { PARTS("v", "A"), { 2, 32 }, false }, { PARTS("v", "B"), { 32, 2 }, false } } },
    { "/w/flux-dora.safetensors", 17,
      { { FLUX_KEY ".lora_down.weight", { 2, 32 }, true },
        { FLUX_KEY ".lora_up.weight", { 96, 2 }, true },
        { FLUX_KEY ".dora_scale", { 96, 1 }, true }, { FLUX_KEY ".alpha", { 0 }, true } } },
    { "/w/flux-lora.safetensors", 8,
      { { FLUX_KEY ".lora_down.weight", { 2, 32 }, false },
        { FLUX_KEY ".lora_up.weight", { 96, 2 }, false } } },
    { "/w/flux.safetensors", 9,
      { { "double_blocks.0.img_attn.qkv.weight", { 96, 32 }, false },
        { "single_blocks.0.linear1.weight", { 224, 32 }, false },
        { "vector_in.in_layer.weight", { 32, 8 }, false } } },
    { "/w/vae.safetensors", 10,
      { { "decoder.up.3.block.0.norm1.weight", { 64 }, false },
        { "encoder.down.0.block.0.norm1.weight", { 32 }, false },
        { "encoder.mid.attn_1.q.weight", { 32, 32, 1, 1 }, false } } },
};

/* What the command itself makes of them, once. */
static const struct made {
    const char *path, *line;
} made[] = {
    { "/w/fp8.safetensors", "convert /w/wide.safetensors --quantize fp8 -o /w/fp8.safetensors" },
    { "/w/int8.safetensors",
      "convert /w/wide.safetensors --quantize int8 --scale row -o /w/int8.safetensors" },
    { "/w/nvfp4.safetensors",
      "convert /w/wide.safetensors --quantize nvfp4 -o /w/nvfp4.safetensors" },
    { "/w/mix.safetensors", "merge --method linear /w/a.safetensors:0.3 /w/b.safetensors:0.7 "
                            "-o /w/mix.safetensors" },
};

#define MODELS (sizeof models / sizeof *models)
#define MADE (sizeof made / sizeof *made)

static test_file files[MODELS + MADE];

/* Values between 2^-8 and 2^-3 of both signs. */
static unsigned high_half(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    unsigned exponent = 119 + ((*state >> 20) & 3) + ((*state >> 25) & 1);
    return (*state >> 31) << 15 | exponent << 7 | ((*state >> 12) & 127);
}

static test_file make_model(const model *m) {
    static unsigned char data[1 << 16];
    char header[2048] = "{";
    size_t len = 1, at = 0;
    uint32_t state = m->salt * 2654435761u;
    for (const matrix *t = m->tensors; t->name; t++) {
        size_t begin = at, count = 1;
        char shape[64] = "";
        for (int d = 0; d < 4 && t->size[d]; d++) {
            size_t used = strlen(shape);
            snprintf(shape + used, sizeof shape - used, "%s%u", d ? "," : "", t->size[d]);
            count *= t->size[d];
        }
        fault_need(at + 4 * count <= sizeof data);
        for (size_t i = 0; i < count; i++) {
            unsigned value = high_half(&state);
            if (t->f32) data[at++] = 0, data[at++] = (unsigned char)i;
            data[at++] = (unsigned char)value;
            data[at++] = (unsigned char)(value >> 8);
        }
        int more = snprintf(header + len, sizeof header - len,
                            "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}",
                            begin ? "," : "", t->name, t->f32 ? "F32" : "BF16", shape, begin, at);
        fault_need(more > 0 && (size_t)more < sizeof header - len - 1);
        len += (size_t)more;
    }
    header[len] = '}';
    return make_file(header, data, at);
}

static const char recipe[] =
    "merge_method: task_arithmetic\nbase_model: /w/a.safetensors\nmodels:\n"
    "  - model: /w/b.safetensors\n    parameters:\n      weight: 0.5\ndtype: bfloat16\n";
static const char records[] =
    "model tiny \"Tiny\"\n    tensors     checkpoint 80\n        layers.0.attn.to_q.weight[32,*]\n";

static void add_files(size_t count) {
    for (size_t i = 0; i < count; i++)
        os_fake_add_file(i < MODELS ? models[i].path : made[i - MODELS].path, files[i].bytes,
                         files[i].len);
    os_fake_add_file("/w/recipe.yml", recipe, sizeof recipe - 1);
    os_fake_add_file("/w/tiny.txt", records, sizeof records - 1);
}

static int make_files(void **unused) {
    (void)unused;
    for (size_t i = 0; i < MODELS; i++) files[i] = make_model(&models[i]);
    for (size_t i = MODELS; i < MODELS + MADE; i++) {
        fault_world();
        add_files(i);
        char line[256];
        snprintf(line, sizeof line, "safetensors %s", made[i - MODELS].line);
        fault_need(fault_command(line) == 0);
        size_t len;
        const void *bytes = os_fake_file(made[i - MODELS].path, &len);
        fault_need(bytes);
        files[i] = (test_file){ malloc(len), len, 0 };
        fault_need(files[i].bytes);
        memcpy(files[i].bytes, bytes, len);
    }
    return 0;
}

static int free_files(void **unused) {
    (void)unused;
    for (size_t i = 0; i < MODELS + MADE; i++) free_file(&files[i]);
    return 0;
}

static void set_world(const fault_scene *scene) {
    add_files(MODELS + MADE);
    os_fake_add_file("/dir/old.safetensors", "old", 3);
    os_fake_no_unnamed(scene->way);
    before = look();
}

/* ── Scenes ── */

#define TO " -o /dir/o.safetensors"
/* By way of a quantised model's values, which any number of threads may ask for. */
#define REWRITES(text) \
    { .command = true, .run = fault_run, .line = "safetensors " text, .writes = true, \
      .imports = true, .set = set_world, .after = judge_state }
#define DECODES(text) \
    { .command = true, .run = fault_run, .line = "safetensors " text, .imports = true, \
      .set = set_world, .after = judge_state }
/* Takes what is not there for a word. */
#define FINDS(text) \
    { .command = true, .run = fault_run, .line = "safetensors " text, .believes = true, \
      .set = set_world, .after = judge_state }
#define OVER " -o /dir/old.safetensors --force"

static const fault_scene quantised[] = {
    WRITES("convert /w/wide.safetensors --quantize fp8" TO),
    NAMED("convert /w/wide.safetensors --quantize nvfp4" OVER),
    WRITES("convert /w/wide.safetensors --quantize int8 --layout compressed-tensors --json" TO),
    WRITES("convert /w/wide.safetensors --quantize int8-convrot --dry-run" TO),
    WRITES("convert /w/fp8.safetensors --dequantize" TO),
    NAMED("convert /w/nvfp4.safetensors --dequantize --dtype F32" OVER),
    WRITES("convert /w/int8.safetensors --quantize mxfp8 --from-quantised" TO),
    DECODES("diff --values /w/wide.safetensors /w/int8.safetensors"),
    READS("info /w/nvfp4.safetensors"),
    READS("info --json /w/fp8.safetensors"),
    REFUSES("convert /w/fp8.safetensors --quantize int8" TO),
    REFUSES("convert /w/lora.safetensors --quantize int8" TO),
};

static const fault_scene layouts[] = {
    WRITES("convert /w/flux.safetensors --layout diffusers --architecture flux.1 -o /dir/new"),
    NAMED("convert /w/vae.safetensors --layout diffusers --json -o /dir/new"),
    WRITES("lora convert /w/flux-lora.safetensors --architecture flux.1 --to diffusers" TO),
    WRITES("lora convert /w/flux-lora.safetensors --architecture flux.1 --to peft "
           "-o /dir/adapter_model.safetensors"),
    NAMED("lora convert /w/flux-lora.safetensors --architecture flux.1 --to comfy" OVER),
    WRITES("lora convert /w/parts.safetensors --architecture flux.1 --to kohya" TO),
    WRITES("lora convert /w/flux-dora.safetensors --architecture flux.1 --to diffusers --json" TO),
    REFUSES("convert /w/a.safetensors --layout diffusers -o /dir/new"),
    REFUSES("lora convert /w/lora.safetensors --to diffusers" TO),
};

static const fault_scene adapters[] = {
    WRITES("lora merge /w/a.safetensors /w/loha.safetensors /w/lokr.safetensors:0.5" TO),
    REWRITES("lora merge /w/fp8.safetensors /w/wide-lora.safetensors" TO),
    REWRITES("lora merge /w/int8.safetensors /w/wide-lora.safetensors:2 --json" TO),
    WRITES("lora extract /w/b.safetensors /w/a.safetensors --rank 2 --norms" TO),
    NAMED("lora extract /w/wide2.safetensors /w/wide.safetensors --rank 1 --json" OVER),
    WRITES("lora resize /w/lora.safetensors --rank 1" TO),
    WRITES("lora resize /w/lora.safetensors --error 0.5 --json" TO),
    WRITES("lora stack /w/lora.safetensors:0.5 /w/lora.safetensors" TO),
    WRITES("lora simplify /w/lokr.safetensors --rank 2" TO),
    WRITES("lora simplify /w/loha.safetensors --error 0.3" TO),
    WRITES("lora merge /w/a.safetensors /w/oft.safetensors /w/boft.safetensors:0.1" TO),
    WRITES("lora merge /w/a.safetensors /w/glora.safetensors /w/dora.safetensors:0.3" TO),
    WRITES("lora merge /w/a.safetensors /w/full.safetensors:0.5 --json" TO),
    WRITES("lora simplify /w/boft.safetensors --model /w/a.safetensors --rank 2" TO),
    WRITES("lora simplify /w/glora.safetensors --model /w/a.safetensors --rank exact" TO),
    WRITES("lora simplify /w/dora.safetensors --model /w/a.safetensors --rank 2" TO),
    WRITES("lora simplify /w/full.safetensors --rank 2" TO),
    READS("lora info --spectrum /w/loha.safetensors"),
    READS("info --json /w/flux-lora.safetensors"),
    REFUSES("lora merge /w/wide.safetensors /w/lora.safetensors" TO),
};

static const fault_scene merges[] = {
    WRITES("merge --method linear /w/a.safetensors:0.3 /w/b.safetensors:0.7" TO),
    NAMED("merge --method slerp /w/a.safetensors /w/b.safetensors --param t=0.4" OVER),
    WRITES("merge --method ties --base /w/a.safetensors /w/b.safetensors /w/mix.safetensors" TO),
    WRITES("merge --method dare_ties --base /w/a.safetensors /w/b.safetensors --seed 7 --json" TO),
    WRITES("merge --method della --base /w/a.safetensors /w/b.safetensors:0.4" TO),
    WRITES("merge --method breadcrumbs --base /w/a.safetensors /w/b.safetensors" TO),
    WRITES("merge --method model_stock --base /w/a.safetensors /w/b.safetensors "
           "/w/mix.safetensors" TO),
    WRITES("merge --method sce --base /w/a.safetensors /w/b.safetensors /w/mix.safetensors" TO),
    WRITES("merge --method karcher /w/a.safetensors /w/b.safetensors" TO),
    WRITES("merge --method nearswap /w/a.safetensors /w/b.safetensors --param t=0.01" TO),
    REWRITES("merge --method linear /w/wide2.safetensors /w/nvfp4.safetensors" TO),
    WRITES("merge --recipe /w/recipe.yml" TO),
    WRITES("merge --replay /w/mix.safetensors /w/a.safetensors /w/b.safetensors" TO),
    READS("diff --merge-of /w/mix.safetensors /w/a.safetensors /w/b.safetensors"),
    REFUSES("merge --method linear /w/a.safetensors /w/wide.safetensors" TO),
};

static const fault_scene known[] = {
    READS("records check /w/tiny.txt"),
    READS("records check /w/tiny.txt --model /w/a.safetensors --json"),
    READS("info --records /w/tiny.txt /w/a.safetensors"),
    FINDS("find --fits /w/flux.safetensors --all /w/flux-lora.safetensors /w/lora.safetensors"),
};

#define PLAYS(scenes, allocations, calls) \
    static void play_##scenes(void **unused) { \
        (void)unused; \
        assert_true(fault_play(scenes, sizeof scenes / sizeof *scenes, allocations, calls)); \
    }
PLAYS(quantised, 100, 100)
PLAYS(layouts, 100, 100)
PLAYS(adapters, 100, 100)
PLAYS(merges, 100, 100)
PLAYS(known, 50, 20)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(play_quantised), cmocka_unit_test(play_layouts),
        cmocka_unit_test(play_adapters),  cmocka_unit_test(play_merges),
        cmocka_unit_test(play_known),
    };
#if defined(_WIN32)
    (void)setenv("FAULTS_EVERY", "8", 0); /* as under ASan: all take wine more than an hour */
#endif
    return cmocka_run_group_tests_name("weights over a failing system", tests, make_files,
                                       free_files);
}
