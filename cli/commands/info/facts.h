/* info --save-as: which facts are known well enough to be written, and what other programs call
 * them. */
#ifndef CLI_INFO_FACTS_H
#define CLI_INFO_FACTS_H

#include "commands/info/beside.h"
#include "text/derived.h"
#include "safetensors_tree.h"

#define CLI_SAVE_TRUST 60 /* by default */
#define CLI_ORIGINS_ASKED 64

/* One model's facts on their way to one place. */
typedef struct cli_saving {
    cli *c;
    const cli_model *model;
    const sft_node *root;
    sfti_arena arena;
    uint64_t least; /* trust */
    sft_span own;   /* how sources begin that are that place: what they tell stays as it is */
    sft_span old;   /* the JSON object that is there without what an export wrote, or empty */
    sft_span without; /* a source that is left out: what is then missing is from there */
    const sft_node *left_out; /* its file among the sidecars, or NULL */
    const sft_node *asked[CLI_ORIGINS_ASKED]; /* files that were asked, each once, whether they */
    sft_span asked_for;                       /* are apart from this place */
    bool is_apart[CLI_ORIGINS_ASKED];
    size_t asked_count;
    size_t count;   /* facts written */
    bool is_full;   /* memory ran out */
} cli_saving;

/* The value of a fact ("model.name") that is trusted and not of that place; counted. NULL: there
 * is none. */
const sft_node *cli_known(cli_saving *saving, const char *fact);
/* The same as text, empty for none; a number or boolean as JSON spells it. */
sft_span cli_known_text(cli_saving *saving, const char *fact);
/* The trigger word after one (NULL: the first); none where the best is of that place, or one
 * that only that place tells. */
const sft_node *cli_known_word(const cli_saving *saving, const sft_node *after);
/* civitai, likewise. */
const sft_node *cli_known_ids(const cli_saving *saving);
/* A computed digest; empty for none. */
sft_span cli_known_digest(const cli_saving *saving, const char *algo);
/* What people noted, a paragraph each. */
sft_span cli_known_notes(cli_saving *saving);
/* Whether a note of one's own lies beside the model. */
bool cli_is_noted(const sft_node *root);
/* Trigger words joined; prompt: as they are pasted. */
sft_span cli_known_words(cli_saving *saving, bool prompt);

/* What others call it; empty or NULL where that is not certain. */
sft_span cli_civitai_base(cli_saving *saving);
sft_span cli_civitai_type(cli_saving *saving);
sft_span cli_a1111_version(cli_saving *saving);
sft_span cli_modelspec_architecture(cli_saving *saving);
const char *cli_modelspec_implementation(cli_saving *saving);

/* ── The mark of what is written (text/derived.h), and taking it back: derived.c ── */

/* Renders what is known; twice the same of the same facts. */
typedef sft_code cli_derived_render(cli_saving *saving, void *ctx, sft_buffer *out,
                                    sft_error *err);

/* The object of origins of what render writes: each value under the names of all files beside the
 * model that it would not be known without, joined by '/'. all: its digests. */
sft_code cli_derive(cli_saving *saving, cli_derived_render *render, void *ctx, sft_buffer *origins,
                    sfti_derived *all, sft_error *err);
/* The entry in "sidecars" of a file that a mark names, or of its kind, if the model has another
 * name by now; NULL: it is not there. */
const sft_node *cli_origin(const cli_saving *saving, sft_span origin);
/* Whether it is there and was believed: one that could be read, is not of another file, and does
 * not stand apart from the place that is written. */
bool cli_origin_tells(cli_saving *saving, sft_span origin);
/* The member "apart" of the mark (text/derived.h): what the file that is written has in it, or, if
 * it told nothing until now, all whose marks name it. */
void cli_put_apart(cli_saving *saving, sfti_json_writer *w);
/* A JSON object without its mark and without values that the mark has of what is still there,
 * unless it would be rendered now if what the place has of its own counted; all of it in the arena.
 * Of a list that others added to, all stays. One without a mark as it is. */
sft_code cli_underive(cli_saving *saving, sft_span object, cli_derived_render *render, void *ctx,
                      sfti_derived *marked, sft_span *out, sft_error *err);

#endif
