/* A model on its way to another layout: what the files behind safetensors_layout.h share. */
#ifndef SFTI_LAYOUT_CONVERSION_H
#define SFTI_LAYOUT_CONVERSION_H

#include "layout/layout.h"
#include "label/records.h"
#include "safetensors_layout.h"

typedef struct sfti_layout_note {
    sft_span text;
    bool lost;
} sfti_layout_note;

typedef struct sfti_layout_unmatched {
    sft_span name;
    size_t set;
} sfti_layout_unmatched;

/* Another name of a tensor, which only metadata record, and the component that the tensor is in. */
typedef struct sfti_layout_alias {
    sft_pair pair;
    const sfti_layout_group *of;
} sfti_layout_alias;

struct sft_layout_conversion {
    sft_allocator alloc;
    sfti_arena arena;
    sft_layout_options options;
    const sft_set *const *sets;
    size_t set_count, blames;
    sfti_layout_text layouts;
    sfti_layout_out out;
    sfti_layout_input *inputs;
    sfti_layout_groups groups;
    const sfti_layout_model *model; /* or NULL */
    const sfti_layout_model *exact; /* the same, if it is not that of a parent; or NULL */
    sfti_side to;
    sft_layout_facts told;
    sfti_layout_unmatched *unmatched;
    sfti_layout_note *notes;
    size_t note_count, note_room;
    sft_pair *pairs;      /* of all files; behind them room for those of one component */
    size_t pair_count;
    sfti_layout_alias *aliases; /* by their new names */
    size_t alias_count;
    uint64_t alias_most;
    sft_layout_component *components;
    const sfti_layout_group **component_groups;
    sft_buffer *configs, index;
    size_t component_count;
    sft_layout_file *files;
    size_t file_count;
};

/* The layout of an architecture or the nearest of its parents that has one; NULL: none has. */
const sfti_layout_model *sfti_layout_model_near(const sfti_layout_text *layouts,
                                                const sfti_records *records, sft_span id);
/* That of a model or adapter, by its header; or NULL. *exact, which may be NULL, becomes the same
 * or, for that of a parent, NULL. */
sft_code sfti_layout_model_by(const sfti_layout_text *layouts, const sft_records *records,
                              const sft_set *set, const sft_allocator *alloc,
                              const sfti_layout_model **out, const sfti_layout_model **exact,
                              sft_error *err);
/* The components of a model, without planning what is made of them. */
sft_code sfti_layout_components(const sft_set *const *sets, size_t count,
                                const sft_layout_options *options, sft_layout_conversion **out,
                                size_t *blames, sft_error *err);

/* A note of these words, as they follow one another. */
sft_code sfti_layout_note_add(sft_layout_conversion *run, bool lost, const sft_span *words,
                              size_t count, sft_error *err);
/* told.c: of a component from a folder of diffusers, markers of what the scheduler beside it says;
 * notes of what a single file has no place for. */
sft_code sfti_layout_tell(sft_layout_conversion *run, const sfti_layout_group *one,
                          sft_error *err);
/* folder.c: what the folder is to hold. */
sft_code sfti_layout_list_files(sft_layout_conversion *run, sft_error *err);
/* Whether all tensors are matched, or what is not is left out. */
sft_code sfti_layout_check_matched(const sft_layout_conversion *run, sft_error *err);

#endif
