/* Readers that are not merged yet; each goes when its file comes. */
#include "import/import.h"

#define PENDING(name)                                                                \
    bool sfti_is_##name(sfti_import *im, const uint8_t *head, size_t len) {          \
        (void)im, (void)head, (void)len;                                             \
        return false;                                                                \
    }                                                                                \
    sft_code sfti_read_##name(sfti_import *im) {                                     \
        return sfti_fail(sfti_import_error(im), SFT_FOREIGN_KIND, 0, "not read yet"); \
    }

PENDING(torch_tar)
