/* A selection read piece by piece, in result order, with a few MiB of memory. */
#ifndef CLI_CAT_PIECES_H
#define CLI_CAT_PIECES_H

#include "support/cli.h"

/* Called with packed bytes of `elements` elements; another code than SFT_OK stops. */
typedef sft_code (*cli_piece_fn)(void *ctx, const void *bytes, size_t len, uint64_t elements,
                                 sft_error *err);
sft_code cli_read_pieces(cli *c, const sft_file *file, const sft_tensor *tensor,
                         const sft_slice *slice, cli_piece_fn piece, void *ctx,
                         sft_error *err);

#endif
