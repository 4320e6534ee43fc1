/* What a conversion would write, as a set: a model read through its quantisation. Tests:
 * test_values.c. */
#include "convert/conversion.h"
#include "safetensors_report.h"
#include "set/image.h"

/* The owner of its image. */
typedef struct conversion_owner {
    sft_conversion *conversion;
    sft_set *set; /* that it is of, or NULL */
} conversion_owner;

static void close_conversion(void *owner) {
    conversion_owner own = *(conversion_owner *)owner; /* which the conversion holds */
    sft_conversion_free(own.conversion);
    sft_set_close(own.set);
}

static uint32_t conversion_mode(const void *owner) {
    return ((const conversion_owner *)owner)->conversion->mode;
}

sft_code sft_conversion_set(sft_conversion *conversion, sft_set *set, const char *path,
                            sft_set **out, sft_error *err) {
    sft_conversion *c = conversion;
    sft_plan_options plan = sfti_conversion_plan(c);
    size_t count = 0;
    *out = NULL;
    conversion_owner *owner = sfti_arena_take(&c->arena, sizeof *owner);
    sft_part *parts = sfti_arena_array(&c->arena, c->count, sizeof *parts);
    if (!owner || !parts) {
        sft_conversion_free(c);
        sft_set_close(set);
        return sfti_fail_memory(err, sizeof *owner);
    }
    *owner = (conversion_owner){ c, set };
    for (size_t i = 0; i < c->count; i++)
        if (c->rows[i].action != SFT_CONVERT_DROP) parts[count++] = sft_conversion_part(c, i);
    sfti_image_of of = { .parts = parts, .count = count, .metadata_count = c->metadata_count,
                         .plan = &plan, .arena = &c->arena, .owner = owner,
                         .close = close_conversion, .mode = conversion_mode,
                         .input_bytes = sft_set_file_bytes(c->set),
                         .is_partial = sfti_set_is_partial(c->set), .serial = true };
    return sfti_image_set(&of, path, out, err);
}
