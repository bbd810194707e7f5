#pragma once

#include <tapegraph/formats/file.hpp>
#include <tapegraph/formats/host_array.hpp>
#include <tapegraph/formats/path.hpp>

#if !__has_include(<hdf5.h>)
#error "tapegraph/formats/hdf5_file.hpp: needs HDF5 (Debian: libhdf5-dev; CMake: tapegraph::hdf5)"
#endif
#include <hdf5.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

/// Reads HDF5 files through the HDF5 library's C functions: groups, text attributes and numeric
/// data sets. That library is not made to withstand malicious files; what it would open beside the
/// file (external files, links to others, filter plugins) is refused here.

namespace tapegraph::io {

namespace detail {

/// An identifier of the library, which the destructor closes.
class hdf5_id {
public:
    hdf5_id() = default;
    hdf5_id(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
    hdf5_id(hdf5_id&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
    hdf5_id& operator=(hdf5_id&& other) noexcept {
        std::swap(id_, other.id_);
        std::swap(close_, other.close_);
        return *this;
    }
    ~hdf5_id() {
        if (id_ >= 0) close_(id_);
    }
    explicit operator bool() const { return id_ >= 0; }
    hid_t get() const { return id_; }

private:
    hid_t id_ = -1;
    herr_t (*close_)(hid_t) = nullptr;
};

/// Keeps the library from printing its errors while it lives.
class hdf5_silence {
public:
    hdf5_silence() {
        H5Eget_auto2(H5E_DEFAULT, &function_, &data_);
        H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    }
    hdf5_silence(const hdf5_silence&) = delete;
    hdf5_silence& operator=(const hdf5_silence&) = delete;
    ~hdf5_silence() { H5Eset_auto2(H5E_DEFAULT, function_, data_); }

private:
    H5E_auto2_t function_ = nullptr;
    void* data_ = nullptr;
};

} // namespace detail

/// An HDF5 file opened for reading, from disk or from memory. Use it from one thread at a time.
class hdf5_file {
public:
    explicit hdf5_file(const files::path& path) : name_(detail::quoted(path)), bytes_(detail::file_size_of(path)) {
        file_ = {H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose};
        if (!file_) throw data_error(name_ + ": not an HDF5 file, or a damaged one");
    }
    /// Reads bytes in memory, which are copied; `name` is for messages.
    hdf5_file(std::span<const std::byte> image, std::string name) : name_(std::move(name)), bytes_(image.size()) {
        const detail::hdf5_id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
        constexpr std::size_t step = 1 << 16;
        if (image.empty() || H5Pset_fapl_core(access.get(), step, false) < 0 ||
            H5Pset_file_image(access.get(), const_cast<std::byte*>(image.data()), image.size()) < 0)
            throw data_error(name_ + ": not an HDF5 file");
        file_ = {H5Fopen("memory", H5F_ACC_RDONLY, access.get()), H5Fclose};
        if (!file_) throw data_error(name_ + ": not an HDF5 file, or a damaged one");
    }

    /// The path as it was given.
    const std::string& name() const { return name_; }

    /// What stands at a path of the file.
    enum class kind { none, group, array };
    /// The kind of the object at a path; links to other files and elsewhere count as none.
    kind kind_of(const std::string& path) const {
        const detail::hdf5_id object(H5Oopen(file_.get(), path.c_str(), H5P_DEFAULT), H5Oclose);
        if (!object) return kind::none;
        const H5I_type_t type = H5Iget_type(object.get());
        return type == H5I_GROUP ? kind::group : type == H5I_DATASET ? kind::array : kind::none;
    }
    /// The names in a group, in alphabetical order. Throws data_error where the library cannot read
    /// it.
    std::vector<std::string> names(const std::string& path) const {
        const detail::hdf5_id group(H5Gopen2(file_.get(), path.c_str(), H5P_DEFAULT), H5Gclose);
        H5G_info_t info{};
        if (!group || H5Gget_info(group.get(), &info) < 0)
            throw data_error(name_ + ": group '" + path + "' cannot be read");
        std::vector<std::string> result;
        for (hsize_t i = 0; i < info.nlinks; ++i) {
            H5L_info_t link{};
            if (H5Lget_info_by_idx(group.get(), ".", H5_INDEX_NAME, H5_ITER_INC, i, &link, H5P_DEFAULT) < 0)
                throw data_error(name_ + ": group '" + path + "' cannot be read");
            if (link.type != H5L_TYPE_HARD) continue; // a link that leads elsewhere
            const ssize_t length =
                H5Lget_name_by_idx(group.get(), ".", H5_INDEX_NAME, H5_ITER_INC, i, nullptr, 0, H5P_DEFAULT);
            std::string name(length < 0 ? 0 : static_cast<std::size_t>(length), '\0');
            if (length < 0 || H5Lget_name_by_idx(group.get(), ".", H5_INDEX_NAME, H5_ITER_INC, i, name.data(),
                                                 name.size() + 1, H5P_DEFAULT) < 0)
                throw data_error(name_ + ": group '" + path + "' cannot be read");
            result.push_back(std::move(name));
        }
        return result;
    }

