/* What sft_repair can correct. Tests: test_repair.c, test_scan.c. */
#include "file/file.h"

#include "base/checked.h"
#include "base/error.h"

#include <string.h>

static const sfti_repair_row repair_rows[] = {
    { SFT_JSON_TRAILING, NULL, "header_nul", "the NULs after the header become spaces" },
    { SFT_LEGACY_LAYOUT, NULL, "legacy_layout", "the header is written in today's layout" },
    { SFT_TENSOR_DUPLICATE, NULL, "duplicate_name", "the last tensor of the name is kept" },
    { SFT_METADATA_KEY_DUPLICATE, NULL, "duplicate_key", "the last value of the key is kept" },
    { SFT_METADATA_DUPLICATE, NULL, "duplicate_metadata",
      "the pairs are put together, the last value of a key is kept" },
    { SFT_METADATA_VALUE, NULL, "metadata_value", "the value becomes a string of its text" },
    { SFT_METADATA_TYPE, NULL, "metadata_type", "it is left out" },
    { SFT_ENTRY_NOT_OBJECT, NULL, "entry_spelling", "the entry becomes an object" },
    { SFT_DTYPE_NOT_STRING, NULL, "dtype_spelling", "the dtype becomes a string" },
    { SFT_OFFSETS_GAP, NULL, "hole", "bytes that belong to no tensor are left out" },
    { SFT_OFFSETS_OVERLAP, NULL, "overlap", "shared bytes are written for each tensor" },
    { SFT_DATA_TRAILING, NULL, "trailing_bytes", "the bytes after the last tensor are left out" },
    { SFT_STRICT_FIRST_BYTE, NULL, "first_byte", "the header begins with its object" },
    { SFT_STRICT_PADDING, NULL, "padding", "the header is padded with spaces" },
    { SFT_STRICT_FIELD, NULL, "unknown_field", "the field is left out" },
    { SFT_STRICT_METADATA, NULL, "metadata_null", "it is left out" },
    { SFT_OK, "header_unpadded", "padding", "the header is padded with spaces" },
    { SFT_OK, "unaligned", "unaligned", "tensors are put in order of their dtypes' size" },
    { SFT_OK, "unknown_field", "unknown_field", "the field is left out" },
    { SFT_OK, "metadata_null", "metadata_null", "it is left out" },
    { SFT_OK, "duplicate_name", "duplicate_name", "the last tensor of the name is kept" },
};

const sfti_repair_row *sfti_repair_of_code(sft_code code) {
    for (size_t i = 0; i < sizeof repair_rows / sizeof *repair_rows; i++)
        if (!repair_rows[i].note && repair_rows[i].code == code) return &repair_rows[i];
    return NULL;
}

const sfti_repair_row *sfti_repair_of_note(const char *note) {
    for (size_t i = 0; i < sizeof repair_rows / sizeof *repair_rows; i++)
        if (repair_rows[i].note && strcmp(repair_rows[i].note, note) == 0) return &repair_rows[i];
    return NULL;
}

const sfti_repair_row *sfti_repair_of_finding(const sfti_model *model, const sft_error *found) {
    /* Behind the header's object: nothing but NULs and white space. */
    size_t i = found->code == SFT_JSON_TRAILING ? (size_t)(found->offset - SFTI_PREFIX)
                                                : model->text.len;
    while (i < model->text.len && memchr(" \t\r\n", model->text.data[i], 5)) i++;
    return i < model->text.len ? NULL : sfti_repair_of_code(found->code);
}

sft_code sfti_repair_check(const sfti_model *model, uint64_t size, const sft_tensor *t,
                           sft_error *err) {
    uint64_t bytes, end;
    sft_code code = sft_shape_size(t->dtype, t->shape, t->rank, NULL, &bytes, err);
    if (!code && t->end < t->begin)
        code = sfti_fail(err, SFT_OFFSETS_REVERSED,
                         "expected %llu or more as the end offset, found %llu",
                         (unsigned long long)t->begin, (unsigned long long)t->end);
    if (!code && t->end - t->begin != bytes)
        code = sfti_fail(err, SFT_SIZE_MISMATCH,
                         "expected %llu bytes by dtype and shape, found offsets %llu to %llu",
                         (unsigned long long)bytes, (unsigned long long)t->begin,
                         (unsigned long long)t->end);
    if (!code && (!sfti_add(model->data_offset, t->end, &end) || end > size))
        code = sfti_fail_byte(err, SFT_DATA_TRUNCATED, size,
                              "expected the tensor's data to be there, found the end of the file");
    if (code) sfti_error_tensor(err, t->name);
    return code;
}

bool sfti_repairs_all(const sfti_model *model, const sft_error *verdict,
                      const sft_finding *findings, size_t count, uint64_t size) {
    for (size_t i = 0; i < count; i++)
        if (!sfti_repair_of_finding(model, &findings[i].error)) return false;
    for (size_t i = 0; i < model->tensors.count; i++)
        if (sfti_repair_check(model, size, sfti_model_tensor(model, i), NULL)) return false;
    return count < SFTI_FINDINGS_MANY && (!verdict || sfti_repair_of_code(verdict->code));
}
