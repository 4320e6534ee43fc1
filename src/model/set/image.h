/* A model that is in no file: the file that parts would be written as, as a set of one, whose bytes
 * come from the parts when they are read. */
#ifndef SFTI_SET_IMAGE_H
#define SFTI_SET_IMAGE_H

#include "base/mem.h"
#include "safetensors_set.h"

typedef struct sfti_image_of {
    const sft_part *parts; /* as long as the owner */
    size_t count;
    /* For each part the F32 values that its bytes are rounded from, or NULL; or NULL. */
    const sft_source *const *values;
    const sft_pair *metadata;
    size_t metadata_count;
    const sft_plan_options *plan; /* its alloc and level are those of opening, too */
    sfti_arena *arena;            /* which ends with the owner */
    void *owner;
    void (*close)(void *owner); /* with the set, and on failure, too */
    uint32_t (*mode)(const void *owner);
    uint64_t input_bytes; /* of the files that it is read from; 0: of the file that it would be */
    bool is_partial; /* these hold more tensors */
    bool serial; /* the parts' sources are read by one thread at a time */
} sfti_image_of;

/* path is for display and may be NULL. */
sft_code sfti_image_set(const sfti_image_of *of, const char *path, sft_set **out, sft_error *err);
/* Whether its files hold more tensors than it has. */
bool sfti_set_is_partial(const sft_set *set);
/* The F32 values that a tensor's bytes are rounded from; NULL: these are all that there is. */
const sft_source *sfti_image_values(const sft_set *set, const sft_tensor *tensor);

#endif
