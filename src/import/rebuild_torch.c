#include "import/rebuild_parts.h"

/* The value becomes what its argument has become. */
static sft_code same_as(sfti_value *value, const sfti_value *of) {
    if (of->kind == SFTI_VALUE_TENSOR || of->kind == SFTI_VALUE_REFUSED ||
        of->kind == SFTI_VALUE_MAP) {
        uint64_t at = value->at;
        *value = *of;
        value->at = at;
        value->sum = 0;
    }
    return SFT_OK;
}

/* (function, type, arguments, state): the function is called, and the result made a `type`. */
static sft_code rebuild_from_type(sfti_rebuild *r, sfti_value *value, const sfti_value *args) {
    if (args->count < 3) return SFT_OK;
    const sfti_value *function = args->u.items[0], *inner = args->u.items[2];
    uint8_t meaning = sfti_value_meaning(function);
    if (function->kind != SFTI_VALUE_GLOBAL || inner->kind != SFTI_VALUE_TUPLE) return SFT_OK;
    if (meaning == SFTI_MEANS_FROM_TYPE) return SFT_OK; /* of itself: no loader's writer does */
    return sfti_rebuild_torch(r, value, inner, meaning);
}

static sft_code rebuild_no_bytes(sfti_rebuild *r, sfti_value *value) {
    const sfti_value *callee = value->u.object->callee;
    sft_span name = callee->kind == SFTI_VALUE_GLOBAL ? callee->u.global->name
                                                      : sft_span_cstr("an object");
    return sfti_rebuild_refuse(r, value, SFT_FOREIGN_OBJECT, SFT_HINT_NONE, 0,
                               "expected a tensor with bytes, found what %.*s makes",
                               SFTI_CLIP(name, 80));
}

sft_code sfti_rebuild_torch(sfti_rebuild *r, sfti_value *value, const sfti_value *args,
                            uint8_t meaning) {
    switch (meaning) {
    case SFTI_MEANS_TENSOR: return sfti_rebuild_plain(r, value, args, false);
    case SFTI_MEANS_TENSOR_V3: return sfti_rebuild_plain(r, value, args, true);
    case SFTI_MEANS_PARAMETER:
    case SFTI_MEANS_DEVICE:
        return args->count > 0 ? same_as(value, args->u.items[0]) : SFT_OK;
    case SFTI_MEANS_FROM_TYPE: return rebuild_from_type(r, value, args);
    case SFTI_MEANS_QUANTISED: return sfti_rebuild_quantised(r, value, args);
    case SFTI_MEANS_SPARSE: return sfti_rebuild_sparse(r, value, args);
    case SFTI_MEANS_NO_BYTES: return rebuild_no_bytes(r, value);
    default: return SFT_OK;
    }
}
