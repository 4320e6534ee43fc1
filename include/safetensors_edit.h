/* Changing files that are there: repairing invalid ones, and editing metadata, names and bytes of
 * valid ones, with a journal or atomically.
 *
 * EXPERIMENTAL: may change incompatibly in any release (docs/abi.md). SFT_EXPERIMENTAL_EDIT is
 * defined while that is so.
 *
 * Conventions as in safetensors.h. */
#ifndef SFT_SAFETENSORS_EDIT_H
#define SFT_SAFETENSORS_EDIT_H

#include "safetensors.h"
#ifndef SFT_SAFETENSORS_H
#error "the safetensors.h found first is another library's: put libsafetensors' folder before it"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define SFT_EXPERIMENTAL_EDIT 1

/* ── Repair: an invalid file rewritten ───────────────────────────────────── */

/* Something that was wrong, or unusual, and that the repaired file has right. Allocated by the
 * library only. @since 0.1 */
typedef struct sft_fix {
    const char *name; /* "trailing_bytes", "duplicate_name", …; docs/repair.md lists all */
    const char *done; /* "the bytes after the last tensor are left out"; both static */
    sft_error found;  /* where and what, as in a finding or a note */
} sft_fix;

/* A decision how to rewrite a file as a valid one. @since 0.1 */
typedef struct sft_repair sft_repair;

/* Scan a file and decide how to rewrite it as one that is valid at the level of the options.
 * Repaired are: trailing bytes, NULs or missing padding after the header, gaps, tensors that
 * share bytes, duplicate names and metadata keys (the last one wins, as in the official reader),
 * metadata that are not strings, unusual spellings of entries, and the layout of 2022. What
 * cannot be repaired without guessing (a truncated file, a shape that does not fit, broken JSON)
 * is refused with the error of the first such finding. A valid file has no fixes. Memory,
 * including sft_repair_write: at most six times the header, or nine times if its metadata needs
 * repair. Close with sft_repair_close. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_repair_open(const char *path, const sft_open_options *options,
                                               sft_repair **out, sft_error *err);
/* The fixes, by index; NULL if i is out of range. @since 0.2 */
SFT_API size_t sft_repair_fix_count(const sft_repair *repair);
SFT_API const sft_fix *sft_repair_fix_at(const sft_repair *repair, size_t i);
/* The tensors that sft_repair_write writes; i must be in range. Name and shape live as long as
 * the repair. @since 0.2 */
SFT_API size_t sft_repair_tensor_count(const sft_repair *repair);
SFT_API sft_spec sft_repair_tensor_at(const sft_repair *repair, size_t i);
/* Write the repaired file. The sink is finished, or abandoned on failure. Tensor bytes are
 * copied unchanged; metadata that record a digest of the file (see sft_edit) are left out if the
 * data is laid out differently. Ticks the job with the bytes of all tensors. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_repair_write(const sft_repair *repair, sft_sink sink,
                                                const sft_job *job, sft_error *err);
/* Free a repair. NULL is ignored. @since 0.1 */
SFT_API void sft_repair_close(sft_repair *repair);

/* ── Editing ─────────────────────────────────────────────────────────────── */

/* A change of an existing file: of its metadata, of the names of tensors, or of the bytes of
 * tensors. Nothing else changes: every other byte of the header (order, spelling, unknown
 * fields, escapes) and of the data stays. The exception is digests of the file that its metadata
 * record: those that the change makes wrong are removed, unless the edit sets them. If bytes of a
 * tensor change, these are sshs_model_hash, sshs_legacy_hash and modelspec.hash_*; if a name or a
 * key that begins with ss_ does, sshs_legacy_hash. docs/editing.md explains how. @since 0.1 */
typedef struct sft_edit sft_edit;

