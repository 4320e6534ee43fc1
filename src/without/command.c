/* The library without the command: nobody watches what is opened and published. */
#include "base/watch.h"

const sfti_file_watch *const sfti_hook_watch = NULL;
