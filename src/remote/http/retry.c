#include "remote/http/retry.h"

#include "base/error.h"
#include "os/os.h"
#include "remote/http/http.h"

#define DELAY_LOST_MS 300  /* a lost connection is often back at once */
#define DELAY_FIRST_MS 1000
#define DELAY_DOUBLINGS 3  /* 8 s at most */

bool sfti_retry_is_busy(int status) {
    return status == 408 || status == 429 || status == 500 || (status >= 502 && status <= 504);
}

/* Up to half of it more: many that were turned away together do not come back together. */
uint64_t sfti_retry_delay(unsigned tries, int64_t asked_s, bool lost) {
    uint32_t chance;
    if (asked_s >= 0) return (uint64_t)asked_s * 1000;
    if (lost && tries > 0) tries--;
    uint64_t wait = DELAY_LOST_MS;
    if (tries > 0)
        wait = (uint64_t)DELAY_FIRST_MS << (tries <= DELAY_DOUBLINGS ? tries - 1 : DELAY_DOUBLINGS);
    if (sfti_os_random(&chance, sizeof chance)) chance = 0;
    return wait + wait / 2 * (chance & 0xffff) / 0xffff;
}

sft_code sfti_http_wait(uint64_t ms, sft_error *err) {
    const uint64_t until = sfti_os_now_ns() + ms * 1000000;
    uint32_t step = 0;
    if (sfti_os_wait_over()) return sfti_fail_cancelled(err);
    while (sfti_os_now_ns() < until)
        if (!sfti_os_wait_more(&step)) return sfti_fail_cancelled(err);
    return SFT_OK;
}
