/* Parameters and weights as words. Tests: tests/merge, tests/cli/merge. */
#include "merge/work.h"

#include "base/checked.h"
#include "base/error.h"

#include <string.h>

static sft_code refuse_param(const sfti_merge_method *method, const char *word, sft_error *err) {
    char text[300] = "";
    size_t used = 0;
    for (int p = 0; p < SFTI_MERGE_PARAMS; p++) {
        const char *name = sfti_merge_param_name((sfti_merge_param)p);
        size_t len = strlen(name);
        /* all names together are shorter */
        if (!(method->params >> p & 1) || sfti_never(used + len + 3 > sizeof text)) continue;
        if (used) text[used++] = ',', text[used++] = ' ';
        memcpy(text + used, name, len + 1);
        used += len;
    }
    return sfti_fail(err, SFT_BAD_ARGUMENT, "expected a parameter NAME=VALUE of %s (%s), found "
                     "\"%.*s\"", method->name, text, SFTI_CLIP(sft_span_cstr(word), 100));
}

sft_code sfti_merge_param_add(sfti_merge_recipe *recipe, sfti_arena *arena, const char *word,
                              bool patterns, sft_error *err) {
    const char *equal = strrchr(word, '='), *at = strchr(word, '@');
    if (!equal) return refuse_param(recipe->method, word, err);
    if (at > equal) at = NULL;
    sft_span name = { word, (size_t)((at ? at : equal) - word) };
    sfti_merge_setting setting = { .param = sfti_merge_param_of(name), .model = SFTI_MERGE_ALL };
    if (setting.param == SFTI_MERGE_PARAMS || !(recipe->method->params >> setting.param & 1))
        return refuse_param(recipe->method, word, err);
    if ((at != NULL) != patterns) return SFT_OK;
    if (at) setting.filter = SFTI_FILTER_GLOB;
    if (at) setting.text = (sft_span){ at + 1, (size_t)(equal - at - 1) };
    for (size_t i = 0; i < recipe->settings.count; i++) {
        const sfti_merge_setting *s = &recipe->settings.items[i];
        if (s->param == setting.param && s->model == SFTI_MERGE_ALL
            && s->filter == setting.filter && sft_span_equal(s->text, setting.text))
            return sfti_fail(err, SFT_BAD_ARGUMENT, "expected the parameter %.*s once, found it "
                             "again", (int)(equal - word), word);
    }
    sft_code code = sfti_merge_values_read(setting.param, sft_span_cstr(equal + 1), arena,
                                           &setting.values, &setting.count);
    if (code == SFT_OUT_OF_MEMORY) return sfti_fail_memory(err, strlen(equal));
    if (code)
        return sfti_fail(err, SFT_BAD_ARGUMENT, "expected %s for the parameter %.*s, found "
                         "\"%.*s\"",
                         sfti_merge_param_is_switch(setting.param)
                             ? "true or false" : "a number, or several for the layers",
                         (int)name.len, name.data, SFTI_CLIP(sft_span_cstr(equal + 1), 100));
    return sfti_merge_setting_add(&recipe->settings, arena, &setting, err);
}

sft_code sfti_merge_weight_add(sfti_merge_recipe *recipe, sfti_arena *arena, uint32_t model,
                               const char *text, sft_error *err) {
    sfti_merge_setting setting = { .param = SFTI_MERGE_WEIGHT, .model = model };
    if (!(recipe->method->params >> SFTI_MERGE_WEIGHT & 1)) {
        if (model == SFTI_MERGE_ALL) return SFT_OK;
        return sfti_fail(err, SFT_BAD_ARGUMENT, "expected models without weights for %s, found "
                         "\":%.*s\"", recipe->method->name, SFTI_CLIP(sft_span_cstr(text), 40));
    }
    sft_code code = sfti_merge_values_read(SFTI_MERGE_WEIGHT, sft_span_cstr(text), arena,
                                           &setting.values, &setting.count);
    if (code == SFT_OUT_OF_MEMORY) return sfti_fail_memory(err, strlen(text));
    if (code)
        return sfti_fail(err, SFT_BAD_ARGUMENT, "expected a number as weight, found \"%.*s\"",
                         SFTI_CLIP(sft_span_cstr(text), 100));
    return sfti_merge_setting_add(&recipe->settings, arena, &setting, err);
}
