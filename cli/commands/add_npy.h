/* Files of one NumPy array (.npy), as far as a tensor can be made of them. */
#ifndef CLI_ADD_NPY_H
#define CLI_ADD_NPY_H

#include "support/cli.h"

typedef struct cli_npy {
    sft_dtype dtype;
    uint32_t rank;
    uint64_t shape[SFT_MAX_RANK];
    sft_source source; /* of the file */
    uint64_t begin;    /* of its data */
    int fd;
    uint32_t mode; /* permission bits of the file */
} cli_npy;

/* Open and check: C order (or Fortran order where that is the same), little-endian, a dtype
 * that safetensors has, as many bytes as the shape asks for. Close with cli_npy_close, also
 * after a failure. */
sft_code cli_npy_open(cli *c, const char *path, cli_npy *out, sft_error *err);
void cli_npy_close(cli_npy *npy);

#endif
