/* What the files of the tools share. */
#ifndef PYSFT_TOOLS_H
#define PYSFT_TOOLS_H

#include "core.h"

/* The result of `check` of a file, or of an index and its shards: JSON into *text, which is to
 * be freed in every case. Fails where there is no answer: what cannot be read. No GIL. */
sft_code pysft_check(const char *path, sft_level level, bool deep, const sft_job *job,
                     sft_buffer *text, sft_error *err);

/* As pysft_path_of; of a folder, the index in it, or the one file. SFT_IO_NOT_FILE where it is
 * not clear which (folder.c). */
int pysft_model_path_of(pysft_state *state, PyObject *object, pysft_path *out);
/* "replace", "follow" or "refuse"; NULL is "replace" (output.c). 0, or -1 with an exception. */
int pysft_link_of(PyObject *word, sft_link_policy *out);

/* A new file gets the permissions of the one it is made of, and with keep_mtime its time; one
 * that is replaced keeps its own permissions. from NULL: none. 0, or -1 with an exception. */
int pysft_inherit(const char *from, const char *to, bool keep_mtime, sft_path_options *options);

#endif
