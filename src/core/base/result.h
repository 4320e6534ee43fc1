/* Members that result objects share (docs/json.md). */
#ifndef SFTI_RESULT_H
#define SFTI_RESULT_H

#include "base/json.h"

/* Opens the object, with "path" and "ok". */
void sfti_result_begin(sfti_json_writer *w, const char *path, bool ok);
/* Closes it and tells the writer's first failure. */
sft_code sfti_result_end(sfti_json_writer *w);
/* "key": an error object, or null for NULL. */
void sfti_result_error(sfti_json_writer *w, const char *key, const sft_error *error);
/* The error object alone; rule: with "rule", as findings have it. */
void sfti_result_finding(sfti_json_writer *w, const sft_error *error, bool rule);
void sfti_result_tensor(sfti_json_writer *w, const sft_error *error); /* "tensor": name or null */
/* The members of a tensor as ls lists it; shard NULL: a model of one file. */
void sfti_result_listed(sfti_json_writer *w, const sft_tensor *tensor, const char *shard);

#endif
