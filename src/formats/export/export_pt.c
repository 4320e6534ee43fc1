/* Tensors as PyTorch saves a state dict: a pickle that calls nothing but what weights_only allows,
 * and a record of bytes for each tensor. */
#include "base/endian.h"
#include "formats/pickle/globals.h"
#include "formats/zip/zip_write.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PT_FOLDER "archive/"

/* What a pickle of ours says more than once: pushed by name the first time, later from the memo,
 * where it has the number of its row. */
typedef enum pt_word {
    PT_REBUILD_V2, PT_REBUILD_V3, PT_DICT, PT_STORAGE, PT_CPU, PT_UNTYPED, PT_WORDS,
    PT_DTYPES = PT_WORDS /* and from here on one for each dtype */
} pt_word;

static const char *const pt_words[PT_WORDS] = {
    "torch._utils\n_rebuild_tensor_v2\n", "torch._utils\n_rebuild_tensor_v3\n",
    "collections\nOrderedDict\n", "storage", "cpu", "torch.storage\nUntypedStorage\n",
};

typedef struct pt_pickle {
    sft_buffer bytes;
    bool failed; /* out of memory */
    bool known[PT_WORDS + SFT_DTYPE_COUNT];
} pt_pickle;

/* ── Opcodes ── */

static void pt_put(pt_pickle *p, const void *bytes, size_t len) {
    if (!p->failed && !sfti_buffer_put(&p->bytes, bytes, len)) p->failed = true;
}

static void pt_op(pt_pickle *p, const char *ops) {
    pt_put(p, ops, strlen(ops));
}

static void pt_text(pt_pickle *p, sft_span text) {
    uint8_t head[5] = { 'X' }; /* BINUNICODE */
    sfti_put_u32(head + 1, (uint32_t)text.len);
    pt_put(p, head, sizeof head);
    pt_put(p, text.data, text.len);
}

static void pt_number(pt_pickle *p, uint64_t value) {
    uint8_t op[11] = { 0 };
    sfti_put_u64(op + 2, value);
    if (value < 256) {
        op[1] = 'K'; /* BININT1 */
        pt_put(p, op + 1, 2);
    } else if (value < 65536) {
        op[1] = 'M'; /* BININT2 */
        pt_put(p, op + 1, 3);
    } else if (value <= INT32_MAX) {
        op[1] = 'J'; /* BININT */
        pt_put(p, op + 1, 5);
    } else {
        size_t len = value >> 63 ? 9 : 8;
        while (value >> (8 * len - 9) == 0) len--; /* the highest bit is the sign */
        op[0] = 0x8a; /* LONG1 */
        op[1] = (uint8_t)len;
        pt_put(p, op, 2 + len);
    }
}

/* Sizes or strides. */
static void pt_tuple(pt_pickle *p, const uint64_t *values, uint32_t count) {
    static const char *const ends[] = { ")", "\x85", "\x86", "\x87", "t" };
    if (count > 3) pt_op(p, "(");
    for (uint32_t i = 0; i < count; i++) pt_number(p, values[i]);
    pt_op(p, ends[count < 4 ? count : 4]);
}

/* What is in the memo already, or will be. */
static bool pt_remember(pt_pickle *p, unsigned word) {
    uint8_t op[2] = { 'h', (uint8_t)word }; /* BINGET */
    if (!p->known[word]) return false;
    pt_put(p, op, sizeof op);
    return true;
}

static void pt_memorise(pt_pickle *p, unsigned word) {
    uint8_t op[2] = { 'q', (uint8_t)word }; /* BINPUT */
    pt_put(p, op, sizeof op);
    p->known[word] = true;
}

static void pt_say(pt_pickle *p, pt_word word) {
    const char *text = pt_words[word];
    if (pt_remember(p, word)) return;
    if (word == PT_STORAGE || word == PT_CPU) pt_text(p, sft_span_cstr(text));
    else {
        pt_op(p, "c"); /* GLOBAL */
        pt_op(p, text);
    }
    pt_memorise(p, word);
}

