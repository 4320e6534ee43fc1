/* safetensors.hpp: safetensors.h for C++17 and later; header only, over the C library.
 *
 * EXPERIMENTAL: docs/abi.md says what that means.
 *
 * Owners close what they hold; texts are std::string_view into the file; data is a span of a
 * type. Two ways to learn of errors: functions throw safetensors::error, and those that begin
 * with try_ return a result, which holds a value or an error. Without exceptions
 * (-fno-exceptions) only the second kind is there.
 *
 * Views, names and tensors belong to their file and end with it; moving a file keeps them. A file
 * may be used by any number of threads at once. Callbacks that are given to the C functions
 * (ticks, sources, sinks) must not throw.
 *
 *     safetensors::file file("model.safetensors", safetensors::mapped());
 *     for (safetensors::tensor t : file)
 *         std::cout << t.name() << ' ' << t.dtype_name() << '\n';
 *     safetensors::span<const float> bias = file.at("fc.bias").view<float>();
 *
 *     std::vector<float> w(6);
 *     safetensors::save("out.safetensors", { { "w", { 2, 3 }, w } }, { { "format", "pt" } }); */
#ifndef SFT_SAFETENSORS_HPP
#define SFT_SAFETENSORS_HPP

#if defined(_MSVC_LANG) ? _MSVC_LANG < 201703L : __cplusplus < 201703L
#error "safetensors.hpp needs C++17"
#endif

#include <safetensors.h>
#ifndef SFT_SAFETENSORS_H
#error "the safetensors.h found first is another library's: put libsafetensors' folder before it"
#endif

#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(__cpp_exceptions) || defined(_CPPUNWIND)
#define SFT_CPP_EXCEPTIONS 1
#include <exception>
#else
#define SFT_CPP_EXCEPTIONS 0
#endif

