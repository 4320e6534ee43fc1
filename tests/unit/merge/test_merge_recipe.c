/* Recipes that are refused, with the line and the reason, and odd ones that are read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "safetensors_merge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof *(table))
#define MODELS "models:\n  - model: a\n  - model: b\n"
#define LINEAR "merge_method: linear\n" MODELS
#define PASS "merge_method: passthrough\nslices:\n"
#define SLICES "merge_method: linear\nslices:\n  - sources:\n"
#define JSON "{\"merge_method\":\"linear\",\"models\":[\"a\"],\"parameters\":{\"weight\":"
#define DIGITS_32 "0123456789abcdef0123456789abcdef"

static bool recipe_holds(sft_span text, const char *says) {
    sft_merge_options options = SFT_MERGE_OPTIONS_INIT;
    sft_error err = SFT_ERROR_INIT;
    sft_merge *merge = NULL;
    char models[256] = "=";
    size_t at = 1;
    options.recipe = text;
    sft_code code = sft_merge_new(&options, &merge, &err);
    for (size_t i = 0; i < sft_merge_named(merge) && at < 200; i++) {
        sft_span name = sft_merge_named_at(merge, i);
        at += (size_t)snprintf(models + at, sizeof models - at, "%s%.*s", i ? "," : "",
                               (int)name.len, name.data);
    }
    bool fine = code ? strstr(err.message, says) != NULL : strcmp(models, says) == 0;
    if (!fine)
        print_error("%.*s\n  expected %s\n  found %d %s%s\n",
        (int)(text.len < 900 ? text.len : 900),
                    text.data, says, (int)code, err.message, code ? "" : models);
    sft_merge_free(merge);
    return fine;
}

/* "=a,b": it is read, and names these models. */
static void reads_recipes(void **state) {
    static const struct { const char *text, *says; } cases[] = {
        { LINEAR, "=a,b" },
        { "{\"merge_method\":\"linear\",\"models\":[\"a\",{\"model\":\"b\"}]}", "=a,b" },
        { "  \n", "line 1 of the recipe: expected a merge_method" },
        { "merge_method: linear\n", "line 1 of the recipe: expected a list of models" },
        { "merge_method: linear\nmodels: a\n", "line 2 of the recipe: expected a list of models" },
        { "merge_method: lineal\n" MODELS,
          "line 1 of the recipe: expected a method that is known, found \"lineal\"" },
        { "merge_method: [linear]\n" MODELS,
          "out_dtype, seed or ignore_missing, found \"merge_method\"" },
        { LINEAR "size: 3\n",
          "line 5 of the recipe: expected merge_method, base_model, models, slices" },
        { LINEAR "dtype: [F16]\n", "seed or ignore_missing, found \"dtype\"" },
        { LINEAR "out_dtype: [F16]\n", "seed or ignore_missing, found \"out_dtype\"" },
        { LINEAR "dtype: float32\nout_dtype: float16\ndtypes: 1\n", "found \"dtypes\"" },
        { LINEAR "out_dtype: float16\ndtype: float32\n", "=a,b" },
        { LINEAR "ignore_missing: true\n", "=a,b" },
        { LINEAR "ignore_missing: False\n", "=a,b" },
        { LINEAR "ignore_missing: maybe\n", "line 5 of the recipe: expected true or false" },
        { LINEAR "ignore_missing: [true]\n", "found \"ignore_missing\"" },
        { LINEAR "version: 1\n", "=a,b" },
        { LINEAR "version: 2\n", "line 5 of the recipe: expected version 1" },
        { LINEAR "seed: 18446744073709551615\n", "=a,b" },
        { LINEAR "seed: 0\n", "=a,b" },
        { LINEAR "seed: 010\n",
          "line 5 of the recipe: expected a seed of 0 to 18446744073709551615" },
        { LINEAR "seed: -1\n", "expected a seed of 0 to" },
        { LINEAR "seed: [1]\n", "expected a seed of 0 to" },
        { LINEAR "slices:\n  - sources:\n      - model: a\n        layer_range: [0, 1]\n",
          "expected models or slices, not both" },
        /* keys and values */
        { LINEAR "seed: 1\nmerge_method: linear\n",
          "line 6 of the recipe: expected each key once" },
        { LINEAR "seed: 1\nseed: 2\n", "line 6 of the recipe: expected each key once" },
        { "{\"merge_method\":\"linear\",\n\"models\":[\"a\"],\n\"models\":[\"b\"]}",
          "line 3 of the recipe: expected each key once" },
        { "{\"merge_method\":\"linear\",\"models\":[\"a\",null]}",
          "line 1 of the recipe: expected a value for each item of a list" },
        { "{\"merge_method\":\"linear\",\"models\":[\"a\"],\"base_model\":null}", "=a" },
        { "{\"merge_method\":\"linear\",\"models\":[\"a\\u0000\"]}",
          "expected text without the character NUL" },
        { "merge_method: linear\nmodels:\n  - \"a\\u0000\"\n",
          "expected text without the character NUL" },
        { "{\"merge_method\":\"linear\",", "expected" },
        { "{\"merge_method\":\"linear\",\"models\":[]}", "for linear, found 0" },
        { "merge_method: linear\nmodels: \xff\n", "expected a recipe in UTF-8, found other bytes" },
        /* models */
        { LINEAR "base_model: a\n", "=a,b" },
        { LINEAR "base_model: c\n",
          "line 5 of the recipe: expected a base_model that is one of the "
                                    "models (this method has none)" },
        { "merge_method: ties\n" MODELS, "expected a base for ties, found none" },
        { "merge_method: ties\n" MODELS "base_model: c\n", "=a,b,c" },
        { "merge_method: slerp\n" MODELS, "=a,b" },
        { "merge_method: slerp\n" MODELS "base_model: c\n",
          "expected 1 model beside the base for slerp, found 2" },
        { "merge_method: nuslerp\nmodels:\n  - a\n", "expected 2 models for nuslerp, found 1" },
        { "merge_method: model_stock\nbase_model: c\nmodels:\n  - a\n",
          "expected at least 2 models beside the base for model_stock, found 1" },
        { "merge_method: add_difference\n" MODELS "base_model: a\n",
          "expected 2 models beside the base for add_difference, found 1" },
        { "merge_method: linear\nmodels:\n  - a\n  - a\n",
          "line 4 of the recipe: expected each model once" },
        { "merge_method: linear\nmodels:\n  - model: a\n    weight: 1\n",
          "expected model, parameters or layer_range" },
        { "merge_method: linear\nmodels:\n  - model: [a]\n",
          "expected model, parameters or layer_range" },
        { "merge_method: linear\nmodels:\n  - model: ''\n", "expected the name of a model" },
        { "{\"merge_method\":\"linear\",\"models\":[{}]}", "expected the name of a model" },
        { "{\"merge_method\":\"linear\",\"models\":[[\"a\"]]}", "expected the name of a model" },
        { "{\"merge_method\":\"linear\",\"models\":[{\"model\":\"a\",\"content\":[1]}]}",
          "expected model, parameters or layer_range" },
        { "{\"merge_method\":\"linear\",\"models\":[{\"model\":\"a\",\"sha256\":[1]}]}",
          "expected model, parameters or layer_range" },
        { "{\"merge_method\":\"linear\",\"models\":[{\"model\":\"a\",\"values\":[1]}]}",
          "expected model, parameters or layer_range" },
        { "{\"merge_method\":\"linear\",\"models\":[{\"model\":\"a\",\"content\":\"12\"}]}",
          "expected a digest of 64 digits" },
        { "{\"merge_method\":\"linear\",\"models\":[{\"model\":\"a\",\"content\":\""
          DIGITS_32 DIGITS_32 "\"}]}", "=a" },
        /* parameters */
        { LINEAR "parameters: 3\n", "line 5 of the recipe: expected parameters by names" },
        { LINEAR "parameters:\n  wait: 1\n",
          "line 6 of the recipe: expected a parameter of mergekit's, or alpha, found \"wait\"" },
        { LINEAR "parameters:\n  weight: x\n", "line 6 of the recipe: expected a number" },
        { LINEAR "parameters:\n  weight: 012\n", "line 6 of the recipe: expected a number" },
        { LINEAR "parameters:\n  weight: -0.5\n", "=a,b" },
        { LINEAR "parameters:\n  weight: +0.5\n", "=a,b" },
        { LINEAR "parameters:\n  normalize: 2\n", "line 6 of the recipe: expected true or false" },
        { LINEAR "parameters:\n  normalize: 0\n", "=a,b" },
        { LINEAR "parameters:\n  normalize: 1\n", "=a,b" },
        { JSON "[1,[2]]}}",
          "line 1 of the recipe: expected a number" },
        { LINEAR "parameters:\n  weight:\n    value:\n      a: 1\n",
          "expected a number, true or false, or a list of them" },
        { JSON "[]}}", "expected a number, true or false, or a list of them" },
        { LINEAR "parameters:\n  weight:\n    - filter: x\n      value: 1\n    - value: 2\n",
          "=a,b" },
        { LINEAR "parameters:\n  weight:\n    - glob: '*'\n      value: 1\n", "=a,b" },
        { LINEAR "parameters:\n  weight:\n    filter: x\n", "expected a value beside the filter" },
        { LINEAR "parameters:\n  weight:\n    - filter: x\n      only: y\n      value: 1\n",
          "line 8 of the recipe: expected filter, glob or value" },
        { LINEAR "parameters:\n  weight:\n    - filter: [x]\n      value: 1\n",
          "expected filter, glob or value" },
        { LINEAR "parameters:\n  weight:\n    - filter: x\n      glob: y\n      value: 1\n",
          "line 8 of the recipe: expected filter or glob, not both" },
        { JSON "[{\"value\":1},"
          "2]}}", "expected filter and value" },
        { "merge_method: ties\nbase_model: c\nmodels:\n  - model: a\n    parameters:\n"
          "      lambda: 1\n",
          "line 6 of the recipe: expected this parameter for all models, not for" },
        { "merge_method: ties\nbase_model: c\nmodels:\n  - model: a\n    parameters:\n"
          "      density: 1\n", "=a,c" },
        /* slices */
        { PASS "  - sources:\n      - model: a\n        layer_range: [0, 2]\n", "=a" },
        { "merge_method: passthrough\nslices: 1\n", "expected a list of 1 to 1024 slices" },
        { "{\"merge_method\":\"passthrough\",\"slices\":[]}",
          "expected a list of 1 to 1024 slices" },
        { PASS "  - sources:\n      - model: a\n        layer_range: [0, 2]\n    a: 1\n",
          "expected sources and parameters" },
        { PASS "  - parameters:\n      scale: 1\n",
          "expected sources: a list of models with a layer_range" },
        { PASS "  - sources: a\n", "expected sources: a list of models with a layer_range" },
        { "{\"merge_method\":\"passthrough\",\"slices\":[{\"sources\":[]}]}",
          "expected sources: a list of models with a layer_range" },
        { PASS "  - sources:\n      - model: a\n",
          "expected layer_range: [first layer, one behind the last]" },
        { PASS "  - sources:\n      - model: a\n        layer_range: 4\n", "expected layer_range" },
        { PASS "  - sources:\n      - model: a\n        layer_range: [4]\n",
          "expected layer_range" },
        { PASS "  - sources:\n      - model: a\n        layer_range: [0, 1, 2]\n",
          "expected layer_range" },
        { PASS "  - sources:\n      - model: a\n        layer_range: [x, 1]\n",
          "expected layer_range" },
        { PASS "  - sources:\n      - model: a\n        layer_range: [0, x]\n",
          "expected layer_range" },
        { PASS "  - sources:\n      - model: a\n        layer_range: [2, 2]\n",
          "expected layer_range" },
        { PASS "  - sources:\n      - model: a\n        layer_range: [0, 010]\n",
          "expected layer_range" },
        { PASS "  - sources:\n      - model: a\n        layer_range: [0, 4294967295]\n",
          "expected layer_range" },
        { SLICES "      - model: a\n        layer_range: [0, 2]\n"
          "      - model: b\n        layer_range: [0, 3]\n",
          "expected as many layers of each source of a slice" },
        { SLICES "      - model: a\n        layer_range: [0, 2]\n"
          "      - model: a\n        layer_range: [2, 4]\n",
          "expected each model once in a slice" },
        { SLICES "      - model: a\n        layer_range: [0, 2]\n"
          "        parameters:\n          weight: x\n", "expected a number" },
        { SLICES "      - model: a\n        layer_range: [0, 2]\n"
          "    parameters:\n      weight: x\n", "expected a number" },
        { "merge_method: ties\nbase_model: c\nslices:\n  - sources:\n      - model: a\n"
          "        layer_range: [0, 2]\n",
          "expected the base among the sources of each slice, found none in slice 1" },
        { "merge_method: ties\nbase_model: c\nslices:\n  - sources:\n      - model: a\n"
          "        layer_range: [0, 2]\n      - model: c\n        layer_range: [0, 2]\n", "=a,c" },
        { "merge_method: add_difference\nbase_model: c\nslices:\n  - sources:\n      - model: a\n"
          "        layer_range: [0, 2]\n      - model: b\n        layer_range: [0, 2]\n"
          "      - model: c\n        layer_range: [0, 2]\n",
          "expected a method of mergekit for slices, found add_difference" },
        { PASS "  - sources:\n      - model: a\n        layer_range: [0, 2]\n      - model: b\n"
          "        layer_range: [0, 2]\n", "expected 1 model for passthrough, found 2" },
    };
    size_t failed = 0;
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        failed += !recipe_holds(sft_span_cstr(cases[i].text), cases[i].says);
    assert_int_equal(failed, 0);
}

