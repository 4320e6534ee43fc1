/* What is wrong with a file that may be invalid: every finding, not only the first, remarks, the
 * entries of its header as they are spelled, and what a file that is no model really is.
 *
 * EXPERIMENTAL: may change incompatibly in any release (docs/abi.md). SFT_EXPERIMENTAL_SCAN is
 * defined while that is so.
 *
 * Conventions as in safetensors.h. */
#ifndef SFT_SAFETENSORS_SCAN_H
#define SFT_SAFETENSORS_SCAN_H

#include "safetensors.h"
#ifndef SFT_SAFETENSORS_H
#error "the safetensors.h found first is another library's: put libsafetensors' folder before it"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define SFT_EXPERIMENTAL_SCAN 1

/* What was found in a file that may be invalid. @since 0.1 */
typedef struct sft_scan sft_scan;

/* A broken rule. error.code names it, and sft_code_describe(error.code)->rule is the rule of
 * docs/format.md. Allocated by the library only. @since 0.1 */
typedef struct sft_finding {
    sft_error error;
} sft_finding;

/* A remark, which makes no file invalid. Names are "unaligned", "unsorted", "header_unpadded",
 * "polyglot_zip", "polyglot_pdf", "polyglot_tar", "polyglot_magic", "name_control",
 * "unknown_field", "duplicate_name", "metadata_null", "foreign_journal"; docs/format.md explains
 * them. For "polyglot_zip" the last 64 KiB are read, unless the source's table has expect: of those
 * only the header is. Allocated by the library only. @since 0.1 */
typedef struct sft_note {
    const char *name; /* static */
    sft_error error;  /* offset, tensor and message; code is SFT_OK */
} sft_note;

/* A top-level entry as it is spelled: header text including quotes, and offsets in the file.
 * Fields that the entry lacks are empty spans; of a field given twice this is the first. Never
 * grows. @since 0.1 */
typedef struct sft_scan_entry {
    sft_span name, dtype, shape, offsets; /* raw JSON text */
    uint64_t name_begin, value_begin, value_end;
} sft_scan_entry;

/* Examine a file that may be invalid, and collect every finding at the given level, not only the
 * first (at most 1000), in order of offset. Other formats are recognised, at the end only of files
 * that options.files does not claim. Fails only if the bytes cannot be read or memory runs out.
 * Gives no access to tensor data. Close with sft_scan_close. @since 0.2 */
SFT_API SFT_NODISCARD sft_code sft_scan_open(const char *path, const sft_open_options *options,
                                             sft_scan **out, sft_error *err);
/* The same over a source, which is closed before this returns. A source of unknown size is read
 * to its end. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_scan_open_source(sft_source source,
                                                    const sft_open_options *options,
                                                    sft_scan **out, sft_error *err);
/* Close a scan. NULL is ignored. @since 0.1 */
SFT_API void sft_scan_close(sft_scan *scan);

/* The verdict: NULL if the file is valid, else the error that sft_open gives for the same bytes,
 * or what the file really is if another format was recognised. @since 0.1 */
SFT_API const sft_error *sft_scan_error(const sft_scan *scan);
/* Findings, by index; NULL if i is out of range, here and below. @since 0.1;
 * sft_scan_finding_at: @since 0.2 */
SFT_API size_t sft_scan_finding_count(const sft_scan *scan);
SFT_API const sft_finding *sft_scan_finding_at(const sft_scan *scan, size_t i);
/* Notes, by index. @since 0.1; sft_scan_note_at: @since 0.2 */
SFT_API size_t sft_scan_note_count(const sft_scan *scan);
SFT_API const sft_note *sft_scan_note_at(const sft_scan *scan, size_t i);
/* Entries of the header, as far as it could be parsed. @since 0.1 */
SFT_API size_t sft_scan_entry_count(const sft_scan *scan);
/* Parsed again from the header's text; every span has data NULL if i is out of
 * range. @since 0.2 */
SFT_API sft_scan_entry sft_scan_entry_at(const sft_scan *scan, size_t i);
/* The level at which the file was scanned. @since 0.1 */
SFT_API sft_level sft_scan_level(const sft_scan *scan);

/* Find out what a file really is after opening it failed with *error, which all functions that open
 * a model have done already unless it was a pipe: looks at the start of the
 * source and, if it recognises another format, an incomplete download or NUL padding, replaces
 * code, message and hint. Reads at most 4 KiB. @since 0.1 */
SFT_API void sft_diagnose(const sft_source *source, sft_error *error);

#ifdef __cplusplus
}
#endif
#endif
