/* Writing what was collected as JSON: model-level facts in render_model.c, the rest in
 * render_more.c, the whole in render.c. */
#ifndef SFTI_INFO_RENDER_H
#define SFTI_INFO_RENDER_H

#include "info/info.h"

/* A text, or null if it is empty. */
void sfti_put_text(sfti_json_writer *w, const char *key, sft_span text);
void sfti_put_cstr(sfti_json_writer *w, const char *key, const char *text);
void sfti_put_uint(sfti_json_writer *w, const char *key, uint64_t value);
/* null for 0. */
void sfti_put_some(sfti_json_writer *w, const char *key, uint64_t value);
/* At most six decimals, no trailing zeros; null for what is no number a model can have. */
void sfti_put_double(sfti_json_writer *w, const char *key, double value);
void sfti_put_bool(sfti_json_writer *w, const char *key, bool value);
/* null for a negative one. */
void sfti_put_maybe(sfti_json_writer *w, const char *key, int value);
void sfti_put_value(sfti_json_writer *w, const sfti_value *value);
/* {"value","source","trust"} into an open object. */
void sfti_put_candidate(sfti_json_writer *w, const sfti_fact *fact);
/* A JSON text from a file, compact; null if it is none. */
void sfti_put_json(sfti_json_writer *w, const char *key, sft_span text);
void sfti_put_components(sfti_json_writer *w, const char *key, const sfti_list *list);

void sfti_render_model(sfti_json_writer *w, const sft_info *info);
void sfti_render_adapter(sfti_json_writer *w, const sft_info *info);
void sfti_render_words(sfti_json_writer *w, const sft_info *info);
void sfti_render_civitai(sfti_json_writer *w, const sft_info *info);
void sfti_render_training(sfti_json_writer *w, const sft_info *info);
void sfti_render_origin(sfti_json_writer *w, const sft_info *info);
void sfti_render_hashes(sfti_json_writer *w, const sft_info *info, sft_span computed);
void sfti_render_beside(sfti_json_writer *w, const sft_info *info);

#endif
