/* Metadata keys that speak of their own file's data: digests, stale once what they cover changes,
 * and ComfyUI's declaration of quantised layers. */
#ifndef SFTI_DIGEST_KEYS_H
#define SFTI_DIGEST_KEYS_H

#include "base/mem.h"
#include "safetensors.h"

typedef enum sfti_digest_key {
    SFTI_DIGEST_SSHS_MODEL = 1,  /* of the data */
    SFTI_DIGEST_SSHS_LEGACY = 2, /* of the data, the tensors' names and the keys of training */
    SFTI_DIGEST_MODELSPEC = 4    /* of the data */
} sfti_digest_key;

/* A quantised layer that it lacks is read as plain numbers. */
#define SFTI_DECLARED_KEY "_quantization_metadata"
/* What may stand before the names of its layers; the first is empty. NULL past the last. */
const char *sfti_declared_prefix(size_t i);

/* diffusers' place for PEFT's configuration: a module that it lacks has another alpha. */
#define SFTI_LORA_CONFIG_KEY "lora_adapter_metadata"
/* transformers' declaration of quantised layers, which names their method and its parameters. */
#define SFTI_QUANTISER_KEY "quantization_config"

/* Row i of the keys that say how tensors are read; NULL past the last. */
const char *sfti_reading_key_at(size_t i);
bool sfti_is_reading_key(sft_span key);
#define SFTI_LORA_CONFIGS_DIFFER                                                                  \
    "expected one configuration of adapters (" SFTI_LORA_CONFIG_KEY ") in all shards, found "     \
    "different ones: without its own, a module would be read with another alpha; convert each "   \
    "file alone"

/* Those that a change makes stale: of the data, or of names and keys of training. */
#define SFTI_DIGESTS_OF_DATA                                                                      \
    (SFTI_DIGEST_SSHS_MODEL | SFTI_DIGEST_SSHS_LEGACY | SFTI_DIGEST_MODELSPEC)
#define SFTI_DIGESTS_OF_NAMES SFTI_DIGEST_SSHS_LEGACY

/* Which of them a key is; 0: another key. */
unsigned sfti_digest_key_of(sft_span key);
/* The key of row i, and its bit; NULL past the last. */
const char *sfti_digest_key_at(size_t i, unsigned *bit);

/* What a file was made from, and how, as its newest change tells it: whoever makes another file of
 * it takes these into its own record. sft_lora_alone: those of the verbs of lora. NULL past the
 * last. */
const char *sfti_recipe_key_at(size_t i, bool sft_lora_alone);
bool sfti_is_recipe_key(sft_span key, bool sft_lora_alone);

/* A key of training, ss_*: SFTI_DIGESTS_OF_NAMES cover it, too. */
bool sfti_is_training_key(sft_span key);

/* Is the data of a file laid out as our writer does it (the official order, no gaps)? Then its
 * tensors, rewritten, give the same data, and its digests hold. Takes tensors in offset order. */
typedef struct sfti_layout {
    const sft_tensor *last; /* that has bytes */
    uint64_t end;
    bool differs;
} sfti_layout;

#define SFTI_LAYOUT_INIT { NULL, 0, false }

void sfti_layout_add(sfti_layout *layout, const sft_tensor *tensor);
/* bytes: of the whole data section. */
bool sfti_layout_is_official(const sfti_layout *layout, uint64_t bytes);
bool sfti_has_official_layout(const sft_file *file);

/* Those of `stale` that a file records. */
unsigned sfti_digests_in(const sft_file *file, unsigned stale);

/* A file's metadata without stale digests, for sft_plan_options.pair_at. */
typedef struct sfti_kept_pairs {
    const sft_file *file;
    size_t *at; /* numbers of the pairs that stay */
    size_t count;
} sfti_kept_pairs;

sft_code sfti_kept_pairs_of(const sft_file *file, unsigned stale, sfti_arena *arena,
                            sfti_kept_pairs *out, sft_error *err);
sft_pair sfti_kept_pair(const void *kept, size_t i);

#endif
