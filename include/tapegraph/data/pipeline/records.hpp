#pragma once

#include <tapegraph/data/dataset.hpp>
#include <tapegraph/data/pipeline/set.hpp>
#include <tapegraph/data/readers/labelled_images.hpp>

#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

/// Records of a data::dataset, and of the results of whole-file readers, as typed elements.

namespace tapegraph::data {

namespace detail {

template <class T>
T record_field(const column_spec& column) {
    using value = typename leaf_traits<T>::value;
    check_column_type<value>(column);
    if constexpr (std::is_same_v<T, tensor<value>>) {
        return tensor<value>::uninitialized(shape(static_cast<int>(column.shape.size()), column.shape.data()));
    } else if constexpr (std::is_same_v<T, std::vector<value>>) {
        return T(static_cast<std::size_t>(column.record_size()));
    } else {
        if (sizeof(T) != column.record_bytes())
            throw shape_error("records: column '" + column.name + "' has records of shape " + text_of(column.shape) +
                              ", its field " + std::to_string(sizeof(T) / sizeof(value)) + " values");
        return T{};
    }
}
template <class T>
std::byte* place_of(T& field) {
    using value = typename leaf_traits<T>::value;
    if constexpr (std::is_same_v<T, tensor<value>>)
        return reinterpret_cast<std::byte*>(field.mutable_data());
    else if constexpr (std::is_same_v<T, std::vector<value>>)
        return reinterpret_cast<std::byte*>(field.data());
    else
        return reinterpret_cast<std::byte*>(&field);
}

template <class... Fields>
struct records_source {
    static_assert((leaf_traits<Fields>::numbers && ...), "records: fields are numbers, arrays, vectors or tensors");
    std::shared_ptr<const dataset> records;
    std::vector<std::size_t> columns; ///< those of the data set, per field
    static constexpr const char* name = "records";

    std::int64_t size() const { return records->size(); }
    auto at(std::int64_t i) const {
        return [&]<std::size_t... I>(std::index_sequence<I...>) {
            const std::vector<column_spec>& specs = records->columns();
            std::tuple<Fields...> fields{record_field<Fields>(specs[columns[I]])...};
            std::vector<std::byte*> places(specs.size());
            std::vector<std::vector<std::byte>> unwanted(specs.size());
            ((places[columns[I]] = place_of(std::get<I>(fields))), ...);
            for (std::size_t c = 0; c < specs.size(); ++c) {
                if (places[c] != nullptr) continue;
                unwanted[c].resize(specs[c].record_bytes());
                places[c] = unwanted[c].data();
            }
            records->records().fill(records->record_at(i), places);
            if constexpr (sizeof...(Fields) == 1)
                return std::get<0>(std::move(fields));
            else
                return fields;
        }
        (std::index_sequence_for<Fields...>{});
    }
};

} // namespace detail

/// The records of a data set, in its order: `records<tg::tensor<float>, std::int32_t>(set,
/// {"image", "label"})`. Fields are numbers, std::array, std::vector or tensors, from the columns
/// with these names, or from all in order. Throws argument_error, dtype_error, shape_error if they
/// do not match the columns.
template <class... Fields>
auto records(dataset set, const std::vector<std::string>& columns = {}) {
    static_assert(sizeof...(Fields) > 0, "records: say the types of the fields: records<tensor<float>, int>(set)");
    if (set.batches()) throw argument_error("records: the data set is a pipeline already");
    const std::size_t count = columns.empty() ? set.columns().size() : columns.size();
    if (count != sizeof...(Fields))
        throw argument_error("records: " + std::to_string(sizeof...(Fields)) + " fields for " + std::to_string(count) +
                             " columns");
    std::vector<std::size_t> places;
    for (std::size_t c = 0; c < count; ++c)
        places.push_back(columns.empty() ? c : detail::find_column(set.columns(), columns[c]));
    std::size_t field = 0;
    (static_cast<void>(detail::record_field<Fields>(set.columns()[places[field++]])), ...);
    return from(detail::records_source<Fields...>{std::make_shared<const dataset>(std::move(set)), std::move(places)});
}

/// (image, label) from the results of read_idx_images, read_mnist, read_cifar10 and
/// read_image_folder: tensor [height, width, channels], int32.
inline auto records(labelled_images images) {
    return records<tensor<float>, std::int32_t>(make_dataset(std::move(images)));
}

} // namespace tapegraph::data
