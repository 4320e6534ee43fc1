/* Opening a file: frame, header, model, map; and what an open file tells. Tests: test_reader.c. */
#include "base/files.h"
#include "base/options.h"
#include "base/order.h"
#include "file/edited.h"
#include "file/file.h"
#include "safetensors_codes.h"

#include <string.h>

/* ── Options ─────────────────────────────────────────────────────────────── */

sft_code sfti_open_settle(const char *path, const sft_open_options *options, sfti_open *out,
                          sft_error *err) {
    sft_open_options *o = &out->options;
    memset(out, 0, sizeof *out);
    sft_code code = sfti_take_open(options, o, err);
    if (code) return code;
    if ((unsigned)o->level > SFT_LEVEL_STRICT)
        return sfti_misuse(err, "expected a level from 0 to 2 in the open options, found %u",
                           (unsigned)o->level);
    if ((unsigned)o->mode > SFT_AUTO)
        return sfti_misuse(err, "expected a mode from 0 to 3 in the open options, found %u",
                           (unsigned)o->mode);
    if (path && o->mode != SFT_READ && o->mode != SFT_AUTO
        && sfti_files_claim(o->files, path, o->beneath))
        return sfti_fail(err, SFT_IO_MAP, "expected mode SFT_READ or SFT_AUTO for a path that is "
                         "not the system's, found %u", (unsigned)o->mode);
    out->alloc = o->alloc && o->alloc->resize ? *o->alloc : (sft_allocator){ sfti_os_resize, NULL };
    o->alloc = &out->alloc;
    out->limits.level = o->level;
    out->limits.legacy = o->legacy;
    out->limits.max_header_bytes =
        o->max_header_bytes ? o->max_header_bytes : SFT_MAX_HEADER_BYTES;
    out->limits.max_tensors = o->max_tensors;
    out->limits.max_name_bytes = o->max_name_bytes;
    out->limits.max_metadata = o->max_metadata;
    return SFT_OK;
}

/* ── Header ──────────────────────────────────────────────────────────────── */

#define HEADER_FIRST ((size_t)64 << 10) /* of a header whose end is not known to be there */

sft_code sfti_header_load(const sft_source *source, const sfti_open *how, bool in_place,
                          sfti_header *out, sft_error *err) {
    const sft_allocator *alloc = &how->alloc;
    bool known = source->size != SFT_SIZE_UNKNOWN;
    uint8_t prefix[SFTI_PREFIX] = { 0 };
    size_t least = source->size < SFTI_PREFIX ? (size_t)source->size : SFTI_PREFIX, found;
    uint64_t header_bytes;
    memset(out, 0, sizeof *out);
    sft_code code = sft_source_read(source, 0, prefix, least, &found, err);
    if (code) return code;
    code = sfti_frame(prefix, found < SFTI_PREFIX ? found : source->size, &how->limits,
                      &header_bytes, err);
    if (code) return code;
    size_t n = (size_t)header_bytes;
    if (in_place) out->len = n;
    while (out->len < n) {
        if (out->len == out->cap) {
            /* For all n bytes if they are known to be there; else half as much again as has
             * arrived. */
            size_t more = out->cap / 2 > HEADER_FIRST ? out->cap / 2 : HEADER_FIRST;
            size_t cap = known || n - out->cap < more ? n : out->cap + more;
            char *data = alloc->resize(alloc->ctx, out->data, out->cap, cap);
            if (!data) {
                code = sfti_fail_memory(err, n);
                break;
            }
            out->data = data;
            out->cap = cap;
        }
        uint64_t at = SFTI_PREFIX + out->len;
        size_t want = out->cap - out->len, got = want;
        char *into = out->data + out->len;
        code = known ? sfti_source_all(source, at, into, want, err)
                     : sft_source_read(source, at, into, want, &got, err);
        if (code) break;
        out->len += got; /* not before: a scan's source answers from here */
        if (got < want)
            return sfti_fail_byte(err, SFT_HEADER_TRUNCATED, at + got,
                                  "expected a header of %zu bytes, found %zu before the end", n,
                                  out->len);
    }
    if (!code) return SFT_OK;
    sfti_release(alloc, out->data, out->cap);
    memset(out, 0, sizeof *out);
    return code;
}

/* ── Opening ─────────────────────────────────────────────────────────────── */

/* Bytes come from the map from here on; the source of the descriptor is closed. SFT_AUTO goes on
 * without a map. A file cut short since it was measured is no longer what was validated. */
