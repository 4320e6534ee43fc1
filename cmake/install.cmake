# Headers, libraries, command, pkg-config, CMake package, man pages, documents, completions.
include(CMakePackageConfigHelpers)
set(sft_package ${CMAKE_INSTALL_LIBDIR}/cmake/safetensors)

install(FILES ${SFT_PUBLIC_HEADERS} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
set(sft_libraries "")
if(SFT_STATIC)
    list(APPEND sft_libraries safetensors_static)
endif()
if(SFT_SHARED)
    list(APPEND sft_libraries safetensors_shared)
endif()
# Pages of section 3, made from the headers, where there is a man to read them.
find_program(SFT_PYTHON NAMES python3 python)
if(SFT_PYTHON AND NOT WIN32 AND NOT DEFINED SKBUILD AND
   EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/tools/manual3.py)
    set(sft_manual3 ${CMAKE_CURRENT_BINARY_DIR}/man3)
    add_custom_command(
        OUTPUT ${sft_manual3}/safetensors.3
        COMMAND ${CMAKE_COMMAND} -E rm -rf ${sft_manual3}
        COMMAND ${SFT_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/tools/manual3.py ${sft_manual3}
                ${SFT_PUBLIC_HEADERS}
        DEPENDS tools/manual3.py cli/support/help.c ${SFT_PUBLIC_HEADERS} VERBATIM)
    add_custom_target(manual3 ALL DEPENDS ${sft_manual3}/safetensors.3)
    install(DIRECTORY ${sft_manual3}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man3
            FILES_MATCHING PATTERN "*.3")
endif()
install(TARGETS ${sft_libraries} EXPORT safetensorsTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(EXPORT safetensorsTargets NAMESPACE safetensors:: DESTINATION ${sft_package})

set(SFT_NEEDS_THREADS "")
set(sft_threads_flag "")
if(sft_threads)
    set(SFT_NEEDS_THREADS "find_dependency(Threads)")
    set(sft_threads_flag " -pthread")
endif()
configure_package_config_file(cmake/safetensorsConfig.cmake.in safetensorsConfig.cmake
                              INSTALL_DESTINATION ${sft_package}
                              NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(safetensorsConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/safetensorsConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/safetensorsConfigVersion.cmake
        DESTINATION ${sft_package})

# Paths relative to the .pc file, so that an installed tree can be moved.
file(RELATIVE_PATH SFT_PC_PREFIX /root/${CMAKE_INSTALL_LIBDIR}/pkgconfig /root)
string(REGEX REPLACE "/$" "" SFT_PC_PREFIX "${SFT_PC_PREFIX}")
set(SFT_PC_LIBRARIES ${SFT_FOUND_LIBRARIES} ${sft_host_libraries})
set(SFT_PC_REQUIRES "")
if("ZLIB::ZLIB" IN_LIST SFT_FOUND_LIBRARIES)
    list(REMOVE_ITEM SFT_PC_LIBRARIES ZLIB::ZLIB)
    set(SFT_PC_REQUIRES zlib)
endif()
list(TRANSFORM SFT_PC_LIBRARIES PREPEND " -l")
list(JOIN SFT_PC_LIBRARIES "" SFT_PC_LIBRARIES)
string(APPEND SFT_PC_LIBRARIES "${sft_threads_flag}")
set(SFT_PC_PREFIX_FLAG "")
if(SFT_PREFIX)
    set(SFT_PC_PREFIX_FLAG " -DSFT_PREFIX=${SFT_PREFIX}")
endif()
configure_file(cmake/safetensors.pc.in safetensors.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/safetensors.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

if(TARGET safetensors_command)
    install(TARGETS safetensors_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
    file(GLOB sft_pages CONFIGURE_DEPENDS man/*.5)
    install(FILES ${sft_pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man5)
    # What desktops know the files by, and file(1).
    if(UNIX AND NOT APPLE AND NOT DEFINED SKBUILD)
        set(sft_desktop packaging/desktop/safetensors)
        install(FILES ${sft_desktop}.xml DESTINATION ${CMAKE_INSTALL_DATADIR}/mime/packages)
        install(FILES ${sft_desktop}.thumbnailer DESTINATION ${CMAKE_INSTALL_DATADIR}/thumbnailers)
        install(FILES ${sft_desktop}.magic DESTINATION ${CMAKE_INSTALL_DATADIR}/file/magic
                RENAME safetensors)
    endif()
endif()
if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/docs)
    install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR}
            FILES_MATCHING PATTERN "*.md" PATTERN "*.svg" PATTERN "*.png" PATTERN "*.json")
    install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
    install(DIRECTORY examples/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples
            FILES_MATCHING PATTERN "example_*.c" PATTERN "port_*.c" PATTERN "README.md"
            PATTERN "models" EXCLUDE PATTERN "python" EXCLUDE)
    install(CODE "set(docs \"${CMAKE_INSTALL_DOCDIR}\")")
    install(SCRIPT cmake/installed_docs.cmake)
endif()
if(TARGET manual)
    set(sft_made ${CMAKE_CURRENT_BINARY_DIR})
    set(sft_completions ${sft_made}/completions)
    install(DIRECTORY ${sft_made}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1
            FILES_MATCHING PATTERN "*.1")
    install(FILES ${sft_completions}/safetensors
            DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
    install(FILES ${sft_completions}/_safetensors
            DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
    install(FILES ${sft_completions}/safetensors.fish
            DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()