namespace safetensors {

/* ── Errors ──────────────────────────────────────────────────────────────── */

/* What went wrong, with the path that it concerns (empty for memory). what() is one line,
 * as of sft_error_text; details() is the C struct. */
class error
#if SFT_CPP_EXCEPTIONS
    : public std::exception
#endif
{
public:
    error(const sft_error &details, std::string_view path) : details_(details) {
        const std::string name(path);
        const char *shown = name.empty() ? nullptr : name.c_str();
        text_.resize(sft_error_text(&details_, shown, nullptr, 0));
        sft_error_text(&details_, shown, text_.data(), text_.size() + 1);
    }
#if SFT_CPP_EXCEPTIONS
    const char *what() const noexcept override { return text_.c_str(); }
#else
    const char *what() const noexcept { return text_.c_str(); }
#endif
    sft_code code() const noexcept { return details_.code; }
    sft_class code_class() const noexcept { return sft_code_describe(details_.code)->cls; }
    const sft_error &details() const noexcept { return details_; }

private:
    sft_error details_;
    std::string text_;
};

/* A value or an error. Test it before either is taken: *r of an error, and r.error() of a value,
 * are undefined. value() throws the error. */
template <typename T> class result {
public:
    result(T value) : value_(std::move(value)) {}
    result(safetensors::error failure) : error_(std::move(failure)) {}
    explicit operator bool() const noexcept { return value_.has_value(); }
    T &operator*() & noexcept { return *value_; }
    const T &operator*() const & noexcept { return *value_; }
    T &&operator*() && noexcept { return std::move(*value_); }
    T *operator->() noexcept { return &*value_; }
    const T *operator->() const noexcept { return &*value_; }
    const safetensors::error &error() const noexcept { return *error_; }
#if SFT_CPP_EXCEPTIONS
    T value() && {
        if (error_) throw *std::move(error_);
        return *std::move(value_);
    }
#endif

private:
    std::optional<T> value_;
    std::optional<safetensors::error> error_;
};

/* Success without a value, or an error. */
struct done {};

/* ── Spans and types ─────────────────────────────────────────────────────── */

/* Elements that lie one behind another and belong to something else; converts to std::span, as
 * every contiguous range does. */
template <typename T> class span {
public:
    using element_type = T;
    using value_type = std::remove_cv_t<T>;
    using iterator = T *;
    constexpr span() noexcept = default;
    constexpr span(T *data, std::size_t size) noexcept : data_(data), size_(size) {}
    constexpr T *data() const noexcept { return data_; }
    constexpr std::size_t size() const noexcept { return size_; }
    constexpr bool empty() const noexcept { return size_ == 0; }
    constexpr T *begin() const noexcept { return data_; }
    constexpr T *end() const noexcept { return data_ + size_; }
    constexpr T &operator[](std::size_t i) const noexcept { return data_[i]; }

private:
    T *data_ = nullptr;
    std::size_t size_ = 0;
};

/* The dtype whose elements a type has: dtype_of<float>::value. Specialise it for a type of your
 * own, a half for example, that has the same bytes. */
template <typename T> struct dtype_of;
template <> struct dtype_of<bool> : std::integral_constant<sft_dtype, SFT_BOOL> {};
template <> struct dtype_of<std::int8_t> : std::integral_constant<sft_dtype, SFT_I8> {};
template <> struct dtype_of<std::uint8_t> : std::integral_constant<sft_dtype, SFT_U8> {};
template <> struct dtype_of<std::int16_t> : std::integral_constant<sft_dtype, SFT_I16> {};
template <> struct dtype_of<std::uint16_t> : std::integral_constant<sft_dtype, SFT_U16> {};
template <> struct dtype_of<std::int32_t> : std::integral_constant<sft_dtype, SFT_I32> {};
template <> struct dtype_of<std::uint32_t> : std::integral_constant<sft_dtype, SFT_U32> {};
template <> struct dtype_of<std::int64_t> : std::integral_constant<sft_dtype, SFT_I64> {};
template <> struct dtype_of<std::uint64_t> : std::integral_constant<sft_dtype, SFT_U64> {};
template <> struct dtype_of<float> : std::integral_constant<sft_dtype, SFT_F32> {};
template <> struct dtype_of<double> : std::integral_constant<sft_dtype, SFT_F64> {};
template <> struct dtype_of<std::complex<float>> : std::integral_constant<sft_dtype, SFT_C64> {};
static_assert(sizeof(bool) == 1, "BOOL has one byte");

namespace detail {

inline std::string_view view_of(sft_span text) noexcept {
    return text.len ? std::string_view(text.data, text.len) : std::string_view();
}

inline sft_span span_of(std::string_view text) noexcept { return { text.data(), text.size() }; }

inline error refused(sft_code code, const sft_tensor *tensor, const char *why,
                     std::string_view path) {
    sft_error details = SFT_ERROR_INIT;
    sft_error_set(&details, code, 0, why);
    if (tensor) {
        std::size_t held = tensor->name.len < sizeof details.tensor ? tensor->name.len
                                                                     : sizeof details.tensor;
        while (held > 0 && held < tensor->name.len &&
               (static_cast<unsigned char>(tensor->name.data[held]) & 0xc0) == 0x80)
            held--;
        if (held) std::memcpy(details.tensor, tensor->name.data, held);
        details.tensor_len = static_cast<std::uint32_t>(held);
    }
    return error(details, path);
}

/* A path with a NUL byte would be another, shorter one in C. */
inline std::optional<error> cut_short(const std::string &path) {
    if (path.find('\0') == std::string::npos) return std::nullopt;
    return refused(SFT_BAD_ARGUMENT, nullptr, "expected a path without NUL bytes, found one", path);
}

inline bool is_little_endian() noexcept {
    const std::uint16_t one = 1;
    unsigned char first;
    std::memcpy(&first, &one, 1);
    return first == 1;
}

/* A file and its path, at a place that moving a file does not change. */
struct opened {
    sft_file *file = nullptr;
    std::string path;
    explicit opened(const std::string &name) : path(name) {}
    opened(const opened &) = delete;
    opened &operator=(const opened &) = delete;
    ~opened() { sft_close(file); }
};

} // namespace detail

/* ── Files ───────────────────────────────────────────────────────────────── */

class file;

/* A tensor of an open file: two pointers, to be passed by value. */
class tensor {
public:
    std::string_view name() const noexcept { return detail::view_of(row_->name); }
    span<const std::uint64_t> shape() const noexcept { return { row_->shape, row_->rank }; }
    sft_dtype dtype() const noexcept { return row_->dtype; }
    std::string_view dtype_name() const noexcept { return sft_dtype_describe(row_->dtype)->name; }
    std::uint64_t bytes() const noexcept { return sft_tensor_bytes(row_); }
    std::uint64_t elements() const noexcept { return sft_tensor_elements(row_); }
    std::uint64_t offset() const noexcept { return row_->offset; } /* in the file */
    const sft_tensor *get() const noexcept { return row_; }        /* for the C functions */

