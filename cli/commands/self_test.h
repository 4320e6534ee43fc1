/* safetensors self-test FOLDER: what this system does with files, as a report to be sent. */
#ifndef CLI_SELF_TEST_H
#define CLI_SELF_TEST_H

#include "support/cli.h"

/* Everything happens in a new folder of this one, which is removed again. */
void cli_self_test(cli *c, const char *folder);

#endif
