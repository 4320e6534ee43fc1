/* When a request is sent again. */
#ifndef SFTI_REMOTE_RETRY_H
#define SFTI_REMOTE_RETRY_H

#include "safetensors.h"

#define SFTI_WAIT_MOST_S 60 /* a server that asks for more is a failure */

/* Whether the same request may succeed a little later. */
bool sfti_retry_is_busy(int status);
/* Milliseconds before the try after `tries` failed ones (from 1): what the server asked for
 * (asked_s, or -1), else longer each time, and some more by chance. */
uint64_t sfti_retry_delay(unsigned tries, int64_t asked_s, bool lost);

#endif
