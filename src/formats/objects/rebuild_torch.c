/* What PyTorch's functions make of tensors. Tests: test_import_torch.c. */
#include "formats/objects/rebuild_parts.h"

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

/* Whether setting these attributes would make another tensor of one: data and its parts. */
static bool attributes_replace(const sfti_value *state) {
    static const char *const parts[] = { "data", "real", "imag", "__class__", "__dict__" };
    if (state->kind != SFTI_VALUE_MAP) return state->kind != SFTI_VALUE_NONE;
    for (uint32_t i = 0; i + 1 < state->count; i += 2) {
        const sfti_value *key = state->u.items[i];
        if (key->kind != SFTI_VALUE_TEXT || !key->u.text) return true;
        for (size_t p = 0; p < sizeof parts / sizeof *parts; p++)
            if (sfti_value_is(key, parts[p])) return true;
    }
    return false;
}

/* A state that PyTorch sets the attributes of a tensor from: a dict, or (dict, slots). */
static sft_code take_attributes(sfti_rebuild *r, sfti_value *value, sfti_value *state) {
    bool slots = state->kind == SFTI_VALUE_TUPLE && state->count == 2;
    if (value->kind != SFTI_VALUE_TENSOR) return SFT_OK;
    if (slots ? attributes_replace(state->u.items[0]) || attributes_replace(state->u.items[1])
              : attributes_replace(state))
        return sfti_rebuild_refuse(r, value, SFT_FOREIGN_OBJECT, SFT_HINT_NONE, 0,
                                   "expected a tensor with attributes of its own, found one whose "
                                   "contents a state sets");
    return sfti_rebuild_attributes(r, state);
}

/* A tensor or array that is converted to the dtype behind it, which writers never do. */
static sft_code same_dtype(sfti_rebuild *r, sfti_value *value, const sfti_value *args) {
    const sfti_value *from = sfti_value_item(args, 0), *to = sfti_value_item(args, 1);
    if (args->count != 4) return SFT_OK;
    if (from->kind == SFTI_VALUE_TENSOR &&
        (to->kind != SFTI_VALUE_GLOBAL || to->u.global->meaning != SFTI_MEANS_TORCH_DTYPE ||
         to->u.global->dtype->kind != SFTI_TORCH_PLAIN ||
         to->u.global->dtype->dtype != from->u.item->dtype))
        return sfti_rebuild_refuse(r, value, SFT_FOREIGN_DTYPE, SFT_HINT_NONE, 0,
                                   "expected a tensor of the dtype that it is to have, found one "
                                   "that is to be converted");
    return same_as(value, from);
}

/* (function, type, arguments, state): the function is called, and the result made a `type`. */
static sft_code rebuild_from_type(sfti_rebuild *r, sfti_value *value, const sfti_value *args) {
    if (args->count != 4) return SFT_OK;
    const sfti_value *function = args->u.items[0], *inner = args->u.items[2];
    uint8_t meaning = sfti_value_meaning(function);
    if (function->kind != SFTI_VALUE_GLOBAL || inner->kind != SFTI_VALUE_TUPLE ||
        args->u.items[1]->kind != SFTI_VALUE_GLOBAL)
        return SFT_OK;
    if (meaning == SFTI_MEANS_FROM_TYPE) return SFT_OK; /* of itself: no loader's writer does */
    sft_code code = sfti_rebuild_torch(r, value, inner, meaning);
    return code ? code : take_attributes(r, value, args->u.items[3]);
}

/* (tensor, …), and a state behind two others, if the function takes one. */
static sft_code rebuild_parameter(sfti_rebuild *r, sfti_value *value, const sfti_value *args,
                                  bool with_state) {
    const sfti_value *gradient = sfti_value_item(args, 1);
    bool taken = with_state ? args->count == 4 : args->count > 0 && args->count < 4;
    if (!taken || (gradient && gradient->kind != SFTI_VALUE_BOOL)) return SFT_OK;
    sft_code code = same_as(value, args->u.items[0]);
    return code || !with_state ? code : take_attributes(r, value, args->u.items[3]);
}

sft_code sfti_rebuild_torch(sfti_rebuild *r, sfti_value *value, const sfti_value *args,
                            uint8_t meaning) {
    const sfti_value *callee = value->u.object->callee;
    sft_span name;
    switch (meaning) {
    case SFTI_MEANS_TENSOR: return sfti_rebuild_plain(r, value, args, 1);
    case SFTI_MEANS_TENSOR_V2: return sfti_rebuild_plain(r, value, args, 2);
    case SFTI_MEANS_TENSOR_V3: return sfti_rebuild_plain(r, value, args, 3);
    case SFTI_MEANS_PARAMETER:
    case SFTI_MEANS_PARAMETER_STATE:
        return rebuild_parameter(r, value, args, meaning == SFTI_MEANS_PARAMETER_STATE);
    case SFTI_MEANS_DEVICE: return same_dtype(r, value, args);
    case SFTI_MEANS_FROM_TYPE: return rebuild_from_type(r, value, args);
    case SFTI_MEANS_QUANTISED: return sfti_rebuild_quantised(r, value, args);
    case SFTI_MEANS_SPARSE: return sfti_rebuild_sparse(r, value, args);
    case SFTI_MEANS_NO_BYTES:
        name = callee->kind == SFTI_VALUE_GLOBAL ? callee->u.global->name
                                                 : sft_span_cstr("an object");
        return sfti_rebuild_refuse(r, value, SFT_FOREIGN_OBJECT, SFT_HINT_NONE, 0,
                                   "expected a tensor with bytes, found what %.*s makes",
                                   SFTI_CLIP(name, 80));
    default: return SFT_OK;
    }
}
