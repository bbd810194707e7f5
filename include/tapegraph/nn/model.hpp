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
#include <deque>
#include <memory>
#include <optional>
#include <string>

namespace tapegraph {

/// Options of fit.
struct fit_options {
    std::int64_t epochs = 1;
    std::int64_t initial_epoch = 0; ///< the first of them, where a later call goes on
    std::int64_t batch_size = 32;
    std::optional<data::dataset>
        validation_data{};                     ///< evaluated after every epoch, columns as those of the training set
    std::int64_t steps_per_epoch = 0;          ///< stop an epoch early; 0: the whole data set
    bool shuffle = true;                       ///< in an order that depends on the model's seed and the epoch
    bool verbose = true;                       ///< progress on stderr
    std::int64_t prefetch = 2;                 ///< batches assembled ahead
};

/// Options of compile.
struct compile_options {
    std::uint64_t seed = 0; ///< of variables' first values, random operations and shuffling
    /// After every step, look for values that are not finite; throws numeric_error that names the step and the first operation.
    bool check_finite = false;
    /// Where the model computes, as device_scope chooses; by default where the thread does.
    std::optional<tapegraph::device> device{};
};

/// Options of save.
struct save_options {
    /// Momentum and the like, too: a model of the same seed then goes on exactly where this one stopped.
    bool optimizer_state = false;
};

/// Options of load.
struct load_options {
    /// Restores the optimizer's state and the step count from a file that holds them. A file of another optimizer's state
    /// is refused; without this only the model's variables are read.
    bool optimizer_state = true;
};

namespace detail {

/// Weights in files, defined in tapegraph/io/weights.hpp.
template <class Path>
struct weight_file;
template <class Path>
constexpr bool weight_files_known() {
    return requires { sizeof(weight_file<Path>); };
}

/// Everything about a model that does not depend on its mode.
class model_base {
public:
    /// Writes the model's variables by path as safetensors; an older file is replaced only by a complete new one. Needs
    /// #include <tapegraph/io/weights.hpp>. Throws data_error where writing fails.
    template <class Path>
    void save(const Path& path, const save_options& options = {}) const {
        static_assert(weight_files_known<Path>(), "model.save needs #include <tapegraph/io/weights.hpp>");
        if constexpr (weight_files_known<Path>()) weight_file<Path>::save(path, variables_, step_, options);
    }
    /// Reads what `save` wrote, in either mode, or any safetensors file of the same names. Throws data_error for a tensor
    /// that is missing or that the model does not know, shape_error and dtype_error for one that does not fit; then
    /// nothing of the model has changed. Needs #include <tapegraph/io/weights.hpp>.
    template <class Path>
    void load(const Path& path, const load_options& options = {}) {
        static_assert(weight_files_known<Path>(), "model.load needs #include <tapegraph/io/weights.hpp>");
        if constexpr (weight_files_known<Path>())
            weight_file<Path>::load(path, variables_, step_, options.optimizer_state && trains_);
    }

    /// The model's variables and, behind them, the optimizer's.
    variable_list& variables() { return variables_; }
    const variable_list& variables() const { return variables_; }
    /// Steps trained so far.
    std::int64_t step() const { return step_; }
    /// The layer table as text: type, output shape and parameters of each layer, and totals.
    std::string summary() const {
        model_summary s = summary_;
        s.trainable = trainable_parameter_count();
        return s.text();
    }
    /// Numbers in the model's variables, without the optimizer's.
    std::int64_t parameter_count() const { return summary_.parameters; }
    /// What training changes; frozen variables do not count.
    std::int64_t trainable_parameter_count() const {
        std::int64_t count = 0;
        for (const variable& v : variables_)
            if (v.trainable()) count += v.size();
        return count;
    }

protected:
    explicit model_base(const compile_options& options) : options_(options), device_(runtime::current_runtime()) {
        if (options.device) device_ = runtime::runtime_for(*options.device);
    }

    // Variables and the layer table come from traces made by the compiler, so both modes hold the same variables in the
    // same order with the same first values. `all` also has the optimizer's state behind the model's variables.
    template <class Model, class Spec, class AllTrace>
    void set_up() {
        read_traces<ir::traced_stage<ir::prediction_trace<Model, Spec, true>>, ir::traced_stage<AllTrace>>(
            !std::is_same_v<AllTrace, ir::prediction_trace<Model, Spec>>);
    }

