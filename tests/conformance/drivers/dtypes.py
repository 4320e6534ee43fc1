"""The format's name of a dtype of numpy, torch, tinygrad or mlx."""
NAMES = {
    "bool": "BOOL", "bool_": "BOOL", "uint8": "U8", "int8": "I8", "uint16": "U16", "int16": "I16",
    "uint32": "U32", "int32": "I32", "uint64": "U64", "int64": "I64", "float16": "F16",
    "bfloat16": "BF16", "float32": "F32", "float64": "F64", "complex64": "C64",
    "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2", "float8_e8m0fnu": "F8_E8M0",
    "float8_e4m3fnuz": "F8_E4M3FNUZ", "float8_e5m2fnuz": "F8_E5M2FNUZ",
    "float4_e2m1fn_x2": "F4", "uchar": "U8", "char": "I8", "short": "I16", "ushort": "U16",
    "int": "I32", "uint": "U32", "long": "I64", "ulong": "U64", "half": "F16", "float": "F32",
    "double": "F64", "fp8e4m3": "F8_E4M3", "fp8e5m2": "F8_E5M2",
}


def name(dtype):
    """Takes a dtype, or its text: torch.float32, mlx.core.float32, dtypes.float."""
    text = str(dtype).rsplit(".", 1)[-1]
    return NAMES.get(text, text)
