# Homebrew formula: the library, the command, manual pages and completion.
class Libsafetensors < Formula
  desc "Open, check, slice and write .safetensors files"
  homepage "@HOMEPAGE@"
  url "@DOWNLOAD@/libsafetensors-@VERSION@-source.tar.gz"
  sha256 "@SOURCE_SHA256@"
  license "Apache-2.0"

  depends_on "cmake" => :build
  depends_on "ninja" => :build
  uses_from_macos "zlib"

  def install
    system "cmake", "-S", ".", "-B", "build", "-G", "Ninja", "-DSFT_ZLIB_PACKAGE=ON",
                    "-DSFT_USE_CRYPTO=OFF", *std_cmake_args
    system "cmake", "--build", "build"
    system "cmake", "--install", "build"
  end

  test do
    header = '{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'.ljust(72)
    (testpath/"model.safetensors").binwrite([header.bytesize].pack("Q<") + header + [1, 2].pack("e2"))
    assert_equal "1 2", shell_output("#{bin}/safetensors cat model.safetensors w").strip
    system bin/"safetensors", "check", "model.safetensors"
    (testpath/"test.c").write <<~C
      #include <safetensors.h>
      int main(void) { return sft_version()[0] == 0; }
    C
    system ENV.cc, "test.c", "-I#{include}", "-L#{lib}", "-lsafetensors", "-o", "test"
    system "./test"
  end
end
