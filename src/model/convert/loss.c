/* Counting what a cast loses. Tests: test_convert.c. */
#include "base/endian.h"
#include "convert/convert.h"

/* What a cast loses is told by the magnitudes that go into the stage that narrows: up to `tiny`
 * they become zero, from `over` on they are too large. Bits of a magnitude order as it does. */

#define LOSS_F32_INF UINT32_C(0x7f800000)
#define LOSS_F64_INF (UINT64_C(0x7ff) << 52)
#define LOSS_F64_POWER(n) ((UINT64_C(1023) + (uint64_t)(n)) << 52)

typedef enum loss_kind {
    LOSS_NONE,
    LOSS_F32,   /* F32 to a float of at most 16 bits */
    LOSS_E8M0,  /* the same, without zero and sign */
    LOSS_CODES, /* codes of at most 8 bits, looked up: losses.of tells */
    LOSS_F64,   /* F64 to F32 */
    LOSS_WHOLE, /* F64 to an integer */
    LOSS_INT,   /* I64 to one that clamps */
    LOSS_UINT
} loss_kind;

enum { CODE_OTHER, CODE_KEPT, CODE_ZERO, CODE_INFINITE, CODE_SATURATED };

/* ── Where values are lost ── */

/* The least finite magnitude with a code above `code`, or that of an infinity. */
static uint32_t first_above(const sfti_cast *plain, uint32_t code) {
    uint32_t low = 1, high = LOSS_F32_INF;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (sfti_cast_code(plain, middle) > code) high = middle;
        else low = middle + 1;
    }
    return low;
}

/* Whether numbers of the source are beyond the bounds. */
static bool may_lose(const sfti_cast *cast) {
    const sfti_float *from = sfti_float_of(cast->from);
    if (!from || cast->from == SFT_BF16 || cast->to == SFT_F8_E8M0) return true;
    uint32_t least = (128 - from->bias - from->mantissa) << 23; /* of F16: 2^-24 */
    uint32_t most = (from->greatest >> from->mantissa) + 127 - from->bias; /* its exponent */
    return least <= cast->losses.tiny || (most + 1) << 23 > cast->losses.over;
}

static uint8_t class_of(const sfti_cast *cast, uint32_t bits) {
    uint32_t magnitude = bits & ~(UINT32_C(1) << 31);
    const sfti_float *to = sfti_float_of(cast->to);
    bool e8m0 = cast->to == SFT_F8_E8M0, clamps = cast->losses.clamps;
    if (magnitude > LOSS_F32_INF) return CODE_OTHER;
    if (e8m0 && (bits == 0 || bits != magnitude)) return CODE_INFINITE;
    if (magnitude == 0) return CODE_OTHER;
    if (magnitude == LOSS_F32_INF) {
        bool kept = !clamps || (to && to->infinity > to->greatest && to->infinity != to->nan);
        return kept ? CODE_OTHER : CODE_SATURATED;
    }
    if (magnitude >= cast->losses.over) return clamps ? CODE_SATURATED : CODE_INFINITE;
    return magnitude <= cast->losses.tiny ? CODE_ZERO : CODE_KEPT;
}

void sfti_losses_begin(sfti_cast *cast, const sfti_cast_kernels *kernels) {
    const sft_dtype_info *to = sft_dtype_describe(cast->to);
    sfti_losses_plan *plan = &cast->losses;
    bool is_int = to->kind == SFT_KIND_INT || to->kind == SFT_KIND_UINT;
    plan->kind = LOSS_NONE;
    plan->bounds = kernels->f32_bounds;
    plan->clamps = cast->saturate || (sfti_float_of(cast->to) && sfti_float_of(cast->to)->nan == 0);
    for (size_t s = 0; s < cast->count && plan->kind == LOSS_NONE; s++) {
        sfti_cast_fn stage = cast->stages[s];
        plan->stage = s;
        if (stage == kernels->look_8 || stage == kernels->look_16) plan->kind = LOSS_CODES;
        else if (stage == sfti_f64_to_f32) plan->kind = LOSS_F64;
        else if (is_int && stage == sfti_f64_to_int) plan->kind = LOSS_WHOLE;
        else if (is_int && stage == sfti_i64_to_int && cast->saturate) plan->kind = LOSS_INT;
        else if (is_int && stage == sfti_u64_to_int && cast->saturate) plan->kind = LOSS_UINT;
        else if (stage == sfti_f32_to_e8m0) plan->kind = LOSS_E8M0;
        else if (stage == kernels->f32_to_f16 || stage == kernels->f32_to_bf16
                 || stage == kernels->f32_to_small)
            plan->kind = LOSS_F32;
    }
    if (plan->kind == LOSS_F32 || plan->kind == LOSS_E8M0 || plan->kind == LOSS_CODES) {
        /* Values that are too large get the code above the greatest. */
        sfti_cast plain = *cast;
        plain.saturate = false;
        if (cast->to == SFT_F8_E8M0) plain.small.greatest = 0xfe;
        plain.small.over = plain.small.greatest + 1;
        plan->tiny = cast->to == SFT_F8_E8M0 ? 0 : first_above(&plain, 0) - 1;
        plan->over = first_above(&plain, plain.small.greatest);
    }
    if (plan->kind == LOSS_F32 && !may_lose(cast)) plan->kind = LOSS_NONE;
    if (plan->kind != LOSS_CODES) return;
    bool any = false;
    for (unsigned code = 0; code < 256; code++) {
        uint32_t value = (uint32_t)sfti_code_to_bf16(cast->from, (uint8_t)code) << 16;
        plan->of[code] = class_of(cast, value);
        any = any || plan->of[code] > CODE_KEPT;
    }
    if (!any) plan->kind = LOSS_NONE;
}

