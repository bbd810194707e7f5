#pragma once

#include <tapegraph/core/error.hpp>
#include <tapegraph/data/loader.hpp>
#include <tapegraph/graph/compile.hpp>
#include <tapegraph/io/progress.hpp>
#include <tapegraph/nn/eager_scope.hpp>
#include <tapegraph/nn/history.hpp>
#include <tapegraph/nn/summary.hpp>
#include <tapegraph/nn/training.hpp>

#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <string>

namespace tapegraph {

/// Options of fit.
struct fit_options {
    std::int64_t epochs = 1;
    std::int64_t batch_size = 32;
    std::optional<data::dataset> validation{};
    std::int64_t steps_per_epoch = 0; ///< stop an epoch early; 0: the whole data set
    bool shuffle = true;
    bool verbose = true;
    std::int64_t prefetch = 2; ///< batches assembled ahead
};

/// Options of compile.
struct compile_options {
    std::uint64_t seed = 0;
    /// After every step, look for values that are not finite; throws numeric_error that names the first operation.
    bool check_finite = false;
};

namespace detail {

/// Everything about a model that does not depend on its mode.
class model_base {
public:
    variable_list& variables() { return variables_; }
    const variable_list& variables() const { return variables_; }
    /// Steps trained so far.
    std::int64_t step() const { return step_; }
    std::string summary() const { return summary_.text(); }
    std::int64_t parameter_count() const { return summary_.parameters; }
    std::int64_t trainable_parameter_count() const { return summary_.trainable; }

protected:
    explicit model_base(const compile_options& options) : options_(options) {}

    template <class Model, class Spec>
    void describe() {
        summary_ = describe_model<Model, Spec>();
    }

    // Variables come from a trace at run time, so both modes hold the same ones in the same order with the same values.
    template <class ModelTrace>
    void make_variables(int model_variables) {
        ir::trace t;
        ModelTrace::build(t);
        for (int i = 0; i < t.variables.size(); ++i) {
            const ir::variable_entry& v = t.variables[i];
            std::string path = path_of(t.scopes, v.scope);
            if (!path.empty()) path += '/';
            path += v.name;
            const shape dims = t.dims(v.node);
            any_tensor data(t.nodes[v.node].type, dims);
            const initializer how{static_cast<initializer_kind>(v.initializer), v.a, v.b};
            if (data.type() == dtype::f64)
                initialize(static_cast<double*>(data.raw()), dims, how, options_.seed, path);
            else
                initialize(static_cast<float*>(data.raw()), dims, how, options_.seed, path);
            variables_.add(std::move(path), std::move(data), v.trainable, i >= model_variables);
        }
    }

    compile_options options_;
    variable_list variables_;
    model_summary summary_;
    std::int64_t step_ = 0;
};

} // namespace detail

/// A model with its loss and optimizer, in one of the two modes.
template <class Mode, class Model, class Spec, class Loss, class Optimizer>
class compiled_model;

/// What both modes do in the same way, over `step`, `measure` and `forward` of the mode.
template <class Derived, class Spec, class Loss>
class trainable_model : public detail::model_base {
public:
    using detail::model_base::model_base;
    using element = typename Spec::element_type;

    /// One step on tensors (or anything contiguous that views as one).
    template <class Labels>
    step_result train_on_batch(const tensor<element>& x, const tensor<Labels>& y) {
        return train_step(x.view(), y.view());
    }

    step_result train_step(const buffer_view& x, const buffer_view& y) {
        check_batch(x);
        ++step_;
        const step_result result = self().step_once(x, y);
        if (options_.check_finite && !std::isfinite(result.loss))
            throw numeric_error("step " + std::to_string(step_) + ": the loss is " + std::to_string(result.loss));
        return result;
    }

    /// Trains for some epochs over a data set whose first column is the input and whose second holds the labels.
    history fit(const data::dataset& train, const fit_options& options = {}) {
        if (options.epochs < 0) throw argument_error("fit: epochs is " + std::to_string(options.epochs));
        check_columns(train);
        data::dataset set = train.batch(options.batch_size).prefetch(options.prefetch);
        if (options.shuffle) set = set.shuffle(options_.seed);
        data::loader loader(set);
        io::progress_line progress(std::cerr, options.verbose ? io::progress_style::automatic
                                                              : io::progress_style::quiet);
        history result;
        for (std::int64_t epoch = 0; epoch < options.epochs; ++epoch)
            result.epochs.push_back(run_epoch(loader, epoch, options, progress));
        return result;
    }

