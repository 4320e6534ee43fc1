# Flags of every target, in one interface library.
add_library(sft_flags INTERFACE)

if(SFT_PREFIX)
    target_compile_definitions(sft_flags INTERFACE SFT_PREFIX=${SFT_PREFIX})
endif()
if(WIN32)
    # printf as the C standard has it, also over msvcrt.dll.
    target_compile_definitions(sft_flags INTERFACE __USE_MINGW_ANSI_STDIO=1)
endif()

# Where size counts, linkers can leave out each function that a program does not use.
if(NOT MSVC)
    target_compile_options(sft_flags INTERFACE
        $<$<CONFIG:MinSizeRel>:-ffunction-sections> $<$<CONFIG:MinSizeRel>:-fdata-sections>)
endif()

set(SFT_WARNINGS -Wall -Wextra)
set(SFT_WARNINGS_LIBRARY -Wconversion -Wformat-security -Wvla -Wstrict-prototypes -Wmissing-prototypes)
# Callers' stacks may be small: larger buffers go to the heap. Sanitizers widen frames.
if(NOT SFT_SANITIZE)
    list(APPEND SFT_WARNINGS_LIBRARY -Wframe-larger-than=16384)
endif()
if(SFT_WERROR)
    list(APPEND SFT_WARNINGS -Werror)
endif()

if(SFT_SANITIZE)
    if(SFT_SANITIZE STREQUAL "memory")
        target_compile_options(sft_flags INTERFACE -fsanitize-memory-track-origins
            -fsanitize-ignorelist=${PROJECT_SOURCE_DIR}/tests/msan.ignore)
    endif()
    target_compile_options(sft_flags INTERFACE -fsanitize=${SFT_SANITIZE}
                           -fno-sanitize-recover=all -fno-omit-frame-pointer)
    # The runtime of fuzzer-no-link comes with each harness.
    string(REPLACE "fuzzer-no-link," "" sft_link_sanitize "${SFT_SANITIZE}")
    target_link_options(sft_flags INTERFACE -fsanitize=${sft_link_sanitize})
elseif(SFT_HARDEN AND WIN32)
    target_link_options(sft_flags INTERFACE
        -Wl,--dynamicbase -Wl,--nxcompat -Wl,--high-entropy-va)
elseif(SFT_HARDEN)
    include(CheckCCompilerFlag)
    check_c_compiler_flag(-fcf-protection SFT_HAS_CET)
    target_compile_options(sft_flags INTERFACE -fstack-protector-strong
        $<$<BOOL:${SFT_HAS_CET}>:-fcf-protection>
        $<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE> $<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=2>)
    if(NOT APPLE)
        target_link_options(sft_flags INTERFACE -Wl,-z,relro -Wl,-z,now)
    endif()
endif()
