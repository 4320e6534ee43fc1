/* Reads announced to sources whose reads take long (sft_source_expect): in the order of reading,
 * runs that touch as one. Costs next to nothing for other sources. */
#ifndef SFTI_ANNOUNCE_H
#define SFTI_ANNOUNCE_H

#include "safetensors.h"

#define SFTI_ANNOUNCE_RUNS 128

typedef struct sfti_announcement {
    sft_source source; /* of the runs that it was not told of yet; not owned */
    sft_run runs[SFTI_ANNOUNCE_RUNS];
    size_t count;
} sfti_announcement;

/* Whether a source has use for it. */
bool sfti_source_expects(const sft_source *source);

/* Add to an announcement, zeroed at first; nothing is announced beyond the end of the source. */
void sfti_announce(sfti_announcement *a, const sft_source *source, uint64_t begin, uint64_t len);
/* The bytes of a tensor. */
void sfti_announce_tensor(sfti_announcement *a, const sft_file *file, const sft_tensor *tensor);
/* Tell the source of what is left. */
void sfti_announce_end(sfti_announcement *a);

#endif
