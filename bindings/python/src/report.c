/* Texts that the library renders, as str. */
#include "core.h"

#include <string.h>

PyObject *pysft_text_take(sft_buffer *buffer) {
    PyObject *text = pysft_text((sft_span){ buffer->data, buffer->len });
    sft_buffer_free(buffer);
    return text;
}

PyObject *pysft_text_end(pysft_state *state, sft_buffer *text, sft_code code,
                         const sft_error *err, const char *path) {
    if (!code && !PyErr_Occurred()) return pysft_text_take(text);
    sft_buffer_free(text);
    return pysft_raise(state, err, path);
}

sft_sink pysft_text_sink(sft_buffer *text) {
    memset(text, 0, sizeof *text);
    return sft_sink_memory(text);
}

sft_code pysft_sink_end(sft_sink *sink, sft_code code, sft_error *err) {
    if (!code) return sft_sink_finish(sink, err);
    sft_sink_abandon(sink);
    return code;
}