/* ── Counting ── */

void sfti_f32_bounds(const uint8_t *in, size_t n, uint32_t tiny, uint32_t over,
                     uint32_t counts[3]) {
    uint32_t zeros = 0, low = 0, high = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t magnitude = sfti_get_u32(in + 4 * i) & ~(UINT32_C(1) << 31);
        zeros += magnitude == 0;
        low += magnitude <= tiny;
        high += magnitude >= over;
    }
    counts[0] = zeros;
    counts[1] = low;
    counts[2] = high;
}

static void put_class(sfti_losses *losses, uint8_t class) {
    losses->nonzero += class != CODE_OTHER;
    losses->zeros += class == CODE_ZERO;
    losses->infinite += class == CODE_INFINITE;
    losses->saturated += class == CODE_SATURATED;
}

static uint8_t class_f64(const sfti_cast *cast, uint64_t bits) {
    uint64_t magnitude = bits & ~(UINT64_C(1) << 63);
    if (magnitude == 0 || magnitude >= LOSS_F64_INF) return CODE_OTHER;
    if (magnitude >= UINT64_C(0x47effffff0000000))
        return cast->saturate ? CODE_SATURATED : CODE_INFINITE;
    return magnitude <= LOSS_F64_POWER(-150) ? CODE_ZERO : CODE_KEPT;
}

/* The first whole magnitudes of an integer dtype that it lacks, as F64. */
static uint8_t class_whole(const sfti_cast *cast, uint64_t bits) {
    const sft_dtype_info *to = sft_dtype_describe(cast->to);
    uint64_t magnitude = bits & ~(UINT64_C(1) << 63), over;
    bool negative = bits >> 63;
    if (magnitude == 0 || magnitude > LOSS_F64_INF) return CODE_OTHER;
    if (magnitude < LOSS_F64_POWER(0)) return CODE_ZERO;
    if (to->kind == SFT_KIND_UINT) {
        over = negative ? LOSS_F64_POWER(0) : LOSS_F64_POWER(to->bits);
    } else {
        over = LOSS_F64_POWER(to->bits - 1);
        if (negative) over += to->bits > 53 ? 1 : UINT64_C(1) << (53 - to->bits);
    }
    return magnitude >= over ? CODE_SATURATED : CODE_KEPT;
}

static uint8_t class_integer(const sfti_cast *cast, uint64_t bits) {
    const sft_dtype_info *to = sft_dtype_describe(cast->to);
    bool negative = cast->losses.kind == LOSS_INT && bits >> 63;
    uint64_t magnitude = negative ? 0 - bits : bits, all = UINT64_MAX >> (64 - to->bits);
    uint64_t most = to->kind == SFT_KIND_UINT ? (negative ? 0 : all) : (all >> 1) + negative;
    if (bits == 0) return CODE_OTHER;
    return magnitude > most ? CODE_SATURATED : CODE_KEPT;
}

void sfti_losses_count(const sfti_cast *cast, const uint8_t *in, size_t n, sfti_losses *losses) {
    loss_kind kind = (loss_kind)cast->losses.kind;
    if (kind == LOSS_NONE) return;
    if (kind == LOSS_F32) {
        uint32_t counts[3];
        cast->losses.bounds(in, n, cast->losses.tiny, cast->losses.over, counts);
        if (counts[2] == 0) {
            losses->nonzero += n - counts[0];
            losses->zeros += counts[1] - counts[0];
            return;
        }
    }
    for (size_t i = 0; i < n; i++) {
        uint8_t class;
        if (kind == LOSS_CODES) class = cast->losses.of[in[i]];
        else if (kind == LOSS_F32 || kind == LOSS_E8M0)
            class = class_of(cast, sfti_get_u32(in + 4 * i));
        else if (kind == LOSS_F64) class = class_f64(cast, sfti_get_u64(in + 8 * i));
        else if (kind == LOSS_WHOLE) class = class_whole(cast, sfti_get_u64(in + 8 * i));
        else class = class_integer(cast, sfti_get_u64(in + 8 * i));
        put_class(losses, class);
    }
}

void sfti_losses_add(sfti_losses *sum, const sfti_losses *more) {
    sum->nonzero += more->nonzero;
    sum->zeros += more->zeros;
    sum->infinite += more->infinite;
    sum->saturated += more->saturated;
}
