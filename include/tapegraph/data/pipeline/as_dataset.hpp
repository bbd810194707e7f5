#pragma once

#include <tapegraph/data/batch_source.hpp>
#include <tapegraph/data/dataset.hpp>
#include <tapegraph/data/pipeline/batch.hpp>
#include <tapegraph/data/pipeline/prefetch.hpp>
#include <tapegraph/data/pipeline/walk.hpp>

#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/// Adapts pipelines to data sets of named columns, which fit, evaluate and predict take.

namespace tapegraph::data::detail {

/// Elements whose fields have names.
template <class Up>
struct named_stage {
    using element = typename Up::element;
    using ticket = typename Up::ticket;
    static constexpr int stages = Up::stages;
    static constexpr bool batched = Up::batched;
    struct cursor : Up::cursor {
        cursor(const named_stage& s, const walk_context& c) : Up::cursor(s.up, c) {}
    };
    element make(ticket& t, const walk_context& c) const { return up.make(t, c); }
    std::string origin(const ticket& t) const { return up.origin(t); }
    std::int64_t size() const { return up.size(); }
    work_plan plan() const { return up.plan(); }

    Up up;
    std::vector<std::string> names;
};
template <class Up>
class named_stream {
public:
    using stage_type = named_stage<Up>;
    named_stream(const stage_type& stage, const walk_context& context, work_plan plan = {})
        : below(stage.up, context, plan) {}
    void begin(std::uint64_t epoch, std::int64_t skip = 0) { below.begin(epoch, skip); }
    void end() { below.end(); }
    bool ordered() const { return below.ordered(); }
    bool next(made_item<stage_type>& item) {
        inner_.ticket = std::move(item.ticket);
        move_element(inner_.element, item.element);
        const bool there = below.next(inner_);
        item.ticket = std::move(inner_.ticket);
        move_element(item.element, inner_.element);
        return there;
    }
    std::int64_t memory_bytes() { return below.memory_bytes(); }
    typename stream_of<Up>::type below;

private:
    made_item<Up> inner_;
};
template <class Up>
struct stream_of<named_stage<Up>> {
    using type = named_stream<Up>;
};

template <class Stage>
const std::vector<std::string>* names_of(const Stage& stage) {
    if constexpr (requires { stage.names; })
        return &stage.names;
    else if constexpr (requires { Stage::keeps_columns; })
        return names_of(stage.up);
    else
        return nullptr;
}

/// A tensor, or tuples of them, as columns.
template <class E>
inline constexpr bool has_columns = false;
template <class T>
inline constexpr bool has_columns<tensor<T>> = true;
template <class... Fields>
inline constexpr bool has_columns<std::tuple<Fields...>> = (has_columns<Fields> && ...);
template <class A, class B>
inline constexpr bool has_columns<std::pair<A, B>> = has_columns<A>&& has_columns<B>;

template <class T, class F>
void each_column(const tensor<T>& t, const F& f) {
    f(t);
}
template <class E, class F>
void each_column(const E& e, const F& f) {
    std::apply([&](const auto&... field) { (each_column(field, f), ...); }, fields_of(e));
}

struct column_views {
    std::vector<column_spec> columns;
    std::vector<const std::byte*> data;

    /// The content of a batch. Throws shape_error if columns are not of equal length.
    template <class E>
    std::int64_t look(const E& batch, const std::vector<std::string>& names) {
        std::int64_t count = -1;
        std::size_t column = 0;
        each_column(batch, [&]<class T>(const tensor<T>& t) {
            if (column == columns.size()) {
                columns.push_back({column < names.size() ? names[column] : std::to_string(column), dtype_of<T>, {}});
                data.push_back(nullptr);
            }
            const std::int64_t rows = t.rank() == 0 ? -1 : t.shape()[0].value;
            if (rows < 0 || (count >= 0 && rows != count))
                throw shape_error("data set: column '" + columns[column].name + "' of a batch has shape " +
                                  to_string(t.shape()) + ", not " +
                                  (count < 0 ? "a row per record" : std::to_string(count) + " rows"));
            count = rows;
            std::vector<std::int64_t>& extents = columns[column].shape;
            extents.resize(static_cast<std::size_t>(t.rank() - 1));
            for (int i = 1; i < t.rank(); ++i) extents[static_cast<std::size_t>(i - 1)] = t.shape()[i].value;
            data[column] = reinterpret_cast<const std::byte*>(t.data());
            ++column;
        });
        return count;
    }
};

template <class Stage>
inline constexpr bool prefetched = false;
template <class Up>
inline constexpr bool prefetched<prefetch_stage<Up>> = true;
template <class Up>
inline constexpr bool prefetched<named_stage<Up>> = prefetched<Up>;

template <class Stage>
class pipeline_batches final : public batch_source {
public:
    pipeline_batches(Stage stage, std::shared_ptr<report_store> report, std::vector<std::string> names)
        : stage_(std::move(stage)), report_(std::move(report)), names_(std::move(names)) {}

