/* Models written in other formats: NumPy's .npz, PyTorch's .pt. */
#ifndef CLI_CONVERT_EXPORT_H
#define CLI_CONVERT_EXPORT_H

#include "safetensors_import.h"
#include "support/output.h"

/* Whether -o names a file of another format, by how it ends. */
bool convert_is_export(const cli *c);
/* Write tensors there; not with --dry-run. */
sft_code convert_export(cli *c, const cli_output *out, const sft_part *parts, size_t count,
                        sft_error *err);

#endif
