/* The Gregorian calendar, without time zones or the C library's state. */
#ifndef SFTI_CALENDAR_H
#define SFTI_CALENDAR_H

#include <stdint.h>

/* Days from 1970-01-01 to a date of that calendar, also before 1970. month and day: from 1. */
int64_t sfti_days_of_date(int64_t year, unsigned month, unsigned day);
void sfti_date_of_days(int64_t days, int64_t *year, unsigned *month, unsigned *day);

#endif
