/* Small models that are merged, with the values, or refused, with the tensor, the reason and the
 * model that is to blame. Methods are compared with mergekit's in tests/merge. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "safetensors_merge.h"
#include "unit/text_model.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))
#define NONE SIZE_MAX
#define MOST 10
#define PASSED "merge_method: passthrough\nslices:\n  - sources:\n      - model: a\n" \
    "        layer_range: "
#define TWO "merge_method: linear\nslices:\n  - sources:\n      - model: a\n" \
    "        layer_range: [0, 1]\n      - model: b\n        layer_range: "

typedef struct merge_case {
    const char *models[MOST]; /* as case_tensor reads them; their weights behind '|' */
    const char *method;       /* or a recipe, which has lines */
    size_t base;
    const char *params[3];
    const char *says; /* "TENSOR: words" or "words" of a refusal; "=2,3": of the first tensor */
    size_t blames;
    bool ignore;
    uint32_t dtype; /* 0: as it is; else a sft_dtype + 1 */
} merge_case;

static bool has_numbers(sft_part part, const char *values) {
    uint64_t at = part.begin;
    for (const char *v = values; *v; v += strcspn(v, ","), v += *v == ',') {
        float found = 0;
        size_t got = 0;
        if (sft_source_read(part.source, at, &found, 4, &got, NULL) || got != 4
            || found < strtof(v, NULL) - 1e-4F || found > strtof(v, NULL) + 1e-4F) {
            print_error("value %llu is %g\n", (unsigned long long)(at - part.begin) / 4,
                        (double)found);
            return false;
        }
        at += 4;
    }
    return true;
}

/* Reads all of the result. */
static sft_code read_merged(sft_merge *merge, sft_error *err) {
    sft_code code = SFT_OK;
    for (size_t i = 0; !code; i++) {
        sft_part part = sft_merge_part(merge, i);
        uint64_t bytes = 0;
        if (!part.source) break;
        code = sft_shape_size(part.spec.dtype, part.spec.shape, part.spec.rank, NULL, &bytes, err);
        for (uint64_t at = 0; !code && at < bytes;) {
            uint8_t into[512];
            size_t got = 0, some = bytes - at < sizeof into ? (size_t)(bytes - at) : sizeof into;
            code = sft_source_read(part.source, part.begin + at, into, some, &got, err);
            at += got;
        }
    }
    return code;
}

static bool merge_holds(const merge_case *c) {
    case_model models[MOST];
    sft_merge_options options = SFT_MERGE_OPTIONS_INIT;
    sft_error err = SFT_ERROR_INIT;
    sft_merge *merge = NULL;
    size_t count = 0;
    bool recipe = strchr(c->method, '\n') != NULL;
    if (recipe) options.recipe = sft_span_cstr(c->method);
    else options.method = c->method;
    options.base = c->base;
    options.threads = 4;
    options.ignore_missing = c->ignore;
    options.params = c->params;
    if (c->dtype) options.dtype = c->dtype - 1;
    while (options.param_count < 3 && c->params[options.param_count]) options.param_count++;
    sft_code code = sft_merge_new(&options, &merge, &err);
    for (size_t i = 0; i < MOST && c->models[i]; i++) {
        char text[1024];
        char *weight;
        (void)snprintf(text, sizeof text, "%s", c->models[i]);
        if ((weight = strchr(text, '|'))) *weight++ = '\0';
        models[count++] = case_open(text, NULL);
        if (!code) code = sft_merge_add(merge, models[i].set, NULL, weight, &err);
    }
    if (!code) code = sft_merge_plan(merge, &err);
    bool fine = !code && *c->says == '=' && has_numbers(sft_merge_part(merge, 0), c->says + 1);
    if (!code && *c->says != '=') code = read_merged(merge, &err);
    char found[1024];
    (void)snprintf(found, sizeof found, "%.*s%s%s",
                   err.tensor_len == SFT_NO_TENSOR ? 0 : (int)err.tensor_len, err.tensor,
                   err.tensor_len == SFT_NO_TENSOR ? "" : ": ", err.message);
    if (code) fine = strstr(found, c->says) && (!merge || sft_merge_blames(merge) == c->blames);
    if (!fine)
        print_error("%s %s %s\n  %s\n  expected %s (%zu)\n  found %d %s (%zu)\n", c->method,
                    c->params[0] ? c->params[0] : "", c->models[0], c->models[1], c->says,
                    c->blames, (int)code, found, sft_merge_blames(merge));
    sft_merge_free(merge);
    while (count > 0) case_close(&models[--count]);
    return fine;
}

static void cases_hold(const merge_case *cases, size_t count) {
    size_t failed = 0;
    for (size_t i = 0; i < count; i++) failed += !merge_holds(&cases[i]);
    assert_int_equal(failed, 0);
}

