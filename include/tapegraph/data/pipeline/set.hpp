#pragma once

#include <tapegraph/core/fixed_string.hpp>
#include <tapegraph/core/shown_errors.hpp>
#include <tapegraph/data/pipeline/as_dataset.hpp>
#include <tapegraph/data/pipeline/batch.hpp>
#include <tapegraph/data/pipeline/bucket.hpp>
#include <tapegraph/data/pipeline/cache.hpp>
#include <tapegraph/data/pipeline/combine.hpp>
#include <tapegraph/data/pipeline/map.hpp>
#include <tapegraph/data/pipeline/nested.hpp>
#include <tapegraph/data/pipeline/order.hpp>
#include <tapegraph/data/pipeline/prefetch.hpp>
#include <tapegraph/data/pipeline/source.hpp>
#include <tapegraph/data/pipeline/walk.hpp>
#include <tapegraph/data/pipeline/window.hpp>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// Sets of typed elements that are made on demand:
///
///     auto train = data::slices(paths, labels)
///                      .shuffle(seed)
///                      .map([](const std::string& path, int label) { return std::tuple(decode(path), label); }, {.threads = 2})
///                      .batch(32)
///                      .prefetch(2);
///     for (auto [images, labels] : train) step(images, labels);   // tensors [32, ...]
///     model.fit(train, {.epochs = 10});

namespace tapegraph::data {

/// Options of `shuffle`.
struct shuffle_options {
    std::int64_t buffer = 0; ///< elements to choose from; 0: all, read before the first one is returned
    bool each_epoch = true;  ///< a different order in every epoch
};

/// Options of `batch`: the shapes of a batch's columns.
struct batch_layout {
    bool drop_remainder = false;                            ///< omit an incomplete last batch
    std::vector<std::vector<std::int64_t>> record_shapes{}; ///< per column; empty: as in the first record
};

/// A value; copies are independent. Nothing runs before iteration.
template <class Stage>
class set {
public:
    using element = typename Stage::element;
    static constexpr bool batched = Stage::batched;

    explicit set(Stage stage)
        : stage_(std::move(stage)), report_(std::make_shared<detail::report_store>(Stage::stages + 2)) {}
    // clang-format off
    no_such_option_in<map_options> map(any_argument, ...) const TG_MISTAKE;
    no_such_option_in<interleave_options> interleave(any_argument, ...) const TG_MISTAKE;
    no_such_option_in<shuffle_options> shuffle(any_argument, ...) const TG_MISTAKE;
    no_such_option_in<batch_layout> batch(any_argument, ...) const TG_MISTAKE;
    no_such_option_in<padded_options> padded_batch(any_argument, ...) const TG_MISTAKE;
    no_such_option_in<bucket_options> bucket_by_length(any_argument, ...) const TG_MISTAKE;
    no_such_option_in<window_options> window(...) const TG_MISTAKE;
    // clang-format on

