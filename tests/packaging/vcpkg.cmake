# What the portfile calls, done as vcpkg does it with a release build; run by
# cmake -DPORTFILE= -DWORK= -DLINKAGE=dynamic|static -DFEATURES=tools -P vcpkg.cmake
cmake_minimum_required(VERSION 3.22)
set(PORT libsafetensors)
set(VCPKG_LIBRARY_LINKAGE ${LINKAGE})
set(CURRENT_PACKAGES_DIR ${WORK}/packages)
set(CURRENT_BUILDTREES_DIR ${WORK}/buildtrees)

function(run)
    execute_process(COMMAND ${ARGN} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(vcpkg_download_distfile out)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "FILENAME;SHA512" "URLS")
    file(DOWNLOAD ${arg_URLS} ${WORK}/${arg_FILENAME} EXPECTED_HASH SHA512=${arg_SHA512})
    set(${out} ${WORK}/${arg_FILENAME} PARENT_SCOPE)
endfunction()

function(vcpkg_extract_source_archive out)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "ARCHIVE" "")
    file(ARCHIVE_EXTRACT INPUT ${arg_ARCHIVE} DESTINATION ${WORK}/src)
    file(GLOB folder ${WORK}/src/*)
    set(${out} ${folder} PARENT_SCOPE)
endfunction()

function(vcpkg_check_features)
    cmake_parse_arguments(PARSE_ARGV 0 arg "" "OUT_FEATURE_OPTIONS" "FEATURES")
    set(options "")
    while(arg_FEATURES)
        list(POP_FRONT arg_FEATURES feature option)
        set(on OFF)
        if(feature IN_LIST FEATURES)
            set(on ON)
        endif()
        list(APPEND options -D${option}=${on})
    endwhile()
    set(${arg_OUT_FEATURE_OPTIONS} ${options} PARENT_SCOPE)
endfunction()

function(vcpkg_cmake_configure)
    cmake_parse_arguments(PARSE_ARGV 0 arg "" "SOURCE_PATH" "OPTIONS")
    string(COMPARE EQUAL ${LINKAGE} dynamic shared)
    run(${CMAKE_COMMAND} -S ${arg_SOURCE_PATH} -B ${CURRENT_BUILDTREES_DIR} -G Ninja
        -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=${CURRENT_PACKAGES_DIR}
        -DCMAKE_INSTALL_LIBDIR=lib -DBUILD_SHARED_LIBS=${shared} ${arg_OPTIONS})
endfunction()

function(vcpkg_cmake_install)
    run(${CMAKE_COMMAND} --build ${CURRENT_BUILDTREES_DIR})
    run(${CMAKE_COMMAND} --install ${CURRENT_BUILDTREES_DIR})
endfunction()

# The files of the package move to share/<name>, where they must find lib/ and include/.
function(vcpkg_cmake_config_fixup)
    cmake_parse_arguments(PARSE_ARGV 0 arg "" "PACKAGE_NAME;CONFIG_PATH" "")
    file(RENAME ${CURRENT_PACKAGES_DIR}/${arg_CONFIG_PATH}
         ${CURRENT_PACKAGES_DIR}/share/${arg_PACKAGE_NAME})
    file(GLOB files ${CURRENT_PACKAGES_DIR}/share/${arg_PACKAGE_NAME}/*Targets.cmake
         ${CURRENT_PACKAGES_DIR}/share/${arg_PACKAGE_NAME}/*Config.cmake)
    foreach(file ${files})
        file(READ ${file} text)
        string(REGEX REPLACE
            "get_filename_component\\(_IMPORT_PREFIX \"\\\${CMAKE_CURRENT_LIST_FILE}\" PATH\\)(\nget_filename_component\\(_IMPORT_PREFIX \"\\\${_IMPORT_PREFIX}\" PATH\\))*"
            "get_filename_component(_IMPORT_PREFIX \"\${CMAKE_CURRENT_LIST_FILE}/../../..\" ABSOLUTE)"
            text "${text}")
        string(REPLACE "/../../../" "/../../" text "${text}")
        file(WRITE ${file} "${text}")
    endforeach()
endfunction()

function(vcpkg_fixup_pkgconfig)
    if(NOT EXISTS ${CURRENT_PACKAGES_DIR}/lib/pkgconfig/safetensors.pc)
        message(FATAL_ERROR "no safetensors.pc")
    endif()
endfunction()

function(vcpkg_copy_tools)
    cmake_parse_arguments(PARSE_ARGV 0 arg "AUTO_CLEAN" "" "TOOL_NAMES")
    foreach(tool ${arg_TOOL_NAMES})
        file(INSTALL ${CURRENT_PACKAGES_DIR}/bin/${tool} USE_SOURCE_PERMISSIONS
             DESTINATION ${CURRENT_PACKAGES_DIR}/tools/${PORT})
    endforeach()
    file(REMOVE_RECURSE ${CURRENT_PACKAGES_DIR}/bin)
endfunction()

function(vcpkg_install_copyright)
    cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "FILE_LIST")
    file(INSTALL ${arg_FILE_LIST} DESTINATION ${CURRENT_PACKAGES_DIR}/share/${PORT}
         RENAME copyright)
endfunction()

include(${PORTFILE})
