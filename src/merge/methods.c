/* The methods of merging and their parameters, as mergekit names them. Tests: tests/merge. */
#include "merge/work.h"

#include "base/guess.h"
#include "base/number.h"

#include <stdio.h>
#include <string.h>

typedef struct param_row {
    const char *name;
    bool is_switch;
} param_row;

static const param_row param_rows[SFTI_MERGE_PARAMS] = {
    [SFTI_MERGE_WEIGHT] = { "weight", false },
    [SFTI_MERGE_DENSITY] = { "density", false },
    [SFTI_MERGE_GAMMA] = { "gamma", false },
    [SFTI_MERGE_EPSILON] = { "epsilon", false },
    [SFTI_MERGE_SCALE] = { "scale", false },
    [SFTI_MERGE_LAMBDA] = { "lambda", false },
    [SFTI_MERGE_NORMALIZE] = { "normalize", true },
    [SFTI_MERGE_RESCALE] = { "rescale", true },
    [SFTI_MERGE_INT8_MASK] = { "int8_mask", true }, /* of no effect: masks take no memory here */
    [SFTI_MERGE_T] = { "t", false },
    [SFTI_MERGE_FILTER_WISE] = { "filter_wise", true },
    [SFTI_MERGE_SELECT_TOPK] = { "select_topk", false },
    [SFTI_MERGE_FLATTEN] = { "nuslerp_flatten", true },
    [SFTI_MERGE_ROW_WISE] = { "nuslerp_row_wise", true },
    [SFTI_MERGE_NORMALIZE_WEIGHTS] = { "normalize_weights", true },
    [SFTI_MERGE_EPS] = { "eps", false },
    [SFTI_MERGE_MAX_ITER] = { "max_iter", false },
    [SFTI_MERGE_TOL] = { "tol", false },
    [SFTI_MERGE_ALPHA] = { "alpha", false },
};

#define BIT(name) (UINT32_C(1) << SFTI_MERGE_##name)
#define TASK_BITS (BIT(WEIGHT) | BIT(DENSITY) | BIT(LAMBDA) | BIT(NORMALIZE) | BIT(RESCALE) \
                   | BIT(INT8_MASK))

static const sfti_merge_method method_rows[] = {
    { "linear", SFTI_MERGE_LINEAR, 0, SFTI_BASE_NONE, false, true, false, 1, 0,
      BIT(WEIGHT) | BIT(NORMALIZE) },
    { "slerp", SFTI_MERGE_SLERP, 0, SFTI_BASE_FIRST, false, false, false, 1, 1, BIT(T) },
    { "nuslerp", SFTI_MERGE_NUSLERP, 0, SFTI_BASE_MAY, false, false, false, 2, 2,
      BIT(WEIGHT) | BIT(FLATTEN) | BIT(ROW_WISE) },
    { "multislerp", SFTI_MERGE_MULTISLERP, 0, SFTI_BASE_MAY, false, false, false, 1, 0,
      BIT(WEIGHT) | BIT(NORMALIZE_WEIGHTS) | BIT(EPS) },
    { "karcher", SFTI_MERGE_KARCHER, 0, SFTI_BASE_NONE, false, false, false, 1, 0,
      BIT(MAX_ITER) | BIT(TOL) },
    { "task_arithmetic", SFTI_MERGE_TASK, 0, SFTI_BASE_MUST, false, false, false, 1, 0, TASK_BITS },
    { "ties", SFTI_MERGE_SPARSE, SFTI_MASK_LARGEST, SFTI_BASE_MUST, true, true, false, 1, 0,
      TASK_BITS },
    { "dare_linear", SFTI_MERGE_SPARSE, SFTI_MASK_RANDOM, SFTI_BASE_MUST, false, false, true, 1, 0,
      TASK_BITS },
    { "dare_ties", SFTI_MERGE_SPARSE, SFTI_MASK_RANDOM, SFTI_BASE_MUST, true, false, true, 1, 0,
      TASK_BITS },
    { "breadcrumbs", SFTI_MERGE_SPARSE, SFTI_MASK_INLIERS, SFTI_BASE_MUST, false, false, false, 1,
      0, TASK_BITS | BIT(GAMMA) },
    { "breadcrumbs_ties", SFTI_MERGE_SPARSE, SFTI_MASK_INLIERS, SFTI_BASE_MUST, true, false, false,
      1, 0, TASK_BITS | BIT(GAMMA) },
    { "della", SFTI_MERGE_SPARSE, SFTI_MASK_RANKED, SFTI_BASE_MUST, true, true, true, 1, 0,
      TASK_BITS | BIT(EPSILON) },
    { "della_linear", SFTI_MERGE_SPARSE, SFTI_MASK_RANKED, SFTI_BASE_MUST, false, false, true, 1, 0,
      TASK_BITS | BIT(EPSILON) },
    { "model_stock", SFTI_MERGE_STOCK, 0, SFTI_BASE_MUST, false, false, false, 2, 0,
      BIT(FILTER_WISE) },
    { "sce", SFTI_MERGE_SCE, SFTI_MASK_LARGEST, SFTI_BASE_MUST, true, false, false, 1, 0,
      BIT(SELECT_TOPK) | BIT(INT8_MASK) },
    { "nearswap", SFTI_MERGE_NEAR, 0, SFTI_BASE_FIRST, false, false, false, 1, 1, BIT(T) },
    { "passthrough", SFTI_MERGE_PASS, 0, SFTI_BASE_NONE, false, false, false, 1, 1, BIT(SCALE) },
    { "add_difference", SFTI_MERGE_ADD, 0, SFTI_BASE_MUST, false, false, false, 2, 2, BIT(ALPHA) },
};

