/* Headers that are lists with parameters. */
#ifndef SFTI_REMOTE_ANSWER_LISTS_H
#define SFTI_REMOTE_ANSWER_LISTS_H

#include "safetensors.h"

/* Seconds after which a RateLimit header says to come back, or -1: there are requests left, or it
 * does not tell. Of `"resolvers";r=0;t=55` (t + 1) and of `limit=10, remaining=0, reset=55`. */
int64_t sfti_rate_limit_wait(sft_span value);
/* The URL of a Link header's rel="next"; data NULL: there is none. */
sft_span sfti_link_next(sft_span value);
/* The last part of the file name that a Content-Disposition tells. False: none, or one that names
 * no file. */
#define SFTI_FILE_NAME_SIZE 256
bool sfti_disposition_name(sft_span value, char out[SFTI_FILE_NAME_SIZE]);

#endif
