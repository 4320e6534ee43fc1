/* How many singular values are kept. Tests: test_lowrank.c. */
#include "adapter/lowrank.h"

#include "base/number.h"

#define NONE_BELOW 1e-6 /* kohya: a first singular value of at most so much counts as none */

/* Least k of which the first k values, or their squares, sum up to at least `want`; count + 1:
 * those that are known do not. */
static uint64_t reaches(const sfti_spectrum *s, bool squares, double want) {
    double sum = 0;
    for (size_t k = 0; k < s->count; k++) {
        sum += squares ? s->at[k] * s->at[k] : s->at[k];
        if (sum >= want) return k + 1;
    }
    return s->count + 1;
}

static double squares_of(const sfti_spectrum *s) {
    double sum = 0;
    for (size_t k = 0; k < s->count; k++) sum += s->at[k] * s->at[k];
    return sum;
}

/* Bounds of what the rule asks for, by what the values that are not known can be. */
static void ask(const sfti_rank_rule *rule, const sfti_spectrum *s, uint64_t *low, uint64_t *high) {
    bool whole = s->count >= s->all;
    double known = squares_of(s), all = whole ? known : s->norm * s->norm;
    double rest = all > known ? all - known : 0, last = s->count ? s->at[s->count - 1] : 0;
    double sum = 0, left = s->all - s->count > 0 ? (double)(s->all - s->count) : 0;
    uint64_t beyond = whole ? s->count : s->count + 1;
    switch (rule->by) {
    case SFTI_RANK_ALL:
        for (*low = 0; *low < s->count && s->at[*low] > 0; (*low)++) continue;
        if (*low == s->count) *low = beyond;
        *high = *low;
        break;
    case SFTI_RANK_RATIO:
        for (*low = 0; *low < s->count && s->at[*low] > s->at[0] / rule->value; (*low)++) continue;
        if (*low == s->count) *low = beyond;
        *high = *low;
        break;
    case SFTI_RANK_FRO:
        *low = *high = reaches(s, true, rule->value * rule->value * all * (1 - 1e-13));
        break;
    case SFTI_RANK_ERROR:
        *low = *high = reaches(s, true, all * (1 - rule->value * rule->value) - 1e-13 * all);
        break;
    case SFTI_RANK_CUMULATIVE:
        for (size_t k = 0; k < s->count; k++) sum += s->at[k];
        *low = reaches(s, false, rule->value * (1 - 1e-13)
                                     * (sum + (last > 0 && !whole ? rest / last : 0)));
        *high = reaches(s, false, rule->value * (1 - 1e-13)
                                      * (sum + (whole ? 0 : sfti_root(rest * left))));
        break;
    }
    if (whole && *low > s->count) *low = s->count;
    if (whole && *high > s->count) *high = s->count;
}

bool sfti_rank_choose(const sfti_rank_rule *rule, const sfti_spectrum *s, uint64_t *out) {
    uint64_t low = 0, high = 0, most = rule->most && rule->most < s->all ? rule->most : s->all;
    ask(rule, s, &low, &high);
    if (rule->kohya && rule->by != SFTI_RANK_ALL) {
        bool none = s->count == 0 || s->at[0] <= NONE_BELOW;
        uint64_t top = s->all > 1 ? s->all - 1 : 1;
        low = none ? 1 : (low < 1 ? 1 : low > top ? top : low) + 1;
        high = none ? 1 : (high < 1 ? 1 : high > top ? top : high) + 1;
    }
    if (low > most) low = most;
    if (high > most) high = most;
    if (low < 1) low = 1;
    if (high < 1) high = 1;
    *out = low;
    return low == high && (low <= s->count || low <= 1 || s->count >= s->all);
}
