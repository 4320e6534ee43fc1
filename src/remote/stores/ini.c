/* Configuration files of the AWS command. Tests: test_remote_s3.c. */
#include "remote/stores/credentials.h"

#include "remote/http/text.h"

#include <string.h>

void sfti_ini_begin(sfti_ini *ini, sft_span text) {
    *ini = (sfti_ini){ .rest = text };
    if (text.len >= 3 && memcmp(text.data, "\xef\xbb\xbf", 3) == 0)
        ini->rest = sfti_span_from(text, 3);
}

bool sfti_ini_next(sfti_ini *ini) {
    while (ini->rest.len > 0) {
        size_t len = sfti_text_find(ini->rest, '\n'), sign = 0;
        sft_span line = { ini->rest.data, len };
        ini->rest = sfti_span_from(ini->rest, len < ini->rest.len ? len + 1 : len);
        bool indented = len > 0 && (*line.data == ' ' || *line.data == '\t');
        if (len > 0 && line.data[len - 1] == '\r') line.len--;
        line = sfti_text_trim(line);
        if (line.len == 0 || *line.data == '#' || *line.data == ';') continue;
        while (sign < line.len && line.data[sign] != '=' && line.data[sign] != ':') sign++;
        if (*line.data == '[' && !indented) {
            size_t end = sfti_text_find(line, ']');
            ini->section = sfti_text_trim((sft_span){ line.data + 1, end - 1 });
            ini->last = (sft_span){ NULL, 0 };
        } else if (sign > 0 && sign < line.len) {
            ini->key = sfti_text_trim((sft_span){ line.data, sign });
            ini->value = sfti_text_trim(sfti_span_from(line, sign + 1));
            ini->parent = indented ? ini->last : (sft_span){ NULL, 0 };
            if (!indented) ini->last = ini->value.len == 0 ? ini->key : (sft_span){ NULL, 0 };
            /* An indented line below a value continues it, and says nothing here. */
            if (!indented || ini->parent.data) return true;
        }
    }
    return false;
}
