/* Dates of the Gregorian calendar as numbers of days. Tests: test_remote_sign.c. */
#include "base/calendar.h"

int64_t sfti_days_of_date(int64_t year, unsigned month, unsigned day) {
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    int64_t of_era = year - era * 400;
    int64_t of_year = (153 * (int64_t)(month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

void sfti_date_of_days(int64_t days, int64_t *year, unsigned *month, unsigned *day) {
    days += 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    int64_t of_era = days - era * 146097;
    int64_t of = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * of + of / 4 - of / 100);
    int64_t shifted = (5 * of_year + 2) / 153;
    *day = (unsigned)(of_year - (153 * shifted + 2) / 5 + 1);
    *month = (unsigned)(shifted < 10 ? shifted + 3 : shifted - 9);
    *year = of + era * 400 + (*month <= 2);
}
