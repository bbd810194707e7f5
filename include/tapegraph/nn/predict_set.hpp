#pragma once

#include <tapegraph/nn/columns.hpp>
#include <tapegraph/nn/fit.hpp>

#include <algorithm>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>

/// Predictions over a data set.

namespace tapegraph::detail {

/// The outputs of batches, one behind the other.
template <class = void>
class basic_output_rows {
public:
    /// Records from `first` on, of `total` (below 0: not known). Throws shape_error for an output that has not one row per record.
    void add(const any_tensor& part, std::int64_t first, std::int64_t count, std::int64_t total) {
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
    /// Of all batches.
    const any_tensor& whole() {
        if (rows_ >= 0 && rows_ != room_) make_room(whole_, rows_, rows_);
        return whole_;
    }

private:
    void make_room(const any_tensor& like, std::int64_t rows, std::int64_t kept = 0) {
        std::int64_t extents[max_rank];
        for (int i = 0; i < like.rank(); ++i) extents[i] = i == 0 ? rows : like.shape()[i].value;
        any_tensor grown(like.type(), shape(like.rank(), extents));
        to_ = static_cast<std::byte*>(grown.write());
        if (kept > 0) std::memcpy(to_, whole_.read(), static_cast<std::size_t>(kept) * row_);
        whole_ = std::move(grown);
        room_ = rows;
    }

    any_tensor whole_;
    std::int64_t room_ = 0, rows_ = -1; ///< rows_: where only the end tells
    std::byte* to_ = nullptr;
    std::size_t row_ = 0;
};
using output_rows = basic_output_rows<>;

TG_COMPILED(nn, class basic_output_rows<void>)

template <class T>
tensor<T> host_copy(const buffer_view& v) {
    auto t = tensor<T>::uninitialized(shape(v.rank, v.extents));
    std::memcpy(t.mutable_data(), v.data, v.bytes());
    return t;
}

template <class Result>
struct collected {
    static Result of(output_rows* rows) { return Result(rows[0].whole()); }
};
template <class... Outputs>
struct collected<outputs<Outputs...>> {
    static outputs<Outputs...> of(output_rows* rows) {
        return [&]<std::size_t... I>(std::index_sequence<I...>) {
            return outputs<Outputs...>(Outputs{decltype(Outputs::value)(rows[I].whole())}...);
        }
        (std::index_sequence_for<Outputs...>{});
    }
};

/// `predict(const tensor<Elements>&...)` of every batch; `calls.inputs` says which columns.
template <class... Elements, class Check, class Predict>
auto predict_set(const mode_calls& calls, const data::dataset& set, std::int64_t batch_size, const Check& check,
                 const Predict& predict) {
    using result = std::remove_cvref_t<decltype(predict(std::declval<const tensor<Elements>&>()...))>;
    using pack = output_pack<result>;
    column_match match(calls, set.columns(), true);
    data::loader loader((set.parts() > 1 ? set.shard(0, 1) : set).batch(batch_size).prefetch(2));
    if (loader.batches_per_epoch() == data::endless)
        throw argument_error("predict: the data set has no end; take(n) of it");
    output_rows rows[static_cast<std::size_t>(pack::count)];
    loader.begin_epoch(0);
    std::int64_t done = 0;
    while (const data::batch* b = loader.next()) {
        const batch_columns columns = match.of(*b);
        check(columns);
        const result y = [&]<std::size_t... I>(std::index_sequence<I...>) {
            return predict(host_copy<Elements>(columns[I])...);
        }
        (std::index_sequence_for<Elements...>{});
        [&]<std::size_t... I>(std::index_sequence<I...>) {
            (rows[I].add(pack::template get<static_cast<int>(I)>(y), done, b->count(), loader.data().size()), ...);
        }
        (std::make_index_sequence<static_cast<std::size_t>(pack::count)>{});
        done += b->count();
    }
    return collected<result>::of(rows);
}

} // namespace tapegraph::detail
