/* Conventions of __metadata__: how keys of data/keys/header.txt are read that only one family of
 * producers has. Inside src/label only. */
#ifndef SFTI_INFO_HEADER_H
#define SFTI_INFO_HEADER_H

#include "label/cursor.h"

extern const sfti_keys sfti_kohya_keys, sfti_modelspec_keys, sfti_trainer_keys, sfti_ssmd_keys,
    sfti_merge_keys, sfti_recipe_keys, sfti_graph_keys, sfti_gguf_keys, sfti_generic_keys,
    sfti_dataset_keys, sfti_dirs_keys, sfti_reg_dirs_keys, sfti_bucket_keys, sfti_merge_model_keys,
    sfti_merge_made_keys,
    sfti_prompt_keys, sfti_workflow_keys;

/* Those are read, once a process. */
void sfti_header_keys_ready(void);

/* When all pairs were seen: what needs several. */
void sfti_kohya_finish(sft_info *info);
void sfti_kohya_datasets(sft_info *info); /* data sets and buckets; a part of kohya_finish */
/* Told the images of one device, tells those of all accumulated steps. */
void sfti_kohya_batch(sft_info *info, uint64_t device);
void sfti_merges_finish(sft_info *info);

/* What other files told first counts less. */
bool sfti_by_onetrainer(const sft_info *info);
void sfti_header_copied(sft_info *info);

#endif