/* How a change is made. The library takes the first method that works. @since 0.1 */
typedef enum sft_edit_method {
    SFT_EDIT_NONE = 0,    /* nothing to change, nothing written */
    SFT_EDIT_PLACE = 1,   /* the old bytes are overwritten, protected by a journal */
    SFT_EDIT_REFLINK = 2, /* replaced by a new file that shares the data's blocks */
    SFT_EDIT_INSERT = 3,  /* blocks are inserted before the data, protected by a journal */
    SFT_EDIT_COPY = 4     /* replaced by a new file with a copy of the data */
} sft_edit_method;

/* "none", "in place", "reflink", "insert" or "copy"; "unknown" for any other value. Static.
 * @since 0.1 */
SFT_API const char *sft_edit_method_name(sft_edit_method method);

/* @since 0.1 */
typedef struct sft_edit_options {
    size_t size;
    bool safe;            /* use atomic methods only: reflink and copy */
    bool no_sync;         /* skip every fsync: a power failure may then tear the file */
    bool keep_mtime;      /* keep the modification time */
    bool force;           /* also edit a file with several hard links (else SFT_HARD_LINKS), and
                             recover a file whose journal names another device or inode (a copy)
                             if its length and every byte fit */
    bool no_recover;      /* return SFT_EDIT_INTERRUPTED rather than recover the file */
    sft_link_policy link; /* REPLACE: the link becomes a file of its own */
    uint64_t spare;       /* bytes left for later edits when a header grows; 0 = 4096 */
    uint64_t min_insert_bytes; /* size of a file from which blocks are inserted; 0 = 16 MiB */
    uint64_t max_place_bytes;  /* most bytes of tensors to be replaced in place, because the
                                  journal holds them twice; 0 = 64 MiB */
    bool in_place_unsafe; /* for a new file: as in sft_path_options */
    const sft_open_options *open; /* NULL = defaults; mode and header_only are not used */
} sft_edit_options;

#define SFT_EDIT_OPTIONS_INIT \
    { sizeof(sft_edit_options), false, false, false, false, false, SFT_LINK_REPLACE, 0, 0, 0, \
      false, NULL }

/* What a change does, or did, to the file. Never grows. @since 0.1 */
typedef struct sft_edit_report {
    sft_edit_method method;
    uint64_t header_before, header_after; /* N */
    uint64_t spare;                       /* spaces at the header's end afterwards */
    uint64_t file_after;                  /* size of the file afterwards */
} sft_edit_report;

/* Open a file to change it. Nothing is written before sft_edit_apply, except that an interrupted
 * edit is completed or undone first (sft_edit_recover). Fails as sft_open does, and with
 * SFT_EDIT_BUSY or SFT_IS_LINK. Close with sft_edit_close. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_edit_open(const char *path, const sft_edit_options *options,
                                             sft_edit **out, sft_error *err);
SFT_API void sft_edit_close(sft_edit *edit);
/* The file as it was when opened; its data can be read until sft_edit_apply. @since 0.1 */
SFT_API const sft_file *sft_edit_file(const sft_edit *edit);

