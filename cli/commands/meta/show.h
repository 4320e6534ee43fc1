/* meta list, get and header. */
#ifndef CLI_META_SHOW_H
#define CLI_META_SHOW_H

#include "support/cli.h"

void meta_list(cli *c, char **operands, size_t count);
void meta_get(cli *c, char **operands, size_t count);
void meta_header(cli *c, char **operands, size_t count);

/* SFT_NOT_FOUND, with the key that may be meant. */
void meta_no_key(const sft_file *file, sft_span key, sft_error *err);

#endif
