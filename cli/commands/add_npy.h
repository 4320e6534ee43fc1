/* Files of one NumPy array (.npy), as tensors. */
#ifndef CLI_ADD_NPY_H
#define CLI_ADD_NPY_H

#include "safetensors_import.h"
#include "support/cli.h"

typedef struct cli_npy {
    sft_import *import;
    sft_part part;
    uint32_t mode; /* permission bits of the file */
} cli_npy;

/* Open and check. Close with cli_npy_close, also after a failure. */
sft_code cli_npy_open(cli *c, const char *path, cli_npy *out, sft_error *err);
void cli_npy_close(cli_npy *npy);

#endif
