/* The commands, in the order of the help: NAME is cmd_NAME.c, which defines cli_NAME_command. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "support/options.h"

#define CLI_COMMANDS(X)                                                                           \
    X(info) X(ls) X(find) X(check) X(cat) X(hash) X(dup) X(diff)                                  \
    X(convert) X(split) X(merge) X(select)                                                        \
    X(meta) X(rename) X(add) X(put) X(rm_tensor) X(repair)                                        \
    X(dataset) X(help)

#define CLI_DECLARE(name) extern const cli_command cli_##name##_command;
CLI_COMMANDS(CLI_DECLARE)

#endif
