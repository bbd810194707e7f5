#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/model/columns.hpp>
#include <tapegraph/train/fit.hpp>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

/// Predictions over a data set.

namespace tapegraph::detail {

/// The outputs of batches, one after the other.
class output_rows {
public:
    /// Adds the records from `first` on, of `total` (below 0: not known). Throws shape_error for an
    /// output that does not have one row per record.
    void add(const any_tensor& part, std::int64_t first, std::int64_t count, std::int64_t total);
    /// The outputs of all batches.
    const any_tensor& whole();

private:
    void make_room(const any_tensor& like, std::int64_t rows, std::int64_t kept = 0);

    any_tensor whole_;
    std::int64_t room_ = 0, rows_ = -1; ///< rows_: used if only the end of the data gives their number
    std::byte* to_ = nullptr;
    std::size_t row_ = 0;
};

/// Converts a list of outputs to what `predict` returns.
template <class Result>
struct collected {
    static Result of(std::vector<any_tensor> all) { return Result(std::move(all[0])); }
};
template <class... Outputs>
struct collected<outputs<Outputs...>> {
    static outputs<Outputs...> of(std::vector<any_tensor> all) {
        return [&]<std::size_t... I>(std::index_sequence<I...>) {
            return outputs<Outputs...>(Outputs{decltype(Outputs::value)(std::move(all[I]))}...);
        }
        (std::index_sequence_for<Outputs...>{});
    }
};
/// The inverse.
template <class Result>
std::vector<any_tensor> listed(const Result& result) {
    using pack = output_pack<Result>;
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
        return std::vector<any_tensor>{pack::template get<static_cast<int>(I)>(result)...};
    }
    (std::make_index_sequence<static_cast<std::size_t>(pack::count)>{});
}

/// Predicts the outputs of one batch for a model of any type.
using batch_prediction = std::vector<any_tensor> (*)(const void* model, std::span<const any_tensor> inputs);

/// Predicts every batch and joins the outputs; `calls.inputs` names the columns.
std::vector<any_tensor> predict_set(const mode_calls& calls, const data::dataset& set, std::int64_t batch_size,
                                    batch_prediction predict, const void* model);

#if TG_DEFINES_FOR_HOST(nn)

TG_DEFINITION void output_rows::add(const any_tensor& part, std::int64_t first, std::int64_t count,
                                    std::int64_t total) {
    if (part.rank() == 0 || part.shape()[0].value != count)
        throw shape_error("predict: of a batch of " + std::to_string(count) + " records the output has shape " +
                          to_string(part.shape()) + ", not a row for each");
    if (!whole_.has_storage()) {
        row_ = part.outline_view().bytes() / static_cast<std::size_t>(count);
        make_room(part, total >= 0 ? total : count);
    }
    if (total < 0) {
        if (part.outline_view().bytes() == row_ * static_cast<std::size_t>(count) && first + count > room_)
            make_room(part, std::max(2 * room_, first + count), first);
        rows_ = first + count;
    }
    if (part.outline_view().bytes() != row_ * static_cast<std::size_t>(count))
        throw shape_error("predict: the output of a later batch has shape " + to_string(part.shape()) +
                          ", all together " + to_string(whole_.shape()));
    std::memcpy(to_ + static_cast<std::size_t>(first) * row_, part.read(), part.outline_view().bytes());
}

TG_DEFINITION const any_tensor& output_rows::whole() {
    if (rows_ >= 0 && rows_ != room_) make_room(whole_, rows_, rows_);
    return whole_;
}

TG_DEFINITION void output_rows::make_room(const any_tensor& like, std::int64_t rows, std::int64_t kept) {
    std::int64_t extents[max_rank];
    for (int i = 0; i < like.rank(); ++i) extents[i] = i == 0 ? rows : like.shape()[i].value;
    any_tensor grown(like.type(), shape(like.rank(), extents));
    to_ = static_cast<std::byte*>(grown.write());
    if (kept > 0) std::memcpy(to_, whole_.read(), static_cast<std::size_t>(kept) * row_);
    whole_ = std::move(grown);
    room_ = rows;
}

TG_DEFINITION std::vector<any_tensor> predict_set(const mode_calls& calls, const data::dataset& set,
                                                  std::int64_t batch_size, batch_prediction predict,
                                                  const void* model) {
    column_match match(calls, set.columns(), true);
    data::loader loader((set.parts() > 1 ? set.shard(0, 1) : set).batch(batch_size).prefetch(2));
    if (loader.batches_per_epoch() == data::endless)
        throw argument_error("predict: the data set has no end; take(n) of it");
    std::vector<output_rows> rows;
    std::vector<any_tensor> inputs(calls.inputs.size());
    loader.begin_epoch(0);
    std::int64_t done = 0;
    while (const data::batch* b = loader.next()) {
        const batch_columns columns = match.of(*b);
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            const buffer_view& v = columns[i];
            inputs[i] = any_tensor(v.type, shape(v.rank, v.extents));
            std::memcpy(inputs[i].write(), v.data, v.bytes());
        }
        const std::vector<any_tensor> results = predict(model, inputs);
        rows.resize(results.size());
        for (std::size_t k = 0; k < results.size(); ++k)
            rows[k].add(results[k], done, b->count(), loader.data().size());
        done += b->count();
    }
    std::vector<any_tensor> all;
    for (output_rows& each : rows) all.push_back(each.whole());
    return all;
}

#endif

} // namespace tapegraph::detail