/* begin, many times a part, end. */
static void refuses_too_much(void **state) {
    static const struct {
        const char *begin, *part, *end;
        size_t count;
        const char *says;
    } cases[] = {
        { LINEAR, "#", "", (1 << 20) - sizeof LINEAR + 1, "=a,b" },
        { LINEAR, "#", "", (1 << 20) - sizeof LINEAR + 2,
          "expected a recipe of at most 1 MiB, found more" },
        { "merge_method: linear\nmodels:\n", "  - %zu\n", "", 33, "expected at most 32 models" },
        { JSON "[0", ",1",
          "]}}",
          1023, "=a" },
        { JSON "[0", ",1",
          "]}}",
          1024, "expected a number, true or false, or a list of them" },
        { JSON "[0", ",1",
          "]}}",
          8192, "line 1 of the recipe: expected at most 8192 values, or more memory" },
        { LINEAR "parameters:\n  weight:\n", "    - 1\n", "", 8192,
          "expected at most 8192 values, or more memory" },
        { JSON "[{\"value\":1}",
          ",{\"value\":1}", "]}}", 1024, "expected at most 1024 values of parameters, found more" },
        { "{\"merge_method\":\"passthrough\",\"slices\":[0", ",0", "]}", 1024,
          "expected a list of 1 to 1024 slices" },
    };
    size_t failed = 0;
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        size_t room = strlen(cases[i].begin) + cases[i].count * 20 + strlen(cases[i].end) + 1;
        char *text = malloc(room);
        assert_non_null(text);
        size_t at = (size_t)snprintf(text, room, "%s", cases[i].begin);
        for (size_t k = 0; k < cases[i].count; k++)
            at += (size_t)snprintf(text + at, room - at, cases[i].part, k);
        at += (size_t)snprintf(text + at, room - at, "%s", cases[i].end);
        failed += !recipe_holds((sft_span){ text, at }, cases[i].says);
        free(text);
    }
    assert_int_equal(failed, 0);
    assert_true(recipe_holds((sft_span){ "merge_method: \0", 15 },
                             "expected a recipe in UTF-8, found other bytes"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_recipes), cmocka_unit_test(refuses_too_much),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
