/* Whether a denoiser has layers that the architecture it seems to be has not: rows "tensors" look at
 * few names, and what was made from a known model keeps these. Tests: tests/zoo/unseen.tsv. */
#include "label/tensors/fitting.h"

#include <string.h>

/* The matrices and kernels behind the view's prefix, as modules. */
static sfti_forms *list_matrices(const sfti_view *at) {
    const sft_set *set = at->info->set;
    const size_t cut = strlen(at->prefix);
    sfti_forms *forms = sfti_forms_new(at->info);
    size_t from, to;
    if (!forms || !sfti_view_range(at, "", &from, &to)) return NULL;
    for (size_t i = from; i < to; i++) {
        const sft_tensor *tensor = sfti_view_at(at, i);
        sft_span name = sfti_from(tensor->name, cut);
        if (tensor->rank < 2 || !sfti_ends(name, ".weight")) continue;
        name.len -= strlen(".weight");
        sfti_forms_put(forms, &(sfti_module){ .name = name, .tensor = tensor,
                                              .in = sfti_size_of(set, tensor, 1),
                                              .out = sfti_size_of(set, tensor, 0) });
    }
    return at->info->code ? NULL : forms;
}

/* Models whose modules one of that architecture may have: itself, what it descends from, what
 * descends from it, siblings, and what these say that they have, too. False: there is none. */
static bool note_kin(const sfti_records *records, const sfti_fitting *fitting, sft_span architecture,
                     bool kin[SFTI_FIT_MODELS]) {
    bool any = false;
    for (size_t i = 0; i < fitting->count; i++) {
        sft_span id = sft_span_cstr(fitting->models[i].record->id);
        if (!sfti_architecture_within(records, id, architecture)
            && !sfti_architecture_within(records, architecture, id)
            && !sfti_are_siblings(records, id, architecture))
            continue;
        any = true;
        for (size_t n = 0, m = i; n < 3 && m < fitting->count; n++, m = fitting->models[m].of)
            kin[m] = true;
    }
    return any;
}

/* How many matrices kin have, and how many they have not; any_size: by their names alone. */
static bool count_known(const sfti_forms *forms, sft_span architecture, bool any_size,
                        uint64_t *known, uint64_t *others) {
    sft_info *info = forms->info;
    sfti_fitting *fitting = sfti_info_take_zeroed(info, sizeof *fitting);
    bool *kin = sfti_info_take_zeroed(info, SFTI_FIT_MODELS * sizeof *kin);
    *known = 0;
    *others = forms->beyond;
    if (!fitting || !kin) return false;
    sfti_fitting_read(forms, any_size, fitting);
    if (!note_kin(info->records, fitting, architecture, kin)) return false;
    for (size_t i = 0; i < forms->count; i++)
        for (const sfti_sized *one = forms->forms[i].sized; one; one = one->next) {
            uint64_t left[2] = { one->have[0], one->have[1] };
            for (const sfti_cover *cover = one->covers; cover; cover = cover->next)
                for (int n = 0; n < 2 && kin[cover->model]; n++) left[n] &= ~cover->bits[n];
            *others += sfti_count_bits(left);
            *known += sfti_count_bits(one->have) - sfti_count_bits(left);
        }
    return true;
}

bool sfti_model_has_others(const sfti_view *at, const char *architecture) {
    const sfti_forms *forms = list_matrices(at);
    const sft_span id = sft_span_cstr(architecture);
    uint64_t known, others;
    if (!forms || !count_known(forms, id, false, &known, &others) || others == 0) return false;
    if (known >= others) return true;
    /* Other sizes, or names that the rows do not tell of, which prove nothing. */
    return count_known(forms, id, true, &known, &others) && known >= others;
}
