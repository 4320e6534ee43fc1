/* The watch of the command. Tests: tests/cli/general/busy-commands.txt. */
#include "base/watch.h"

#include <stddef.h>

const sfti_file_watch *sfti_watching = NULL;