static sft_code file_map(sft_file *file, int fd, sft_mode mode, sft_error *err) {
    uint64_t size = file->source.size;
    bool cow = mode == SFT_MAP_COW;
    sft_source map;
    os_info now;
    if (mode == SFT_AUTO) err = NULL;
    (void)sfti_source_streamed(&file->source);
    sft_code code;
    if (size == SFT_SIZE_UNKNOWN) {
        code = sfti_fail(err, SFT_IO_MAP, "expected a regular file to map, found a pipe or device");
    } else {
        code = sfti_source_map(fd, size, cow, sft_source_mode(&file->source), &file->alloc, &map,
                               err);
    }
    if (code) return mode == SFT_AUTO ? SFT_OK : code;
    int error = sfti_os_info_fd(fd, &now);
    if (error)
        code = sfti_io_fail(err, SFT_IO_MAP, error, "look at the mapped file");
    else if (now.size < size)
        code = sfti_fail_byte(err, SFT_IO_SHRUNK, now.size, "expected %llu bytes, found %llu",
                              (unsigned long long)size, (unsigned long long)now.size);
    if (code) {
        sft_source_close(&map);
        return mode == SFT_AUTO ? SFT_OK : code;
    }
    sft_source_close(&file->source);
    file->source = map;
    file->writable = cow;
    return SFT_OK;
}

/* Takes the source, whatever comes of it. fd: to map, or -1. in_place: the header is validated and
 * kept where base has it, for memory which the caller promised not to change; a map can change
 * under our eyes, so it is copied. info, if given, becomes that of after the header was read, if
 * the file is younger then. */
static sft_code file_open(sft_source source, int fd, bool in_place, const sfti_open *how,
                          os_info *info, sft_file **out, sft_error *err) {
    sft_file *file = sfti_take(&how->alloc, sizeof *file);
    if (!file) {
        sft_source_close(&source);
        return sfti_fail_memory(err, sizeof *file);
    }
    sft_error own = SFT_ERROR_INIT;
    if (!err) err = &own; /* the code, too, is what a diagnosis makes of it */
    memset(file, 0, sizeof *file);
    file->alloc = how->alloc;
    file->arena.alloc = how->alloc;
    file->source = source;
    file->level = how->limits.level;

    sfti_header header;
    uint64_t seed[2];
    sft_code code = sfti_header_load(&file->source, how, in_place, &header, err);
    file->header = header.data;
    file->header_cap = header.cap;
    sft_span text = { header.data ? header.data : "", header.len };
    if (!code && in_place) text.data = (const char *)source.base + SFTI_PREFIX;
    if (!code) {
        bool covered = source.size != SFT_SIZE_UNKNOWN && !how->options.header_only;
        sfti_seed_draw(file, seed);
        code = sfti_model_read(text, covered ? source.size : SFT_SIZE_UNKNOWN, &how->limits, seed,
                               NULL, &file->arena, &file->model, err);
        file->complete = !code && covered;
    }
    os_info now;
    if (!code && info && fd >= 0) {
        if (sfti_os_info_fd(fd, &now)) info->mtime_ns = INT64_MAX;
        else if (now.mtime_ns > info->mtime_ns) *info = now;
    }
    if (!code && fd >= 0 && how->options.mode != SFT_READ)
        code = file_map(file, fd, how->options.mode, err);
    if (!code) {
        *out = file;
        return SFT_OK;
    }
    /* A pipe cannot be read again; a source of others' may fail without a word in err. */
    if (file->source.size != SFT_SIZE_UNKNOWN && err->code == code) {
        sft_diagnose(&file->source, err);
        code = err->code;
    }
    sft_close(file);
    return code;
}

static sft_code no_file_place(sft_error *err) {
    return sfti_misuse(err, "expected a place for the file, found NULL");
}

#define A_DAY 86400 /* in seconds, for clocks that do not agree */

sft_code sft_open(const char *path, const sft_open_options *options, sft_file **out,
                  sft_error *err) {
    sfti_open how;
    if (!out) return no_file_place(err);
    *out = NULL;
    sft_code code = sfti_open_settle(path, options, &how, err);
    if (code) return code;
    if (!path) return sfti_misuse(err, "expected a path, found NULL");
    const uint64_t listed_s = how.options.reserved; /* SFT_OPEN_LISTED */
    os_info info;
    bool quiet = false;
    int64_t seen_ns = 0;
    for (int tries = 0; tries < 2; tries++) {
        sft_source source;
        int fd = -1;
        code = sfti_source_open(path, &how.options, &source, &fd, &info, err);
        if (code == SFT_REMOTE_CHANGED) continue;
        if (code) return code;
        /* No edit has written to the file since the folder was listed without its journal: whoever
         * writes makes it younger, and makes it old again only when all is written. */
        seen_ns = info.mtime_ns;
        quiet = listed_s > A_DAY && seen_ns >= 0
                && (uint64_t)seen_ns / 1000000000 < listed_s - A_DAY;
        code = file_open(source, fd, false, &how, quiet ? &info : NULL, out, err);
        /* The header came in two answers, the second of another file: nothing was given out yet. */
        if (code != SFT_REMOTE_CHANGED) break;
    }

    /* Is what was opened, or failed to, in the middle of an edit? */
    if ((code && (code < 100 || code >= 300)) || info.kind != OS_FILE) return code;
    if (!code && quiet && info.mtime_ns == seen_ns) return SFT_OK;
    sft_span text = code ? (sft_span){ NULL, 0 } : (*out)->model.text;
    sft_error own = SFT_ERROR_INIT;
    sft_code edited = sfti_file_edited(path, &info, text, code != SFT_OK, &how.alloc, NULL, &own);
    if (!edited) return code;
    if (err) *err = own;
    sft_close(*out);
    *out = NULL;
    return edited;
}

