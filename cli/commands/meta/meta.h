/* meta: what its parts share. */
#ifndef CLI_META_H
#define CLI_META_H

#include "base/mem.h"
#include "safetensors_hash.h"
#include "support/edit.h"

/* ── What may be private: scrub.c ── */

/* What becomes of a pair. */
typedef struct cli_scrubbed {
    const char *reason; /* "a session id"; NULL: the pair stays */
    sft_span value;     /* what is left of it; data NULL: it goes */
} cli_scrubbed;

/* A pair that may identify a person or a machine goes; of tag counts only the names of folders
 * do. False when out of memory. */
bool cli_scrub(sft_span key, sft_span value, sfti_arena *arena, cli_scrubbed *out);
/* Why a text may be private, whatever its key is; or NULL. */
const char *cli_scrub_text(sft_span text);
/* JSON text without the names of folders: as keys they become numbers, as values they go. whole:
 * the object itself has them as keys. *out.data NULL: it is no such text. False when out of
 * memory. */
bool cli_scrub_folders(sft_span text, bool whole, sfti_arena *arena, sft_span *out);
/* Whether a text holds base64 of a picture that carries more than the picture; base64 of pictures
 * is overwritten. */
bool cli_scrub_pictures(char *text, size_t len);
/* In place; what is no escape of JSON stays. The new length. */
size_t cli_scrub_unescape(char *text, size_t len);

/* ── What is read: values.c ── */

typedef struct meta_pairs {
    sfti_arena arena;
    sft_set *set;
    sft_pair *items; /* NULL: those of the only file, which need no copy */
    size_t count;
    bool is_json; /* values are JSON text (of an index) */
} meta_pairs;

/* The metadata of a file; of an index its own, or with --each-shard all of its files' (of a
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

/* What scrub does with a pair; --keep counts, and what says how tensors are read stays. False when
 * out of memory. */
bool meta_scrub_pair(const cli *c, sft_span key, sft_span value, sfti_arena *arena,
                     cli_scrubbed *out);

/* Digest of a file, with progress. */
sft_code meta_sha256(cli *c, const char *path, char out[SFT_HASH_TEXT_SIZE], sft_error *err);

/* ── list, get and header: show.c ── */

void meta_list(cli *c, char **operands, size_t count);
void meta_get(cli *c, char **operands, size_t count);
void meta_header(cli *c, char **operands, size_t count);
/* A warning with the key that may be meant; the status becomes 1. */
void meta_tell_missing(cli *c, const char *path, const sft_file *file, sft_span key);

/* ── set, rm and scrub with -o -, a changed copy on standard output: stream.c ── */

/* Pairs to set; those of data NULL are keys, or globs of keys, to be removed. */
typedef struct meta_request {
    const sft_pair *pairs;
    size_t count;
    bool is_scrub, is_rm;
} meta_request;

/* The operand is one model, which may come from standard input; what was done is told. */
void meta_stream(cli *c, const char *operand, const meta_request *ask);

/* ── What info says of a model whose metadata were changed: label.c ── */

/* For pairs that are set now: each fact of which info shows another value than the pair tells, into
 * the result, texts in the arena. A file that cannot be looked at has none. */
void meta_still_shown(cli *c, const char *path, const sft_pair *pairs, size_t count,
                      sfti_arena *arena, cli_edit_result *result);
/* The sidecars and previews beside the file, likewise. */
void meta_beside(cli *c, const char *path, sfti_arena *arena, cli_edit_result *result);
/* What a key that scrub keeps may tell of people, or NULL. */
const char *meta_kept_reason(sft_span key, sft_span value);

#endif