    /// The texts of an attribute, one or a list; empty if there is no such attribute or it is not
    /// text.
    std::vector<std::string> texts(const std::string& path, const std::string& attribute) const {
        std::vector<std::string> result;
        if (H5Aexists_by_name(file_.get(), path.c_str(), attribute.c_str(), H5P_DEFAULT) <= 0) return result;
        const detail::hdf5_id a(H5Aopen_by_name(file_.get(), path.c_str(), attribute.c_str(), H5P_DEFAULT, H5P_DEFAULT),
                                H5Aclose);
        if (!a) return result;
        const detail::hdf5_id type(H5Aget_type(a.get()), H5Tclose), space(H5Aget_space(a.get()), H5Sclose);
        const hssize_t count = space ? H5Sget_simple_extent_npoints(space.get()) : 0;
        if (!type || H5Tget_class(type.get()) != H5T_STRING || count <= 0 || static_cast<std::uint64_t>(count) > bytes_)
            return result;
        if (H5Tis_variable_str(type.get()) > 0) {
            const detail::hdf5_id as(H5Tcopy(H5T_C_S1), H5Tclose);
            H5Tset_size(as.get(), H5T_VARIABLE);
            H5Tset_cset(as.get(), H5Tget_cset(type.get()));
            std::vector<char*> pointers(static_cast<std::size_t>(count), nullptr);
            if (H5Aread(a.get(), as.get(), pointers.data()) < 0) return result;
            for (const char* const text : pointers) result.emplace_back(text == nullptr ? "" : text);
            H5Dvlen_reclaim(as.get(), space.get(), H5P_DEFAULT, pointers.data());
            return result;
        }
        const std::size_t width = H5Tget_size(type.get());
        if (width == 0 || width > bytes_ / static_cast<std::size_t>(count)) return result;
        std::string all(width * static_cast<std::size_t>(count), '\0');
        if (H5Aread(a.get(), type.get(), all.data()) < 0) return result;
        for (std::size_t at = 0; at < all.size(); at += width) {
            const std::string text = all.substr(at, width);
            result.push_back(text.substr(0, text.find('\0')));
        }
        return result;
    }

    /// The extents of a data set; -1 for one beyond 63 bits. Throws data_error if it cannot be
    /// read.
    std::vector<std::int64_t> shape_of(const std::string& path) const { return open_array(path).shape; }
    /// Why the elements of a data set are not read: "texts are not read". Empty if they are. Throws
    /// data_error as shape_of does.
    std::string unread_reason(const std::string& path) const {
        const opened set = open_array(path);
        const element_type found = element_of(path, set.type.get());
        return found.memory < 0 ? found.reason + " are not read" : std::string();
    }

    /// Reads a data set of numbers. 16-bit floats are read as f32, h5py's booleans as boolean,
    /// Keras's bfloat16 as such. Throws data_error, naming file and data set, if it is damaged,
    /// larger than the file can hold, outside the file, or packed by filters other than the
    /// library's own; dtype_error if it holds no numbers that this library has.
    host_array array(const std::string& path) const {
        opened set = open_array(path);
        const element_type found = element_of(path, set.type.get());
        if (found.memory < 0) throw dtype_error(set.what + ": " + found.reason + " are not read");
        std::int64_t size = 0;
        if (!checked_size(set.shape, size_of(found.type), size))
            throw data_error(set.what + ": impossible shape " + shape_text(set.shape));
        check_storage(set.made.get(), static_cast<std::uint64_t>(size) * size_of(found.type), set.what);
        host_array result = host_array::zeros(found.type, std::move(set.shape));
        if (size > 0 && H5Dread(set.id.get(), found.memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, result.bytes.data()) < 0)
            throw data_error(set.what + ": cannot be read");
        if (found.type == dtype::boolean)
            for (std::byte& b : result.bytes) b = b == std::byte{0} ? std::byte{0} : std::byte{1};
        return result;
    }

private:
    struct opened {
        std::string what;
        detail::hdf5_id id, type, made;
        std::vector<std::int64_t> shape;
    };
    opened open_array(const std::string& path) const {
        opened set{name_ + ", data set '" + path + "'",
                   {H5Dopen2(file_.get(), path.c_str(), H5P_DEFAULT), H5Dclose},
                   {},
                   {},
                   {}};
        if (!set.id) throw data_error(set.what + ": cannot be read");
        const detail::hdf5_id space(H5Dget_space(set.id.get()), H5Sclose);
        set.type = {H5Dget_type(set.id.get()), H5Tclose};
        set.made = {H5Dget_create_plist(set.id.get()), H5Pclose};
        const int rank = space ? H5Sget_simple_extent_ndims(space.get()) : -1;
        if (rank < 0 || rank > H5S_MAX_RANK || !set.type || !set.made) throw data_error(set.what + ": cannot be read");
        std::vector<hsize_t> extents(static_cast<std::size_t>(rank) + 1);
        H5Sget_simple_extent_dims(space.get(), extents.data(), nullptr);
        for (int i = 0; i < rank; ++i) {
            const hsize_t extent = extents[static_cast<std::size_t>(i)];
            set.shape.push_back(extent > INT64_MAX ? -1 : static_cast<std::int64_t>(extent));
        }
        return set;
    }