    /* The elements where they lie, without a copy. The file is mapped or in memory, the tensor
     * has T's dtype and is aligned for T, and the machine is little-endian; else SFT_NOT_MAPPED
     * or SFT_BAD_ARGUMENT: read() takes those. */
    template <typename T> result<span<const T>> try_view() const {
        static_assert(!std::is_same_v<T, bool>, "a file's byte may be no bool: use char or std::byte");
        if (std::optional<error> wrong = mismatch<T>()) return *std::move(wrong);
        sft_error e = SFT_ERROR_INIT;
        const void *data;
        if (sft_view(file_->file, row_, &data, &e)) return error(e, file_->path);
        if (reinterpret_cast<std::uintptr_t>(data) % alignof(T))
            return detail::refused(SFT_BAD_ARGUMENT, row_,
                                   "expected data aligned for its type, found an odd offset: "
                                   "read() copies it", file_->path);
        return span<const T>(static_cast<const T *>(data), row_->end == row_->begin ? 0 :
                             static_cast<std::size_t>(bytes() / sizeof(T)));
    }
    /* A copy of the elements, whatever the mode and alignment. */
    template <typename T> result<std::vector<T>> try_read() const {
        static_assert(!std::is_same_v<T, bool>, "std::vector<bool> has no bytes: use char or std::byte");
        if (std::optional<error> wrong = mismatch<T>()) return *std::move(wrong);
        std::vector<T> out;
        bool fits = bytes() / sizeof(T) <= out.max_size();
#if SFT_CPP_EXCEPTIONS
        try {
#endif
            if (fits) out.resize(static_cast<std::size_t>(bytes() / sizeof(T)));
#if SFT_CPP_EXCEPTIONS
        } catch (const std::bad_alloc &) {
            fits = false;
        }
#endif
        if (!fits)
            return detail::refused(SFT_OUT_OF_MEMORY, row_, "the tensor is larger than memory",
                                   file_->path);
        result<done> read = try_read_into(out.data(), out.size() * sizeof(T));
        if (!read) return read.error();
        return out;
    }
    /* Copy the bytes to memory of exactly bytes() bytes. */
    result<done> try_read_into(void *into, std::size_t len) const {
        sft_error e = SFT_ERROR_INIT;
        unsigned char none;
        if (sft_read_into(file_->file, row_, len || into ? into : &none, len, &e))
            return error(e, file_->path);
        return done();
    }
#if SFT_CPP_EXCEPTIONS
    template <typename T> span<const T> view() const { return try_view<T>().value(); }
    template <typename T> std::vector<T> read() const { return try_read<T>().value(); }
    void read_into(void *into, std::size_t len) const { try_read_into(into, len).value(); }
#endif

private:
    friend class file;
    tensor(const detail::opened *file, const sft_tensor *row) noexcept : file_(file), row_(row) {}

    /* T must be what the tensor holds; raw bytes may be had of any. */
    template <typename T> std::optional<error> mismatch() const {
        static_assert(std::is_trivially_copyable_v<T>, "elements are copied as bytes");
        constexpr bool raw = std::is_same_v<T, std::byte> || std::is_same_v<T, char>;
        if constexpr (!raw) {
            if (row_->dtype != dtype_of<T>::value)
                return detail::refused(
                    SFT_BAD_ARGUMENT, row_,
                    (std::string("expected ").append(sft_dtype_describe(dtype_of<T>::value)->name)
                         .append(", found ").append(dtype_name())).c_str(), file_->path);
            if (sizeof(T) > 1 && !detail::is_little_endian())
                return detail::refused(SFT_BAD_ARGUMENT, row_,
                                       "elements are little-endian, this machine is not",
                                       file_->path);
        }
        return std::nullopt;
    }