sft_code sft_open_fd(int fd, const sft_open_options *options, sft_file **out, sft_error *err) {
    sfti_open how;
    sft_source source;
    if (!out) return no_file_place(err);
    *out = NULL;
    sft_code code = sfti_open_settle(NULL, options, &how, err);
    if (!code) code = sfti_source_fd(fd, &how.alloc, how.options.wait, &source, err);
    return code ? code : file_open(source, fd, false, &how, NULL, out, err);
}

sft_code sft_open_memory(const void *bytes, size_t len, const sft_open_options *options,
                         sft_file **out, sft_error *err) {
    sfti_open how;
    if (!out) return no_file_place(err);
    *out = NULL;
    sft_code code = sfti_open_settle(NULL, options, &how, err);
    if (code) return code;
    if (!bytes && len) return sfti_misuse(err, "expected %zu bytes of memory, found NULL", len);
    if (how.options.mode == SFT_MAP_COW)
        return sfti_misuse(err, "expected another mode than SFT_MAP_COW for memory");
    return file_open(sft_source_memory(bytes, len), -1, true, &how, NULL, out, err);
}

sft_code sft_open_source(sft_source source, const sft_open_options *options, sft_file **out,
                         sft_error *err) {
    sfti_open how;
    sft_code code = out ? sfti_open_settle(NULL, options, &how, err) : no_file_place(err);
    if (out) *out = NULL;
    if (!code && !sfti_source_usable(&source))
        code = sfti_misuse(err, "expected a source with read, found NULL");
    if (!code && how.options.mode != SFT_READ && how.options.mode != SFT_AUTO)
        code = sfti_misuse(err, "expected mode SFT_READ or SFT_AUTO for a source, found %u",
                           (unsigned)how.options.mode);
    if (code) {
        sft_source_close(&source);
        return code;
    }
    if (source.size == SFT_SIZE_UNKNOWN) source.base = NULL;
    return file_open(source, -1, false, &how, NULL, out, err);
}

void sft_close(sft_file *file) {
    if (!file) return;
    sft_allocator alloc = file->alloc;
    sft_source_close(&file->source);
    sfti_arena_free(&file->arena);
    sfti_release(&alloc, file->header, file->header_cap);
    sfti_release(&alloc, file, sizeof *file);
}

/* ── Facts ───────────────────────────────────────────────────────────────── */

size_t sft_file_tensor_count(const sft_file *file) {
    return file->model.tensors.count;
}

const sft_tensor *sft_file_tensor_at(const sft_file *file, size_t i) {
    return i < file->model.tensors.count ? sfti_model_tensor(&file->model, i) : NULL;
}

size_t sft_file_tensor_index(const sft_file *file, const sft_tensor *tensor) {
    return sfti_model_index(&file->model, tensor);
}

/* A name without escapes lies in the file's own header, which spares the search. */
bool sfti_file_holds(const sft_file *file, const sft_tensor *tensor) {
    uintptr_t text = (uintptr_t)file->model.text.data, name = (uintptr_t)tensor->name.data;
    if (name >= text && name - text < file->model.text.len) return true;
    return sfti_model_find(&file->model, tensor->name) == tensor;
}

sft_code sfti_tensor_foreign(const sft_tensor *tensor, sft_error *err) {
    sfti_fail_tensor(err, SFT_BAD_ARGUMENT, SFT_NO_OFFSET, tensor->name,
                     "expected a tensor of this file, found one of another");
    sfti_hint(err, SFT_HINT_TENSOR_SHARD);
    return SFT_BAD_ARGUMENT;
}

const sft_tensor *sft_file_find(const sft_file *file, sft_span name) {
    return sfti_model_find(&file->model, name);
}

const sft_tensor *sft_file_find_cstr(const sft_file *file, const char *name) {
    return sfti_model_find(&file->model, sft_span_cstr(name));
}

