/* Operands that look like URLs and are none that is read: each fails when it is opened, as others
 * do that cannot be read. */
#ifndef CLI_BAD_URLS_H
#define CLI_BAD_URLS_H

#include "support/cli.h"

/* Keep what is wrong with a URL. *name is what may be shown of it, and what it is opened by.
 * *err is as it was without an error when this succeeds. */
sft_code cli_bad_url_add(cli *c, const char *url, sft_error *err, const char **name);
/* These files, and the URLs that were added. */
const sft_files *cli_bad_urls_files(cli *c, const sft_files *files);
void cli_bad_urls_free(cli *c);

#endif
