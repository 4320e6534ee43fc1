/* A source that fails with a code alone, without a word in the caller's error, fails every call
 * that reads by threads; and one that leaves a word but succeeds fails none. */
#include "safetensors_read.h"
#include "safetensors_stats.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#define TENSORS 6
#define VALUES 512
#define HEADER 1024
#define BYTES (8 + HEADER + TENSORS * VALUES * 4)

static unsigned char file_bytes[BYTES];

typedef struct silent {
    bool fails; /* beyond the header */
} silent;

static sft_code silent_read(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                            sft_error *err) {
    silent *s = ctx;
    *got = 0;
    if (offset + len > 8 + HEADER) {
        if (s->fails) return SFT_IO_READ;
        if (err) err->code = SFT_IO_READ;
    }
    memcpy(into, file_bytes + offset, len);
    *got = len;
    return SFT_OK;
}

static const sft_source_vtable silent_vtable = { .size = sizeof silent_vtable,
                                                 .read = silent_read };

static int make_file(void **state) {
    char *at = (char *)file_bytes + 8;
    (void)state;
    file_bytes[0] = HEADER & 0xff;
    file_bytes[1] = HEADER >> 8;
    memset(at, ' ', HEADER);
    *at++ = '{';
    for (int i = 0; i < TENSORS; i++)
        at += snprintf(at, 128,
                       "%s\"%c\":{\"dtype\":\"F32\",\"shape\":[%d],\"data_offsets\":[%d,%d]}",
                       i ? "," : "", 'a' + i, VALUES, i * VALUES * 4, (i + 1) * VALUES * 4);
    *at++ = '}';
    *at = ' ';
    return 0;
}

static sft_file *open_silent(silent *s) {
    sft_file *file;
    sft_source source = { s, &silent_vtable, BYTES, NULL, false };
    assert_int_equal(sft_open_source(source, NULL, &file, NULL), SFT_OK);
    return file;
}

static void expect(sft_code code, const sft_error *err, bool fails) {
    assert_int_equal(code, fails ? SFT_IO_READ : SFT_OK);
    if (!fails) return;
    assert_int_equal(err->code, SFT_IO_READ);
    assert_true(err->message[0]);
}

static void try_all(bool fails, uint32_t threads) {
    static char into[TENSORS][VALUES * 4];
    silent s = { fails };
    sft_job job = SFT_JOB_INIT;
    sft_error err = SFT_ERROR_INIT;
    sft_file *file = open_silent(&s);
    sft_read reads[TENSORS];
    sft_read_part wanted[TENSORS];
    sft_part parts[TENSORS];
    sft_source source = sft_file_source(file);
    job.threads = threads;
    for (size_t i = 0; i < TENSORS; i++) {
        const sft_tensor *t = sft_file_tensor_at(file, i);
        reads[i] = (sft_read){ t, into[i], sizeof into[i] };
        wanted[i] = (sft_read_part){ file, t, NULL, 0, i * sizeof into[i] };
        parts[i] = sft_part_of(t, &source);
    }
    expect(sft_read_many(file, reads, TENSORS, &job, &err), &err, fails);

    sft_read_block block = { into, sizeof into };
    sft_read_plan *plan;
    assert_int_equal(sft_read_plan_new(wanted, TENSORS, &block, 1, NULL, &plan, NULL), SFT_OK);
    err = (sft_error)SFT_ERROR_INIT;
    expect(sft_read_plan_run(plan, &job, &err), &err, fails);
    sft_read_plan_free(plan);

    sft_statistics *statistics;
    err = (sft_error)SFT_ERROR_INIT;
    expect(sft_statistics_new(parts, TENSORS, NULL, &job, &statistics, &err), &err, fails);
    sft_statistics_free(statistics);
    sft_close(file);
}

static void silent_failures_are_failures(void **state) {
    (void)state;
    for (uint32_t threads = 1; threads <= 3; threads++) try_all(true, threads);
}

static void words_without_a_failure_are_none(void **state) {
    (void)state;
    for (uint32_t threads = 1; threads <= 3; threads++) try_all(false, threads);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(silent_failures_are_failures),
        cmocka_unit_test(words_without_a_failure_are_none),
    };
    return cmocka_run_group_tests(tests, make_file, NULL);
}
