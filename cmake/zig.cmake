# Any system by the compiler of tools/zig_env.sh. The target is a variable:
#   cmake -DCMAKE_TOOLCHAIN_FILE=cmake/zig.cmake -DSFT_ZIG_TARGET=aarch64-macos.11.0 ...
# e.g. x86_64-windows-gnu, aarch64-windows-gnu, x86_64-macos.10.15, aarch64-macos.11.0,
# x86_64-linux-gnu.2.17, aarch64-linux-musl.
set(SFT_ZIG_TARGET "" CACHE STRING "Processor, system and version, as zig spells them")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES SFT_ZIG_TARGET)
if(NOT SFT_ZIG_TARGET MATCHES "^([a-z0-9_]+)-(windows|macos|linux)(\\.[0-9]|-|$)")
    message(FATAL_ERROR "SFT_ZIG_TARGET is \"${SFT_ZIG_TARGET}\", expected e.g. aarch64-macos.11.0")
endif()
set(CMAKE_SYSTEM_PROCESSOR ${CMAKE_MATCH_1})
set(CMAKE_SYSTEM_VERSION 1)
if(CMAKE_MATCH_2 STREQUAL "windows")
    set(CMAKE_SYSTEM_NAME Windows)
elseif(CMAKE_MATCH_2 STREQUAL "macos")
    # zig knows the interfaces of the system: no SDK, and no tools of one, are looked for.
    set(CMAKE_SYSTEM_NAME Darwin)
    set(CMAKE_OSX_SYSROOT "" CACHE STRING "")
    set(CMAKE_OSX_DEPLOYMENT_TARGET "" CACHE STRING "")
    # Nothing is renamed after linking: what is linked is what is installed.
    set(CMAKE_INSTALL_NAME_TOOL /bin/false CACHE FILEPATH "")
    set(CMAKE_BUILD_WITH_INSTALL_NAME_DIR ON)
    set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
else()
    set(CMAKE_SYSTEM_NAME Linux)
    if(SFT_ZIG_TARGET MATCHES "-musl")
        # As on Alpine: a static program could load no libcurl.
        set(CMAKE_EXE_LINKER_FLAGS_INIT -dynamic)
    endif()
endif()

set(sft_zig ${CMAKE_CURRENT_LIST_DIR}/../build/zig)
get_filename_component(sft_zig ${sft_zig} ABSOLUTE)
if(NOT EXISTS ${sft_zig}/cc)
    message(FATAL_ERROR "no ${sft_zig}/cc: run tools/zig_env.sh")
endif()
set(CMAKE_C_COMPILER ${sft_zig}/cc)
set(CMAKE_AR ${sft_zig}/ar CACHE FILEPATH "")
set(CMAKE_RANLIB ${sft_zig}/ranlib CACHE FILEPATH "")
set(CMAKE_RC_COMPILER ${sft_zig}/rc)
set(CMAKE_DLLTOOL ${sft_zig}/dlltool CACHE FILEPATH "")
# zig adds -g by itself, and with it the paths of this machine.
set(CMAKE_C_FLAGS_INIT "-target ${SFT_ZIG_TARGET} -g0")
# Nothing of this machine is for the target.
set(CMAKE_FIND_ROOT_PATH /nonexistent)
foreach(kind PROGRAM LIBRARY INCLUDE PACKAGE)
    set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY)
endforeach()
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