static void finds_tensors(void **state) {
    static const merge_case cases[] = {
        { { "w F32 2 #1,2", "w F32 2 #3,4" }, "linear", NONE, { 0 }, "=2,3", NONE, false, 0 },
        /* names */
        { { "model.diffusion_model.w F32 1 #1", "transformer.w F32 1 #3" }, "linear", NONE, { 0 },
          "=2", NONE, false, 0 },
        { { "w F32 1 #1;v F32 1", "unet.w F32 1 #3;v F32 1" }, "linear", NONE, { 0 }, "=0", NONE,
          false, 0 },
        { { "model.w F32 1 #1", "language_model.model.w F32 1 #3" }, "linear", NONE, { 0 }, "=2",
          NONE, false, 0 },
        { { "unet.v F32 1;unet.w F32 1", "unet.v F32 1;net.w F32 1;transformer.w F32 1" }, "linear",
          NONE, { 0 },
          "unet.w: expected one tensor for it in each model, found several whose names", 1, false,
          0 },
        { { "unet.w F32 1;net.w F32 1", "transformer.w F32 1" }, "linear", NONE, { 0 },
          "transformer.w: expected it to be one tensor of the other model, found that two names",
          1, false, 0 },
        { { "~~~~~~w F32 1", "unet.~~~~~~w F32 1" }, "linear", NONE, { 0 },
          "expected it in every model, found none here", 1, false, 0 },
        { { "v F32 1;w F32 1", "v F32 1" }, "linear", NONE, { 0 },
          "w: expected it in every model, found none here", 1, false, 0 },
        { { "w F32 1 #5;v F32 1", "v F32 1" }, "linear", NONE, { 0 }, "=0", NONE, true, 0 },
        { { "w F32 1 #5", "v F32 1" }, "linear", NONE, { 0 },
          "expected tensors of the model whose names the result has, found none in common", 1, true,
          0 },
        { { "v F32 1", "v F32 1;w F32 1" }, "linear", NONE, { 0 },
          "w: expected a tensor of this name in the first model, found none", 1, false, 0 },
        { { "v F32 1", "v F32 1;w F32 1" }, "task_arithmetic", 0, { 0 },
          "w: expected a tensor of this name in the base, found none", 1, false, 0 },
        { { "v F32 1 #2", "v F32 1 #4;w F32 1" }, "linear", NONE, { 0 }, "=3", NONE, true, 0 },
        /* shapes */
        { { "w F32 2,1,1 #1,2", "w F32 2 #3,4" }, "linear", NONE, { 0 }, "=2,3", NONE, false, 0 },
        { { "w F32 2", "w F32 3" }, "linear", NONE, { 0 },
          "w: expected the shape [2] that it has in the other model, found [3]: models of", 1,
          false, 0 },
        { { "lm_head.weight F32 3,1 #1,2,3", "lm_head.weight F32 2,1 #3,4" }, "linear", NONE, { 0 },
          "=2,3", NONE, false, 0 },
        { { "output.weight F32 2,1 #1,2", "output.weight F32 3,1 #3,4,9" }, "linear", NONE, { 0 },
          "=2,3", NONE, false, 0 },
        { { "lm_head.weight F32 3,1 #1,2,3;wte.weight F32 3,1", "lm_head.weight F32 2,1 #3,4;"
            "wte.weight F32 2,1", "lm_head.weight F32 4,1 #5,6,7,8;wte.weight F32 1,1" }, "linear",
          NONE, { 0 }, "=3,4", NONE, false, 0 },
        { { "lm_head.weight F32 2,2", "lm_head.weight F32 2,3" }, "linear", NONE, { 0 },
          "lm_head.weight: expected the shape [2, 2]", 1, false, 0 },
        { { "lm_head.weight F32 0,2", "lm_head.weight F32 2,2" }, "linear", NONE, { 0 },
          "lm_head.weight: expected the shape [0, 2]", 1, false, 0 },
        { { "lm_head.weight F32 2,2", "lm_head.weight F32 0,2" }, "linear", NONE, { 0 },
          "lm_head.weight: expected the shape [2, 2]", 1, false, 0 },
        { { "lm_head.bias F32 -", "lm_head.bias F32 2" }, "linear", NONE, { 0 },
          "lm_head.bias: expected the shape []", 1, false, 0 },
        { { "lm_head.bias F32 2", "lm_head.bias F32 -" }, "linear", NONE, { 0 },
          "lm_head.bias: expected the shape [2]", 1, false, 0 },
        /* dtypes */
        { { "w F32 1 #1", "w BF16 1 #16448" }, "linear", NONE, { 0 }, "=2", NONE, false, 0 },
        { { "w F32 1 #2", "w I32 1" }, "linear", NONE, { 0 }, "=2", NONE, false, 0 },
        { { "w F32 4097", "w I32 4097" }, "linear", NONE, { 0 },
          "w: expected a tensor of floats, as it is in the other model, found I32", 1, false, 0 },
        { { "w F32 1", "w F4 2" }, "linear", NONE, { 0 },
          "w: expected a tensor of floats, as it is in the other model, found F4", 1, false, 0 },
        { { "w C64 1", "w C64 1" }, "linear", NONE, { 0 },
          "w: expected floats of 8 to 64 bits to merge, found C64", 0, false, 0 },
        { { "w F4 2", "w F4 2" }, "linear", NONE, { 0 },
          "w: expected floats of 8 to 64 bits to merge, found F4", 0, false, 0 },
        { { "w F8_E8M0 4 #1,2,3,4" }, "passthrough", NONE, { 0 }, "=1.539989614439558e-36", NONE,
          false, 0 },
        { { "w I32 1 #1065353216", "w I32 1 #1065353216" }, "linear", NONE, { 0 }, "=1",
          NONE, false,
          0 },
        { { "w I32 1 #1065353216", "w I32 1 #1" }, "linear", NONE, { 0 }, "=1", NONE, false, 0 },
        { { "w I32 1 #1065353216", "w I64 1 #1" }, "linear", NONE, { 0 }, "=1", NONE, false, 0 },
        { { "w I32 1 #1065353216", "w I32 2 #1" }, "linear", NONE, { 0 }, "=1", NONE, false, 0 },
        { { "w I32 4097 #1", "w I32 4097 #2" }, "linear", NONE, { 0 },
          "w: expected the same integers in all models, for they cannot be merged, found others", 1,
          false, 0 },
        { { "w I32 4097 #1065353216", "w I32 4097 #1065353216" }, "linear", NONE, { 0 }, "=1", NONE,
          false, 0 },
        { { "w F8_E4M3 1 #56;w_scale F32 1 #2", "w F8_E4M3 1 #56;w_scale F32 1 #4" }, "linear",
          NONE,
          { 0 }, "w: expected a dtype for the result, for it is quantised in all models", 0, false,
          0 },
        { { "w F8_E4M3 1 #56;w_scale F32 1 #2", "w F8_E4M3 1 #56;w_scale F32 1 #4" }, "linear",
          NONE,
          { 0 }, "=3", NONE, false, SFT_F32 + 1 },
        { { "w F8_E4M3 1 #56;w_scale F32 1 #2", "w F32 1 #4" }, "linear", NONE, { 0 }, "=3", NONE,
          false, 0 },
        { { "w F8_E4M3 2,4;w_scale_3 F32 1" }, "passthrough", NONE, { 0 }, "expected", 0, false,
          0 },
        { { "w F8_E4M3 2,4;w_scale F32 2,4,1" }, "passthrough", NONE, { 0 }, "expected", 0, false,
          0 },
        { { "m.weight F8_E4M3 2,4;m.scale F32 1" }, "passthrough", NONE, { 0 },
          "expected", 0, false,
          0 },
        { { "m.weight I8 2,4;m.weight_scale F32 3" }, "passthrough", NONE, { 0 }, "expected", 0,
          false, 0 },
        { { "transformer.w F32 1 #4", "unet.w F8_E4M3 1 #56;unet.w_scale F32 1 #2" }, "linear",
          NONE,
          { 0 }, "=3", NONE, false, 0 },
        { { "w F8_E4M3 1 #56;w_scale F32 1 #2;z BF16 1", "w F32 1 #4;z F32 1" }, "linear",
          NONE, { 0 },
          "=3", NONE, false, 0 },
        { { "model.diffusion_model.v F32 1 #1;model.diffusion_model.w F32 1",
            "model.diffusion_model.v F32 1 #3;diffusion_model.w F32 1" }, "linear", NONE, { 0 },
            "=2",
          NONE, false, 0 },
        { { "a I32 1 #1065353216;b I32 1", "a I32 1 #1;b I32 1 #1;c F32 1;d F32 1" }, "linear",
          NONE,
          { 0 }, "=1", NONE, true, 0 },
        /* layers */
        { { "m.0.w F32 1 #5" }, PASSED "[0, 1]\n  - sources:\n      - model: a\n"
          "        layer_range: [0, 1]\n", NONE, { 0 }, "=5", NONE, false, 0 },
        { { "m.0.w F32 1 #5;m.1.w F32 1 #6" }, PASSED "[1, 2]\n", NONE, { 0 }, "=6", NONE, false,
          0 },
        { { "m.0.w F32 1 #5;m.1.w F32 1 #6" }, PASSED "[1, 2]\nparameters:\n  scale:\n"
          "    - glob: 'm.0.*'\n      value: 3\n    - value: 2\n", NONE, { 0 }, "=12", NONE, false,
          0 },
        { { "m.0.w F32 1 #5;m.1.w F32 1 #6" }, PASSED "[1, 2]\nparameters:\n  scale:\n"
          "    - glob: 'm.1.*'\n      value: 3\n    - value: 2\n", NONE, { 0 }, "=18", NONE, false,
          0 },
        { { "w BF16 2 #16256,16384" }, "passthrough", NONE, { 0 }, "=1,2", NONE, false,
          SFT_F32 + 1 },
        { { "m.0.w F32 1" }, PASSED "[0, 2]\n", NONE, { 0 },
          "expected a layer_range within the 1 layers of the model, found one up to 2", 0, false,
          0 },
        { { "m.0.w F32 1;n.0.w F32 1" }, PASSED "[0, 1]\n", NONE, { 0 },
          "n.0.w: expected one stack of at most 65536 layers to be cut into slices, found another "
          "beside \"m\"", 0, false, 0 },
        { { "m.65536.w F32 1" }, PASSED "[0, 1]\n", NONE, { 0 },
          "m.65536.w: expected one stack of at most 65536 layers", 0, false, 0 },
        { { "m.0.w F32 1 #1", "m.0.w F32 1 #3" }, TWO "[0, 1]\n", NONE, { 0 }, "m.0.w: expected "
          "the parameter weight of linear, found none", NONE, false, 0 },
        { { "m.0.w F32 1 #1", "m.0.w F32 1 #3" }, TWO "[0, 1]\nparameters:\n  weight: 1\n", NONE,
          { 0 }, "=2", NONE, false, 0 },
        { { "m.0.w F32 1", "m.0.w F32 1;m.0.v F32 1" }, TWO "[0, 1]\nparameters:\n  weight: 1\n",
          NONE, { 0 }, "expected as many tensors in layer 0 as the other sources of its slice have "
          "in theirs (1), found more", 1, false, 0 },
        { { "m.0.w F32 1 #1", "m.0.w F32 1 #3;m.0.v F32 1" },
          TWO "[0, 1]\nignore_missing: true\nparameters:\n  weight: 1\n", NONE, { 0 }, "=2", NONE,
          false, 0 },
        { { "m.0.w F32 1", "m.0.v F32 1" }, TWO "[0, 1]\nparameters:\n  weight: 1\n", NONE, { 0 },
          "m.0.w: expected it in every model, found none here", 1, false, 0 },
    };
    (void)state;
    cases_hold(cases, COUNT(cases));
}

