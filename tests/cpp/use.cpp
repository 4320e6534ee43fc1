/* What safetensors.hpp promises, with exceptions and without. argv[1]: an empty folder. */
#include <safetensors.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#if defined(__unix__)
#include <sys/resource.h>
#endif
#if __cplusplus >= 202002L
#include <span>
#endif

namespace st = safetensors;

static int passed, failures;

#define CHECK(what) ((what) ? (void)passed++ : (void)(failures++, std::printf("FAIL %s\n", #what)))

struct half {
    std::uint16_t bits;
};
template <> struct st::dtype_of<half> : std::integral_constant<sft_dtype, SFT_F16> {};

static const std::vector<float> weights = { 1, 2, 3, 4, 5, 6 };
static const std::array<std::int64_t, 2> ids = { { -1, 7 } };
static const std::vector<half> halves = { { 0x3c00 } };
static const std::vector<double> nothing;

static std::vector<st::array> arrays() {
    return { { "w", { 2, 3 }, weights }, { "ids", { 2 }, ids }, { "h", { 1 }, halves },
             { "none", { 0, 4 }, nothing } };
}

static void results(const std::string &folder) {
    const std::string path = folder + "/a.safetensors";
    CHECK(bool(st::try_save(path, arrays(), { { "format", "pt" }, { "a\nb", "" } })));
    st::result<st::file> opened = st::file::try_open(path, st::mapped());
    CHECK(bool(opened));
    if (!opened) return;
    const st::file file = *std::move(opened);
    CHECK(file.size() == 4 && !file.empty() && file.path() == path && file.get());
    CHECK(file.metadata("format") == "pt" && !file.metadata("absent"));
    CHECK(file.metadata().size() == 2 && file.metadata()[0].first == "a\nb");

    std::size_t seen = 0, bytes = 0;
    for (st::tensor t : file) {
        seen++;
        bytes += static_cast<std::size_t>(t.bytes());
        CHECK(file.find(t.name()).has_value() && file.find(t.name())->get() == t.get());
    }
    CHECK(seen == 4 && bytes == 24 + 16 + 2);
    CHECK(std::distance(file.begin(), file.end()) == 4 && file[0].get() == (*file.begin()).get());

    const st::tensor w = *file.find("w");
    CHECK(w.name() == "w" && w.dtype() == SFT_F32 && w.dtype_name() == "F32");
    CHECK(w.elements() == 6 && w.shape().size() == 2 && w.shape()[1] == 3);
    st::result<st::span<const float>> seen_in_place = w.try_view<float>();
    CHECK(seen_in_place && std::equal(weights.begin(), weights.end(), seen_in_place->begin()));
#if __cplusplus >= 202002L
    std::span<const float> standard = *seen_in_place;
    CHECK(standard.size() == 6 && standard[5] == 6);
#endif
    st::result<std::vector<float>> copied = w.try_read<float>();
    CHECK(copied && *copied == weights);
    CHECK(file.find("ids")->try_read<std::int64_t>()->at(1) == 7);
    CHECK(file.find("h")->try_read<half>()->at(0).bits == 0x3c00);
    CHECK(file.find("none")->elements() == 0 && file.find("none")->try_view<double>()->empty());
    CHECK(file.find("none")->try_read<double>()->empty());
    CHECK(w.try_view<char>()->size() == 24 && w.try_read<std::byte>()->size() == 24);

    st::result<std::vector<double>> wrong = w.try_read<double>();
    CHECK(!wrong && wrong.error().code() == SFT_BAD_ARGUMENT);
    CHECK(std::string(wrong.error().what()) == path + ": tensor \"w\": expected F64, found F32");
    float few[2];
    st::result<st::done> small = w.try_read_into(few, sizeof few);
    CHECK(!small && small.error().code() == SFT_BUFFER_SIZE);

    st::result<st::file> by_reads = st::file::try_open(path);
    CHECK(by_reads && !by_reads->find("w")->try_view<float>() &&
          *by_reads->find("w")->try_read<float>() == weights);

    /* Moved to and fro, a file keeps its tensors. */
    const st::tensor kept = *by_reads->find("w");
    st::file moved = *std::move(by_reads);
    st::file again = std::move(moved);
    CHECK(again.find("w")->get() == kept.get() && *kept.try_read<float>() == weights);
}

