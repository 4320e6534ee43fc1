/* Whether a denoiser has layers that the architecture it seems to be has not: rows "tensors" look
 * at few names, and what was made from a known model keeps these. Tests: tests/zoo/near.tsv. */
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
        const sft_tensor *tensor = at->by_name[i];
        sft_span name = sfti_from(tensor->name, cut);
        if (tensor->rank < 2 || !sfti_ends(name, ".weight")) continue;
        name.len -= strlen(".weight");
        sfti_module module = { .name = name, .tensor = tensor };
        sfti_shape shape;
        if (!sfti_shape_of(set, tensor, &shape) || (!shape.padded && !shape.twofold)) {
            module.in = sfti_size_of(set, tensor, 1);
            module.out = sfti_size_of(set, tensor, 0);
        }
        sfti_forms_put(forms, &module);
    }
    return at->info->code ? NULL : forms;
}

/* How many matrices kin have, and how many they have not; any_size: by their names alone. */
static void count_known(const sfti_forms *forms, const char *kin, bool any_size, uint64_t *known,
                        uint64_t *others) {
    sfti_fitting *fitting = sfti_info_take_zeroed(forms->info, sizeof *fitting);
    *known = 0;
    *others = forms->beyond;
    if (!fitting) return;
    sfti_fitting_read(forms, any_size, kin, fitting);
    for (size_t i = 0; i < forms->count; i++)
        for (const sfti_sized *one = forms->forms[i].sized; one; one = one->next) {
            uint64_t left[2] = { one->have[0], one->have[1] };
            for (const sfti_cover *cover = one->covers; cover; cover = cover->next)
                for (int n = 0; n < 2; n++) left[n] &= ~cover->bits[n];
            *others += sfti_count_bits(left);
            *known += sfti_count_bits(one->have) - sfti_count_bits(left);
        }
}

bool sfti_model_has_others(const sfti_view *at, const char *architecture) {
    const sfti_forms *forms = list_matrices(at);
    uint64_t known, others;
    if (!forms) return false;
    count_known(forms, architecture, false, &known, &others);
    if (others == 0 || known > 0) return others > 0;
    /* Other sizes; where not even names are known, they are of a layout that no rows tell of. */
    count_known(forms, architecture, true, &known, &others);
    return known > 0;
}
