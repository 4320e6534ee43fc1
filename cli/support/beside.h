/* config.json and the like, which declare quantised layers of the models beside them. */
#ifndef CLI_BESIDE_H
#define CLI_BESIDE_H

#include "safetensors_edit.h"
#include "support/parts.h"

/* Before tensors of models go to the file `to` (NULL: to a new folder): refuses to put what may be
 * codes of quantised layers beside a declaration that is not that beside the models, unless --force
 * is given; that one is lost is told with the result (cli_say_beside). */
sft_code cli_check_quantiser(cli *c, const cli_parts *parts, const char *to, sft_error *err);
/* The same for all tensors of a file at that path. */
sft_code cli_check_file_quantiser(cli *c, const sft_file *file, const char *path, const char *to,
                                  sft_error *err);
/* The same for what is written of a file that is repaired. */
sft_code cli_check_repaired_quantiser(cli *c, const sft_repair *repair, const char *path,
                                      const char *to, sft_error *err);
/* The same before the model itself moves, if it can be opened. */
sft_code cli_check_moved_quantiser(cli *c, const char *path, const char *to, sft_error *err);

#endif
