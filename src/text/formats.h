/* Small formats that stand in texts and files beside a model: HTML, YAML, dates, images. Texts are
 * hostile: every function is linear and bounded. Tests: test_text.c, test_images.c. */
#ifndef SFTI_FORMATS_H
#define SFTI_FORMATS_H

#include "base/mem.h"

/* ── HTML (html.c) ── */

/* HTML to plain text: its lines and paragraphs, without marks, scripts and styles; at most 64 KiB.
 * False when out of memory. */
bool sfti_html_text(sfti_arena *arena, sft_span html, sft_span *out);

/* ── YAML (yaml.c) ── */

/* A small, plain YAML text: nested maps and lists, plain, quoted and block scalars, lists in
 * brackets. What it does not know (anchors, tags, maps in braces) is passed over; at most 16
 * deep. */
#define SFTI_YAML_PLACE 256
typedef struct sfti_yaml_value {
    sft_span text;  /* of a scalar */
    sft_span key;   /* the last part of its place */
    const char *place; /* its JSON pointer, of less than SFTI_YAML_PLACE bytes, "~" as it stands */
    int64_t index;  /* the innermost list index, or -1 */
    size_t line;    /* from 1 on; of several the last */
} sfti_yaml_value;
/* Hands out every scalar, in order; SFT_OUT_OF_MEMORY, or what take returned. */
typedef sft_code sfti_yaml_take(void *ctx, const sfti_yaml_value *value);
sft_code sfti_yaml_read(sfti_arena *arena, sft_span text, sfti_yaml_take *take, void *ctx);
/* The same where nothing may be passed over: what is not known is SFT_BAD_ARGUMENT, and *fault. */
typedef struct sfti_yaml_fault {
    size_t line;
    const char *expected;
} sfti_yaml_fault;
sft_code sfti_yaml_read_all(sfti_arena *arena, sft_span text, sfti_yaml_take *take, void *ctx,
                            sfti_yaml_fault *fault);

/* ── Markdown (markdown.c) ── */

/* The YAML between fences at the top, *body what comes after; empty where there is none. */
sft_span sfti_front_matter(sft_span text, sft_span *body);
/* The text under the first heading that is one of the names, in any case, up to the next one. */
sft_span sfti_markdown_section(sft_span body, const char *const *names, size_t count);
/* Whether a line is an item of a list; *text what it says. */
bool sfti_list_item(sft_span line, sft_span *text);

/* ── Paths (private.c) ── */

/* Whether a text has a path that tells of somebody's machine, and, in *user, of a person. */
bool sfti_private_path(sft_span text, bool *user);

/* ── What webuis write into pictures (parameters.c) ── */

typedef struct sfti_parameters {
    sft_span positive, negative, seed, steps, sampler, cfg; /* empty: not told */
} sfti_parameters;
/* "a fox\nNegative prompt: text\nSteps: 20, Sampler: Euler a, …"; false for what is none. */
bool sfti_parameters_read(sft_span text, sfti_parameters *out);

/* ── Dates and sizes (dates.c) ── */

/* Each writes a text and returns its length, 0 for what is none. */
#define SFTI_DATE_SIZE 48
/* Seconds since 1970 to "2023-07-22T04:26:40Z". */
size_t sfti_iso_of_epoch(double seconds, char out[SFTI_DATE_SIZE]);
/* A date or time in ISO 8601 to UTC without fractions; one without a zone stays so. */
size_t sfti_iso_date(sft_span text, char out[SFTI_DATE_SIZE]);
/* "512,512", "(512, 512)", "512x768", "[512, 512]", "512" to "512x512". */
size_t sfti_resolution(sft_span text, char out[SFTI_DATE_SIZE]);

/* ── Images (images.c, png.c) ── */

/* An image's type and size by its first bytes; NULL if it is none that is known. */
const char *sfti_image_type(sft_span bytes, uint32_t *width, uint32_t *height);
/* base64, with or without a data: URL before it; false if it is none, of more than `most` bytes, or
 * when out of memory, which *code then says. */
bool sfti_base64(sfti_arena *arena, sft_span text, uint64_t most, sft_span *out, sft_code *code);
/* The next text chunk of a PNG, as UTF-8; a chunk that has none gives an empty text. False at the
 * end. *at: 0 at first. */
bool sfti_png_text(sfti_arena *arena, sft_span png, size_t *at, sft_span *keyword, sft_span *text,
                   sft_code *code);

#endif