uint64_t sft_file_size(const sft_file *file) {
    return file->source.size;
}

uint64_t sft_file_header_bytes(const sft_file *file) {
    return file->model.text.len;
}

uint64_t sft_file_data_offset(const sft_file *file) {
    return file->model.data_offset;
}

uint64_t sft_file_data_bytes(const sft_file *file) {
    return file->model.data_bytes;
}

sft_span sft_file_header(const sft_file *file) {
    return file->model.text;
}

bool sft_file_complete(const sft_file *file) {
    return file->complete;
}

bool sft_file_is_mapped(const sft_file *file) {
    return file->source.base != NULL;
}

sft_level sft_file_level(const sft_file *file) {
    return file->level;
}

uint32_t sft_file_alignment(const sft_file *file) {
    uint64_t at = file->model.data_offset, lowest = at & (0 - at);
    return lowest < 4096 ? (uint32_t)lowest : 4096;
}

/* A complex number is aligned as its halves are. */
bool sft_tensor_aligned(const sft_tensor *tensor) {
    const sft_dtype_info *info = sft_dtype_describe(tensor->dtype);
    uint64_t bits = !info ? 8 : info->kind == SFT_KIND_COMPLEX ? info->bits / 2 : info->bits;
    return bits <= 8 || tensor->offset % (bits / 8) == 0;
}

uint64_t sft_tensor_bytes(const sft_tensor *tensor) {
    return tensor->end - tensor->begin;
}

uint64_t sft_tensor_elements(const sft_tensor *tensor) {
    uint64_t elements = 1;
    for (uint32_t d = 0; d < tensor->rank; d++) elements *= tensor->shape[d];
    return elements;
}

sft_source sft_file_source(const sft_file *file) {
    sft_source source = file->source;
    source.borrowed = true;
    return source;
}

bool sft_file_has_metadata(const sft_file *file) {
    return file->model.has_metadata;
}

size_t sft_file_metadata_count(const sft_file *file) {
    return file->model.metadata_count;
}

sft_pair sft_file_metadata_at(const sft_file *file, size_t i) {
    static const sft_pair none = { { NULL, 0 }, { NULL, 0 } };
    return i < file->model.metadata_count ? sfti_model_pair(&file->model, i) : none;
}

bool sft_file_metadata_get(const sft_file *file, sft_span key, sft_span *value) {
    size_t i = sfti_model_metadata_find(&file->model, key);
    if (i == SIZE_MAX) return false;
    *value = sfti_model_pair(&file->model, i).value;
    return true;
}

bool sft_file_metadata_get_cstr(const sft_file *file, const char *key, sft_span *value) {
    return sft_file_metadata_get(file, sft_span_cstr(key), value);
}

/* ── Order ───────────────────────────────────────────────────────────────── */

static int order_by_name(const void *ctx, uint32_t a, uint32_t b) {
    const sfti_model *model = ctx;
    return sfti_bytes_compare(sfti_model_tensor(model, a)->name,
                              sfti_model_tensor(model, b)->name);
}

static int order_naturally(const void *ctx, uint32_t a, uint32_t b) {
    const sfti_model *model = ctx;
    return sfti_natural_compare(sfti_model_tensor(model, a)->name,
                                sfti_model_tensor(model, b)->name);
}

/* Positions in the header have holes where a duplicate was dropped. */
static int order_by_header(const void *ctx, uint32_t a, uint32_t b) {
    const uint32_t *position = ((const sfti_model *)ctx)->tensors.order;
    return (position[a] > position[b]) - (position[a] < position[b]);
}

static int (*const order_compares[])(const void *ctx, uint32_t a, uint32_t b) = {
    NULL, order_by_name, order_naturally, order_by_header
};

sft_code sft_file_order(const sft_file *file, sft_order order, uint32_t *out, sft_error *err) {
    const sfti_tensors *tensors = &file->model.tensors;
    if ((unsigned)order > SFT_ORDER_HEADER || (!out && tensors->count))
        return sfti_misuse(err, "expected a known order and a place for it, found order %u",
                           (unsigned)order);
    for (size_t i = 0; i < tensors->count; i++) out[i] = (uint32_t)i;
    bool sorted = order == SFT_ORDER_OFFSET || (order == SFT_ORDER_HEADER && !tensors->order);
    if (sorted || tensors->count < 2) return SFT_OK;
    size_t bytes = tensors->count * sizeof *out;
    uint32_t *scratch = sfti_take(&file->alloc, bytes);
    if (!scratch) return sfti_fail_memory(err, bytes);
    sfti_sort(out, scratch, tensors->count, order_compares[order], &file->model);
    sfti_release(&file->alloc, scratch, bytes);
    return SFT_OK;
}
