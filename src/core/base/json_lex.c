/* The powers of ten that numbers are scaled by. Tests: test_json.c. */
#include "base/json_lex.h"

#define LEX_TENS(n) 1e##n##0, 1e##n##1, 1e##n##2, 1e##n##3, 1e##n##4, \
                    1e##n##5, 1e##n##6, 1e##n##7, 1e##n##8, 1e##n##9

double sfti_lex_power10(int64_t exponent) {
    static const double powers[] = {
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9,
        LEX_TENS(1), LEX_TENS(2), LEX_TENS(3), LEX_TENS(4),
        LEX_TENS(5), LEX_TENS(6), LEX_TENS(7), LEX_TENS(8),
        LEX_TENS(9), LEX_TENS(10), LEX_TENS(11), LEX_TENS(12),
        LEX_TENS(13), LEX_TENS(14), LEX_TENS(15), LEX_TENS(16),
        LEX_TENS(17), LEX_TENS(18), LEX_TENS(19), LEX_TENS(20),
        LEX_TENS(21), LEX_TENS(22), LEX_TENS(23), LEX_TENS(24),
        LEX_TENS(25), LEX_TENS(26), LEX_TENS(27), LEX_TENS(28),
        LEX_TENS(29), 1e300, 1e301, 1e302, 1e303, 1e304, 1e305, 1e306, 1e307, 1e308,
    };
    return powers[exponent];
}