    void check_storage(hid_t made, std::uint64_t bytes, const std::string& what) const {
        const H5D_layout_t layout = H5Pget_layout(made);
        if (H5Pget_external_count(made) != 0 || layout == H5D_VIRTUAL) throw data_error(what + ": lies in other files");
        const int filters = H5Pget_nfilters(made);
        for (int i = 0; i < filters; ++i) {
            unsigned flags = 0, settings = 0;
            std::size_t values = 0;
            const H5Z_filter_t filter =
                H5Pget_filter2(made, static_cast<unsigned>(i), &flags, &values, nullptr, 0, nullptr, &settings);
            if (filter != H5Z_FILTER_DEFLATE && filter != H5Z_FILTER_SHUFFLE && filter != H5Z_FILTER_FLETCHER32)
                throw data_error(what + ": packed by filter " + std::to_string(filter) +
                                 ", deflate and shuffle are read");
        }
        constexpr std::uint64_t most_inflated = 1032;
        if (bytes > (filters > 0 ? bytes_ * most_inflated : bytes_))
            throw data_error(what + ": " + std::to_string(bytes) + " bytes in a file of " + std::to_string(bytes_));
    }
    /// The element type here, and in HDF5's memory. If this library has none, the identifier is
    /// negative and `reason` names the elements of the file.
    struct element_type {
        dtype type{};
        hid_t memory = -1;
        std::string reason{};
    };
    element_type element_of(const std::string& path, hid_t type) const {
        const std::size_t width = H5Tget_size(type);
        const std::string bytes = " of " + std::to_string(width) + (width == 1 ? " byte" : " bytes");
        switch (H5Tget_class(type)) {
        case H5T_FLOAT:
            // HDF5 has no native type for f16. Floats of one byte do not say which of the 8-bit
            // formats they have.
            if (width == 8) return {dtype::f64, H5T_NATIVE_DOUBLE};
            if (width == 4 || width == 2) return {dtype::f32, H5T_NATIVE_FLOAT};
            return {{}, -1, "floats" + bytes};
        case H5T_INTEGER: {
            const bool sign = H5Tget_sign(type) == H5T_SGN_2;
            switch (width) {
            case 1: return {sign ? dtype::i8 : dtype::u8, sign ? H5T_NATIVE_INT8 : H5T_NATIVE_UINT8};
            case 2: return {sign ? dtype::i16 : dtype::u16, sign ? H5T_NATIVE_INT16 : H5T_NATIVE_UINT16};
            case 4: return {sign ? dtype::i32 : dtype::u32, sign ? H5T_NATIVE_INT32 : H5T_NATIVE_UINT32};
            case 8: return {sign ? dtype::i64 : dtype::u64, sign ? H5T_NATIVE_INT64 : H5T_NATIVE_UINT64};
            default: return {{}, -1, "integers" + bytes};
            }
        }
        case H5T_ENUM: // h5py's booleans
            if (width == 1 && H5Tget_nmembers(type) == 2 && H5Tget_member_index(type, "FALSE") >= 0 &&
                H5Tget_member_index(type, "TRUE") >= 0)
                return {dtype::boolean, type};
            return {{}, -1, "values of an enumeration"};
        case H5T_OPAQUE: {
            const std::vector<std::string> called = texts(path, "dtype");
            if (width == 2 && !called.empty() && called.front() == "bfloat16") return {dtype::bf16, type};
            return {{}, -1, (called.empty() ? "opaque elements" : "elements of '" + called.front() + "'") + bytes};
        }
        case H5T_COMPOUND: {
            std::string members;
            for (int i = 0, n = H5Tget_nmembers(type); i < n; ++i) {
                char* const member = H5Tget_member_name(type, static_cast<unsigned>(i));
                members.append(i == 0 ? " of " : ", ").append(member == nullptr ? "?" : member);
                H5free_memory(member);
            }
            return {{}, -1, members == " of r, i" ? "complex numbers" : "compounds" + members};
        }
        case H5T_STRING: return {{}, -1, "texts"};
        case H5T_REFERENCE: return {{}, -1, "references"};
        case H5T_VLEN: return {{}, -1, "lists"};
        case H5T_ARRAY: return {{}, -1, "arrays of arrays"};
        case H5T_BITFIELD: return {{}, -1, "bit fields"};
        default: return {{}, -1, "elements of a type that HDF5 alone has"};
        }
    }

    std::string name_;
    std::uint64_t bytes_;
    detail::hdf5_silence silence_;
    detail::hdf5_id file_;
};

} // namespace tapegraph::io
