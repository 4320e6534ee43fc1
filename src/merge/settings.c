/* Values of parameters, by model, by names of tensors and by layers. Tests: tests/merge. */
#include "merge/work.h"

#include "base/error.h"
#include "base/number.h"

#include <string.h>

bool sfti_merge_layer(sft_span name, sft_span *stack, uint64_t *layer) {
    for (size_t i = 0, begin = 0; i < name.len; i++) {
        if (name.data[i] != '.') continue;
        sft_span part = { name.data + begin, i - begin };
        *stack = (sft_span){ name.data, begin > 0 ? begin - 1 : 0 };
        if (begin > 0 && sfti_text_uint(part, layer) && *layer < UINT32_MAX) return true;
        begin = i + 1;
    }
    return false;
}

size_t sfti_merge_layer_name(sft_span name, uint64_t layer, char *out, size_t cap) {
    sft_span stack;
    uint64_t before;
    char digits[SFTI_UINT_SIZE];
    if (!sfti_merge_layer(name, &stack, &before)) return 0;
    size_t len = sfti_uint_text(layer, 1, digits), at = stack.len + 1, end = at;
    while (end < name.len && name.data[end] != '.') end++;
    if (at + len + (name.len - end) > cap) return 0;
    memcpy(out, name.data, at);
    memcpy(out + at, digits, len);
    memcpy(out + at + len, name.data + end, name.len - end);
    return at + len + (name.len - end);
}

sft_code sfti_merge_setting_add(sfti_merge_settings *settings, sfti_arena *arena,
                                const sfti_merge_setting *setting, sft_error *err) {
    if (settings->count == SFTI_MERGE_SETTINGS)
        return sfti_fail(err, SFT_BAD_ARGUMENT, "expected at most %d values of parameters, found "
                         "more", SFTI_MERGE_SETTINGS);
    sfti_merge_setting *grown = sfti_arena_grow(arena, settings->items, settings->count, 1,
                                                &settings->capacity, sizeof *grown);
    if (!grown) return sfti_fail_memory(err, sizeof *grown);
    settings->items = grown;
    grown[settings->count++] = *setting;
    return SFT_OK;
}

sft_code sfti_merge_values_read(sfti_merge_param param, sft_span text, sfti_arena *arena,
                                const double **values, size_t *count) {
    sft_span rest = sfti_trim(text), piece;
    size_t most = 1;
    if (rest.len >= 2 && *rest.data == '[' && rest.data[rest.len - 1] == ']')
        rest = (sft_span){ rest.data + 1, rest.len - 2 };
    for (size_t i = 0; i < rest.len; i++) most += rest.data[i] == ',';
    *count = 0;
    if (most > SFTI_MERGE_VALUES) return SFT_BAD_ARGUMENT;
    double *all = sfti_arena_array(arena, most, sizeof *all);
    *values = all;
    if (!all) return SFT_OUT_OF_MEMORY;
    while (sfti_next_piece(&rest, ',', &piece)) {
        if (*count == most || !sfti_merge_param_value(param, sfti_trim(piece), &all[*count]))
            return SFT_BAD_ARGUMENT;
        ++*count;
    }
    return *count == most ? SFT_OK : SFT_BAD_ARGUMENT;
}

static bool name_holds(sft_span text, sft_span part) {
    for (size_t i = 0; i + part.len <= text.len; i++)
        if (memcmp(text.data + i, part.data, part.len) == 0) return true;
    return part.len == 0;
}

static bool filter_fits(const sfti_merge_settings *all, const sfti_merge_setting *s,
                        sft_span name) {
    switch ((sfti_merge_filter)s->filter) {
    case SFTI_FILTER_PART: return name_holds(name, s->text);
    case SFTI_FILTER_GLOB: return all->glob(s->text, name);
    case SFTI_FILTER_NONE: break;
    }
    return true;
}

/* Between the two values that are next to the layer; of a switch the one before it. */
static double at_layer(const sfti_merge_setting *s, uint64_t layer, uint64_t layers) {
    double t = layers > 1 ? (double)layer / (double)(layers - 1) : layers == 1 ? 1 : 0;
    double place = t * (double)(s->count - 1);
    size_t low = (size_t)place, high = low + 1 < s->count ? low + 1 : s->count - 1;
    double part = place - (double)low;
    if (sfti_merge_param_is_switch(s->param)) return s->values[low];
    return (1 - part) * s->values[low] + part * s->values[high];
}

bool sfti_merge_setting_find(const sfti_merge_settings *settings, sfti_merge_param param,
                             uint32_t model, const sfti_merge_row *row, sft_span name,
                             double *out) {
    for (int pass = 0; pass < 4; pass++) {
        uint32_t of = pass & 1 ? SFTI_MERGE_ALL : model, slice = pass < 2 ? row->slice : 0;
        if ((!(pass & 1) && model == SFTI_MERGE_ALL) || (pass < 2 && row->slice == 0)) continue;
        for (size_t i = 0; i < settings->count; i++) {
            const sfti_merge_setting *s = &settings->items[i];
            if (s->param != param || s->model != of || s->slice != slice
                || !filter_fits(settings, s, name))
                continue;
            *out = at_layer(s, row->layer, row->layers);
            return true;
        }
    }
    return false;
}
