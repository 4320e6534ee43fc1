from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, get, rmdir

required_conan_version = ">=2"


class LibsafetensorsConan(ConanFile):
    name = "libsafetensors"
    description = "Open, check, slice and write .safetensors files"
    license = "Apache-2.0"
    homepage = "@HOMEPAGE@"
    url = "@HOMEPAGE@"
    topics = ("safetensors", "tensors", "machine-learning")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "fPIC": [True, False], "with_zlib": [True, False],
               "tools": [True, False]}
    default_options = {"shared": False, "fPIC": True, "with_zlib": True, "tools": False}
    implements = ["auto_shared_fpic"]
    languages = "C"

    def validate(self):
        if self.settings.compiler == "msvc":
            raise ConanInvalidConfiguration(f"{self.ref} needs gcc or clang: it is C11 with "
                                            "their extensions")

    def layout(self):
        cmake_layout(self, src_folder="src")

    def requirements(self):
        if self.options.with_zlib:
            self.requires("zlib/[>=1.2.11 <2]")

    def source(self):
        get(self, **self.conan_data["sources"][self.version], strip_root=True)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["SFT_COMMAND"] = bool(self.options.tools)
        toolchain.cache_variables["SFT_SHARED"] = bool(self.options.shared)
        toolchain.cache_variables["SFT_STATIC"] = not self.options.shared
        toolchain.cache_variables["SFT_USE_CRYPTO"] = False
        toolchain.cache_variables["SFT_USE_ZLIB"] = bool(self.options.with_zlib)
        toolchain.cache_variables["SFT_ZLIB_PACKAGE"] = bool(self.options.with_zlib)
        toolchain.generate()
        CMakeDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, f"{self.package_folder}/licenses")
        rmdir(self, f"{self.package_folder}/lib/cmake")
        rmdir(self, f"{self.package_folder}/lib/pkgconfig")
        rmdir(self, f"{self.package_folder}/share")

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "safetensors")
        self.cpp_info.set_property("cmake_target_name", "safetensors::safetensors")
        self.cpp_info.set_property("pkg_config_name", "safetensors")
        self.cpp_info.libs = ["safetensors"]
        if self.settings.os in ("Linux", "FreeBSD"):
            self.cpp_info.system_libs = ["pthread", "dl"]
        if self.settings.os == "Windows":
            self.cpp_info.system_libs = ["ntdll"]
