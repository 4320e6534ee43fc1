/* The library without its part remote: no link leads out of a folder. */
#include "os/os.h"

os_link_rule *const sfti_hook_link = NULL;