    /// Mean loss and accuracy over a data set, weighted by batch size.
    step_result evaluate(const data::dataset& set, std::int64_t batch_size = 32) {
        check_columns(set);
        data::loader loader(set.batch(batch_size).prefetch(2));
        step_result sum;
        std::int64_t records = 0;
        loader.begin_epoch(0);
        while (const data::batch* b = loader.next()) {
            const step_result r = self().measure_once(batch_view(*b, 0), batch_view(*b, 1));
            sum.loss += r.loss * static_cast<double>(b->count());
            sum.accuracy += r.accuracy * static_cast<double>(b->count());
            records += b->count();
        }
        return {sum.loss / static_cast<double>(records), sum.accuracy / static_cast<double>(records)};
    }

    template <class Labels>
    step_result evaluate(const tensor<element>& x, const tensor<Labels>& y) {
        check_batch(x.view());
        return self().measure_once(x.view(), y.view());
    }

    /// The model's output. Safe from several threads at once.
    auto predict(const tensor<element>& x) const {
        check_batch(x.view());
        return static_cast<const Derived&>(*this).predict_once(x);
    }

private:
    Derived& self() { return static_cast<Derived&>(*this); }

    static void check_batch(const buffer_view& x) {
        if (x.type != dtype_of<element>)
            throw dtype_error(std::string("input is ") + name_of(x.type) + ", the model takes " +
                              name_of(dtype_of<element>));
        if (x.rank != Spec::rank)
            throw shape_error("input has rank " + std::to_string(x.rank) + ", the model takes rank " +
                              std::to_string(Spec::rank));
        if (x.rank > 0 && x.extents[0] == 0) throw shape_error("input: the batch is empty");
    }
    static void check_columns(const data::dataset& set) {
        if (set.columns().size() < 2)
            throw argument_error("data set: an input column and a label column are needed, there are " +
                                 std::to_string(set.columns().size()));
    }
    static buffer_view batch_view(const data::batch& b, std::size_t column) {
        const data::column_spec& spec = b.columns()[column];
        buffer_view v;
        v.data = const_cast<std::byte*>(b.data(column)); // kernels read inputs only
        v.type = spec.type;
        v.extents[v.rank++] = b.count();
        for (const std::int64_t extent : spec.shape) v.extents[v.rank++] = extent;
        return v;
    }

    epoch_result run_epoch(data::loader& loader, std::int64_t epoch, const fit_options& options,
                           io::progress_line& progress) {
        using clock = std::chrono::steady_clock;
        const auto start = clock::now();
        std::int64_t steps = loader.batches_per_epoch();
        if (options.steps_per_epoch > 0) steps = std::min(steps, options.steps_per_epoch);
        progress.begin_epoch(epoch + 1, options.epochs, steps);
        loader.begin_epoch(epoch);
        epoch_result r;
        while (r.steps < steps) {
            const data::batch* b = loader.next();
            if (b == nullptr) break;
            const step_result s = train_step(batch_view(*b, 0), batch_view(*b, 1));
            const auto count = static_cast<double>(b->count());
            r.loss += s.loss * count;
            r.accuracy += s.accuracy * count;
            r.records += b->count();
            ++r.steps;
            const auto seen = static_cast<double>(r.records);
            progress.update(r.steps, {{"loss", r.loss / seen}, {"accuracy", r.accuracy / seen}});
        }
        const auto seen = static_cast<double>(std::max<std::int64_t>(r.records, 1));
        r.loss /= seen;
        r.accuracy /= seen;
        r.seconds = std::chrono::duration<double>(clock::now() - start).count();
        r.ingestion_seconds = loader.wait_seconds();
        if (options.validation) {
            const step_result v = evaluate(*options.validation, options.batch_size);
            r.validation_loss = v.loss;
            r.validation_accuracy = v.accuracy;
            progress.end_epoch(r.steps, {{"loss", r.loss},
                                         {"accuracy", r.accuracy},
                                         {"val_loss", v.loss},
                                         {"val_accuracy", v.accuracy}});
        } else {
            progress.end_epoch(r.steps, {{"loss", r.loss}, {"accuracy", r.accuracy}});
        }
        return r;
    }
};

} // namespace tapegraph
