/* Who is asked whether to go on waiting: of the options of what waits, else of the process. */
#ifndef SFTI_WAIT_H
#define SFTI_WAIT_H

#include "safetensors.h"

/* Have sfti_os_wait_over ask `wait` on this thread; NULL: whom sfti_os_on_wait was given. Returns
 * who was asked before, to be put back before the caller returns. */
const sft_wait *sfti_wait_as(const sft_wait *wait);
/* NULL: none but the process's. */
const sft_wait *sfti_wait_now(void);

#endif
