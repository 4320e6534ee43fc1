/* config.json and model_index.json, as far as tensors prove them. Tests: tests/cli/layout,
 * tests/layout/README.md has the source of each value that they do not. */
#include "layout/layout.h"

#include "base/checked.h"
#include "base/number.h"
#include "base/error.h"
#include "base/json.h"

#include <string.h>

/* Tensors of a component as they were made, and their names. */
typedef struct config_of {
    const sfti_layout_text *layouts;
    const sfti_layout_model *model; /* or NULL */
    const sfti_layout_group *one;
    const sft_part *parts;
    sfti_names names;
} config_of;

static const sft_part *made_part(const config_of *of, sft_span name) {
    uint32_t at = sfti_names_find(&of->names, name);
    return at == SFTI_NO_NAME ? NULL : &of->parts[at];
}

/* What stands between the brackets of WORD(...). */
static bool call_of(sft_span text, const char *word, sft_span *inner) {
    size_t len = strlen(word);
    if (text.len < len + 2 || memcmp(text.data, word, len) != 0 || text.data[len] != '(')
        return false;
    *inner = (sft_span){ text.data + len + 1, text.len - len - 2 };
    return text.data[text.len - 1] == ')';
}

/* NAME[axis], or digits */
static bool config_size(const config_of *of, sft_span text, uint64_t *out) {
    uint64_t axis;
    const char *bracket = memchr(text.data, '[', text.len);
    if (!bracket) return sfti_text_uint(text, out);
    size_t len = (size_t)(bracket - text.data);
    if (text.len < len + 3) return false;
    const sft_part *part = made_part(of, (sft_span){ text.data, len });
    sft_span number = { bracket + 1, text.len - len - 2 };
    if (!part || !sfti_text_uint(number, &axis) || axis >= part->spec.rank) return false;
    *out = part->spec.shape[axis];
    return true;
}

static uint64_t config_count(const config_of *of, sft_span pattern) {
    uint64_t count = 0;
    sfti_layout_match match;
    for (size_t i = 0; i < of->one->made; i++)
        count += sfti_layout_matches(pattern, of->parts[i].spec.name, false, &match)
              && match.rest.len == 0;
    return count;
}

static bool config_value(const config_of *of, sfti_json_writer *w, sft_span text) {
    sft_span inner;
    uint64_t value, by = 1;
    if (call_of(text, "has", &inner)) {
        sfti_json_raw(w, sft_span_cstr(made_part(of, inner) ? "true" : "false"));
        return true;
    }
    if (call_of(text, "count", &inner)) {
        value = config_count(of, inner);
        sfti_json_uint(w, value);
        return value > 0;
    }
    const char *slash = memchr(text.data, '/', text.len);
    sft_span first = { text.data, slash ? (size_t)(slash - text.data) : text.len };
    if (config_size(of, first, &value)) {
        sft_span second = { first.data + first.len + 1, slash ? text.len - first.len - 1 : 0 };
        if (slash && (!config_size(of, second, &by) || by == 0 || value % by)) return false;
        sfti_json_uint(w, value / by);
        return true;
    }
    bool literal = text.len > 0 && strchr("\"tfn0123456789.-", *text.data)
                && !memchr(text.data, '[', text.len);
    if (literal) sfti_json_raw(w, text);
    return literal;
}

static bool put_config_value(const config_of *of, sfti_json_writer *w, sft_span text) {
    if (text.len < 2 || *text.data != '[') return config_value(of, w, text);
    sft_span rest = { text.data + 1, text.len - 2 };
    bool fine = true;
    sfti_json_open(w, '[');
    while (fine && rest.len > 0) {
        size_t len = 0;
        while (len < rest.len && rest.data[len] != ',') len++;
        fine = config_value(of, w, (sft_span){ rest.data, len });
        rest.data += len < rest.len ? len + 1 : len;
        rest.len -= len < rest.len ? len + 1 : len;
    }
    sfti_json_close(w, ']');
    return fine;
}

/* Whether the tensors are those of a model whose configuration is known. */
static bool is_published(const config_of *of) {
    const sfti_naming_part *part = of->one->part;
    uint64_t elements = 0;
    for (size_t i = 0; i < of->one->made; i++) {
        const sft_spec *spec = &of->parts[i].spec;
        uint64_t count = 1;
        for (uint32_t k = 0; k < spec->rank; k++)
            if (!sfti_mul(count, spec->shape[k], &count)) return false;
        if (!sfti_add(elements, count, &elements)) return false;
    }
    for (size_t i = 0; i < part->published_count; i++) {
        const sfti_layout_published *one = &of->layouts->published[part->first_published + i];
        if (one->elements == elements && sfti_layout_marks_hold(one->marks, &of->names, of->parts))
            return true;
    }
    return false;
}

/* The values that the model has for a component; false: it has none for this key. */
static bool put_model_values(const config_of *of, sfti_json_writer *w, sft_span key) {
    bool found = false;
    for (unsigned i = 0; of->model && i < of->model->value_count; i++) {
        const sfti_layout_value *value = &of->model->values[i];
        if (!sft_span_equal(value->component, of->one->name)) continue;
        found = found || sft_span_equal(value->key, key);
        sfti_json_key_span(w, value->key);
        sfti_json_raw(w, value->value);
    }
    return found;
}

