/* What meta reads: the pairs of a file or an index, pairs from JSON, pictures. */
#ifndef CLI_META_VALUES_H
#define CLI_META_VALUES_H

#include "commands/meta/scrub.h"
#include "safetensors_hash.h"
#include "support/cli.h"

typedef struct meta_pairs {
    sfti_arena arena;
    sft_set *set;
    sft_pair *items; /* NULL: those of the only file, which need no copy */
    size_t first, count;
    bool is_json; /* values are JSON text (of an index) */
} meta_pairs;

/* Of a file its metadata; of an index its own, or with --each-shard all of its files' (of a
 * key in several the first counts). Free with meta_free, also after a failure. */
sft_code meta_read(cli *c, const cli_input *input, meta_pairs *out, sft_error *err);
sft_pair meta_pair_at(const meta_pairs *pairs, size_t i);
/* Value of pair i for people: strings of an index without their quotes. */
sft_span meta_value(meta_pairs *pairs, size_t i);
void meta_free(meta_pairs *pairs);

/* The longest text of a file that becomes a value. */
#define META_VALUE_MOST ((uint64_t)64 << 20)

/* Pairs of a JSON object in a file. Value data NULL: null. */
typedef struct meta_json {
    sft_pair *pairs;
    size_t count;
    sft_buffer text; /* pairs do not need it */
    sft_span other;  /* the first value that is no string, in the text read; data NULL: none */
} meta_json;
sft_code meta_json_read(cli *c, const char *path, sfti_arena *arena, meta_json *out,
                        sft_error *err);
/* The same of a text; out->text is not touched. */
sft_code meta_json_text(sft_span text, sfti_arena *arena, meta_json *out, sft_error *err);

/* modelspec.thumbnail: a data: URL of the picture. */
sft_code meta_thumbnail(cli *c, const char *path, sfti_arena *arena, sft_pair *out,
                        sft_error *err);

/* What scrub does with a pair; --keep counts. False when out of memory. */
bool meta_scrub_pair(const cli *c, sft_span key, sft_span value, sfti_arena *arena,
                     cli_scrubbed *out);

/* Digest of a file, with progress. */
sft_code meta_sha256(cli *c, const char *path, char out[SFT_HASH_TEXT_SIZE], sft_error *err);

#endif