    const detail::opened *file_;
    const sft_tensor *row_;
};

/* Options of the C library, with its defaults, and the same that map the file. */
inline sft_open_options defaults() noexcept { return SFT_OPEN_OPTIONS_INIT; }
inline sft_open_options mapped() noexcept {
    sft_open_options options = SFT_OPEN_OPTIONS_INIT;
    options.mode = SFT_AUTO;
    return options;
}

/* An open, validated file. Can be moved, not copied; tensors stay valid when it moves. One that was
 * moved from may be assigned to and destroyed, nothing else. */
class file {
public:
    /* Tensors in the order of their bytes. */
    class iterator {
    public:
        using iterator_category = std::input_iterator_tag;
        using value_type = tensor;
        using difference_type = std::ptrdiff_t;
        using pointer = void;
        using reference = tensor;
        iterator() noexcept = default;
        tensor operator*() const noexcept {
            return tensor(of_, sft_file_tensor_at(of_->file, at_));
        }
        iterator &operator++() noexcept {
            at_++;
            return *this;
        }
        iterator operator++(int) noexcept {
            iterator before = *this;
            at_++;
            return before;
        }
        bool operator==(const iterator &other) const noexcept { return at_ == other.at_; }
        bool operator!=(const iterator &other) const noexcept { return at_ != other.at_; }

    private:
        friend class file;
        iterator(const detail::opened *of, std::size_t at) noexcept : of_(of), at_(at) {}
        const detail::opened *of_ = nullptr;
        std::size_t at_ = 0;
    };

    static result<file> try_open(const std::string &path,
                                 const sft_open_options &options = defaults()) {
        if (std::optional<error> wrong = detail::cut_short(path)) return *std::move(wrong);
        file made(new detail::opened(path));
        sft_error e = SFT_ERROR_INIT;
        if (sft_open(path.c_str(), &options, &made.of_->file, &e)) return error(e, path);
        return made;
    }
    /* Over memory, which must stay as it is until the file is closed. */
    static result<file> try_open_memory(const void *bytes, std::size_t len,
                                        const sft_open_options &options = defaults()) {
        file made(new detail::opened(""));
        sft_error e = SFT_ERROR_INIT;
        if (sft_open_memory(bytes, len, &options, &made.of_->file, &e))
            return error(e, "");
        return made;
    }
#if SFT_CPP_EXCEPTIONS
    explicit file(const std::string &path, const sft_open_options &options = defaults())
        : file(try_open(path, options).value()) {}
    static file open_memory(const void *bytes, std::size_t len,
                            const sft_open_options &options = defaults()) {
        return try_open_memory(bytes, len, options).value();
    }
    /* The tensor of that name; SFT_TENSOR_NOT_FOUND. */
    tensor at(std::string_view name) const {
        if (std::optional<tensor> found = find(name)) return *found;
        sft_tensor asked{};
        asked.name = detail::span_of(name);
        throw detail::refused(SFT_TENSOR_NOT_FOUND, &asked, "there is no tensor of that name",
                              of_->path);
    }
#endif
    file(file &&other) noexcept : of_(std::exchange(other.of_, nullptr)) {}
    file &operator=(file &&other) noexcept {
        std::swap(of_, other.of_);
        return *this;
    }
    file(const file &) = delete;
    file &operator=(const file &) = delete;
    ~file() { delete of_; }

