/* What configurations of strangers take of memory. */
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "quant_case.h"
#include "unit/make_file.h"
#include "unit/temp_dir.h"

/* Bytes that are held, of at most so many. */
typedef struct held_memory { size_t held, most; } held_memory;

static void *hold(void *ctx, void *ptr, size_t old_size, size_t new_size) {
    held_memory *memory = ctx;
    if (new_size > old_size && memory->held + (new_size - old_size) > memory->most) return NULL;
    memory->held += new_size - old_size;
    if (new_size > 0) return realloc(ptr, new_size);
    free(ptr);
    return NULL;
}

typedef struct repeated {
    const char *before, *each, *after; /* each: with its number for %zu */
    size_t count, most; /* bytes */
    sft_code code;
} repeated;

static void write_repeated(const repeated *one) {
    FILE *file = fopen(temp_path("config.json"), "wb");
    assert_non_null(file);
    fputs(one->before, file);
    for (size_t i = 0; i < one->count; i++) {
        if (i > 0) fputc(',', file);
        const char *number = strstr(one->each, "%zu");
        if (!number) fputs(one->each, file);
        else fprintf(file, "%.*s%zu%s", (int)(number - one->each), one->each, i, number + 3);
    }
    fputs(one->after, file);
    assert_int_equal(fclose(file), 0);
}

static void holds_little(void **unused) {
    static const repeated all[] = {
        { "{\"quantization_config\":{\"quant_method\":\"compressed-tensors\",\"config_groups\":"
          "{\"b\":{\"targets\":[\"Linear\"],\"weights\":{\"num_bits\":8}},\"a\":{\"targets\":[",
          "\"re:()()()()()()()()()a{1000}b{1000}c{1000}d{900}\"",
          "],\"weights\":{\"num_bits\":8}}}}}", 4000, (size_t)280 << 20, SFT_OK },
        { "{", "\"quantization_config\":{\"quant_method\":\"fp8\"}", "}", 20000, 16 << 20, SFT_OK },
        { "{\"text_config\":{", "\"quantization_config\":{\"quant_method\":\"fp8\"}", "}}", 20000,
          16 << 20, SFT_OK },
        { "{\"quantization_config\":{\"quant_method\":\"fp8\"},\"quantization\":{\"bits\":4,"
          "\"group_size\":64,", "\"\\u006c%zu\":{\"bits\":8}", "}}", 20000, 16 << 20,
          SFT_CAST_DTYPE },
        { "{\"quantization_config\":{\"quant_method\":\"compressed-tensors\",\"config_groups\":"
          "{\"b\":{\"targets\":[\"Linear\"],\"weights\":{\"num_bits\":8}},\"a\":{\"targets\":[",
          "\"\"", "],\"weights\":{\"num_bits\":8}}}}}", 100000, 16 << 20, SFT_OK },
    };
    case_model m = case_open("m.weight F8_E4M3 2,4 #56;m.weight_scale F32 - #2", NULL);
    const char *path = temp_path("model.safetensors");
    sft_set *set;
    FILE *file = fopen(path, "wb");
    (void)unused;
    assert_non_null(file);
    assert_int_equal(fwrite(m.file.bytes, 1, m.file.len, file), m.file.len);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(sft_set_open(path, NULL, &set, NULL), SFT_OK);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        held_memory memory = { 0, all[i].most };
        sft_allocator alloc = { hold, &memory };
        sft_convert_options options = SFT_CONVERT_OPTIONS_INIT;
        sft_error err = SFT_ERROR_INIT;
        sft_conversion *conversion = NULL;
        write_repeated(&all[i]);
        options.dequantize = true;
        options.alloc = &alloc;
        sft_code code = sft_conversion_new(set, SFT_F32, &options, &conversion, &err);
        if (code != all[i].code) print_error("%zu: %s\n", i, err.message);
        assert_int_equal(code, all[i].code);
        sft_conversion_free(conversion);
        assert_int_equal(memory.held, 0);
    }
    sft_set_close(set);
    case_close(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(holds_little, temp_dir_make, temp_dir_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
