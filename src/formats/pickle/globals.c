/* What names of Python mean. Tests: test_import_pickle.c. */
#include "formats/pickle/globals.h"

#include <string.h>

/* Modules that were called something else: Python 2's, NumPy 1's, and older ones of PyTorch. */
static const struct { const char *old, *now; bool told; } renamed[] = {
    { "__builtin__", "builtins", true }, /* the report has the new name, too */
    { "copy_reg", "copyreg", true },
    { "UserDict", "collections", false },
    { "numpy.core.multiarray", "numpy._core.multiarray", false },
    { "numpy.core.numeric", "numpy._core.numeric", false },
    { "torch.tensor", "torch._tensor", false },
    { "torch.nn.parameter", "torch.nn", false },
};

typedef struct global_row {
    const char *module, *name;
    uint8_t meaning;
} global_row;

static const global_row rows[] = {
    { "collections", "OrderedDict", SFTI_MEANS_MAP },
    { "collections", "defaultdict", SFTI_MEANS_DEFAULT_MAP },
    { "collections", "Counter", SFTI_MEANS_COUNTER },
    { "collections", "UserDict", SFTI_MEANS_USER_MAP },
    { "collections", "deque", SFTI_MEANS_LIST },
    { "builtins", "dict", SFTI_MEANS_MAP },
    { "builtins", "list", SFTI_MEANS_LIST },
    { "builtins", "tuple", SFTI_MEANS_TUPLE },
    { "builtins", "set", SFTI_MEANS_SET },
    { "builtins", "frozenset", SFTI_MEANS_SET },
    { "builtins", "complex", SFTI_MEANS_VALUE },
    { "builtins", "bytearray", SFTI_MEANS_VALUE },
    { "builtins", "bytes", SFTI_MEANS_BYTES },
    { "builtins", "slice", SFTI_MEANS_VALUE },
    { "builtins", "range", SFTI_MEANS_VALUE },
    { "builtins", "int", SFTI_MEANS_VALUE },
    { "builtins", "float", SFTI_MEANS_VALUE },
    { "builtins", "bool", SFTI_MEANS_VALUE },
    { "builtins", "str", SFTI_MEANS_VALUE },
    { "builtins", "long", SFTI_MEANS_VALUE },
    { "builtins", "unicode", SFTI_MEANS_VALUE },
    { "builtins", "object", SFTI_MEANS_VALUE },
    { "builtins", "eval", SFTI_MEANS_EVAL },
    { "copyreg", "_reconstructor", SFTI_MEANS_CLASS },
    { "_codecs", "encode", SFTI_MEANS_ENCODE },

    { "numpy._core.multiarray", "_reconstruct", SFTI_MEANS_ARRAY },
    { "numpy._core.multiarray", "scalar", SFTI_MEANS_SCALAR },
    { "numpy._core.numeric", "_frombuffer", SFTI_MEANS_BUFFER },
    { "numpy.ma.core", "_mareconstruct", SFTI_MEANS_TENSOR_CLASS },
    { "numpy", "dtype", SFTI_MEANS_NUMPY_DTYPE },
    { "numpy", "ndarray", SFTI_MEANS_VALUE },
    { "numpy", "bool_", SFTI_MEANS_VALUE },
    { "numpy", "bool", SFTI_MEANS_VALUE },
    { "numpy", "float16", SFTI_MEANS_VALUE },
    { "numpy", "float32", SFTI_MEANS_VALUE },
    { "numpy", "float64", SFTI_MEANS_VALUE },
    { "numpy", "int8", SFTI_MEANS_VALUE },
    { "numpy", "int16", SFTI_MEANS_VALUE },
    { "numpy", "int32", SFTI_MEANS_VALUE },
    { "numpy", "int64", SFTI_MEANS_VALUE },
    { "numpy", "uint8", SFTI_MEANS_VALUE },
    { "numpy", "uint16", SFTI_MEANS_VALUE },
    { "numpy", "uint32", SFTI_MEANS_VALUE },
    { "numpy", "uint64", SFTI_MEANS_VALUE },
    { "ml_dtypes", "bfloat16", SFTI_MEANS_TORCH_DTYPE },
    { "ml_dtypes", "float8_e4m3fn", SFTI_MEANS_TORCH_DTYPE },
    { "ml_dtypes", "float8_e5m2", SFTI_MEANS_TORCH_DTYPE },
    { "ml_dtypes", "float8_e4m3fnuz", SFTI_MEANS_TORCH_DTYPE },
    { "ml_dtypes", "float8_e5m2fnuz", SFTI_MEANS_TORCH_DTYPE },
    { "ml_dtypes", "float8_e8m0fnu", SFTI_MEANS_TORCH_DTYPE },

    { "torch._utils", "_rebuild_tensor", SFTI_MEANS_TENSOR },
    { "torch._utils", "_rebuild_tensor_v2", SFTI_MEANS_TENSOR_V2 },
    { "torch._utils", "_rebuild_tensor_v3", SFTI_MEANS_TENSOR_V3 },
    { "torch._utils", "_rebuild_parameter", SFTI_MEANS_PARAMETER },
    { "torch._utils", "_rebuild_parameter_v2", SFTI_MEANS_PARAMETER },
    { "torch._utils", "_rebuild_parameter_with_state", SFTI_MEANS_PARAMETER_STATE },
    { "torch.nn", "Parameter", SFTI_MEANS_PARAMETER },
    { "torch.nn", "Buffer", SFTI_MEANS_PARAMETER },
    { "torch.autograd.variable", "Variable", SFTI_MEANS_PARAMETER },
    { "torch._tensor", "_rebuild_from_type", SFTI_MEANS_FROM_TYPE },
    { "torch._tensor", "_rebuild_from_type_v2", SFTI_MEANS_FROM_TYPE },
    { "torch._utils", "_rebuild_qtensor", SFTI_MEANS_QUANTISED },
    { "torch._utils", "_rebuild_sparse_tensor", SFTI_MEANS_SPARSE },
    { "torch._utils", "_rebuild_sparse_csr_tensor", SFTI_MEANS_SPARSE },
    { "torch._utils", "_rebuild_device_tensor_from_cpu_tensor", SFTI_MEANS_DEVICE },
    { "torch._utils", "_rebuild_device_tensor_from_numpy", SFTI_MEANS_DEVICE },
    { "torch._utils", "_rebuild_xla_tensor", SFTI_MEANS_DEVICE },
    { "torch._utils", "_rebuild_meta_tensor_no_storage", SFTI_MEANS_NO_BYTES },
    { "torch._utils", "_rebuild_wrapper_subclass", SFTI_MEANS_NO_BYTES },
    { "torch._utils", "_rebuild_nested_tensor", SFTI_MEANS_NO_BYTES },
    { "torch", "Size", SFTI_MEANS_TUPLE },
    { "torch", "device", SFTI_MEANS_VALUE },
    { "torch", "Tensor", SFTI_MEANS_TENSOR_CLASS },
    { "torch._tensor", "Tensor", SFTI_MEANS_TENSOR_CLASS },
    { "torch", "per_tensor_affine", SFTI_MEANS_VALUE },
    { "torch", "per_tensor_symmetric", SFTI_MEANS_VALUE },
    { "torch", "per_channel_affine", SFTI_MEANS_VALUE },
    { "torch", "per_channel_symmetric", SFTI_MEANS_VALUE },
    { "torch", "per_channel_affine_float_qparams", SFTI_MEANS_VALUE },
    { "torch", "contiguous_format", SFTI_MEANS_VALUE },
    { "torch", "channels_last", SFTI_MEANS_VALUE },
    { "torch", "channels_last_3d", SFTI_MEANS_VALUE },
    { "torch", "preserve_format", SFTI_MEANS_VALUE },
    { "torch.serialization", "_get_layout", SFTI_MEANS_LAYOUT },
    { "torch.jit._pickle", "build_intlist", SFTI_MEANS_LIST },
    { "torch.jit._pickle", "build_doublelist", SFTI_MEANS_LIST },
    { "torch.jit._pickle", "build_boollist", SFTI_MEANS_LIST },
    { "torch.jit._pickle", "build_tensorlist", SFTI_MEANS_LIST },
    { "torch.jit._pickle", "restore_type_tag", SFTI_MEANS_TAGGED },
};

