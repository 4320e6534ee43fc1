# Libraries that are used where they are there, and done without where not. A row names
# the pkg-config module, our name for it, what to link, and the parts (cmake/parts.cmake) that use
# it: without those a library is reported by sft_build_info() and not linked.
#   SFTI_FOUND_<NAME>   defined where the library may be called
#   SFTI_TEXT_<NAME>    what sft_build_info() says
set(SFT_FOUND_DEFINITIONS "")
set(SFT_FOUND_LIBRARIES "")
# Releases bring zlib with them: SFT_ZLIB_SOURCE is the folder of its sources.
set(SFT_ZLIB_OBJECTS "")
if(SFT_ZLIB_SOURCE)
    set(SFT_USE_ZLIB OFF) # the system's
    file(STRINGS ${SFT_ZLIB_SOURCE}/zlib.h sft_zlib_version REGEX "define ZLIB_VERSION ")
    string(REGEX MATCH "[0-9.]+[0-9]" sft_zlib_version "${sft_zlib_version}")
    set(sft_zlib_sources adler32.c crc32.c inffast.c inflate.c inftrees.c zutil.c)
    list(TRANSFORM sft_zlib_sources PREPEND ${SFT_ZLIB_SOURCE}/)
    add_library(sft_zlib OBJECT ${sft_zlib_sources})
    target_compile_options(sft_zlib PRIVATE -fvisibility=hidden -w)
    if(APPLE)
        # zutil.h takes it for a Mac of the 1990s and would replace it.
        target_compile_definitions(sft_zlib PRIVATE fdopen=fdopen)
    endif()
    target_include_directories(sft_zlib SYSTEM PUBLIC ${SFT_ZLIB_SOURCE})
    set(SFT_ZLIB_OBJECTS $<TARGET_OBJECTS:sft_zlib>)
    list(APPEND SFT_FOUND_DEFINITIONS SFTI_FOUND_ZLIB=1
         SFTI_TEXT_ZLIB="${sft_zlib_version}, built in")
endif()
find_package(PkgConfig QUIET)
# Where package managers keep zlib out of the system's folders, find_package knows the place.
option(SFT_ZLIB_PACKAGE "Find zlib by find_package(ZLIB), as vcpkg and Conan provide it" OFF)
# libcrypto is not linked but loaded by src/model/hash, where the processor has no SHA instructions that
# we know: linking would cost every start of the command half a millisecond.
foreach(row libcrypto,CRYPTO,${CMAKE_DL_LIBS},HASH zlib,ZLIB,z,HASH|FORMATS)
    string(REPLACE "," ";" row "${row}")
    list(GET row 0 module)
    list(GET row 1 name)
    list(GET row 2 library)
    list(GET row 3 users)
    string(REPLACE "|" ";" users "${users}")
    set(sft_has_user OFF)
    foreach(part IN LISTS users)
        if(SFT_WITH_${part})
            set(sft_has_user ON)
        endif()
    endforeach()
    option(SFT_USE_${name} "Use ${module} if it is there" ON)
    # Other machines have no copies here; MemorySanitizer would misjudge foreign code.
    if(SFT_USE_${name} AND PKG_CONFIG_FOUND AND NOT CMAKE_CROSSCOMPILING AND NOT SFT_FOREIGN
       AND NOT SFT_${name}_PACKAGE AND NOT SFT_SANITIZE STREQUAL "memory")
        pkg_check_modules(SFT_${name} QUIET ${module})
    endif()
    if(SFT_USE_${name} AND SFT_${name}_FOUND AND sft_has_user)
        list(APPEND SFT_FOUND_DEFINITIONS SFTI_FOUND_${name}=1
             SFTI_TEXT_${name}="${SFT_${name}_VERSION}")
        list(APPEND SFT_FOUND_LIBRARIES ${library}) # nothing, where dlopen is in libc
    elseif(SFT_${name}_FOUND)
        list(APPEND SFT_FOUND_DEFINITIONS
             "SFTI_TEXT_${name}=\"${SFT_${name}_VERSION} found, not used\"")
    endif()
endforeach()
if(SFT_USE_ZLIB AND SFT_ZLIB_PACKAGE)
    find_package(ZLIB REQUIRED)
    list(APPEND SFT_FOUND_DEFINITIONS SFTI_FOUND_ZLIB=1 SFTI_TEXT_ZLIB="${ZLIB_VERSION_STRING}")
    list(APPEND SFT_FOUND_LIBRARIES ZLIB::ZLIB)
endif()
# libcurl is loaded by src/remote when it is first needed, whatever is there now. Its header is only
# read for numbers, which src/remote/http/curl.h has for a build without it.
if(SFT_WITH_REMOTE)
    list(APPEND SFT_FOUND_DEFINITIONS SFTI_FOUND_CURL=1)
    list(APPEND SFT_FOUND_LIBRARIES ${CMAKE_DL_LIBS})
    list(REMOVE_DUPLICATES SFT_FOUND_LIBRARIES)
    if(NOT CMAKE_CROSSCOMPILING AND NOT SFT_FOREIGN)
        find_path(SFT_CURL_INCLUDE curl/curl.h)
    endif()
endif()
# Only these see what was found: all others compile alike everywhere. tests/layers.py compares.
set_property(SOURCE src/core/base/version.c src/core/os/os_posix_library.c src/formats/zip/inflate.c
                    src/model/hash/crc32.c src/model/hash/sha256_crypto.c src/text/png.c
             APPEND PROPERTY COMPILE_DEFINITIONS ${SFT_FOUND_DEFINITIONS})
# Tests link the objects themselves.
target_link_libraries(sft_flags INTERFACE ${SFT_FOUND_LIBRARIES})