#define A "w F32 2 #1,2"
#define B "w F32 2 #3,4"
#define C "w F32 70000 #1,2,-1,4"
#define DENSITIES(method) "merge_method: " method "\nbase_model: c\nmodels:\n  - model: a\n" \
    "    parameters:\n      density: 1\n  - model: b\n    parameters:\n      density: 0.5\n" \
    "parameters:\n  weight: 1\n  gamma: 0\n"

static void takes_parameters(void **state) {
    static const merge_case cases[] = {
        { { A "|1", B "|3" }, "linear", NONE, { 0 }, "=2.5,3.5", NONE, false, 0 },
        { { A "|1", B "|3" }, "linear", NONE, { "normalize=false" }, "=10,14", NONE, false, 0 },
        { { A "|1", B "|3" }, "linear", NONE, { "normalize=0" }, "=10,14", NONE, false, 0 },
        { { A "|1", B "|3" }, "linear", NONE, { "normalize=0.0" }, "=10,14", NONE, false, 0 },
        { { A "|x", B }, "linear", NONE, { 0 },
          "expected a number as weight, found \"x\"", 0, false,
          0 },
        { { A "|1,", B }, "linear", NONE, { 0 }, "expected a number as weight", 0, false, 0 },
        { { A "|", B }, "linear", NONE, { 0 }, "expected a number as weight", 0, false, 0 },
        { { A "|[1", B }, "linear", NONE, { 0 }, "expected a number as weight", 0, false, 0 },
        { { A "|1]", B }, "linear", NONE, { 0 }, "expected a number as weight", 0, false, 0 },
        { { A "|[1]", B "|[1, 3]" }, "linear", NONE, { "normalize=false" }, "=4,6", NONE, false,
          0 },
        { { A "|1", B }, "slerp", NONE, { 0 },
          "expected models without weights for slerp, found \":1\"", 0, false, 0 },
        { { A, B "|1e999" }, "linear", NONE, { 0 }, "expected a number as weight", 1, false, 0 },
        { { A "|1e308", B "|1e308" }, "linear", NONE, { 0 },
          "expected weights whose sum F64 can hold, found larger ones", NONE, false, 0 },
        { { A, B }, "linear", NONE, { "normalize" },
          "expected a parameter NAME=VALUE of linear (weight, normalize), found \"normalize\"",
          NONE,
          false, 0 },
        { { A, B }, "linear", NONE, { "density=1" }, "expected a parameter NAME=VALUE of linear",
          NONE, false, 0 },
        { { A, B }, "linear", NONE, { "wait=1" }, "expected a parameter NAME=VALUE of linear", NONE,
          false, 0 },
        { { A, B }, "linear", NONE, { "normalize=2" },
          "expected true or false for the parameter normalize, found \"2\"", NONE, false, 0 },
        { { A, B }, "slerp", NONE, { "t=a@b" },
          "expected a number, or several for the layers for the parameter t, found \"a@b\"", NONE,
          false, 0 },
        { { A, B }, "slerp", NONE, { "t=0" }, "=1,2", NONE, false, 0 },
        { { A, B }, "slerp", NONE, { "t=1" }, "=3,4", NONE, false, 0 },
        { { A, B }, "slerp", NONE, { "t=0", "t@w*=1" }, "=3,4", NONE, false, 0 },
        { { A, B }, "slerp", NONE, { "t=0", "t@v*=1" },
          "expected tensors whose names fit \"v*\" (parameter t), found none", NONE, false, 0 },
        { { A, B }, "lerp", NONE, { 0 }, "found \"lerp\": did you mean \"slerp\"?", NONE, false,
          0 },
        { { A, B }, "linear", 0, { 0 }, "expected no base for linear, found one", NONE, false, 0 },
        { { A, B }, "ties", 2, { 0 }, "expected a base among 2 models, found model 2", NONE, false,
          0 },
        { { A, B }, "ties", NONE, { 0 }, "expected a base for ties, found none", NONE, false, 0 },
        { { A, B, A }, "slerp", NONE, { 0 }, "for slerp, found 2", NONE, false, 0 },
        { { A, B }, "merge_method: linear\nmodels:\n  - a\n  - b\ndtype: float9\nparameters:\n"
          "  weight: 1\n", NONE, { 0 },
          "expected a dtype of F64, F32, F16 or BF16, found \"float9\"", NONE, false, 0 },
        { { A, B },
          "merge_method: linear\nmodels:\n  - a\n  - b\ndtype: torch.Float32\nparameters:\n"
          "  weight: 1\n", NONE, { 0 }, "=2,3", NONE, false, 0 },
        { { A, B }, "merge_method: linear\nmodels:\n  - a\n  - b\n", NONE, { 0 }, "weight", NONE,
          false, 0 },
        { { A }, "merge_method: linear\nmodels:\n  - a\n  - b\n", NONE, { 0 },
          "expected the 2 models of the recipe, found 1", NONE, false, 0 },
        { { A, B, A }, "merge_method: linear\nmodels:\n  - a\n  - b\n", NONE, { 0 },
          "expected at most 2 models, found more", 2, false, 0 },
        { { A "|1", B }, "merge_method: linear\nmodels:\n  - a\n  - b\n", NONE, { 0 },
          "expected no weight beside a recipe, found one", 0, false, 0 },
        /* of single methods */
        { { A, B }, "karcher", NONE, { "max_iter=-1" },
          "expected max_iter of 0 to 1000, eps and tol "
          "above 0, found others", NONE, false, 0 },
        { { A, B }, "karcher", NONE, { "max_iter=1001" }, "expected max_iter of 0 to 1000", NONE,
          false, 0 },
        { { A, B }, "karcher", NONE, { "tol=0" }, "expected max_iter of 0 to 1000", NONE, false,
          0 },
        { { A, B }, "multislerp", NONE, { "eps=0" }, "expected max_iter of 0 to 1000", NONE, false,
          0 },
        { { A, A }, "karcher", NONE, { 0 }, "=1,2", NONE, false, 0 },
        { { A, "w F32 2 #-1,-2" }, "karcher", NONE, { 0 }, "=1,2", NONE, false, 0 },
        { { "w F32 2 #0", "w F32 2 #0" }, "karcher", NONE, { 0 }, "=0,0", NONE, false, 0 },
        { { A, "w F32 2 #0" }, "karcher", NONE, { 0 }, "=0.5,1", NONE, false, 0 },
        { { A "|1", B "|-1" }, "multislerp", NONE, { 0 },
          "expected weights whose sum is not 0 for multislerp, found a sum of 0", NONE, false, 0 },
        { { A "|1", B "|-1" }, "linear", NONE, { 0 },
          "expected weights whose sum is not 0, found a sum of 0"
          ": normalize=false takes them as they are", NONE, false, 0 },
        { { A }, "multislerp", NONE, { 0 }, "=1,2", NONE, false, 0 },
        { { A, B }, "multislerp", 0, { 0 }, "=3,4", NONE, false, 0 },
        { { "w F32 2 #1,0", "w F32 2 #-1,0", "w F32 2 #0" }, "multislerp", NONE, { 0 },
          "w: expected", NONE, false, 0 },
        { { A, B, A }, "model_stock", 0, { 0 }, "=1,2", NONE, false, 0 },
        { { A, A, A }, "model_stock", 0, { 0 }, "=1,2", NONE, false, 0 },
        { { "w F32 2 #0", "w F32 2 #1,0", "w F32 2 #-1,0" }, "model_stock", 0, { 0 }, "=0,0", NONE,
          false, 0 },
        { { A, B }, "ties", 0, { "density=-1" },
          "expected a density of 0 to 1, found a negative one",
          NONE, false, 0 },
        { { A, B }, "sce", 0, { "select_topk=-1" },
          "expected a select_topk of 0 to 1, found a negative one", NONE, false, 0 },
        { { A, B }, "ties", 0, { "density=2" }, "=3,4", NONE, false, 0 },
        { { A, B }, "breadcrumbs", 0, { "density=0.5", "gamma=-0.1" },
          "expected a gamma of 0 to 1, found another", NONE, false, 0 },
        { { A, B }, "breadcrumbs", 0, { "density=0.5", "gamma=1.1" },
          "expected a gamma of 0 to 1, found another", NONE, false, 0 },
        { { A, B }, "breadcrumbs", 0, { "density=0.5", "gamma=0" }, "=", NONE, false, 0 },
        { { A, B }, "breadcrumbs", 0, { "density=0", "gamma=1" }, "=1,2", NONE, false, 0 },
        { { A, B }, "della", 0, { "density=0.5", "epsilon=-0.1" },
          "expected density - epsilon above 0 and density + epsilon below 1, found others", NONE,
          false, 0 },
        { { A, B }, "della", 0, { "density=0.5", "epsilon=0.5" },
          "expected density - epsilon above",
          NONE, false, 0 },
        { { A, B }, "della", 0, { "density=0.1", "epsilon=0.2" },
          "expected density - epsilon above",
          NONE, false, 0 },
        { { A, B }, "della", 0, { "density=0" }, "=1,2", NONE, false, 0 },
        { { A, "w F32 2 #3,5" }, "ties", 0, { "density=0.1" }, "=1,5", NONE, false, 0 },
        { { A, "w F32 2 #3,5" }, "breadcrumbs", 0, { "density=0.1" }, "=1,2", NONE, false, 0 },
        { { A, "w F32 2 #3,5" }, "breadcrumbs", 0, { "density=1" }, "=3,5", NONE, false, 0 },
        { { "w F32 2 #0", A "|1", B "|-1" }, "dare_linear", 0, { "density=1", "normalize=true" },
          "=-2,-2", NONE, false, 0 },
        { { "w F32 2 #0", A "|1", B "|3" }, "dare_linear", 0, { "density=1", "normalize=true" },
          "=2.5,3.5", NONE, false, 0 },
        { { "w F32 2 #0", A "|-1", B "|-3" }, "dare_linear", 0, { "density=1", "normalize=true" },
          "=2.5,3.5", NONE, false, 0 },
        { { "w F32 2 #0", A "|1", B "|-1" }, "task_arithmetic", 0, { "normalize=true" }, "=-2,-2",
          NONE, false, 0 },
        { { "w F32 2 #0", A "|1", B "|3" }, "task_arithmetic", 0, { "normalize=true" }, "=2.5,3.5",
          NONE, false, 0 },
        { { "w F32 2 #0", A, A, A, A, A, A, A, A, A }, "ties", 0, { "density=0.5" }, "=0,2", NONE,
          false, 0 },
        { { "w F32 70000 #0", C, C, C, C, C, C, C, C, C }, "ties", 0, { "density=0.5" }, "=0,2,0,4",
          NONE, false, 0 },
        { { "w F32 1,1000000", "w F32 1,1000000" }, "nuslerp", NONE, { "nuslerp_flatten=false" },
          "=0,0", NONE, false, 0 },
        { { A, "w F32 2 #3,5", "w F32 2" }, DENSITIES("ties"), NONE, { 0 }, "=1,3.5", NONE, false,
          0 },
        { { A, "w F32 2 #3,5", "w F32 2" }, DENSITIES("breadcrumbs"), NONE, { 0 }, "=1,7", NONE,
          false, 0 },
        { { A, B }, "nearswap", NONE, { "t=-1" }, "=1,2", NONE, false, 0 },
        { { A, B }, "nearswap", NONE, { "t=1" }, "=2,3", NONE, false, 0 },
        { { A, B }, "nearswap", NONE, { "t=9" }, "=3,4", NONE, false, 0 },
        { { A, B }, "nearswap", NONE, { "t=0" }, "=1,2", NONE, false, 0 },
        { { A, B }, "nuslerp", NONE, { 0 }, "=2.00811,3.01216", NONE, false, 0 },
        { { A "|0", B "|0" }, "nuslerp", NONE, { 0 }, "=2.00811,3.01216", NONE, false, 0 },
        { { "w F32 1,1048577", "w F32 1,1048577" }, "nuslerp", NONE,
          { "nuslerp_flatten=false", "nuslerp_row_wise=true" },
          "w: expected at most 1048576 columns for nuslerp_row_wise, found 1048577", NONE, false,
          0 },
        { { "w F32 1,1500000", "w F32 1,1500000" }, "nuslerp", NONE, { "nuslerp_flatten=false" },
          "w: expected lines of which those of all models fit into 48 MiB, found one of 1500000",
          NONE, false, 0 },
        { { "w F32 2,2 #1,0,0,1", "w F32 2,2 #1,0,0,1" }, "nuslerp", NONE,
          { "nuslerp_flatten=false", "nuslerp_row_wise=true" }, "=1,0,0,1", NONE, false, 0 },
        { { "w F32 2,2 #0", "w F32 2,2 #1,0,2,0", "w F32 2,2 #0,1,2,0" }, "model_stock", 0,
          { "filter_wise=true" }, "=0,0,2,0", NONE, false, 0 },
        /* values */
        { { "w F32 2 #1,nan", B }, "linear", NONE, { 0 },
          "w: expected finite values, found NaN at element 1", NONE, false, 0 },
        { { A, "w F32 2 #inf" }, "linear", NONE, { 0 },
          "w: expected finite values, found an infinity at element 0", NONE, false, 0 },
        { { "w F64 1 #9221120237041090560", "w F64 1" }, "linear", NONE, { 0 },
          "w: expected finite values, found NaN at element 0", NONE, false, 0 },
        { { "w F32 2 #1,100000", "w F32 2 #1,100000" }, "linear", NONE, { 0 },
          "w: expected values that F16 can hold, found larger ones in the result", NONE, false,
          SFT_F16 + 1 },
        { { "w F32 2 #3e38", "w F32 2 #3e38" }, "linear", NONE, { "normalize=false" },
          "w: expected values that F32 can hold, found larger ones in the result", NONE, false, 0 },
        { { "w F64 1 #9218868437227405311", "w F64 1 #9218868437227405311" }, "linear", NONE,
          { "normalize=false" },
          "w: expected values that F64 can hold, found larger ones in the result", NONE, false, 0 },
        { { "w F64 1 #9218868437227405311", "w F64 1 #9218868437227405311" }, "slerp", NONE,
          { "t=0.5" }, "w: expected values whose squares F64 can sum, found larger ones",
            NONE, false,
          0 },
    };
    (void)state;
    cases_hold(cases, COUNT(cases));
}

