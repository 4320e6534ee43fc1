/* Which stale digests (keys/digest_keys.h) an edit or a repair leaves out, for those who tell. */
#ifndef SFTI_EDIT_DROPPED_H
#define SFTI_EDIT_DROPPED_H

#include "safetensors.h"
#include "safetensors_edit.h"

/* By the last sft_edit_plan, _apply or _save. */
unsigned sfti_edit_dropped(const sft_edit *edit);
unsigned sfti_repair_dropped(const sft_repair *repair);

#endif
