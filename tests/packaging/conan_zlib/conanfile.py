"""zlib of the system, in the place of ConanCenter's: the test needs no network."""
from conan import ConanFile


class ZlibConan(ConanFile):
    name = "zlib"
    version = "1.3.1"

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "ZLIB")
        self.cpp_info.set_property("cmake_target_name", "ZLIB::ZLIB")
        self.cpp_info.set_property("cmake_find_mode", "both")
        self.cpp_info.includedirs = []
        self.cpp_info.libdirs = []
        self.cpp_info.system_libs = ["z"]
