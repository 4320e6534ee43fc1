/* Ranks and alphas: how often each value occurs, and reading the scalars. */
#include "label/tensors/adapters.h"

#include "base/announce.h"
#include "base/number.h"
#include "bytes/source.h"

#include <string.h>

#define ALPHA_SAMPLES 8
#define ALPHA_BLOCK 65536
#define ALPHA_GATHER 16 /* blocks: what is no longer than so many is read by them */
#define ALPHA_GAP 4096 /* bytes read for nothing, rather than read again */

/* ── Values and how often they occur ── */

void sfti_tally_put(sfti_tally *t, double value) {
    if (!t->any || value < t->min) t->min = value;
    if (!t->any || value > t->max) t->max = value;
    t->any = true;
    size_t i = 0;
    while (i < t->count && (t->rows[i].value < value || t->rows[i].value > value)) i++;
    if (i == SFTI_TALLY) return;
    if (i == t->count) {
        t->rows[t->count].value = value;
        t->rows[t->count++].times = 0;
    }
    t->rows[i].times++;
}

sfti_bounds sfti_tally_range(const sfti_tally *t) {
    sfti_bounds range = { t->any, t->min, t->max, 0 };
    uint64_t most = 0;
    for (size_t i = 0; i < t->count; i++) {
        bool better = t->rows[i].times > most
                   || (t->rows[i].times == most && t->rows[i].value < range.mode);
        if (better) range.mode = t->rows[i].value, most = t->rows[i].times;
    }
    return range;
}

/* ── Alpha ── */

/* False for what is no number, or none that an alpha is written as. */
static bool scalar_value(const sft_tensor *tensor, const unsigned char *bytes, double *out) {
    static const bool alphas[SFT_DTYPE_COUNT] = {
        [SFT_F16] = true, [SFT_BF16] = true, [SFT_F32] = true, [SFT_F64] = true,
        [SFT_I32] = true, [SFT_I64] = true,
    };
    if (!alphas[tensor->dtype]) return false;
    sfti_to_doubles(tensor->dtype, bytes, 0, 1, out);
    return *out - *out == 0;
}

/* Alphas of the file by offset, with a window of bytes read ahead. */
typedef struct alpha_reader {
    const sft_file *file;
    unsigned char *window; /* ALPHA_BLOCK bytes */
    uint64_t at;
    size_t len;
    bool failed;
} alpha_reader;

/* until: the end of what else is wanted, so that one read serves many. */
static bool alpha_read(alpha_reader *reader, const sft_tensor *tensor, uint64_t until,
                       double *value) {
    uint64_t size = tensor->end - tensor->begin;
    if (reader->failed || size == 0 || size > 8) return false;
    bool inside = tensor->offset >= reader->at && tensor->offset - reader->at <= reader->len
               && size <= reader->len - (tensor->offset - reader->at);
    if (!inside) {
        uint64_t want = until > tensor->offset + size ? until - tensor->offset : size;
        reader->at = tensor->offset;
        reader->len = want < ALPHA_BLOCK ? (size_t)want : ALPHA_BLOCK;
        reader->failed = sft_read_bytes(reader->file, reader->at, reader->window, reader->len,
                                     NULL) != SFT_OK;
        if (reader->failed) return false;
    }
    return scalar_value(tensor, reader->window + (tensor->offset - reader->at), value);
}

/* As many reads, spread over the alphas. */
static void announce_alphas(const alpha_reader *reader, const sft_tensor **alphas, size_t count,
                            size_t reads) {
    sfti_announcement all = { .count = 0 };
    for (size_t i = 0; i < reads; i++)
        sfti_announce_tensor(&all, reader->file,
                             alphas[reads > 1 ? i * (count - 1) / (reads - 1) : 0]);
    sfti_announce_end(&all);
}

/* All of them out of a map at once, where the system copies from one: then true. What it did not
 * copy is read. */
static bool gather_alphas(sft_info *info, alpha_reader *reader, const sft_tensor **alphas,
                          size_t count, sfti_tally *values) {
    const sft_tensor *first = alphas[0];
    size_t size = (size_t)(first->end - first->begin);
    double value;
    for (size_t i = 0; i < count; i++)
        if (alphas[i]->dtype != first->dtype || size == 0 || size > 8) return false;
    uint64_t *offsets = sfti_info_take(info, count * sizeof *offsets);
    unsigned char *bytes = sfti_info_take(info, count * size);
    if (!offsets || !bytes) return false;
    for (size_t i = 0; i < count; i++) offsets[i] = alphas[i]->offset;
    sft_source source = sft_file_source(reader->file);
    sfti_source_soon(&source, offsets, count, size);
    size_t got = sfti_source_gather(&source, offsets, count, size, bytes);
    for (size_t i = 0; got > 0 && i < count; i++)
        if (i < got ? scalar_value(first, bytes + i * size, &value)
                    : alpha_read(reader, alphas[i], 0, &value))
            sfti_tally_put(values, value);
    return got > 0;
}

