/* What models are quantised to. Tests: test_encode.c. */
#include "convert/targets.h"

#include "base/error.h"
#include "base/guess.h"
#include "base/number.h"
#include "convert/quantise.h"

#include <string.h>

static bool read_stored(sft_span *rest, sft_dtype *out) {
    sft_span word;
    if (!sfti_layout_word(rest, ' ', &word)) return false;
    for (int i = 0; i < SFT_DTYPE_COUNT; i++) {
        *out = (sft_dtype)i;
        if (sft_span_equal(word, sft_span_cstr(sft_dtype_describe(*out)->name))) return true;
    }
    return false;
}

static bool read_target_flag(sft_span word, sfti_encoding *how) {
    const struct { const char *name; bool *flag; } flags[] = {
        { "reciprocal", &how->reciprocal }, { "listed", &how->listed }, { "flat", &how->flat },
    };
    const struct { const char *name; uint32_t *number; } numbers[] = {
        { "rows", &how->rows }, { "columns", &how->columns }, { "rotate", &how->rotate },
    };
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (sft_span_equal(word, sft_span_cstr(flags[i].name))) return *flags[i].flag = true;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        size_t len = strlen(numbers[i].name);
        uint64_t value;
        if (word.len <= len + 1 || memcmp(word.data, numbers[i].name, len) != 0
            || word.data[len] != '=')
            continue;
        if (!sfti_text_uint((sft_span){ word.data + len + 1, word.len - len - 1 }, &value)
            || value > SFTI_ENCODE_COLUMNS)
            return false;
        *numbers[i].number = (uint32_t)value;
        return true;
    }
    return false;
}

bool sfti_quant_target_next(const sfti_quant_layout *layout, sft_span *lines,
                            sfti_quant_target *out, bool *good) {
    sft_span rest, word;
    memset(out, 0, sizeof *out);
    *good = true;
    if (!sfti_layout_line(lines, "write", &out->layout, &rest)) return false;
    out->how.layout = layout;
    out->members = *lines;
    *good = sfti_layout_word(&rest, ' ', &out->format) && sfti_layout_word(&rest, ' ', &out->scale)
         && read_stored(&rest, &out->how.codes) && read_stored(&rest, &out->how.scale);
    while (*good && sfti_layout_word(&rest, ' ', &word)) *good = read_target_flag(word, &out->how);
    sft_span next = *lines, first;
    if (sfti_layout_line(&next, "write", &first, &rest)) /* which ends the members of this one */
        out->members.len = (size_t)(first.data - out->members.data);
    next = out->members;
    if (!sfti_layout_line(&next, "members", &first, &rest)) out->members.len = 0;
    return *good;
}

/* What targets have, of those with this layout and format (NULL: any): layouts, formats or
 * scales, each once. */
static void list_known(const sfti_layouts *layouts, const char *layout, const char *format,
                       char *known, size_t room) {
    size_t used = 0;
    for (size_t i = 0; i < layouts->count; i++) {
        sft_span lines = layouts->rows[i].writes;
        sfti_quant_target t;
        bool good;
        while (sfti_quant_target_next(&layouts->rows[i], &lines, &t, &good)) {
            sft_span word = !layout ? t.layout : !format ? t.format : t.scale;
            bool again = false;
            if (layout && !sft_span_equal(t.layout, sft_span_cstr(layout))) continue;
            if (format && !sft_span_equal(t.format, sft_span_cstr(format))) continue;
            for (size_t at = 0; at + word.len <= used && !again; at++)
                again = memcmp(known + at, word.data, word.len) == 0
                     && (at + word.len == used || known[at + word.len] == ',')
                     && (at == 0 || known[at - 1] == ' ');
            if (again || used + word.len + 3 > room) continue;
            if (used > 0) known[used++] = ',', known[used++] = ' ';
            memcpy(known + used, word.data, word.len);
            used += word.len;
        }
    }
    known[used] = 0;
}

sft_code sfti_quant_target_find(const char *layout, const char *format, const char *scale,
                                sfti_arena *arena, const sfti_quant_target **out,
                                sft_error *err) {
    sfti_layouts layouts;
    sfti_quant_target *t = sfti_arena_take(arena, sizeof *t);
    char known[256];
    sfti_guess layout_guess = sfti_guess_begin(sft_span_cstr(layout));
    sfti_guess format_guess = sfti_guess_begin(sft_span_cstr(format));
    bool good, has_layout = false, has_format = false;
    if (!t || !sfti_layouts_read(arena, &layouts)) return sfti_fail_memory(err, sizeof *t);
    *out = t;
    for (size_t i = 0; i < layouts.count; i++) {
        sft_span lines = layouts.rows[i].writes;
        while (sfti_quant_target_next(&layouts.rows[i], &lines, t, &good)) {
            sfti_guess_try(&layout_guess, t->layout);
            if (!sft_span_equal(t->layout, sft_span_cstr(layout))) continue;
            has_layout = true;
            sfti_guess_try(&format_guess, t->format);
            if (!sft_span_equal(t->format, sft_span_cstr(format))) continue;
            has_format = true;
            if (!scale || sft_span_equal(t->scale, sft_span_cstr(scale))) return SFT_OK;
        }
    }
    *out = NULL;
    list_known(&layouts, has_layout ? layout : NULL, has_format ? format : NULL, known,
               sizeof known);
    if (!has_layout)
        return sfti_misuse(err, "expected one of the layouts %s, found %s%s", known, layout,
                           sfti_guess_text(&layout_guess, "", ""));
    if (!has_format)
        return sfti_misuse(err, "expected one of the formats %s of the layout %s, found %s%s",
                           known, layout, format, sfti_guess_text(&format_guess, "", ""));
    return sfti_misuse(err, "expected %s of the layout %s with a scale for each %s, found %s",
                       format, layout, known, scale);
}

sft_span sfti_quant_target_format(const sfti_quant_target *target) { return target->format; }
sft_span sfti_quant_target_layout(const sfti_quant_target *target) { return target->layout; }
sft_span sfti_quant_target_scale(const sfti_quant_target *target) { return target->scale; }
