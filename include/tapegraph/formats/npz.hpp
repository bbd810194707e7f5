#pragma once

#include <tapegraph/formats/npy.hpp>
#include <tapegraph/formats/path.hpp>
#include <tapegraph/formats/zip.hpp>

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// NumPy's .npz: a zip archive of .npy members, stored (numpy.savez) or deflated (numpy.savez_compressed).

namespace tapegraph::io {

/// An .npz whose arrays are read on demand.
class npz_reader {
public:
    /// Reads the directory. Throws data_error if the file is missing, not a zip archive or corrupt.
    explicit npz_reader(const files::path& path) : archive_(path) {}

    /// The names that numpy.load shows, in the archive's order: members without ".npy".
    std::vector<std::string> names() const {
        std::vector<std::string> result;
        for (const zip_member& member : archive_.members()) result.push_back(shown(member.name));
        return result;
    }
    /// Whether there is an array of the name.
    bool contains(std::string_view name) const { return find(name) != nullptr; }
    /// The array of a name. Throws data_error, with the existing names, for an unknown one;
    /// otherwise like read_npy_array.
    host_array array(std::string_view name) const {
        const zip_member* const member = find(name);
        if (member == nullptr) {
            std::string known;
            for (const std::string& other : names())
                known.append(known.empty() ? "'" : ", '").append(other).append("'");
            throw data_error(archive_.name() + ": no array " + detail::shown_name(name) + ", there are " +
                             (known.empty() ? "none" : known));
        }
        std::vector<std::byte> bytes = archive_.read(*member);
        const std::string what = archive_.name() + ", array " + detail::shown_name(name);
        auto header = detail::parse_npy_header(bytes, bytes.size(), what);
        bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(header.bytes));
        return detail::npy_array(std::move(header), std::move(bytes), what);
    }
    /// The same as a tensor.
    any_tensor tensor(std::string_view name) const {
        return tensor_of_array(array(name), archive_.name() + ", array " + detail::shown_name(name));
    }

private:
    static std::string shown(const std::string& member) {
        return member.ends_with(".npy") ? member.substr(0, member.size() - 4) : member;
    }
    const zip_member* find(std::string_view name) const {
        const zip_member* const found = archive_.find(std::string(name) + ".npy");
        return found != nullptr ? found : archive_.find(name);
    }

    zip_reader archive_;
};

namespace detail {

/// Collects `get(name)` for every name of an .npz; arrays of unsupported types are listed in
/// `unread`, if given.
template <class T, class Get>
std::map<std::string, T> all_of_npz(const npz_reader& reader, std::vector<unread_value>* unread, const Get& get) {
    std::map<std::string, T> result;
    for (const std::string& name : reader.names()) {
        try {
            result.emplace(name, get(name));
        } catch (const dtype_error& e) {
            if (unread == nullptr)
                throw dtype_error(std::string(e.what()) + "; the others are, where the call has a list of unread ones");
            unread->push_back({name, e.what(), true});
        }
    }
    return result;
}

} // namespace detail

/// All arrays of an .npz by name. Those of texts, objects, complex numbers and other unsupported
/// types are listed in `unread`; without it they are an error. Throws like npz_reader otherwise.
inline std::map<std::string, host_array> read_npz_arrays(const files::path& path,
                                                         std::vector<unread_value>* unread = nullptr) {
    const npz_reader reader(path);
    return detail::all_of_npz<host_array>(reader, unread, [&](const std::string& name) { return reader.array(name); });
}

/// All arrays of an .npz as tensors: `tg::tensor<float> x(read_npz("a.npz").at("x"))`. `unread`
/// works as in read_npz_arrays.
inline std::map<std::string, any_tensor> read_npz(const files::path& path,
                                                  std::vector<unread_value>* unread = nullptr) {
    const npz_reader reader(path);
    return detail::all_of_npz<any_tensor>(reader, unread, [&](const std::string& name) { return reader.tensor(name); });
}

/// How arrays are written into a .npz file.
struct npz_options {
    bool compressed = false; ///< like numpy.savez_compressed
};

/// Writes arrays by name, for numpy.load. The file replaces an older one only when complete; the
/// same arrays give the same bytes. Throws argument_error for an invalid name, dtype_error for
/// a type that NumPy lacks, data_error on failure.
inline void write_npz_arrays(const files::path& path, const std::map<std::string, host_array>& arrays,
                             const npz_options& options = {}) {
    zip_writer writer(path, {.level = options.compressed ? 6 : 0});
    for (const auto& [name, array] : arrays) writer.add(name + ".npy", npy_to_bytes(array));
    writer.commit();
}

/// The same for tensors; a `tensor<T>` converts.
inline void write_npz(const files::path& path, const std::map<std::string, any_tensor>& tensors,
                      const npz_options& options = {}) {
    zip_writer writer(path, {.level = options.compressed ? 6 : 0});
    for (const auto& [name, value] : tensors) writer.add(name + ".npy", npy_to_bytes(array_of_tensor(value)));
    writer.commit();
}

} // namespace tapegraph::io