static void read_alphas(sft_info *info, alpha_reader *reader, const sft_tensor **alphas,
                        size_t count, sfti_tally *values, bool *sampled) {
    uint64_t end = alphas[count - 1]->offset + (alphas[count - 1]->end - alphas[count - 1]->begin);
    bool all = info->options.deep || count <= ALPHA_SAMPLES
            || end - alphas[0]->offset <= ALPHA_BLOCK;
    sft_source source = sft_file_source(reader->file);
    double value;
    sfti_source_apart(&source);
    if (!all) announce_alphas(reader, alphas, count, ALPHA_SAMPLES);
    for (size_t i = 0; !all && i < ALPHA_SAMPLES; i++)
        if (alpha_read(reader, alphas[i * (count - 1) / (ALPHA_SAMPLES - 1)], 0, &value))
            sfti_tally_put(values, value);
    *sampled = !all && values->count == 1;
    if (*sampled) return;
    memset(values, 0, sizeof *values);
    if (end - alphas[0]->offset > ALPHA_GATHER * ALPHA_BLOCK
        && gather_alphas(info, reader, alphas, count, values))
        return;
    announce_alphas(reader, alphas, count, count);
    for (size_t i = 0; i < count; i++) {
        /* The last that follows closely enough for one read to serve all. */
        const uint64_t limit = alphas[i]->offset + ALPHA_BLOCK;
        size_t last = i;
        while (last + 1 < count && alphas[last + 1]->offset + 8 <= limit
               && (alphas[last + 1]->offset - alphas[last]->offset <= ALPHA_GAP
                   || alphas[count - 1]->offset + 8 <= limit))
            last++;
        end = alphas[last]->offset + (alphas[last]->end - alphas[last]->begin);
        if (alpha_read(reader, alphas[i], end, &value)) sfti_tally_put(values, value);
    }
}

void sfti_adapter_alphas(sft_info *info, uint64_t most, const sfti_tally *also) {
    sfti_tally *values = sfti_info_take_zeroed(info, sizeof *values);
    const sft_tensor **alphas = sfti_info_take(info, (size_t)most * sizeof *alphas);
    alpha_reader reader = { NULL, sfti_info_take(info, ALPHA_BLOCK), 0, 0, false };
    if (!values || !alphas || !reader.window) return;
    for (size_t i = 0; i < sft_set_shard_count(info->set) && !values->any; i++) {
        reader.file = sft_set_shard_at(info->set, i);
        size_t count = 0, tensors = reader.file ? sft_file_tensor_count(reader.file) : 0;
        for (size_t k = 0; k < tensors && count < most; k++) { /* in order of offset */
            const sft_tensor *tensor = sft_file_tensor_at(reader.file, k);
            bool scalar = tensor->rank == 0 || (tensor->rank == 1 && tensor->shape[0] == 1);
            if (scalar && sfti_ends(tensor->name, ".alpha")) alphas[count++] = tensor;
        }
        if (count > 0)
            read_alphas(info, &reader, alphas, count, values, &info->adapter.alpha_sampled);
    }
    for (size_t i = 0; values->any && i < also->count; i++)
        for (uint64_t n = 0; n < also->rows[i].times; n++)
            sfti_tally_put(values, also->rows[i].value);
    info->adapter.alpha = sfti_tally_range(values);
    if (!values->any) info->adapter.alpha_sampled = false;
}

static double scale_of(const sfti_adapter *adapter, double alpha, double rank) {
    bool root = adapter->rslora && !adapter->root_in_alpha;
    return alpha / (root ? sfti_root(rank) : rank);
}

/* But for what rounding makes of one. */
static bool same_scale(double a, double b) {
    return (a - b) * (a - b) <= 1e-12 * a * b;
}

static const char *const downs[] = { ".lora_down.weight", ".lora_A.weight", ".lora.down.weight",
                                     ".hada_w1_b", ".lokr_w2_b" };

/* Where both differ: whether each module's alpha, which the file has, goes with its own rank. */
static bool is_scale_of_all(sft_info *info, double scale) {
    alpha_reader reader = { NULL, sfti_info_take(info, ALPHA_BLOCK), 0, 0, false };
    char name[1024];
    size_t modules = 0, alphas = 0, all = 0;
    for (size_t i = 0; reader.window && i < sft_set_shard_count(info->set); i++) {
        const sft_file *file = reader.file = sft_set_shard_at(info->set, i);
        reader.at = reader.len = 0;
        for (size_t k = 0; file && k < sft_file_tensor_count(file); k++) {
            const sft_tensor *tensor = sft_file_tensor_at(file, k);
            double value = tensor->rank ? (double)tensor->shape[0] : 0;
            double rank = value;
            size_t down = 0;
            all += sfti_ends(tensor->name, ".alpha");
            while (down < SFTI_COUNT(downs) && !sfti_ends(tensor->name, downs[down])) down++;
            if (down == SFTI_COUNT(downs)) continue;
            const size_t end = tensor->name.len - strlen(downs[down]);
            if (tensor->rank < 2 || end + sizeof ".alpha" > sizeof name) return false;
            memcpy(name, tensor->name.data, end);
            memcpy(name + end, ".alpha", sizeof ".alpha");
            const sft_tensor *alpha = sft_file_find(file, sft_span_cstr(name));
            alphas += alpha != NULL;
            modules++;
            if (alpha && !alpha_read(&reader, alpha, 0, &value)) return false;
            if (!same_scale(scale, scale_of(&info->adapter, value, rank))) return false;
        }
    }
    return modules > 0 && alphas == all && all > 0;
}

/* One for all modules, or none: the least, the largest and the commonest go together. */
void sfti_adapter_scale(sft_info *info) {
    sfti_adapter *adapter = &info->adapter;
    const sfti_bounds *alpha = &adapter->alpha, *rank = &adapter->rank;
    adapter->scale = -1;
    if (!rank->known || !alpha->known || !(rank->min > 0)) return;
    double scale = scale_of(adapter, alpha->mode, rank->mode);
    if (same_scale(scale, scale_of(adapter, alpha->min, rank->min))
        && same_scale(scale, scale_of(adapter, alpha->max, rank->max))
        && (alpha->min >= alpha->max || is_scale_of_all(info, scale)))
        adapter->scale = scale;
}