const sfti_merge_method *sfti_merge_method_at(size_t i) {
    return i < SFTI_COUNT(method_rows) ? &method_rows[i] : NULL;
}

const sfti_merge_method *sfti_merge_method_of(sft_span name) {
    for (size_t i = 0; i < SFTI_COUNT(method_rows); i++)
        if (sfti_is(name, method_rows[i].name)) return &method_rows[i];
    return NULL;
}

sft_code sfti_merge_method_unknown(sft_span name, sft_error *err) {
    sfti_guess guess = sfti_guess_begin(name);
    const sfti_merge_method *method;
    char known[400] = "";
    for (size_t i = 0; (method = sfti_merge_method_at(i)) != NULL; i++) {
        size_t used = strlen(known);
        sfti_guess_try(&guess, sft_span_cstr(method->name));
        snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", method->name);
    }
    return sfti_misuse(err, "expected a method (%s), found \"%.*s\"%s", known,
                       SFTI_CLIP(name, 40), sfti_guess_text(&guess, "\"", "\""));
}

const char *sfti_merge_param_name(sfti_merge_param param) {
    return param_rows[param].name;
}

sfti_merge_param sfti_merge_param_of(sft_span name) {
    int i = 0;
    while (i < SFTI_MERGE_PARAMS && !sfti_is(name, param_rows[i].name)) i++;
    return (sfti_merge_param)i;
}

bool sfti_merge_param_is_switch(sfti_merge_param param) {
    return param_rows[param].is_switch;
}

/* The number that its own text gives again, so that a recipe which is written is the same. 012 is
 * none: it is 10 in YAML of version 1.1. */
static bool lasting_number(sft_span text, double *out) {
    char buffer[SFTI_DOUBLE_SIZE];
    double before;
    size_t sign = text.len > 0 && (*text.data == '-' || *text.data == '+');
    if (text.len > sign + 1 && text.data[sign] == '0' && text.data[sign + 1] >= '0'
        && text.data[sign + 1] <= '9')
        return false;
    if (!sfti_parse_double(text, out)) return false;
    for (int i = 0; i < 4; i++) {
        before = *out;
        size_t len = sfti_double_text(before, buffer);
        if (!sfti_parse_double((sft_span){ buffer, len }, out)) return false;
        if (!(*out < before || *out > before)) return true;
    }
    return false;
}

bool sfti_merge_param_value(sfti_merge_param param, sft_span text, double *out) {
    if (!param_rows[param].is_switch) return lasting_number(text, out);
    if (lasting_number(text, out)) return *out == 0 || *out == 1; /* Python's 0 is 0.0 here */
    *out = sfti_same_letters(text, "true");
    return *out > 0 || sfti_same_letters(text, "false");
}