/* Request changes of metadata; copies are kept, and a later request replaces an earlier one. An
 * existing key keeps its place, a new one is appended. Removing a key that is not there changes
 * nothing. SFT_HEADER_UTF8. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_edit_set(sft_edit *edit, sft_span key, sft_span value,
                                            sft_error *err);
SFT_API SFT_NODISCARD sft_code sft_edit_remove(sft_edit *edit, sft_span key, sft_error *err);
/* Rename a tensor. All renames are done at once: from is a name in the file as opened, so two
 * tensors can swap names. SFT_TENSOR_NOT_FOUND, SFT_NAME_RESERVED, SFT_HEADER_UTF8. If two
 * tensors end up with one name, the functions below return SFT_TENSOR_DUPLICATE.
 * Metadata that names tensors follows, unless a request changes its key: the record of another
 * name of a tensor (an alias, "head.weight": "emb.weight", whose own name can be renamed, too),
 * lora_adapter_metadata and declarations of quantised layers. If more than the beginning of names
 * changes, the functions below return SFT_BAD_ARGUMENT for what cannot follow. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_edit_rename(sft_edit *edit, sft_span from, sft_span to,
                                               sft_error *err);
/* Replace the bytes of a tensor (by its name in the file as opened) by as many others, packed
 * and little-endian. May be combined with the changes above: all are made or none. The bytes are
 * not copied: the source must stay valid until the edit is applied or closed. It is read forward
 * from its start, once by each sft_edit_apply and sft_edit_save, not by sft_edit_plan, and is
 * not closed. Sources of several tensors are read one after another, in file order.
 * SFT_TENSOR_NOT_FOUND. SFT_BUFFER_SIZE for more or fewer bytes; if the source's size is
 * unknown, the functions below return it, and nothing is changed. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_edit_put(sft_edit *edit, sft_span tensor,
                                            const sft_source *source, sft_error *err);

/* Let nobody but the owner do with the file, changed or written anew, what mode does not allow
 * (sft_sink_limit_mode): that of a file from which something was set. 0 limits nothing.
 * sft_edit_put does it by itself. A file that is changed where it is loses these bits before
 * anything is written; SFT_IO_WRITE, and nothing changes, if they cannot be taken away.
 * @since 0.3 */
SFT_API void sft_edit_limit_mode(sft_edit *edit, uint32_t mode);

/* Say what sft_edit_apply would do. Changes nothing; whether blocks can be shared or inserted is
 * tried with an unnamed file in the folder. SFT_EDIT_INSERT becomes SFT_EDIT_COPY if another
 * program has the file open by the time of sft_edit_apply. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_edit_plan(sft_edit *edit, sft_edit_report *out,
                                             sft_error *err);

/* Change the file; report may be NULL. An edit can be applied once. On failure the file is as it
 * was, unless restoring it failed, too: then the journal stays, and err->hint says how to
 * recover. SFT_EDIT_BUSY: another program is changing the file, or has changed it since it was
 * opened. SFT_HARD_LINKS: the file has other names, and options.force is not set. Copies and the
 * bytes of sft_edit_put tick the job; the rest takes milliseconds. Programs that have the file
 * open see bytes change in place while that happens; with `safe` they keep the old file.
 * @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_edit_apply(sft_edit *edit, const sft_job *job,
                                              sft_edit_report *report, sft_error *err);

/* Write the changed file to another path, and leave the original alone. The header keeps its
 * size if it can, or grows as it would in place. The method is SFT_EDIT_REFLINK or
 * SFT_EDIT_COPY. SFT_EDIT_BUSY: the original was changed since it was opened, and nothing is
 * written. report may be NULL. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_edit_save(sft_edit *edit, const char *path,
                                             const sft_path_options *options,
                                             const sft_job *job, sft_edit_report *report,
                                             sft_error *err);

/* What sft_edit_recover found. @since 0.1 */
typedef enum sft_edit_found {
    SFT_EDIT_CLEAN = 0, /* no edit had been interrupted */
    SFT_EDIT_OLD = 1,   /* undone: the file is as it was before the edit */
    SFT_EDIT_NEW = 2    /* completed: the file has the edit's result */
} sft_edit_found;

/* Recover a file whose edit was interrupted: complete or undo the edit recorded in its journal,
 * .NAME.sft-journal in the same folder, and remove the journal. This is done only if the journal
 * belongs to this file and every byte of the header, and of the data it covers, is the old or
 * the new one; otherwise both files are left alone (SFT_EDIT_INTERRUPTED). A journal is also
 * left alone if it belongs to neither the effective user nor the file's owner, or if others may
 * write to it, even with force. found may be NULL. Of the options, open, force, no_sync and link
 * are used. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_edit_recover(const char *path,
                                                const sft_edit_options *options,
                                                sft_edit_found *found, sft_error *err);

#ifdef __cplusplus
}
#endif
#endif
