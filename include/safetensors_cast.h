/* Casts of elements in memory between dtypes.
 *
 * docs/convert.md has a table for every target. In short:
 *   - To a float: rounded once, to the nearest value, ties to even; subnormals are kept. Values
 *     that are too large become an infinity (F64, F32, F16, BF16, F8_E5M2), NaN (F8_E4M3, the
 *     FNUZ dtypes, F8_E8M0) or the greatest value (F6, F4). A NaN becomes quiet and keeps its
 *     sign if the target has signed NaN; into F6 and F4 it is an error.
 *   - To an integer: truncated towards zero; NaN and values out of range are errors. Integers
 *     become integers without rounding, whatever their width.
 *   - To BOOL: true if not zero (NaN is not zero). From BOOL: 0 or 1.
 *   - C64 converts to C64 only. The same dtype is a bitwise copy.
 * With `saturate`, values out of range become the target's greatest (or least) value, and a NaN
 * that must become an integer becomes 0; into F6 and F4 it remains an error. An infinity stays
 * one if the target has it.
 *
 * Elements of less than 8 bits are packed from the low bits up: the first F4 element is the low
 * nibble of a byte, F6 is a little-endian stream of bits.
 *
 * STABLE (docs/abi.md). Conventions as in safetensors.h. */
#ifndef SFT_SAFETENSORS_CAST_H
#define SFT_SAFETENSORS_CAST_H

#include "safetensors.h"
#ifndef SFT_SAFETENSORS_H
#error "the safetensors.h found first is another library's: put libsafetensors' folder before it"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Whether a cast exists: between all dtypes but C64, and from each to itself. @since 0.1 */
SFT_API bool sft_cast_exists(sft_dtype from, sft_dtype to);

/* @since 0.1 */
typedef struct sft_cast_options {
    size_t size;
    bool saturate;
} sft_cast_options;

#define SFT_CAST_OPTIONS_INIT { sizeof(sft_cast_options), false }

/* Cast count elements, packed and little-endian as in a file, from `in` to `out`, which must not
 * overlap and need no alignment. Results are the same on every machine, whatever its processor
 * and floating-point settings. SFT_CAST_VALUE: the target cannot represent an element; *element
 * (may be NULL) is its index, err describes it, and the contents of `out` are unspecified.
 * SFT_CAST_DTYPE: no such cast. SFT_SIZE_PARTIAL_BYTE: count elements of either dtype do not
 * fill whole bytes. Does not allocate; thread-safe. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_cast(sft_dtype from, const void *in, sft_dtype to, void *out,
                                        uint64_t count, const sft_cast_options *options,
                                        uint64_t *element, sft_error *err);

#ifdef __cplusplus
}
#endif
#endif
