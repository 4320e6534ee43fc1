/* The library without its part edit: nothing judges a journal. */
#include "file/edited.h"

sfti_journal_judge *const sfti_hook_journal = NULL;
