/* A command without a process: what it prints is kept, results are made of JSON in which ' stands
 * for ". */
#ifndef COMMAND_CASE_H
#define COMMAND_CASE_H

#include "base/tree.h"
#include "support/cli.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static cli command;
static sft_buffer printed, told;
static char json_text[1 << 16];

static inline void begin_command(void) {
    memset(&command, 0, sizeof command);
    command.alloc = sfti_allocator(NULL);
    printed = told = (sft_buffer){ .alloc = command.alloc };
    cli_out_begin(&command.out, 1);
    cli_out_begin(&command.err, 2);
    cli_capture(&command.out, &printed);
    cli_capture(&command.err, &told);
}

/* What it has printed since. */
static inline const char *text_of(cli_out *out) {
    sft_buffer *buffer = out->capture;
    cli_flush(out);
    assert_true(sfti_buffer_put(buffer, "", 1));
    buffer->len = 0;
    return buffer->data;
}

static inline void end_command(void) {
    sft_buffer_free(&printed);
    sft_buffer_free(&told);
}

static inline sft_span json_of(const char *text) {
    size_t len = strlen(text);
    assert_true(len < sizeof json_text);
    for (size_t i = 0; i <= len; i++) json_text[i] = text[i] == '\'' ? '"' : text[i];
    return (sft_span){ json_text, len };
}

static inline sft_tree *tree_of(const char *text) {
    sft_tree *tree;
    sfti_json_writer w;
    assert_int_equal(sft_tree_new(NULL, &tree, NULL), SFT_OK);
    sfti_json_write_tree(&w, tree, NULL);
    sfti_json_raw(&w, json_of(text));
    assert_int_equal(sfti_json_done(&w), SFT_OK);
    return tree;
}

#endif
