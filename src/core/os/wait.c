/* Who is asked whether to go on waiting. Tests: test_wait.c. */
#include "os/wait.h"

static _Thread_local const sft_wait *wait_now;

const sft_wait *sfti_wait_as(const sft_wait *wait) {
    const sft_wait *before = wait_now;
    wait_now = wait && wait->go_on ? wait : NULL;
    return before;
}

const sft_wait *sfti_wait_now(void) {
    return wait_now;
}