/* Arguments that are NULL or wrong. */
static void refuses_arguments(void **state) {
    static const char *const params[] = { NULL };
    sft_merge_options options = SFT_MERGE_OPTIONS_INIT;
    sft_error err = SFT_ERROR_INIT;
    sft_merge *merge;
    sft_mixture *mixture;
    sft_buffer out = { 0 };
    sft_job job = SFT_JOB_INIT;
    case_model model = case_open(A, NULL);
    const sft_set *sets[2] = { model.set, NULL };
    (void)state;
    assert_int_equal(sft_merge_new(&options, &merge, &err), SFT_BAD_ARGUMENT);
    assert_non_null(strstr(err.message, "expected a method or a recipe, found neither"));
    options.method = "linear";
    options.dtype = 99;
    assert_int_equal(sft_merge_new(&options, &merge, &err), SFT_BAD_ARGUMENT);
    assert_non_null(strstr(err.message,
    "expected a dtype of F64, F32, F16 or BF16, found another"));
    options.dtype = SFT_F8_E4M3;
    assert_int_equal(sft_merge_new(&options, &merge, &err), SFT_BAD_ARGUMENT);
    options.dtype = SFT_DTYPE_COUNT;
    options.param_count = 1;
    assert_int_equal(sft_merge_new(&options, &merge, &err), SFT_BAD_ARGUMENT);
    assert_non_null(strstr(err.message, "expected an array of parameters, found NULL"));
    options.params = params;
    assert_int_equal(sft_merge_new(&options, &merge, &err), SFT_BAD_ARGUMENT);
    assert_non_null(strstr(err.message, "expected a parameter, found NULL"));
    options.method = NULL;
    options.recipe = sft_span_cstr("merge_method: linear\nmodels:\n  - a\n");
    assert_int_equal(sft_merge_new(&options, &merge, &err), SFT_BAD_ARGUMENT);
    assert_non_null(strstr(err.message, "expected a recipe or a method, found both"));
    options.param_count = 0;
    options.base = 0;
    assert_int_equal(sft_merge_new(&options, &merge, &err), SFT_BAD_ARGUMENT);
    assert_non_null(strstr(err.message, "expected a recipe or a method, found both"));
    assert_null(merge);
    /* of no merge */
    assert_int_equal(sft_merge_named(NULL), 0);
    assert_int_equal(sft_merge_named_at(NULL, 0).len, 0);
    assert_int_equal(sft_merge_blames(NULL), SIZE_MAX);
    assert_null(sft_merge_notes(NULL));
    assert_null(sft_merge_part(NULL, 0).source);
    assert_int_equal(sft_merge_add(NULL, model.set, NULL, NULL, &err), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_merge_plan(NULL, &err), SFT_BAD_ARGUMENT);
    assert_non_null(strstr(err.message, "expected a merge, found NULL"));
    assert_int_equal(sft_merge_save(NULL, sft_sink_memory(&out), NULL, &err), SFT_BAD_ARGUMENT);
    assert_non_null(strstr(err.message, "expected a merge, found NULL"));
    assert_int_equal(out.len, 0);
    /* mixtures */
    assert_int_equal(sft_mixture_new(model.set, sets, 1, NULL, NULL, NULL, NULL, &err),
                     SFT_BAD_ARGUMENT);
    assert_non_null(strstr(err.message, "expected a place for the mixture, found NULL"));
    assert_int_equal(sft_mixture_new(NULL, sets, 1, NULL, NULL, &mixture, NULL, &err),
                     SFT_BAD_ARGUMENT);
    assert_int_equal(sft_mixture_new(model.set, NULL, 1, NULL, NULL, &mixture, NULL, &err),
                     SFT_BAD_ARGUMENT);
    assert_int_equal(sft_mixture_new(model.set, sets, 32, NULL, NULL, &mixture, NULL, &err),
                     SFT_BAD_ARGUMENT);
    assert_non_null(strstr(err.message, "expected a result and 1 to 31 models, found 32"));
    assert_int_equal(sft_mixture_new(model.set, sets, 2, NULL, NULL, &mixture, NULL, &err),
                     SFT_BAD_ARGUMENT);
    assert_non_null(strstr(err.message, "expected a model, found NULL"));
    case_model other = case_open("v F32 2", NULL);
    size_t who = 7;
    sets[0] = other.set;
    assert_int_equal(sft_mixture_new(model.set, sets, 1, NULL, NULL, &mixture, &who, &err),
                     SFT_TENSOR_NOT_FOUND);
    assert_int_equal(who, 1);
    assert_null(mixture);
    case_close(&other);
    sets[0] = model.set;
    job.size = 1;
    assert_int_equal(sft_mixture_new(model.set, sets, 1, &job, NULL, &mixture, NULL, &err),
                     SFT_BAD_ARGUMENT);
    assert_null(mixture);
    assert_int_equal(sft_mixture_count(NULL), 0);
    assert_null(sft_mixture_at(NULL, 0));
    assert_int_equal(sft_mixture_left_out(NULL), 0);
    sft_buffer_free(&out);
    case_close(&model);
}

