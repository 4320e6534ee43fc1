#include "catalog/catalog.h"

sft_code catalog_write_model(catalog_run *run, const char *path, sft_error *err) {
    (void)run;
    return sfti_fail(err, SFT_BAD_ARGUMENT, SFT_NO_OFFSET, "%s: no page", path);
}