    /// Applies f(element), or f to its fields if it is a tuple, followed by a data::counter_random&
    /// if f takes one. That is specific to this element of this epoch, so that any number of
    /// threads gives the same bits. Tuples that f returns are fields again.
    template <class F>
    auto map(F f, const map_options& options = {}) const {
        map_options o = options;
        o.threads = detail::checked_threads(options.threads, "map");
        return over(detail::map_stage<Stage, F>{stage_, std::move(f), o});
    }
    /// The elements for which f is true; it takes the same arguments as map's function.
    template <class F>
    auto filter(F f) const {
        return over(detail::filter_stage<Stage, F>{stage_, std::move(f)});
    }
    /// The elements of the sets, or ranges, that f returns, one after the other. Elements are made
    /// where they are requested, by the threads of a later map, including the mapped elements of
    /// f's sets.
    template <class F>
    auto flat_map(F f) const {
        return over(detail::interleave_stage<Stage, F>{stage_, std::move(f), 1, 0});
    }
    /// The same with several sets taking turns. When one ends, the next takes its place at its
    /// turn.
    template <class F>
    auto interleave(F f, const interleave_options& options = {}) const {
        if (options.cycle < 1) refuse("interleave", options.cycle, "sets in a cycle");
        if (options.block < 1) refuse("interleave", options.block, "elements in a block");
        return over(detail::interleave_stage<Stage, F>{stage_, std::move(f), options.cycle, options.block});
    }
    /// This set's elements followed by the other's, which have the same type.
    template <class Other>
    auto concatenate(const set<Other>& other) const {
        return over(detail::concatenate_stage<Stage, Other>{stage_, other.stage()});
    }
    /// Groups neighbours into std::vectors of elements.
    auto window(window_options options) const {
        if (options.size < 1) refuse("window", options.size, "elements");
        if (options.shift < 0) refuse("window", options.shift, "elements to shift by");
        if (options.stride < 1) refuse("window", options.stride, "elements from one to the next");
        if (options.shift == 0) options.shift = options.size;
        return over(detail::window_stage<Stage>{stage_, options});
    }
    /// Keeps the elements of the first complete epoch for all later epochs and all copies of the
    /// set. Random stages below it run only once: their elements are those of epoch 0.
    auto cache() const { return over(detail::cache_stage<Stage, detail::memory_store<element>>{stage_}); }
    /// The same in a custom store: data::in_file("train.cache"), of data/pipeline/cache_file.hpp.
    template <class Keep>
    auto cache(const Keep& keep) const {
        using store = typename Keep::template store<element>;
        return over(detail::cache_stage<Stage, store>{stage_, keep.template make<element>()});
    }
    /// Random order, which depends only on seed and epoch. With a buffer each element is chosen
    /// from the next `buffer` ones. If elements are mapped below, the unmapped ones wait in the
    /// buffer.
    auto shuffle(std::uint64_t seed, const shuffle_options& options = {}) const {
        if (options.buffer < 0) refuse("shuffle", options.buffer, "elements in the buffer");
        return over(detail::shuffle_stage<Stage>(stage_, options.buffer, seed, options.each_epoch));
    }
    /// Repeats the set this many times; negative: infinitely. Each repetition is an epoch for
    /// earlier stages.
    auto repeat(std::int64_t times = -1) const { return over(detail::repeat_stage<Stage>(stage_, times)); }
    /// The first `count` elements.
    auto take(std::int64_t count) const {
        if (count < 0) refuse("take", count, "elements");
        return over(detail::every_stage<Stage>(stage_, 0, 1, count));
    }
    /// All elements except the first `count`.
    auto skip(std::int64_t count) const {
        if (count < 0) refuse("skip", count, "elements");
        return over(detail::every_stage<Stage>(stage_, count, 1, -1));
    }
    /// Elements `index`, `index + shards`, ...: one of `shards` parts.
    auto shard(std::int64_t shards, std::int64_t index) const {
        if (shards < 1) refuse("shard", shards, "shards");
        if (index < 0 || index >= shards)
            throw range_error("data::set.shard: shard " + std::to_string(index) + " of " + std::to_string(shards));
        return over(detail::every_stage<Stage>(stage_, index, shards, -1));
    }
    /// Groups `rows` elements, field by field: numbers, std::array, std::vector, tensors and
    /// data::written into a tensor [rows, ...], all else into a std::vector. Threads of an earlier
    /// map write their records straight into the batch.
    auto batch(std::int64_t rows, const batch_layout& layout = {}) const {
        if (rows < 1) refuse("batch", rows, "records");
        return over(detail::batch_stage<Stage>{stage_, rows, layout.drop_remainder,
                                               detail::checked_layout<element>(layout.record_shapes)});
    }
    /// The same for records whose vectors and tensors differ in extents: each batch is padded to
    /// its largest. If `record_shapes` has all extents, records are written straight into the
    /// batch, as in batch(), and the ring is all the memory.
    auto padded_batch(std::int64_t rows, const padded_options& options = {}) const {
        if (rows < 1) refuse("padded_batch", rows, "records");
        using layout = detail::padded_rows<element>;
        return over(detail::batch_stage<Stage, layout>{
            stage_, rows, options.drop_remainder, detail::padded_layout<typename layout::rows>(options), {options}});
    }
    /// The same, but std::vectors of numbers become data::ragged: concatenated values, and where
    /// rows begin.
    auto ragged_batch(std::int64_t rows, bool drop_remainder = false) const {
        if (rows < 1) refuse("ragged_batch", rows, "records");
        return over(detail::group_stage<Stage, detail::ragged_stack>{stage_, {}, rows, drop_remainder});
    }
    /// Padded batches of records of similar length, which `length` computes from an element (or its
    /// fields). A batch is returned when its bucket is full, and the remainders at the end, the
    /// shortest first.
    template <class Length>
    auto bucket_by_length(Length length, bucket_options options) const {
        return over(detail::bucket_stage<Stage, Length>{stage_, std::move(length),
                                                        detail::checked_buckets(std::move(options))});
    }
    /// The rows of tensors, vectors and data::ragged as elements, reversing batch().
    auto unbatch() const { return over(detail::unbatch_stage<Stage>{stage_}); }
    /// Makes up to `depth` elements ahead, on the threads of earlier maps, at least one.
    auto prefetch(std::int64_t depth) const {
        if (depth < 0 || depth > 4096)
            throw argument_error("data::set.prefetch: depth must be 0 to 4096, got " + std::to_string(depth));
        return over(detail::prefetch_stage<Stage>{stage_, depth});
    }
    /// Names of the columns, for fit, evaluate and predict.
    auto named(std::vector<std::string> names) const {
        return over(detail::named_stage<Stage>{{stage_}, std::move(names)});
    }
    /// Names the columns of the elements, as model inputs and metrics call them.
    template <fixed_string... Names>
    auto as() const {
        return named({std::string(Names.view())...});
    }