static void errors(const std::string &folder) {
    const std::string path = folder + "/b.safetensors", absent = folder + "/absent.safetensors";
    st::result<st::file> none = st::file::try_open(absent);
    CHECK(!none && none.error().code() == SFT_NOT_FOUND &&
          none.error().code_class() == SFT_CLASS_IO);
    CHECK(std::string(none.error().what()).rfind(absent + ": ", 0) == 0);
    CHECK(!st::file::try_open_memory("12345", 5));
    CHECK(st::file::try_open_memory("\2\0\0\0\0\0\0\0{}", 10)->empty());

    st::result<st::done> twice = st::try_save(path, { { "w", { 6 }, weights },
                                                      { "w", { 6 }, weights } });
    CHECK(!twice && twice.error().code() == SFT_TENSOR_DUPLICATE);
    st::result<st::done> odd = st::try_save(path, { { "a\x1b""b", { 7 }, weights } });
    CHECK(!odd && odd.error().code() == SFT_BUFFER_SIZE);
    CHECK(std::string(odd.error().what()) ==
          path + ": tensor \"a\\x1bb\": expected 28 bytes, found 24");
    CHECK(!st::file::try_open(path)); /* nothing was left behind */
    const std::string hidden = path + std::string("\0.txt", 5);
    st::result<st::done> shorter = st::try_save(hidden, { { "w", { 6 }, weights } });
    CHECK(!shorter && shorter.error().code() == SFT_BAD_ARGUMENT);
    CHECK(!st::file::try_open(path));
    CHECK(!st::file::try_open(folder + "/a.safetensors" + std::string("\0.txt", 5)));
    const std::string name(300, 'n');
    st::result<st::done> cut = st::try_save(path, { { name, { 7 }, weights } });
    CHECK(!cut && std::string(cut.error().what()).find("nnn\": ") != std::string::npos);
    const std::vector<std::uint64_t> many(70, 1);
    const std::vector<float> one(1);
    CHECK(!st::try_save(path, { { "w", many, one } }));
}

#if SFT_CPP_EXCEPTIONS && defined(__unix__)
/* A tensor that memory has no room for is an error like others. */
static void large(const std::string &folder) {
    const std::string path = folder + "/large.safetensors";
    const std::string header =
        "{\"w\":{\"dtype\":\"U8\",\"shape\":[8589934592],\"data_offsets\":[0,8589934592]}}";
    std::ofstream out(path, std::ios::binary);
    out << static_cast<char>(header.size()) << std::string(7, '\0') << header;
    out.seekp(static_cast<std::streamoff>(8 + header.size()) + 8589934591);
    out << '\0';
    out.close();
    st::result<st::file> file = st::file::try_open(path);
    CHECK(bool(file));
    rlimit before, few;
    getrlimit(RLIMIT_AS, &before);
    few = before;
    few.rlim_cur = 1 << 30;
    setrlimit(RLIMIT_AS, &few);
    st::result<std::vector<std::uint8_t>> read = file->find("w")->try_read<std::uint8_t>();
    setrlimit(RLIMIT_AS, &before);
    CHECK(!read && read.error().code() == SFT_OUT_OF_MEMORY);
    std::remove(path.c_str());
}
#endif

#if SFT_CPP_EXCEPTIONS
static void exceptions(const std::string &folder) {
    const std::string path = folder + "/c.safetensors";
    st::save(path, arrays());
    const st::file file(path, st::mapped());
    CHECK(file.at("w").view<float>().size() == 6 && file.at("w").read<float>() == weights);
    bool caught = false;
    try {
        (void)file.at("nobody");
    } catch (const st::error &e) {
        caught = e.code() == SFT_TENSOR_NOT_FOUND &&
                 std::string(e.what()).find("tensor \"nobody\"") != std::string::npos;
    }
    CHECK(caught);
    caught = false;
    try {
        st::file none(folder + "/none.safetensors");
    } catch (const std::exception &e) {
        caught = std::string(e.what()).find("none.safetensors: ") != std::string::npos;
    }
    CHECK(caught);
    caught = false;
    try {
        (void)file.at("w").view<std::int32_t>();
    } catch (const st::error &) {
        caught = true;
    }
    CHECK(caught);
    const st::file memory = st::file::open_memory("\2\0\0\0\0\0\0\0{}", 10);
    CHECK(memory.empty() && memory.path().empty());
}
#endif

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    results(argv[1]);
    errors(argv[1]);
#if SFT_CPP_EXCEPTIONS && defined(__unix__)
    large(argv[1]);
#endif
#if SFT_CPP_EXCEPTIONS
    exceptions(argv[1]);
#endif
    std::printf("%d passed, %d failed\n", passed, failures);
    return failures != 0;
}