static bool storage_module(sft_span module) {
    static const char *const names[] = {
        "torch", "torch.storage", "torch.cuda", "torch.xpu", "torch.mps", "torch.hpu",
        "torch.npu", "torch.mtia", "torch.privateuseone",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (sfti_span_is(module, names[i])) return true;
    return false;
}

sft_span sfti_global_module(sft_span module) {
    for (size_t i = 0; i < sizeof renamed / sizeof *renamed; i++)
        if (renamed[i].told && sfti_span_is(module, renamed[i].old))
            return sft_span_cstr(renamed[i].now);
    return module;
}

void sfti_global_settle(sfti_global *global) {
    sft_span module = global->module, name = global->name;
    for (size_t i = 0; i < sizeof renamed / sizeof *renamed; i++)
        if (sfti_span_is(global->module, renamed[i].old))
            module = sft_span_cstr(renamed[i].now);
    for (size_t i = 0; i < sizeof rows / sizeof *rows && !global->meaning; i++)
        if (sfti_span_is(module, rows[i].module) && sfti_span_is(name, rows[i].name))
            global->meaning = rows[i].meaning;
    if (global->meaning == SFTI_MEANS_TORCH_DTYPE) global->dtype = sfti_torch_dtype_named(name);
    /* "FloatTensor" of torch, torch.cuda, torch.sparse: its class. */
    if (!global->meaning && name.len > 6 && memcmp(name.data + name.len - 6, "Tensor", 6) == 0 &&
        (storage_module(module) || sfti_span_is(module, "torch.sparse") ||
         sfti_span_is(module, "torch.cuda.sparse")))
        global->meaning = SFTI_MEANS_TENSOR_CLASS;
    if (global->meaning || !storage_module(module)) return;
    if ((global->dtype = sfti_torch_dtype_of_storage(name))) global->meaning = SFTI_MEANS_STORAGE;
    else if (sfti_span_is(module, "torch") && (global->dtype = sfti_torch_dtype_named(name)))
        global->meaning = SFTI_MEANS_TORCH_DTYPE;
}
