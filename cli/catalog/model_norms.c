/* What an adapter does by module: method, rank, and, computed by the adapter's own code, norms and
 * singular values. */
#include "catalog/catalog.h"

#include "adapter/lowrank.h"
#include "catalog/places.h"
#include "support/adapters.h"
#include "support/files.h"
#include "support/models.h"

#define POINTS 16 /* of a spectrum */

/* Singular values at places of equal distance, in hundredths of the greatest. */
static void put_spectrum(sfti_json_writer *w, const sfti_spectrum *s) {
    if (s->count == 0 || !(s->at[0] > 0)) return;
    sfti_json_put_open(w, "spectrum", '[');
    for (size_t i = 0; i < POINTS && i < s->count; i++) {
        size_t at = s->count <= POINTS ? i : i * s->count / POINTS;
        sfti_json_uint(w, (uint64_t)(s->at[at] / s->at[0] * 100 + 0.5));
    }
    sfti_json_close(w, ']');
}

/* Values that cannot be computed with leave norms out, as methods do that change a layer by its own
 * weight. */
static sft_code forgive(sft_code code, sft_error *err) {
    if (code != SFT_CAST_VALUE && code != SFT_CAST_DTYPE) return code;
    *err = (sft_error)SFT_ERROR_INIT;
    return SFT_OK;
}

static sft_code put_module(const cli *c, const sfti_lora *lora, const sfti_lora_module *m,
                           sfti_json_writer *w, sft_error *err) {
    sfti_arena work = { .alloc = c->alloc };
    sfti_spectrum spectrum = { .count = 0 };
    double norm = -1;
    sft_code code = SFT_OK;
    if (c->set.deep) code = forgive(sfti_lora_norm(lora, m, &norm, err), err);
    if (!code && norm >= 0)
        code = forgive(sfti_lora_spectrum(lora, m, &work, &spectrum, err), err);
    sfti_json_open(w, '{');
    sfti_json_put_text(w, "module", m->name);
    sfti_json_put_cstr(w, "method", sfti_lora_method(lora, m));
    if (m->rank) sfti_json_put_uint(w, "rank", m->rank);
    if (norm >= 0 || norm != norm) {
        sfti_json_key(w, "norm");
        catalog_double(w, norm);
    }
    put_spectrum(w, &spectrum);
    sfti_json_close(w, '}');
    sfti_arena_free(&work);
    return code;
}

sft_code model_norms_write(const cli_model *model, cli *c, sfti_json_writer *w, sft_error *err) {
    sfti_lora lora = { .arena.alloc = c->alloc };
    sft_buffer config = { .alloc = c->alloc };
    if (!model->set || !sft_node_count(sft_node_get(sft_tree_root(model->tree), "adapter")))
        return SFT_OK;
    sft_code code = cli_read_adapter_config(c, model->path, &config, err);
    if (!code) code = sfti_lora_open(model->set, cli_read_text(&config), &lora, err);
    sft_class kind = sft_code_describe(code)->cls;
    bool refused = code && code != SFT_OUT_OF_MEMORY && kind != SFT_CLASS_IO
                && kind != SFT_CLASS_CANCELLED;
    if (refused) {
        char text[1024];
        err->hint = SFT_HINT_NONE;
        sft_error_text(err, NULL, text, sizeof text);
        sfti_json_put_cstr(w, "adapter_error", text);
        *err = (sft_error)SFT_ERROR_INIT;
        code = SFT_OK;
    } else if (!code) {
        sfti_json_put_open(w, "norms", '[');
        for (size_t i = 0; !code && i < lora.count && !cli_is_over(c); i++)
            code = put_module(c, &lora, &lora.modules[i], w, err);
        sfti_json_close(w, ']');
    }
    sfti_lora_close(&lora);
    sft_buffer_free(&config);
    return code;
}
