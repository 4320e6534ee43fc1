/* Which modules a quantization_config names as those that are not quantised. Tests:
 * tests/cli/convert/quantise.txt. */
#include "convert/ignoring.h"

#include "base/error.h"

#include <string.h>

static bool holds_name(sft_span text, sft_span part) {
    for (size_t at = 0; at + part.len <= text.len; at++)
        if (memcmp(text.data + at, part.data, part.len) == 0) return true;
    return false;
}

/* Whether a module has to be named, which may use the weights of an embedding: programs would take
 * a layer without tensors for a quantised one. Those of ModelOpt look for the name in others. */
static bool is_tied(const sfti_ignoring *of, sft_span embedding, sft_span module) {
    bool found = sft_span_equal(embedding, sft_span_cstr("*"));
    bool inside = sft_span_equal(of->layout, sft_span_cstr("modelopt"));
    for (size_t i = 0; i < of->count; i++) {
        const sfti_ignoring_module *one = &of->modules[i];
        bool same = one->codes ? sfti_module_ends(one->name, module)
                                 || (inside && holds_name(one->name, module))
                               : one->spared && sft_span_equal(one->name, module);
        if (same) return false;
        found = found || sfti_module_ends(one->name, embedding);
    }
    return found;
}

static void put_tied(const sfti_ignoring *of, const sfti_quant_layout *any, sfti_json_writer *w) {
    sft_span lines = any->ties, embedding, rest, module;
    while (sfti_layout_line(&lines, "tied", &embedding, &rest)) {
        sft_span modules;
        if (!sfti_layout_word(&rest, ' ', &modules)) continue;
        while (sfti_layout_word(&modules, '|', &module))
            if (is_tied(of, embedding, module)) sfti_json_span(w, module);
    }
}

/* Whether one of the components of a module's name, but for the last, is that name. */
static bool is_below(sft_span module, sft_span name) {
    for (size_t at = 0; at < module.len;) {
        const char *dot = memchr(module.data + at, '.', module.len - at);
        if (!dot) break;
        size_t end = (size_t)(dot - module.data);
        if (sft_span_equal((sft_span){ module.data + at, end - at }, name)) return true;
        at = end + 1;
    }
    return false;
}

/* A pattern with the name, whose dots are plain characters, in the place of "%". */
static sft_code put_ignored(const sfti_ignoring *of, sfti_json_writer *w, sft_span pattern,
                            sft_span name, sft_error *err) {
    sft_buffer text = { .alloc = of->alloc };
    bool fine = true;
    for (size_t i = 0; fine && i < pattern.len; i++) {
        fine = pattern.data[i] == '%' || sfti_buffer_put(&text, pattern.data + i, 1);
        for (size_t k = 0; fine && pattern.data[i] == '%' && k < name.len; k++)
            fine = name.data[k] == '.' ? sfti_buffer_put(&text, "[.]", 3)
                                       : sfti_buffer_put(&text, name.data + k, 1);
    }
    if (fine) sfti_json_span(w, (sft_span){ text.data, text.len });
    sft_buffer_free(&text);
    return fine ? SFT_OK : sfti_fail_memory(err, pattern.len + name.len);
}

/* Whether no character but a dot means something in an expression. */
static bool is_unmarked(sft_span name) {
    for (size_t i = 0; i < name.len; i++) {
        char c = name.data[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')
              || c == '.' || c == '_' || c == '-'))
            return false;
    }
    return true;
}

/* What stands behind the first of a module's name, which are some of these; no data: it begins with
 * none, or has characters that mean something in an expression. */
static sft_span behind(sft_span module, sft_span names) {
    sft_span rest = module, name;
    for (bool more = true; more;) {
        sft_span all = names;
        more = false;
        while (!more && sfti_layout_word(&all, '|', &name))
            more = rest.len > name.len + 1 && rest.data[name.len] == '.'
                && memcmp(rest.data, name.data, name.len) == 0;
        if (more) rest.data += name.len + 1, rest.len -= name.len + 1;
    }
    return rest.len < module.len && is_unmarked(rest) ? rest : (sft_span){ NULL, 0 };
}

/* Whether a module with that end of its name is quantised; names: and begins with one of these. */
static bool is_coded(const sfti_ignoring *of, sft_span end, const sft_span *names) {
    for (size_t i = 0; i < of->count; i++)
        if (of->modules[i].codes && sfti_module_ends(of->modules[i].name, end)
            && (!names || behind(of->modules[i].name, *names).data))
            return true;
    return false;
}

/* Spared modules of a model with towers, which programs call otherwise than the file does. */
static sft_code put_moved(const sfti_ignoring *of, const sfti_quant_layout *any,
                          sfti_json_writer *w, sft_error *err) {
    sft_span lines = any->aparts, layout, rest, pattern, names;
    sft_code code = SFT_OK;
    while (sfti_layout_line(&lines, "moved", &layout, &rest)) {
        if (!sft_span_equal(layout, of->layout)
            || !sfti_layout_word(&rest, ' ', &pattern) || !sfti_layout_word(&rest, ' ', &names))
            continue;
        for (size_t i = 0; !code && i < of->count; i++) {
            if (!of->modules[i].spared) continue;
            sft_span more = behind(of->modules[i].name, names);
            if (more.data && !is_coded(of, more, &names))
                code = put_ignored(of, w, pattern, more, err);
        }
    }
    return code;
}

/* Programs may put such modules elsewhere than their tensors' names say. */
static sft_code put_apart(const sfti_ignoring *of, const sfti_quant_layout *any,
                          sfti_json_writer *w, sft_error *err) {
    sft_span lines = any->aparts, layout, rest, pattern, name;
    sft_code code = SFT_OK;
    bool some = false;
    while (!code && sfti_layout_line(&lines, "apart", &layout, &rest)) {
        sft_span names;
        if (!sft_span_equal(layout, of->layout)
            || !sfti_layout_word(&rest, ' ', &pattern) || !sfti_layout_word(&rest, ' ', &names))
            continue;
        while (!code && sfti_layout_word(&names, '|', &name)) {
            bool spared = false, codes = false;
            for (size_t i = 0; i < of->count; i++) {
                if (!is_below(of->modules[i].name, name)) continue;
                some = true;
                spared = spared || of->modules[i].spared;
                codes = codes || of->modules[i].codes;
            }
            if (spared && !codes) code = put_ignored(of, w, pattern, name, err);
            for (size_t i = 0; !code && spared && codes && i < of->count; i++)
                if (of->modules[i].spared && is_below(of->modules[i].name, name)
                    && is_unmarked(of->modules[i].name) && !is_coded(of, of->modules[i].name, NULL))
                    code = put_ignored(of, w, sft_span_cstr("re:(.*[.])?%$"),
                                       of->modules[i].name, err);
        }
    }
    return code || !some ? code : put_moved(of, any, w, err);
}

sft_code sfti_ignoring_write(const sfti_ignoring *of, const sfti_quant_layout *any,
                             sfti_json_writer *w, sft_error *err) {
    for (size_t i = 0; i < of->count; i++)
        if (of->modules[i].spared) sfti_json_span(w, of->modules[i].name);
    put_tied(of, any, w);
    return put_apart(of, any, w, err);
}