    std::size_t size() const noexcept { return sft_file_tensor_count(of_->file); }
    bool empty() const noexcept { return size() == 0; }
    iterator begin() const noexcept { return iterator(of_, 0); }
    iterator end() const noexcept { return iterator(of_, size()); }
    tensor operator[](std::size_t i) const noexcept { /* i < size() */
        return tensor(of_, sft_file_tensor_at(of_->file, i));
    }
    std::optional<tensor> find(std::string_view name) const noexcept {
        const sft_tensor *row = sft_file_find(of_->file, detail::span_of(name));
        return row ? std::optional<tensor>(tensor(of_, row)) : std::nullopt;
    }
    std::optional<std::string_view> metadata(std::string_view key) const noexcept {
        sft_span value;
        if (!sft_file_metadata_get(of_->file, detail::span_of(key), &value)) return std::nullopt;
        return detail::view_of(value);
    }
    std::vector<std::pair<std::string_view, std::string_view>> metadata() const {
        std::vector<std::pair<std::string_view, std::string_view>> pairs;
        for (std::size_t i = 0; i < sft_file_metadata_count(of_->file); i++) {
            const sft_pair pair = sft_file_metadata_at(of_->file, i);
            pairs.emplace_back(detail::view_of(pair.key), detail::view_of(pair.value));
        }
        return pairs;
    }
    const std::string &path() const noexcept { return of_->path; }
    sft_file *get() const noexcept { return of_->file; } /* for the C functions */

private:
    explicit file(detail::opened *of) noexcept : of_(of) {}
    detail::opened *of_;
};

/* ── Saving ──────────────────────────────────────────────────────────────── */

/* A tensor to be saved: its name, shape, and elements, of which nothing is copied. They must
 * outlive the call that saves them. */
class array {
public:
    array(std::string_view name, std::initializer_list<std::uint64_t> shape, sft_dtype dtype,
          const void *data, std::size_t bytes)
        : name_(name), shape_(shape), dtype_(dtype), data_(data), bytes_(bytes) {}
    array(std::string_view name, std::vector<std::uint64_t> shape, sft_dtype dtype,
          const void *data, std::size_t bytes)
        : name_(name), shape_(std::move(shape)), dtype_(dtype), data_(data), bytes_(bytes) {}
    /* Takes a std::vector, std::array, std::span or the like. */
    template <typename Range, typename T = std::remove_cv_t<std::remove_pointer_t<
                                  decltype(std::declval<const Range &>().data())>>>
    array(std::string_view name, std::initializer_list<std::uint64_t> shape, const Range &elements)
        : array(name, shape, dtype_of<T>::value, elements.data(), elements.size() * sizeof(T)) {}
    template <typename Range, typename T = std::remove_cv_t<std::remove_pointer_t<
                                  decltype(std::declval<const Range &>().data())>>>
    array(std::string_view name, std::vector<std::uint64_t> shape, const Range &elements)
        : array(name, std::move(shape), dtype_of<T>::value, elements.data(),
                elements.size() * sizeof(T)) {}

private:
    friend result<done> try_save(const std::string &, const std::vector<array> &,
                                 const std::vector<std::pair<std::string, std::string>> &,
                                 const sft_path_options *);
    std::string_view name_;
    std::vector<std::uint64_t> shape_;
    sft_dtype dtype_;
    const void *data_;
    std::size_t bytes_;
};

using pairs = std::vector<std::pair<std::string, std::string>>;

/* Write a file of these arrays: complete, or not at all (sft_sink_path). SFT_BUFFER_SIZE: an array
 * has another number of bytes than its shape asks for; SFT_TENSOR_DUPLICATE. */
inline result<done> try_save(const std::string &path, const std::vector<array> &arrays,
                             const pairs &metadata = {},
                             const sft_path_options *options = nullptr) {
    if (std::optional<error> wrong = detail::cut_short(path)) return *std::move(wrong);
    std::vector<sft_array> all;
    std::vector<sft_pair> told;
    sft_error e = SFT_ERROR_INIT;
    all.reserve(arrays.size());
    for (const array &a : arrays) {
        sft_array one{};
        one.spec.name = detail::span_of(a.name_);
        one.spec.dtype = a.dtype_;
        one.spec.shape = a.shape_.data();
        one.spec.rank = static_cast<std::uint32_t>(a.shape_.size());
        one.data = a.data_;
        one.len = a.bytes_;
        const sft_dtype_info *info = sft_dtype_describe(a.dtype_);
        if (a.bytes_ && info && info->bits > 8 && !detail::is_little_endian()) {
            sft_tensor named{};
            named.name = one.spec.name;
            return detail::refused(SFT_BAD_ARGUMENT, &named,
                                   "elements are little-endian, this machine is not", path);
        }
        all.push_back(one);
    }
    for (const auto &[key, value] : metadata)
        told.push_back({ detail::span_of(key), detail::span_of(value) });
    if (sft_save_arrays(path.c_str(), all.data(), all.size(), told.data(), told.size(), options,
                        nullptr, &e))
        return error(e, path);
    return done();
}

#if SFT_CPP_EXCEPTIONS
inline void save(const std::string &path, const std::vector<array> &arrays,
                 const pairs &metadata = {}, const sft_path_options *options = nullptr) {
    try_save(path, arrays, metadata, options).value();
}
#endif

} // namespace safetensors

#endif
