/* What a model is, in people's words: "Wan 2.2 I2V 14B, high noise", "LoRA r16 for Flux.1", "VAE
 * (Wan 2.1)". Made of the ids of a result object (docs/json-info.md). An id without other words is
 * shown as written, a fact of little trust gets a "?". The text may hold what a file holds: print
 * it escaped. */
#ifndef CLI_TITLES_H
#define CLI_TITLES_H

#include "label/records.h"
#include "safetensors_tree.h"

#define CLI_TITLE_SIZE 256

/* ── A model ── */

/* Kind, architecture or family, variant, size, prediction, quantisation, rank and what it was
 * derived from, as far as each tells something; "unknown kind" if nothing is known. */
sft_span cli_title(const sft_node *root, char buffer[CLI_TITLE_SIZE]);
/* What it derives from: base_model, else base_checkpoint without folder and extension, else the
 * architecture. Empty if unknown. */
sft_span cli_base_words(const sft_node *root, char buffer[CLI_TITLE_SIZE]);
/* Whether the fact at a path ("model.base_model"), or the architecture of the component there, is
 * known and hardly trusted. */
bool cli_is_unsure(const sft_node *root, const char *path);

/* ── Ids ── */

/* The label of the record: "SDXL" for the model "sdxl", "v-pred" for the prediction "v",
 * "Llama-like", which stands before a kind, for the family "llama-like". */
sft_span cli_id_words(sfti_record_type type, sft_span id);
/* "LoKr", "VAE": of kinds and of adapter types. */
sft_span cli_kind_words(sft_span id);
/* "SDXL" for CivitAI's "SDXL 1.0"; the last part of a path or repository. */
sft_span cli_base_label_words(sft_span label);
/* "I2V 14B, high noise" for "14b+high-noise+i2v". */
sft_span cli_variant_words(sft_span variant, char buffer[CLI_TITLE_SIZE]);
/* "GPTQ 4-bit" for "gptq-4bit". */
sft_span cli_quantization_words(sft_span id, char buffer[CLI_TITLE_SIZE]);

#endif
