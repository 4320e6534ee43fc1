/* The version, and how the library was built. */
#include "safetensors.h"

#define VERSION_TEXT(x) VERSION_TEXT_(x)
#define VERSION_TEXT_(x) #x

#if defined(__clang__)
#define VERSION_COMPILER __VERSION__
#elif defined(__GNUC__)
#define VERSION_COMPILER "gcc " __VERSION__
#else
#define VERSION_COMPILER "unknown"
#endif

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define VERSION_ORDER "big-endian"
#else
#define VERSION_ORDER "little-endian"
#endif

#if SIZE_MAX > 0xffffffffu
#define VERSION_BITS "64-bit"
#else
#define VERSION_BITS "32-bit"
#endif

/* Told by the build; the two-file form uses none of them. */
#ifndef SFTI_TEXT_CRYPTO
#define SFTI_TEXT_CRYPTO "no"
#endif
#ifndef SFTI_TEXT_ZLIB
#define SFTI_TEXT_ZLIB "no"
#endif

const char *sft_version(void) {
    return SFT_VERSION_STRING;
}

const char *sft_build_info(void) {
    return "compiler: " VERSION_COMPILER "\n"
           "host: " VERSION_BITS ", " VERSION_ORDER "\n"
           "threads: yes\n"
           "libcrypto: " SFTI_TEXT_CRYPTO "\n"
           "zlib: " SFTI_TEXT_ZLIB "\n"
           "max header bytes: 100000000\n"
           "max rank: " VERSION_TEXT(SFT_MAX_RANK) "\n"
           "max JSON depth: 127\n"
           "stable: safetensors.h, safetensors_cast.h, safetensors_read.h, safetensors_set.h\n"
           "experimental: safetensors_adapter.h, safetensors_codes.h, safetensors_convert.h, "
           "safetensors_dataset.h, safetensors_diff.h, safetensors_edit.h, safetensors_hash.h, "
           "safetensors_import.h, safetensors_index.h, safetensors_info.h, safetensors_io.h, "
           "safetensors_layout.h, safetensors_merge.h, safetensors_remote.h, safetensors_report.h, "
           "safetensors_scan.h, safetensors_stats.h, safetensors_tree.h\n";
}