    template <class ModelStage, class AllStage>
    void read_traces(bool trains) {
        trains_ = trains;
        const device_scope on(nullptr); // first values come from the CPU on every device
        summary_ = describe_model(ir::stage_view<ModelStage>());
        constexpr ir::program_view all = ir::stage_view<AllStage>();
        for (int i = 0; i < all.variables.size(); ++i) {
            const ir::variable_entry& v = all.variables[i];
            std::string path = path_of(all.scopes, v.scope);
            if (!path.empty()) path += '/';
            path += v.name;
            const ir::entry& e = all.nodes[v.node];
            any_tensor data(e.type, shape(e.rank, all.pool.begin() + e.dims));
            const initializer how{static_cast<initializer_kind>(v.initializer), v.a, v.b};
            if constexpr (ir::has_variable_of(all, dtype::f64))
                if (data.type() == dtype::f64)
                    initialize(static_cast<double*>(data.write()), data.shape(), how, options_.seed, path);
            if constexpr (ir::has_variable_of(all, dtype::f32))
                if (data.type() == dtype::f32)
                    initialize(static_cast<float*>(data.write()), data.shape(), how, options_.seed, path);
            variables_.add(std::move(path), std::move(data), v.trainable, i >= summary_.variables);
        }
    }

    compile_options options_;
    runtime::device_runtime* device_; // null: the CPU
    variable_list variables_;
    model_summary summary_;
    std::int64_t step_ = 0;
    bool trains_ = true; // false: made for prediction alone
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

    /// One step on tensors: x of the model's input, y as the loss's `labels` says. Gives loss and accuracy before the update.
    /// Throws shape_error or dtype_error for what does not fit; then nothing has changed.
    template <class Labels>
    step_result train_on_batch(const tensor<element>& x, const tensor<Labels>& y) {
        return train_step(x.view_on(device_), y.view_on(device_));
    }
    /// One step on a batch that a loader made; its first column is the input, its second holds the labels.
    step_result train_on_batch(const data::batch& b) {
        check_columns(b.columns());
        return train_step(batch_view(b, 0), batch_view(b, 1));
    }

    /// One step on a batch in memory that somebody else owns: views of the input and of the labels.
    step_result train_step(const buffer_view& x, const buffer_view& y) {
        const device_scope on(device_);
        check_batch(x);
        ++step_;
        step_result result;
        try {
            result = self().step_once(x, y);
        } catch (const numeric_error& e) {
            throw numeric_error("step " + std::to_string(step_--) + ": " + e.what());
        } catch (...) {
            --step_; // a step that did not happen does not count
            throw;
        }
        if (options_.check_finite && !std::isfinite(result.loss))
            throw numeric_error("step " + std::to_string(step_) + ": the loss is " + std::to_string(result.loss));
        return result;
    }

    /// Trains for some epochs over a data set whose first column is the input and whose second holds the labels. Throws
    /// argument_error for a negative number of epochs or first epoch, a batch size below 1, and a data set without records or
    /// labels.
    history fit(const data::dataset& train, const fit_options& options = {}) {
        if (options.epochs < 0) throw argument_error("fit: epochs is " + std::to_string(options.epochs));
        if (options.initial_epoch < 0)
            throw argument_error("fit: initial_epoch is " + std::to_string(options.initial_epoch));
        check_columns(train.columns());
        data::dataset set = train.batch(options.batch_size).prefetch(options.prefetch);
        if (options.shuffle) set = set.shuffle(options_.seed);
        data::loader loader(set);
        io::progress_line progress(std::cerr,
                                   options.verbose ? io::progress_style::automatic : io::progress_style::quiet);
        history result;
        for (std::int64_t epoch = options.initial_epoch; epoch < options.epochs; ++epoch)
            result.epochs.push_back(run_epoch(loader, epoch, options, progress));
        return result;
    }