/* torch.NAME, of the dtype's row: its storage class, or itself where it has none. */
static void pt_torch(pt_pickle *p, const sfti_torch_dtype *type) {
    unsigned word = PT_DTYPES + (unsigned)type->dtype;
    if (pt_remember(p, word)) return;
    pt_op(p, "ctorch\n");
    pt_op(p, type->storage ? type->storage : type->name);
    pt_op(p, "\n");
    pt_memorise(p, word);
}

/* ── The state dict ── */

/* name, _rebuild_tensor(storage, 0, sizes, strides, False, OrderedDict()[, dtype]) */
static void pt_tensor(pt_pickle *p, const sft_spec *spec, const sfti_torch_dtype *type,
                      const char *key) {
    uint64_t strides[SFT_MAX_RANK], elements = 1, stride = 1;
    bool typed = type->storage != NULL;
    for (uint32_t d = spec->rank; d-- > 0;) {
        strides[d] = stride;
        stride *= spec->shape[d] > 0 ? spec->shape[d] : 1;
        elements *= spec->shape[d];
    }
    pt_text(p, spec->name);
    pt_say(p, typed ? PT_REBUILD_V2 : PT_REBUILD_V3);
    pt_op(p, "((");
    pt_say(p, PT_STORAGE);
    if (typed) pt_torch(p, type);
    else pt_say(p, PT_UNTYPED);
    pt_text(p, sft_span_cstr(key));
    pt_say(p, PT_CPU);
    pt_number(p, typed ? elements : elements * type->size);
    pt_op(p, "tQ"); /* BINPERSID */
    pt_number(p, 0);
    pt_tuple(p, spec->shape, spec->rank);
    pt_tuple(p, strides, spec->rank);
    pt_op(p, "\x89"); /* NEWFALSE */
    pt_say(p, PT_DICT);
    pt_op(p, ")R");
    if (!typed) pt_torch(p, type);
    pt_op(p, "tR");
}

/* The pickle, and for every part a member data/KEY after it. */
static sft_code pt_members(sfti_export *x, pt_pickle *p, const sft_part *parts, size_t count) {
    static const char *const texts[][2] = {
        { ".format_version", "1" }, { ".storage_alignment", "64" }, { "byteorder", "little" },
    };
    static const sft_span none = { "", 0 };
    char key[24];
    sft_code code = sfti_export_add(x, PT_FOLDER, sft_span_cstr("data.pkl"), "", none, NULL);
    for (size_t i = 0; !code && i < sizeof texts / sizeof *texts; i++)
        code = sfti_export_add(x, PT_FOLDER, sft_span_cstr(texts[i][0]), "",
                               sft_span_cstr(texts[i][1]), NULL);
    pt_op(p, "\x80\2"); /* PROTO 2 */
    pt_say(p, PT_DICT);
    pt_op(p, ")R");
    if (count > 0) pt_op(p, "(");
    for (size_t i = 0; !code && i < count; i++) {
        const sfti_torch_dtype *type = sfti_torch_dtype_of(parts[i].spec.dtype);
        if (!type) return sfti_export_refuse(x, &parts[i], "PyTorch");
        (void)snprintf(key, sizeof key, "%zu", i);
        code = sfti_export_add(x, PT_FOLDER "data/", sft_span_cstr(key), "", none, &parts[i]);
        if (!code) pt_tensor(p, &parts[i].spec, type, key);
    }
    pt_op(p, count > 0 ? "u." : "."); /* SETITEMS, STOP */
    if (!code && p->failed) code = sfti_fail_memory(x->err, p->bytes.len);
    if (code) return code;
    x->members[0].head = (sft_span){ p->bytes.data, p->bytes.len };
    return sfti_export_add(x, PT_FOLDER, sft_span_cstr("version"), "", sft_span_cstr("3\n"), NULL);
}

sft_code sft_export_pt(const sft_part *parts, size_t count, const sft_export_options *options,
                       sft_sink sink, const sft_job *job, sft_error *err) {
    sfti_export x;
    pt_pickle pickle = { .failed = false };
    sft_code code = sfti_export_begin(&x, parts, count, 5, options, job, err);
    pickle.bytes.alloc = x.arena.alloc;
    if (!code) code = pt_members(&x, &pickle, parts, count);
    code = sfti_export_end(&x, code, SFTI_ZIP_TORCH, sink);
    sft_buffer_free(&pickle.bytes);
    return code;
}
