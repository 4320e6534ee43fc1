#include "os/os.h"

/* Folders in which case counts exist, but are made for programs of other systems. */
bool sfti_os_folds_case(const char *folder) {
    (void)folder;
    return true;
}
