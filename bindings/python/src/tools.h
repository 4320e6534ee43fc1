/* Shared by the tools. */
#ifndef PYSFT_TOOLS_H
#define PYSFT_TOOLS_H

#include "core.h"

/* What is read as a whole: a path or URL, or a file object, twice. */
typedef struct pysft_readable {
    pysft_path path; /* of an object its name, for messages and results: "-" if it has none */
    bool is_object;
    sft_source first, again;
} pysft_readable;

/* 0, or -1 with an exception; free its path in both cases. */
int pysft_readable_of(pysft_state *state, PyObject *object, pysft_readable *out);

/* Checks a file, or an index and its shards: JSON into job->out. Closes both sources. Fails only if
 * it cannot be read. No GIL. */
sft_code pysft_check(pysft_readable *what, sft_level level, bool deep, pysft_job *job);

/* As pysft_path_of; for a folder its one index or one file, SFT_IO_NOT_FILE if that is ambiguous
 * (folder.c). */
int pysft_model_path_of(pysft_state *state, PyObject *object, pysft_path *out);
/* "replace", "follow" or "refuse"; NULL is "replace" (path.c). 0, or -1 with an exception. */
int pysft_link_of(PyObject *word, sft_link_policy *out);

/* The keywords sync, overwrite and in_place_unsafe. */
void pysft_path_flags(sft_path_options *options, int sync, int overwrite, int in_place_unsafe);

/* Fills mode and time of an output: a new file gets the permissions of `from` and, with
 * keep_mtime, its time; a replaced file keeps its own permissions. from NULL: nothing. 0, or -1
 * with an exception. */
int pysft_inherit(const char *from, const char *to, bool keep_mtime, sft_path_options *options);

#endif
