#pragma once

#include <tapegraph/data/readers/npy.hpp>
#include <tapegraph/formats/npz.hpp>
#include <tapegraph/formats/path.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tapegraph::data {

/// A data set of the arrays in an .npz, with a column for each under the archive's name; all (in
/// the archive's order) or those named. Their first axes must be equally long. Throws like
/// io::npz_reader, and shape_error for arrays without records or of other lengths.
inline dataset from_npz(const files::path& path, std::vector<std::string> columns = {}) {
    const io::npz_reader reader(path);
    if (columns.empty()) columns = reader.names();
    auto source = std::make_shared<array_source>();
    for (const std::string& name : columns)
        detail::add_array(*source, name, reader.array(name), io::detail::quoted(path) + ", array '" + name + "'");
    return dataset(std::move(source));
}

} // namespace tapegraph::data
