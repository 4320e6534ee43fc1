#include "formats/parts/state.h"

sft_code sfti_work_begin(sfti_import *im, sft_error *err) {
    sfti_workspace *work = &im->work;
    sfti_os_mutex_lock(&work->mutex);
    if (work->in) return SFT_OK;
    uint8_t *both = sfti_os_resize(NULL, NULL, 0, 2 * SFTI_WORK_BYTES);
    if (!both) {
        sfti_os_mutex_unlock(&work->mutex);
        return sfti_fail_memory(err, 2 * SFTI_WORK_BYTES);
    }
    work->in = both;
    work->out = both + SFTI_WORK_BYTES;
    return SFT_OK;
}

void sfti_work_end(sfti_import *im) {
    sfti_os_mutex_unlock(&im->work.mutex);
}