/* A model whose bytes cannot be read: integers where they are compared, floats where they are
 * computed, all where they are digested. */
static void blames_reads(void **state) {
    static const struct { const char *text; bool plans; } cases[] = {
        { A, true }, { "w I32 4 #1", false }, { "w F64 2", true },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        for (size_t bad = 0; bad < 2; bad++) {
            case_model m = case_open(cases[i].text, NULL);
            test_source bytes[2] = { make_source(&m.file), make_source(&m.file) };
            sft_merge_options options = SFT_MERGE_OPTIONS_INIT;
            sft_error err = SFT_ERROR_INIT;
            sft_buffer out = { 0 };
            sft_set *sets[2];
            sft_merge *merge;
            float value;
            size_t got;
            options.method = "linear";
            assert_int_equal(sft_merge_new(&options, &merge, NULL), SFT_OK);
            for (size_t k = 0; k < 2; k++) {
                sft_file *file;
                assert_int_equal(sft_open_source(source_of(&bytes[k], m.file.len), NULL, &file,
                                                 NULL), SFT_OK);
                assert_int_equal(sft_set_from_file(file, NULL, &sets[k], NULL), SFT_OK);
                assert_int_equal(sft_merge_add(merge, sets[k], NULL, NULL, NULL), SFT_OK);
            }
            bytes[bad].fail_at = sft_set_tensor_at(sets[bad], 0)->offset;
            sft_code code = sft_merge_plan(merge, &err);
            assert_int_equal(code, cases[i].plans ? SFT_OK : SFT_IO_READ);
            if (!code) {
                sft_part part = sft_merge_part(merge, 0);
                assert_int_equal(sft_source_read(part.source, part.begin, &value, 4, &got, &err),
                                 SFT_IO_READ);
                assert_int_equal(err.tensor_len, 1);
                assert_int_equal(err.tensor[0], 'w');
            }
            assert_int_equal(sft_merge_save(merge, sft_sink_memory(&out), NULL, &err), SFT_IO_READ);
            if (cases[i].plans) assert_int_equal(sft_merge_blames(merge), bad);
            sft_merge_free(merge);
            sft_buffer_free(&out);
            for (size_t k = 0; k < 2; k++) sft_set_close(sets[k]);
            case_close(&m);
        }
}

/* Many equal numbers, of which a limit takes some: what is read backwards, by any number of
 * threads, is what is read from the first on. */
static void reads_in_any_order(void **state) {
#define ELEMENTS 1200003
#define STRETCH 400001
    static const struct { const char *method, *params[2]; size_t base; } cases[] = {
        { "ties", { "density=0.5" }, 0 }, { "breadcrumbs", { "density=0.5", "gamma=0.1" }, 0 },
        { "sce", { "select_topk=0.3" }, 0 }, { "linear", { NULL }, NONE },
    };
    static const char *const texts[] = {
        "w F32 1200003 #0", "w F32 1200003 #1,-1,2,3,-2,1,1",
        "w F32 1200003 #2,2,-1,1,0,3,-3,1,1,1,4",
    };
    case_model models[3];
    float *whole = malloc(4 * (size_t)ELEMENTS), *some = malloc(4 * (size_t)STRETCH);
    (void)state;
    assert_true(whole && some);
    for (size_t k = 0; k < 3; k++) models[k] = case_open(texts[k], NULL);
    for (size_t i = 0; i < COUNT(cases); i++)
        for (uint32_t threads = 1; threads <= 3; threads += 2) {
            sft_merge_options options = SFT_MERGE_OPTIONS_INIT;
            sft_error err = SFT_ERROR_INIT;
            sft_merge *merge;
            options.method = cases[i].method;
            options.base = cases[i].base;
            options.params = cases[i].params;
            options.param_count = (cases[i].params[0] != NULL) + (cases[i].params[1] != NULL);
            options.threads = threads;
            assert_int_equal(sft_merge_new(&options, &merge, &err), SFT_OK);
            for (size_t k = 0; k < 3; k++)
                assert_int_equal(sft_merge_add(merge, models[k].set, NULL, NULL, &err), SFT_OK);
            assert_int_equal(sft_merge_plan(merge, &err), SFT_OK);
            sft_part part = sft_merge_part(merge, 0);
            size_t got = 0, kept = 0;
            for (size_t at = 0; threads == 1 && at < 4 * (size_t)ELEMENTS; at += got)
                assert_int_equal(sft_source_read(part.source, part.begin + at, (char *)whole + at,
                                                 4 * (size_t)ELEMENTS - at, &got, &err), SFT_OK);
            for (size_t k = 0; k < ELEMENTS; k++) kept += whole[k] < 0 || whole[k] > 0;
            assert_in_range(kept, ELEMENTS / 10, ELEMENTS);
            for (size_t at = ELEMENTS; at > 0;) {
                size_t n = at < STRETCH ? at : STRETCH;
                at -= n;
                for (size_t done = 0; done < 4 * n; done += got)
                    assert_int_equal(sft_source_read(part.source, part.begin + 4 * at + done,
                                                     (char *)some + done, 4 * n - done, &got, &err),
                                     SFT_OK);
                assert_memory_equal(some, whole + at, 4 * n);
            }
            sft_merge_free(merge);
        }
    for (size_t k = 0; k < 3; k++) case_close(&models[k]);
    free(whole);
    free(some);
}

/* Of so many numbers that a sample tells where the limit is: as many are kept as were asked for,
 * and none that is kept is below one that is not. */
static void keeps_the_largest(void **state) {
#define LARGE 4194309
    static const struct { const char *method, *params[2]; size_t kept; } cases[] = {
        { "ties", { "density=0.3" }, 1258292 }, { "ties", { "density=0.0000001" }, 1 },
        { "ties", { "density=1" }, LARGE }, { "ties", { "density=0" }, 0 },
        { "breadcrumbs", { "density=0.3", "gamma=0" }, 1258292 },
        { "breadcrumbs", { "density=0.3", "gamma=0.1" }, 1258292 },
    };
    char text[8192] = "w F32 4194309 #";
    size_t at = strlen(text);
    for (int i = 0; i < 997; i++)
        at += (size_t)snprintf(text + at, sizeof text - at,
        "%s%d", i ? "," : "", i * 391 % 997 + 1);
    case_model models[2] = { case_open("w F32 4194309", NULL), case_open(text, NULL) };
    float *found = malloc(4 * (size_t)LARGE);
    assert_non_null(found);
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        sft_merge_options options = SFT_MERGE_OPTIONS_INIT;
        sft_merge *merge;
        size_t got = 0, kept = 0;
        options.method = cases[i].method;
        options.base = 0;
        options.params = cases[i].params;
        options.param_count = cases[i].params[1] ? 2 : 1;
        assert_int_equal(sft_merge_new(&options, &merge, NULL), SFT_OK);
        for (size_t k = 0; k < 2; k++)
            assert_int_equal(sft_merge_add(merge, models[k].set, NULL, NULL, NULL), SFT_OK);
        assert_int_equal(sft_merge_plan(merge, NULL), SFT_OK);
        sft_part part = sft_merge_part(merge, 0);
        for (size_t done = 0; done < 4 * (size_t)LARGE; done += got)
            assert_int_equal(sft_source_read(part.source, part.begin + done, (char *)found + done,
                                             4 * (size_t)LARGE - done, &got, NULL), SFT_OK);
        float least = 998, dropped = 0;
        for (size_t k = 0; k < LARGE; k++) {
            float was = (float)(k % 997 * 391 % 997 + 1);
            kept += found[k] > 0;
            if (found[k] > 0 && was < least) least = was;
            if (!(found[k] > 0) && was > dropped) dropped = was;
            assert_true(!(found[k] > 0) || (found[k] >= was && found[k] <= was));
        }
        assert_int_equal(kept, cases[i].kept);
        if (i != 5) assert_true(least >= dropped); /* which leaves out the largest */
        sft_merge_free(merge);
    }
    for (size_t k = 0; k < 2; k++) case_close(&models[k]);
    free(found);
}

