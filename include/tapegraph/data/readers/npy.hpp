#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/data/dataset.hpp>
#include <tapegraph/formats/npy.hpp>
#include <tapegraph/formats/path.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

/// NumPy arrays as data sets, with one record per index of the first axis.

namespace tapegraph::data {

namespace detail {

/// Adds an array as a column; `what` is its name in errors.
void add_array(array_source& to, const std::string& name, io::host_array array, const std::string& what);

} // namespace detail

/// A data set with one column, the rows of the array in an .npy. Throws like io::read_npy_array,
/// and shape_error for an array without records.
inline dataset from_npy(const files::path& path, const std::string& column = "x") {
    auto source = std::make_shared<array_source>();
    detail::add_array(*source, column, io::read_npy_array(path), io::detail::quoted(path));
    return dataset(std::move(source));
}

} // namespace tapegraph::data

namespace tapegraph::data::detail {

#if TG_DEFINES(data)

TG_DEFINITION void add_array(array_source& to, const std::string& name, io::host_array array, const std::string& what) {
    if (array.shape.empty()) throw shape_error(what + ": a single value, records need an axis");
    if (array.size() == 0) throw shape_error(what + ": shape " + io::shape_text(array.shape) + " holds no records");
    const auto values = array.size();
    column_spec column{name, array.type, {array.shape.begin() + 1, array.shape.end()}};
    auto owner = std::make_shared<const std::vector<std::byte>>(std::move(array.bytes));
    std::shared_ptr<const std::byte> data(owner, owner->data());
    to.add(std::move(column), std::move(data), values);
}

#endif

} // namespace tapegraph::data::detail
