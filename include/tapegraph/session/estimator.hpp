#pragma once

#include <tapegraph/compile/compile.hpp>
#include <tapegraph/core/shown_errors.hpp>
#include <tapegraph/formats/path.hpp>
#include <tapegraph/io/weights.hpp>
#include <tapegraph/session/estimator/checkpoints.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

/// A model that lives in a folder: it is trained by steps, writes checkpoints, and a later program
/// continues where this one ended. Not in the umbrella header: #include
/// <tapegraph/session/estimator.hpp>.

namespace tapegraph {

/// The training input of an estimator. An input function returns a data set with a batch size,
/// `files.shuffle(7).batch(64)`; it is called when the records are needed.
template <class InputFn>
struct train_spec {
    InputFn input_fn;
    std::int64_t max_steps = 0;
};
template <class InputFn>
train_spec(InputFn, std::int64_t = 0) -> train_spec<InputFn>; // clang 16 finds none for an aggregate
/// The evaluation input, and how often to evaluate.
template <class InputFn>
struct eval_spec {
    InputFn input_fn;
    std::int64_t every_steps = 0; ///< 0: at every checkpoint by steps, or at the end
    std::int64_t batch_size = 32;
};
template <class InputFn>
eval_spec(InputFn, std::int64_t = 0, std::int64_t = 32) -> eval_spec<InputFn>;

/// A model and the folder of its checkpoints. The model's `scope.training()` is true in train, and
/// false in evaluate and predict.
template <class Model>
class estimator {
public:
    /// Continues from the newest checkpoint in the folder, if there is one. Throws argument_error
    /// for invalid options, and data_error, which names the file, for a folder that cannot be
    /// created and for a checkpoint that cannot be read. For a checkpoint of another model it
    /// throws like model.load.
    template <class Mistake = no_such_option_in<checkpoint_options>>
    explicit estimator(Model, any_argument, ...) = delete;
    estimator(Model model, files::path model_dir, checkpoint_options options = {})
        : model_(std::move(model)), checkpoints_(std::move(model_dir), std::move(options)) {
        check_metric(checkpoints_.options().best);
        if (const auto newest = checkpoints_.newest(); !newest.empty()) load(newest);
        checkpoints_.begin(model_.step());
    }

    /// The model that trains, evaluates and predicts.
    Model& model() { return model_; }
    /// Steps trained so far, including those of earlier programs.
    std::int64_t step() const { return model_.step(); }
    /// The newest checkpoint; empty where there is none.
    files::path latest_checkpoint() const { return checkpoints_.newest(); }
    /// The best checkpoint, if checkpoint_options::best is set; empty if there is none.
    files::path best_checkpoint() const { return checkpoints_.best(); }
    /// Reads a checkpoint: `e.load(e.best_checkpoint())`.
    void load(const files::path& file) { model_.load(file, {.optimizer_state = true}); }

    /// Trains for some steps and returns their mean loss and accuracy. Batches follow from the
    /// number of the step, so interrupted and resumed training sees the same batches. A checkpoint
    /// is written when it is due and at the end.
    template <class InputFn>
    step_result train(const InputFn& input_fn, std::int64_t steps) {
        if (steps < 0) throw argument_error("estimator: steps is " + std::to_string(steps));
        step_result sum;
        if (steps == 0) return sum;
        data::loader batches(input_fn());
        const std::int64_t per_epoch = batches.batches_per_epoch(), last = model_.step() + steps;
        // If a pipeline does not know its size, epochs are counted by going through them.
        const auto first_epoch = static_cast<std::uint64_t>(per_epoch > 0 ? model_.step() / per_epoch : 0);
        std::int64_t passed = per_epoch > 0 ? model_.step() % per_epoch : model_.step();
        for (std::uint64_t epoch = first_epoch; model_.step() < last; ++epoch) {
            batches.begin_epoch(epoch);
            bool any = false;
            while (const data::batch* b = model_.step() < last ? batches.next() : nullptr) {
                any = true;
                if (passed > 0) { // already seen before the checkpoint
                    --passed;
                    continue;
                }
                const step_result r = model_.train_on_batch(*b);
                sum.loss += r.loss;
                sum.accuracy += r.accuracy;
                if (checkpoints_.due(model_.step())) save();
            }
            if (!any && model_.step() < last)
                throw argument_error("estimator: the data set has no records in epoch " + std::to_string(epoch));
        }
        if (const auto known = checkpoints_.steps(); known.empty() || known.back() != model_.step()) save();
        return {sum.loss / static_cast<double>(steps), sum.accuracy / static_cast<double>(steps)};
    }

    /// Returns the result of model.evaluate on a data set. If the options request the best
    /// checkpoint and this is better than all before, it is kept.
    template <class InputFn>
    auto evaluate(const InputFn& input_fn, std::int64_t batch_size = 32) {
        const auto measured = model_.evaluate(input_fn(), batch_size);
        if (const std::string& best = checkpoints_.options().best; !best.empty())
            checkpoints_.offer(model_.step(), value_of(measured, best), writer());
        return measured;
    }

    /// Returns the model's output.
    template <class... X>
    auto predict(const X&... x) const {
        return model_.predict(x...);
    }

    /// Writes a checkpoint now.
    void save() { checkpoints_.write(model_.step(), writer()); }
    /// Where and how often checkpoints are written.
    const checkpoint_options& options() const { return checkpoints_.options(); }

private:
    void check_metric(const std::string& name) const {
        if (name.empty() || name == "loss" || name == "accuracy") return;
        std::string text = "estimator: no metric '" + name + "', there are 'loss', 'accuracy'";
        if constexpr (requires { model_.metrics(); })
            for (const auto& each : model_.metrics()) {
                if (each.name == name) return;
                text.append(", '").append(each.name).append("'");
            }
        throw argument_error(text);
    }
    template <class Measured>
    static double value_of(const Measured& measured, const std::string& name) {
        if (name == "loss") return measured.loss;
        if constexpr (requires { measured[name]; })
            if (name != "accuracy") return measured[name];
        return measured.accuracy;
    }
    auto writer() const {
        return [this](const files::path& file) { model_.save(file, {.optimizer_state = true}); };
    }

    Model model_;
    detail::checkpoint_folder checkpoints_;
};

/// Trains up to a total number of steps and evaluates on the way; returns the last evaluation. A
/// program that is restarted after an interruption does the remaining steps.
template <class Model, class TrainFn, class EvalFn>
auto train_and_evaluate(estimator<Model>& e, const train_spec<TrainFn>& train, const eval_spec<EvalFn>& eval) {
    if (train.max_steps < 0)
        throw argument_error("train_and_evaluate: max_steps is " + std::to_string(train.max_steps));
    if (eval.every_steps < 0)
        throw argument_error("train_and_evaluate: every_steps is " + std::to_string(eval.every_steps));
    const std::int64_t given = eval.every_steps > 0 ? eval.every_steps : e.options().every_steps;
    const std::int64_t every = given > 0 ? given : train.max_steps;
    for (;;) {
        const std::int64_t left = train.max_steps - e.step();
        if (left > 0) e.train(train.input_fn, std::min(left, every - e.step() % every));
        auto measured = e.evaluate(eval.input_fn, eval.batch_size);
        if (e.step() >= train.max_steps) return measured;
    }
}

} // namespace tapegraph
