/* Shared by the tools. */
#ifndef PYSFT_TOOLS_H
#define PYSFT_TOOLS_H

#include "core.h"

/* Checks a file, or an index and its shards: JSON into *text, which the caller frees in every
 * case. files: as in sft_open_options. Fails only if the path cannot be read. No GIL. */
sft_code pysft_check(const char *path, const sft_files *files, sft_level level, bool deep,
                     const sft_job *job, sft_buffer *text, sft_error *err);

/* The same for a file read from a source; both sources are of it, and closed. */
sft_code pysft_check_source(sft_source first, sft_source again, const char *name,
                            sft_level level, bool deep, const sft_job *job, sft_buffer *text,
                            sft_error *err);

/* Name of a file object, for messages and results; "-" if it has none. 0, or -1 with an
 * exception. */
int pysft_name_of(PyObject *object, pysft_path *out);

/* As pysft_path_of; for a folder its one index or one file, SFT_IO_NOT_FILE if that is ambiguous
 * (folder.c). */
int pysft_model_path_of(pysft_state *state, PyObject *object, pysft_path *out);
/* "replace", "follow" or "refuse"; NULL is "replace" (path.c). 0, or -1 with an exception. */
int pysft_link_of(PyObject *word, sft_link_policy *out);

/* Fills mode and time of an output: a new file gets the permissions of `from` and, with
 * keep_mtime, its time; a replaced file keeps its own permissions. from NULL: nothing. 0, or -1
 * with an exception. */
int pysft_inherit(const char *from, const char *to, bool keep_mtime, sft_path_options *options);

#endif
