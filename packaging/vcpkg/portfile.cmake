vcpkg_download_distfile(archive
    URLS "@DOWNLOAD@/libsafetensors-@VERSION@-source.tar.gz"
    FILENAME "libsafetensors-@VERSION@-source.tar.gz"
    SHA512 @SOURCE_SHA512@)
vcpkg_extract_source_archive(source ARCHIVE "${archive}")

string(COMPARE EQUAL "${VCPKG_LIBRARY_LINKAGE}" "dynamic" shared)
string(COMPARE EQUAL "${VCPKG_LIBRARY_LINKAGE}" "static" static)
vcpkg_check_features(OUT_FEATURE_OPTIONS features FEATURES tools SFT_COMMAND)
vcpkg_cmake_configure(SOURCE_PATH "${source}"
    OPTIONS -DSFT_SHARED=${shared} -DSFT_STATIC=${static} -DSFT_ZLIB_PACKAGE=ON
            -DSFT_USE_CRYPTO=OFF ${features})
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(PACKAGE_NAME safetensors CONFIG_PATH lib/cmake/safetensors)
vcpkg_fixup_pkgconfig()

if("tools" IN_LIST FEATURES)
    vcpkg_copy_tools(TOOL_NAMES safetensors AUTO_CLEAN)
endif()
file(REMOVE_RECURSE
    "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share"
    "${CURRENT_PACKAGES_DIR}/share/bash-completion" "${CURRENT_PACKAGES_DIR}/share/doc"
    "${CURRENT_PACKAGES_DIR}/share/fish" "${CURRENT_PACKAGES_DIR}/share/man"
    "${CURRENT_PACKAGES_DIR}/share/zsh")
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${source}/LICENSE")
