/* Any metadata, and any tensors' names and shapes, to a label. The input is pairs, a zero
 * byte after each key and each value; a key that begins with byte 1 is a tensor's name, its
 * value a dtype and the dimensions, a byte each. The data are zeros that nobody holds. */
#include "planned.h"

#define MOST 96

typedef struct model {
    sft_pair pairs[MOST];
    sft_spec specs[MOST];
    uint64_t dims[MOST][4];
    size_t pair_count, spec_count;
} model;

static const uint16_t sizes[] = { 0, 1, 2, 3, 4, 8, 9, 16, 32, 64, 128, 256, 320, 512, 640, 768,
                                  896, 1024, 1152, 1280, 1536, 2048, 2304, 2560, 3072, 3840, 4096,
                                  5120, 10240, 12288, 30522, 49408 };

static void take_tensor(model *m, sft_span name, sft_span value) {
    if (m->spec_count == MOST) return;
    uint64_t *dims = m->dims[m->spec_count];
    size_t rank = value.len < 2 ? 0 : value.len > 5 ? 4 : value.len - 1;
    for (size_t i = 0; i < rank; i++) dims[i] = sizes[(uint8_t)value.data[i + 1] % 32];
    unsigned dtype = value.len ? (uint8_t)value.data[0] % SFT_DTYPE_COUNT : SFT_F16;
    m->specs[m->spec_count++] = (sft_spec){ name, (sft_dtype)dtype, (uint32_t)rank, dims };
}

static sft_span next_text(const char **at, const char *end) {
    const char *begin = *at, *stop = memchr(begin, 0, (size_t)(end - begin));
    size_t len = (size_t)((stop ? stop : end) - begin);
    *at = stop ? stop + 1 : end;
    return (sft_span){ begin, len };
}

static void take_input(model *m, const char *at, const char *end) {
    while (at < end) {
        sft_span key = next_text(&at, end), value = next_text(&at, end);
        if (key.len && key.data[0] == 1)
            take_tensor(m, (sft_span){ key.data + 1, key.len - 1 }, value);
        else if (m->pair_count < MOST)
            m->pairs[m->pair_count++] = (sft_pair){ key, value };
    }
}

static void tell(const sft_set *set, bool deep) {
    sft_info_options options = SFT_INFO_OPTIONS_INIT;
    sft_info *info;
    options.deep = deep;
    FUZZ_CHECK(!sft_info_open(set, NULL, NULL, &options, &info, NULL));
    check_label(info, deep);
    sft_info_close(info);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static model m;
    sft_plan *plan;
    m.pair_count = m.spec_count = 0;
    take_input(&m, (const char *)data, (const char *)data + size);
    if (sft_plan_new(m.specs, m.spec_count, m.pairs, m.pair_count, NULL, &plan, NULL)) return 0;
    sft_set *set = open_planned(plan);
    for (int deep = 0; deep < 2; deep++) tell(set, deep);
    sft_set_close(set);
    sft_plan_free(plan);
    return 0;
}