/* Models of models: those that a header names are named again, if it is JSON. */
static void keeps_ancestors(void **state) {
    static const char *const texts[] = {
        "@sd_merge_models ={\"ab\":{\"name\":\"x\"},\"cd\":[1]};@sd_merge_recipe ={\"r\":1};" A,
        "@sd_merge_models ={\"ab\":{\"name\":\"y\"}};@sft_merge ={};@modelspec.hash_sha256 =0x1;" B,
        "@sd_merge_models =[1];" A, "@sd_merge_models ={\"ef\":1;" B,
        "@sd_merge_models ={\"gh\":1} 2;" A,
    };
    case_model models[COUNT(texts)];
    sft_merge_options options = SFT_MERGE_OPTIONS_INIT;
    sft_error err = SFT_ERROR_INIT;
    sft_buffer out = { 0 };
    sft_merge *merge;
    sft_file *file;
    sft_span value;
    (void)state;
    options.method = "linear";
    assert_int_equal(sft_merge_new(&options, &merge, &err), SFT_OK);
    for (size_t i = 0; i < COUNT(texts); i++) {
        models[i] = case_open(texts[i], NULL);
        assert_int_equal(sft_merge_add(merge, models[i].set, NULL, NULL, &err), SFT_OK);
    }
    assert_int_equal(sft_merge_save(merge, sft_sink_memory(&out), NULL, &err), SFT_OK);
    sft_merge_free(merge);
    assert_int_equal(sft_open_memory(out.data, out.len, NULL, &file, NULL), SFT_OK);
    assert_true(sft_file_metadata_get(file, sft_span_cstr("sd_merge_models"), &value));
    static const struct { const char *text; bool there; } parts[] = {
        { "\"ab\":{\"name\":\"x\"},\"cd\":[1]}", true }, { "\"name\":\"y\"", false },
        { "\"ef\"", false }, { "\"gh\"", false }, { "\"sd_merge_recipe\":{\"r\":1}}", true },
        { "\"name\":\"memory (5)\"", true },
    };
    char *text = malloc(value.len + 1);
    assert_non_null(text);
    memcpy(text, value.data, value.len);
    text[value.len] = '\0';
    for (size_t i = 0; i < COUNT(parts); i++) {
        if ((strstr(text, parts[i].text) != NULL) != parts[i].there)
            print_error("%s in %s\n", parts[i].text, text);
        assert_int_equal(strstr(text, parts[i].text) != NULL, parts[i].there);
    }
    free(text);
    assert_true(sft_file_metadata_get(file, sft_span_cstr("a"), &value));
    assert_true(sft_span_equal(value, sft_span_cstr("b")));
    sft_close(file);
    sft_buffer_free(&out);
    for (size_t i = 0; i < COUNT(texts); i++) case_close(&models[i]);
}