    const std::vector<column_spec>& columns() const override {
        const std::lock_guard lock(mutex_);
        if (!seen_.columns.empty()) return seen_.columns;
        const auto once = std::make_unique<data::walk<Stage>>(stage_, nullptr);
        auto* const first = once->advance();
        if (first == nullptr) throw argument_error("data set: no records; the pipeline ends before its first one");
        if constexpr (Stage::batched) {
            seen_.look(*first, names_);
            check_names();
        } else {
            // Treats one record as a batch of one.
            record_shapes shapes;
            batch_rows<typename Stage::element> rows;
            rows.add_shapes(*first, shapes);
            std::size_t column = 0;
            rows.open(1, shapes, column);
            rows.put(0, std::move(*first));
            seen_.look(rows.get(1), names_);
            check_names();
        }
        return seen_.columns;
    }
    std::int64_t size() const override { return Stage::batched ? unknown_size : stage_.size(); }
    std::int64_t batches() const override { return Stage::batched ? stage_.size() : unknown_size; }
    std::shared_ptr<const batch_source> batched(std::int64_t rows, bool drop) const override {
        if constexpr (Stage::batched)
            return nullptr;
        else
            return std::make_shared<pipeline_batches<batch_stage<Stage>>>(batch_stage<Stage>{stage_, rows, drop, {}},
                                                                          report_, names_);
    }
    std::unique_ptr<batch_walk> walk(std::int64_t ahead) const override {
        if constexpr (Stage::batched)
            return std::make_unique<views>(*this, ahead);
        else
            throw argument_error("data set: no batch size; call batch(n)");
    }

private:
    void check_names() const {
        if (!names_.empty() && names_.size() != seen_.columns.size())
            throw argument_error("data set: " + std::to_string(names_.size()) + " names are given for " +
                                 std::to_string(seen_.columns.size()) + " columns");
    }
    class views final : public batch_walk {
    public:
        views(const pipeline_batches& from, std::int64_t ahead)
            : names_(from.names_),
              walk_(from.stage_, from.report_, 0, false,
                    {ahead > 0 && !prefetched<Stage> ? 1 : 0, prefetched<Stage> ? 0 : ahead, true}) {}
        void begin_epoch(std::uint64_t epoch, std::int64_t first) override {
            if (!walk_.is_at({epoch, first})) walk_.restore({epoch, first});
        }
        bool next(batch_view& to) override {
            const device_scope here(nullptr);
            const auto* const batch = walk_.advance();
            if (batch == nullptr) return false;
            to = {seen_.look(*batch, names_), &seen_.columns, &seen_.data};
            return true;
        }

    private:
        std::vector<std::string> names_;
        data::walk<Stage> walk_;
        column_views seen_;
    };

    Stage stage_;
    std::shared_ptr<report_store> report_;
    std::vector<std::string> names_;
    mutable std::mutex mutex_;
    mutable column_views seen_;
};

template <class Stage>
std::shared_ptr<const batch_source> batches_of(const Stage& stage, std::shared_ptr<report_store> report) {
    using element = typename Stage::element;
    if constexpr (Stage::batched)
        static_assert(has_columns<element>,
                      "data set: a batch is a tensor, or a tuple of tensors; here it holds something else");
    else
        static_assert(
            has_columns<typename batch_rows<element>::batched>,
            "data set: records are numbers, arrays, vectors and tensors of numbers; here they hold something else");
    const std::vector<std::string>* const names = names_of(stage);
    return std::make_shared<pipeline_batches<Stage>>(stage, std::move(report),
                                                     names != nullptr ? *names : std::vector<std::string>());
}

} // namespace tapegraph::data::detail