    /// Mean loss and accuracy over a data set, weighted by batch size; nothing is trained. Errors as of `fit`.
    step_result evaluate(const data::dataset& set, std::int64_t batch_size = 32) {
        const device_scope on(device_);
        check_columns(set.columns());
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

    /// Loss and accuracy of one batch.
    template <class Labels>
    step_result evaluate(const tensor<element>& x, const tensor<Labels>& y) {
        const device_scope on(device_);
        check_batch(x.outline_view());
        return self().measure_once(x.view(), y.view());
    }

    /// The model's output for a batch, as outside of training. Throws shape_error for an input that is not the model's. Safe from
    /// several threads at once.
    auto predict(const tensor<element>& x) const {
        const device_scope on(device_);
        check_batch(x.outline_view());
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
        for (int axis = 0; axis < Spec::rank; ++axis)
            if (Spec::extents[axis] >= 0 && x.extents[axis] != Spec::extents[axis])
                throw shape_error("input has shape " + to_string(shape(x.rank, x.extents)) + ", the model takes " +
                                  Spec::text());
        if (x.rank > 0 && x.extents[0] == 0) throw shape_error("input: the batch is empty");
    }
    static void check_columns(const std::vector<data::column_spec>& columns) {
        if (columns.size() < 2)
            throw argument_error("data set: an input column and a label column are needed, there are " +
                                 std::to_string(columns.size()));
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

    // On a device the host does not wait for a step's loss before it sends the next batch: it reads the losses of steps that lie
    // behind, and all that are left at the end.
    template <class Add>
    void run_ahead(data::loader& loader, std::int64_t steps, const Add& add) {
        constexpr std::int64_t most_ahead = 16;
        const device_scope on(device_);
        std::deque<std::pair<typename Derived::launched_step, std::int64_t>> under_way;
        const auto finish_one = [&] {
            add(self().result_of(under_way.front().first), under_way.front().second);
            under_way.pop_front();
        };
        for (std::int64_t s = 0; s < steps; ++s) {
            const data::batch* b = loader.next();
            if (b == nullptr) break;
            const buffer_view x = batch_view(*b, 0);
            check_batch(x);
            ++step_;
            under_way.emplace_back(self().launch_once(x, batch_view(*b, 1)), b->count());
            if (static_cast<std::int64_t>(under_way.size()) > most_ahead) finish_one();
        }
        device_->wait(); // what kernels found wrong is thrown here
        while (!under_way.empty()) finish_one();
    }

    epoch_result run_epoch(data::loader& loader, std::int64_t epoch, const fit_options& options,
                           io::progress_line& progress) {
        using clock = std::chrono::steady_clock;
        const auto start = clock::now();
        std::int64_t steps = loader.batches_per_epoch();
        if (options.steps_per_epoch > 0) steps = std::min(steps, options.steps_per_epoch);
        progress.begin_epoch(epoch + 1, options.epochs, steps);
        loader.begin_epoch(static_cast<std::uint64_t>(epoch));
        epoch_result r;
        const auto add = [&](const step_result& s, std::int64_t records) {
            const auto count = static_cast<double>(records);
            r.loss += s.loss * count;
            r.accuracy += s.accuracy * count;
            r.records += records;
            ++r.steps;
            const auto seen = static_cast<double>(r.records);
            progress.update(r.steps, {{"loss", r.loss / seen}, {"accuracy", r.accuracy / seen}});
        };
        if constexpr (requires { self().launch_once(buffer_view{}, buffer_view{}); }) {
            if (device_ != nullptr && !options_.check_finite) {
                run_ahead(loader, steps, add);
                steps = 0;
            }
        }
        while (r.steps < steps) {
            const data::batch* b = loader.next();
            if (b == nullptr) break;
            add(train_step(batch_view(*b, 0), batch_view(*b, 1)), b->count());
        }
        const auto seen = static_cast<double>(std::max<std::int64_t>(r.records, 1));
        r.loss /= seen;
        r.accuracy /= seen;
        r.seconds = std::chrono::duration<double>(clock::now() - start).count();
        r.ingestion_seconds = loader.wait_seconds();
        if (options.validation_data) {
            const step_result v = evaluate(*options.validation_data, options.batch_size);
            r.validation_loss = v.loss;
            r.validation_accuracy = v.accuracy;
            progress.end_epoch(
                r.steps,
                {{"loss", r.loss}, {"accuracy", r.accuracy}, {"val_loss", v.loss}, {"val_accuracy", v.accuracy}});
        } else {
            progress.end_epoch(r.steps, {{"loss", r.loss}, {"accuracy", r.accuracy}});
        }
        return r;
    }
};

} // namespace tapegraph