/* A value that is not finite: saving tells which model has it. */
static void blames_values(void **state) {
    static const char *const texts[] = { A, B, "w F32 2 #1,nan" };
    case_model models[3];
    sft_merge_options options = SFT_MERGE_OPTIONS_INIT;
    sft_error err = SFT_ERROR_INIT;
    sft_buffer out = { 0 };
    sft_merge *merge;
    (void)state;
    options.method = "linear";
    assert_int_equal(sft_merge_new(&options, &merge, &err), SFT_OK);
    for (size_t i = 0; i < 3; i++) {
        models[i] = case_open(texts[i], NULL);
        assert_int_equal(sft_merge_add(merge, models[i].set, NULL, NULL, &err), SFT_OK);
    }
    assert_int_equal(sft_merge_save(merge, sft_sink_memory(&out), NULL, &err), SFT_CAST_VALUE);
    assert_int_equal(sft_merge_blames(merge), 2);
    assert_non_null(strstr(err.message, "expected finite values, found NaN at element 1"));
    sft_merge_free(merge);
    sft_buffer_free(&out);
    for (size_t i = 0; i < 3; i++) case_close(&models[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_tensors), cmocka_unit_test(takes_parameters),
        cmocka_unit_test(refuses_arguments), cmocka_unit_test(keeps_ancestors),
        cmocka_unit_test(blames_values),       cmocka_unit_test(reads_in_any_order),
        cmocka_unit_test(blames_reads),
        cmocka_unit_test(keeps_the_largest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