static sft_span config_class(const config_of *of) {
    const sfti_naming_part *part = of->one->part;
    for (unsigned i = 0; i < part->class_count; i++) {
        sft_span marks = part->classes[i], name;
        (void)sfti_layout_next(&marks, &name);
        if (sfti_layout_marks_hold(marks, &of->names, of->parts)) return name;
    }
    return part->class;
}

static bool config_begin(config_of *of, const sfti_layout_text *layouts,
                         const sfti_layout_model *model, const sfti_layout_group *one,
                         const sfti_layout_out *out, sfti_arena *work) {
    *of = (config_of){ layouts, model, one, out->parts + one->first, { 0 } };
    return sfti_layout_names(of->parts, one->made, work, &of->names);
}

sft_code sfti_layout_config(const sfti_layout_text *layouts, const sfti_layout_model *model,
                            const sfti_layout_group *one, const sfti_layout_out *out,
                            sft_buffer *text, bool *certain, sft_error *err) {
    const sfti_naming_part *part = one->part;
    sfti_arena work = { .alloc = out->arena.alloc };
    sft_sink sink = sft_sink_memory(text);
    sfti_json_writer w;
    config_of of;
    sft_code code = SFT_OK;
    *certain = false;
    if (part->value_count == 0 || one->made == 0) return SFT_OK;
    if (!config_begin(&of, layouts, model, one, out, &work))
        code = sfti_fail_memory(err, one->made);
    bool fine = !code && sft_span_equal(config_class(&of), part->class) && is_published(&of);
    if (fine) {
        sfti_json_write(&w, &sink, 0, err);
        sfti_json_open(&w, '{');
        sfti_json_put_text(&w, "_class_name", part->class);
        for (size_t i = 0; fine && i < part->value_count; i++) {
            const sfti_layout_value *value = &layouts->values[part->first_value + i];
            uint64_t size;
            if (sft_span_equal(value->value, sft_span_cstr("model"))) {
                fine = put_model_values(&of, &w, value->key);
                continue;
            }
            if (value->optional && !config_size(&of, value->value, &size)) continue;
            sfti_json_key_span(&w, value->key);
            fine = put_config_value(&of, &w, value->value);
        }
        sfti_json_close(&w, '}');
        code = sfti_json_done(&w);
    }
    sfti_arena_free(&work);
    *certain = fine && !code;
    return code;
}

sft_code sfti_layout_proves_pipeline(const sfti_layout_text *layouts,
                                     const sfti_layout_model *model,
                                     const sfti_layout_groups *groups, sfti_side to,
                                     const sfti_layout_out *out, bool *proved, sft_error *err) {
    sft_span marks = model->only, component;
    *proved = marks.len == 0;
    if (!sfti_layout_next(&marks, &component)) return SFT_OK;
    for (size_t i = 0; i < groups->count; i++) {
        const sfti_layout_group *one = &groups->items[i];
        sfti_arena work = { .alloc = out->arena.alloc };
        config_of of;
        if (!one->part || !sft_span_equal(one->name, component)) continue;
        if (to != SFTI_DIFFUSERS && one->side != SFTI_DIFFUSERS) continue;
        if (to == SFTI_DIFFUSERS ? !config_begin(&of, layouts, model, one, out, &work)
                                 : !sfti_layout_names(of.parts = one->parts, one->count, &work,
                                                      &of.names)) {
            sfti_arena_free(&work);
            return sfti_fail_memory(err, one->count);
        }
        *proved = sfti_layout_marks_hold(marks, &of.names, of.parts);
        sfti_arena_free(&work);
    }
    return SFT_OK;
}

sft_code sfti_layout_index(const sfti_layout_text *layouts, const sfti_layout_model *model,
                           const sfti_layout_groups *groups, const sfti_layout_out *out,
                           sft_buffer *text, sft_error *err) {
    sft_sink sink = sft_sink_memory(text);
    sfti_json_writer w;
    sfti_json_write(&w, &sink, 0, err);
    sfti_json_open(&w, '{');
    sfti_json_put_text(&w, "_class_name", model->pipeline);
    for (size_t i = 0; i < groups->count; i++) {
        const sfti_layout_group *one = &groups->items[i];
        sfti_arena work = { .alloc = out->arena.alloc };
        config_of of;
        if (!one->part || one->part->class.len == 0) continue;
        if (!config_begin(&of, layouts, model, one, out, &work)) {
            sfti_arena_free(&work);
            return sfti_fail_memory(err, one->made);
        }
        bool encoder = one->name.len > 4 && memcmp(one->name.data, "text", 4) == 0;
        sfti_json_key_span(&w, one->name);
        sfti_json_open(&w, '[');
        sfti_json_cstr(&w, encoder ? "transformers" : "diffusers");
        sfti_json_span(&w, config_class(&of));
        sfti_json_close(&w, ']');
        sfti_arena_free(&work);
    }
    sfti_json_close(&w, '}');
    return sfti_json_done(&w);
}