    /// The number of elements per epoch; or unknown_size, endless.
    std::int64_t size() const { return stage_.size(); }

    /// Bytes of the ring that a walk keeps: batches with the tickets of their records, or elements
    /// without the memory they point to. No more is allocated while it runs, except by the
    /// functions of the stages and by shuffles, windows, buckets and caches. If neither types nor
    /// `record_shapes` give the shapes, the first record is made to find them.
    std::int64_t memory_bytes() const {
        typename detail::stream_of<Stage>::type stream(stage_, detail::walk_context{});
        return stream.memory_bytes();
    }

    /// Iterates over epoch 0, and any that initialize() selects.
    walk<Stage> iterator() const { return walk<Stage>(stage_, report_); }
    /// Iterates over one epoch.
    walk<Stage> one_shot(std::uint64_t epoch = 0) const { return walk<Stage>(stage_, report_, epoch, true); }
    /// for (auto [x, y] : set.epoch(3))
    epoch_range<Stage> epoch(std::uint64_t number) const { return epoch_range<Stage>(one_shot(number)); }
    /// Each loop over a set runs its next epoch, starting with 0.
    auto begin() const { return epoch(loops_++).begin(); }
    std::default_sentinel_t end() const { return {}; }

    /// Measurements of the stages since this set was created.
    pipeline_report report() const { return {detail::report_of(*report_)}; }

    /// For fit, evaluate and predict. NOLINTNEXTLINE: implicit, for model.fit(set)
    operator dataset() const { return dataset(detail::batches_of(stage_, report_)); }

    /// The last stage of the pipeline.
    const Stage& stage() const { return stage_; }

    set(const set& other) : set(other.stage_) {}
    set(set&&) noexcept = default;
    set& operator=(set other) noexcept {
        stage_ = std::move(other.stage_);
        report_ = std::move(other.report_);
        loops_ = 0;
        return *this;
    }

private:
    template <class Next>
    static set<Next> over(Next next) {
        return set<Next>(std::move(next));
    }
    [[noreturn]] static void refuse(const char* what, std::int64_t count, const char* of) {
        throw argument_error(std::string("data::set.") + what + ": " + std::to_string(count) + ' ' + of);
    }

    Stage stage_;
    std::shared_ptr<detail::report_store> report_;
    mutable std::uint64_t loops_ = 0;
};

/// Makes a set from a source, as described in data/pipeline/source.hpp.
template <pipeline_source S>
auto from(S source) {
    return set(detail::source_stage<S>{std::move(source)});
}

/// first, first + step, ... before `end`.
inline auto range(std::int64_t first, std::int64_t end, std::int64_t step = 1) {
    if (step == 0) throw argument_error("data::range: the step is 0");
    const std::int64_t far = step > 0 ? end - first : first - end, stride = step > 0 ? step : -step;
    return from(detail::range_source{first, far <= 0 ? 0 : (far + stride - 1) / stride, step});
}
inline auto range(std::int64_t end) { return range(0, end); }

/// Records: element i consists of element i of every vector, or of slice i along the first axis of
/// every tensor. Throws shape_error if they are not of equal length.
template <class First, class... More>
auto slices(First first, More... more) {
    return from(detail::slices_source<First, More...>(std::move(first), std::move(more)...));
}

/// Tuples of one element of each set, until one ends.
template <class... Stages>
auto zip(const set<Stages>&... sets) {
    static_assert(sizeof...(Stages) > 0, "zip: of no sets");
    return set(detail::zip_stage<Stages...>{{sets.stage()...}});
}

/// The values as one element: a number, a tensor, a tuple of them.
template <class T>
auto whole(T value) {
    return from(detail::slices_source<std::vector<T>>(std::vector<T>{std::move(value)}));
}

/// The elements of a range: a container is stored; a view is iterated again in every epoch.
template <std::ranges::input_range Range>
    requires(!detail::is_set<std::remove_cvref_t<Range>>)
auto elements(Range&& r) {
    using kept = std::remove_cvref_t<Range>;
    return from(detail::range_of_elements<kept>(kept(std::forward<Range>(r))));
}

/// Elements that a function returns until it returns nullopt. `make` returns such a function for each epoch:
///     data::generator([] { return [i = 0]() mutable { return i < 10 ? std::optional(i++) : std::nullopt; }; })
template <class Make>
auto generator(Make make, std::int64_t size = unknown_size) {
    return from(detail::generator_source<Make>{std::move(make), size});
}

} // namespace tapegraph::data
