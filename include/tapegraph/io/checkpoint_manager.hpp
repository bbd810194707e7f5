#pragma once

#include <tapegraph/formats/needs_posix.hpp>

#include <tapegraph/core/component.hpp>
#include <tapegraph/formats/atomic_folder.hpp>
#include <tapegraph/formats/folder_claim.hpp>
#include <tapegraph/formats/path.hpp>
#include <tapegraph/io/checkpoint_rules.hpp>
#include <tapegraph/io/checkpoint_state.hpp>
#include <tapegraph/io/weights.hpp>

#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

/// Checkpoints of a training, one folder each: step-000120/model.safetensors and state.json.

namespace tapegraph {

/// Participants that write checkpoints together, each a part of the tensors;
/// `tg::by_rank(exchange)` creates them. All of them call the same functions of a manager in the
/// same order.
class checkpoint_parts {
public:
    virtual ~checkpoint_parts() = default;
    /// Whether this one creates and removes folders, and writes the common files.
    virtual bool leads() const = 0;
    /// Copies this one's part of a model's tensors.
    virtual void take(detail::model_entries all) = 0;
    /// Starts writing the part into a folder that appears under that name once all have written;
    /// then `committed` is called on the leader. Throws data_error, the same everywhere, if the
    /// folder cannot be created.
    virtual void begin(const files::path& folder, const std::string& state, bool background,
                       std::function<void()> committed) = 0;
    /// Makes progress without waiting.
    virtual void poll() = 0;
    /// Waits until the folder is complete; does nothing if none was started. Throws data_error, the
    /// same everywhere, on failure.
    virtual void finish() = 0;
    /// Abandons the current write, after an error.
    virtual void abandon() noexcept = 0;
};

/// Options of checkpoint_manager, named as in TensorFlow's CheckpointManager.
struct checkpoint_manager_options {
    std::int64_t max_to_keep = 5;      ///< number of newest ones to keep; 0: all
    std::int64_t keep_every_steps = 0; ///< also keep steps that are multiples of it; 0: none
    std::string best{};                ///< a metric: also keep the checkpoint with its best value
    better mode = better::automatic;   ///< whether higher values of that metric are better
    /// Saving copies the variables and returns; a thread writes them. false: save returns when
    /// everything is on disk.
    bool background = true;
    std::uint64_t max_shard_bytes = 0;     ///< above 0: files of at most this many bytes, with an index
    save_options save{.everything = true}; ///< content; the default resumes exactly
    bool writes =
        true; ///< false: only reads, like ranks other than the chief; save does nothing, and no folder is created
    std::shared_ptr<checkpoint_parts>
        parts{}; ///< tg::by_rank(ranks): each rank writes a part; any number of ranks can read it
};

namespace detail {

/// A copy of a model's tensors at one moment, so that training may continue while they are written.
/// The memory is reused for the next.
struct weight_snapshot {
    std::vector<io::safetensors_entry> entries;
    std::map<std::string, std::string> metadata;
    std::vector<std::byte> values;

    void take(model_entries from);
};
/// Stands for the path when a model is saved into a snapshot, or in parts.
struct snapshot_place {
    static constexpr bool of_every_rank = true;
    weight_snapshot& snapshot;
    checkpoint_parts* parts = nullptr;
};
template <>
struct weight_file<snapshot_place> {
    template <class Model>
    static void save(const snapshot_place& to, const Model& model, const save_options& options) {
        if (to.parts == nullptr) return to.snapshot.take(entries_of(model, options));
        model_entries all = entries_of(model, options);
        to.snapshot.metadata = all.metadata;
        to.parts->take(std::move(all));
    }
};

} // namespace detail

/// Checkpoints in one folder: each is written completely or not at all, whenever the process ends;
/// the newest and the best are kept; a thread writes one at a time while training continues.
///
///     tg::checkpoint_manager checkpoints("run", {.max_to_keep = 3, .best = "val_loss"});
///     checkpoints.restore_latest(model);
///     ...
///     checkpoints.save(model, {.epoch = epoch, .metrics = {{"val_loss", loss}}});
///     checkpoints.close();
///
/// The next call of save, wait, close or restore throws an error of writing. For use by one thread
/// at a time.
class checkpoint_manager {
public:
    /// Creates the folder if it is missing, and removes unfinished files of a killed process.
    /// Throws argument_error for invalid options, data_error if the folder cannot be created.
    explicit checkpoint_manager(files::path folder, checkpoint_manager_options options = {});
    checkpoint_manager(const checkpoint_manager&) = delete;
    checkpoint_manager& operator=(const checkpoint_manager&) = delete;
    /// Waits for the current write. Its error is lost: call close() first.
    ~checkpoint_manager();

    /// The folder of the checkpoints.
    const files::path& folder() const { return folder_; }
    /// How many are kept and what they are called.
    const checkpoint_manager_options& options() const { return options_; }

    /// Prevents other processes from writing checkpoints here until close(), because two would
    /// remove each other's. save does so, too; reading is allowed at any time. This also removes
    /// the files that a killed process left behind, possibly at its last checkpoint. Throws
    /// data_error that names the process that writes here.
    void claim() {
        if (!options_.writes || options_.parts || claim_) return;
        claim_.emplace(folder_);
        try {
            if (const auto newest = latest()) remove_surplus(*newest);
        } catch (const data_error&) { // writing will fail for the same reason, and report it
        }
    }
    /// Saves the current model. Waits for the previous checkpoint first. Throws data_error if that
    /// one, or this, could not be written, or another process writes here, and argument_error if
    /// `state` lacks the metric `options().best`.
    template <class Model>
    void save(const Model& model, checkpoint_state state = {}) {
        wait();
        if (options_.save.optimizer_state || options_.save.everything)
            if constexpr (requires { model.gather_optimizer_state(); }) model.gather_optimizer_state();
        if constexpr (requires { model.gather_variables(); }) model.gather_variables();
        if (!options_.parts) {
            if constexpr (requires { model.writes_files(); })
                if (!model.writes_files()) return; // of ranks that train together only the chief writes
            if (!options_.writes) return;
        }
        claim();
        if (state.step < 0) state.step = model.step();
        if (!options_.best.empty() && state.metrics.find(options_.best) == state.metrics.end())
            throw argument_error("checkpoint_manager: the state has no metric '" + options_.best +
                                 "', which is to be best");
        model.save(detail::snapshot_place{snapshot_, options_.parts.get()}, options_.save);
        if (const auto seed = snapshot_.metadata.find("seed"); seed != snapshot_.metadata.end())
            state.seed = std::stoull(seed->second);
        if (options_.parts)
            return options_.parts->begin(path_of(state.step), io::detail::text_of(state), options_.background,
                                         [this, step = state.step] { remove_surplus(step); });
        if (!options_.background) return write(state);
        writer_ = std::thread([this, state] {
            try {
                write(state);
            } catch (...) {
                failure_ = std::current_exception();
            }
        });
    }
    /// Waits until nothing is being written. Throws an error of writing.
    void wait() {
        if (options_.parts) options_.parts->finish();
        if (writer_.joinable()) writer_.join();
        if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    }
    /// If others write, too: checks whether all are done, so that the checkpoint is complete before
    /// the next wait.
    void poll() {
        if (options_.parts) options_.parts->poll();
    }
    /// The last wait: when it returns, everything saved is on disk, and the memory of the copy is
    /// freed.
    void close() {
        wait();
        snapshot_ = {};
        claim_.reset();
    }

    /// Steps of the checkpoints, ascending.
    std::vector<std::int64_t> steps() const {
        std::error_code missing;
        if (!makes_folders() && !files::exists(folder_, missing)) return {};
        return io::detail::numbered_entries(folder_, "step-", "");
    }
    /// The folder of a step, whether it exists or not.
    files::path path_of(std::int64_t step) const {
        const std::string digits = std::to_string(step);
        return folder_ / ("step-" + std::string(digits.size() < 6 ? 6 - digits.size() : 0, '0') + digits);
    }
    /// The step of the newest checkpoint, if there is one.
    std::optional<std::int64_t> latest() const {
        const auto known = steps();
        return known.empty() ? std::nullopt : std::optional(known.back());
    }
    /// The step of the checkpoint with the best value of `options().best`, if there is one.
    std::optional<std::int64_t> best() const;
    /// The state stored in a checkpoint. Throws data_error if it cannot be read.
    checkpoint_state state_of(std::int64_t step) const { return io::detail::read_state(path_of(step) / "state.json"); }

    /// Loads a checkpoint. Throws data_error naming the file if it is missing or damaged, and like
    /// model.load for a checkpoint of another model; then the model is unchanged.
    template <class Model>
    checkpoint_state restore(Model& model, std::int64_t step) {
        wait();
        const auto folder = path_of(step);
        checkpoint_state state = state_of(step);
        const auto index = folder / "model.safetensors.index.json";
        std::error_code failure;
        const bool sharded = files::exists(index, failure);
        model.load(sharded ? index : folder / "model.safetensors",
                   load_options{.optimizer_state = options_.save.optimizer_state || options_.save.everything,
                                .everything = options_.save.everything});
        return state;
    }
    /// Loads the newest checkpoint; does nothing if there is none.
    template <class Model>
    std::optional<checkpoint_state> restore_latest(Model& model) {
        wait();
        const auto step = latest();
        return step ? std::optional(restore(model, *step)) : std::nullopt;
    }
    /// Loads the best checkpoint; does nothing if there is none.
    template <class Model>
    std::optional<checkpoint_state> restore_best(Model& model) {
        wait();
        const auto step = best();
        return step ? std::optional(restore(model, *step)) : std::nullopt;
    }

private:
    bool makes_folders() const { return options_.parts ? options_.parts->leads() : options_.writes; }
    void write(const checkpoint_state& state);
    void remove_surplus(std::int64_t written) const;

    files::path folder_;
    checkpoint_manager_options options_;
    detail::weight_snapshot snapshot_;
    std::optional<io::folder_claim> claim_;
    std::thread writer_;
    std::exception_ptr failure_;
};

#if TG_DEFINES_FOR_HOST(io)

namespace detail {

TG_DEFINITION void weight_snapshot::take(model_entries from) {
    entries = std::move(from.entries);
    metadata = std::move(from.metadata);
    std::vector<std::size_t> bytes;
    std::size_t size = 0;
    for (const auto& e : entries) {
        std::int64_t count = 0;
        io::checked_size(e.shape, size_of(e.type), count);
        bytes.push_back(static_cast<std::size_t>(count) * size_of(e.type));
        size += bytes.back();
    }
    values.resize(size);
    std::byte* to = values.data();
    for (std::size_t i = 0; i < entries.size(); to += bytes[i++]) {
        if (bytes[i] > 0) std::memcpy(to, entries[i].data, bytes[i]);
        entries[i].data = to;
    }
}

} // namespace detail

TG_DEFINITION checkpoint_manager::checkpoint_manager(files::path folder, checkpoint_manager_options options)
    : folder_(std::move(folder)), options_(std::move(options)) {
    const auto refuse = [](const char* name, std::int64_t value) {
        throw argument_error(std::string("checkpoint_manager: ") + name + " is " + std::to_string(value));
    };
    if (options_.max_to_keep < 0) refuse("max_to_keep", options_.max_to_keep);
    if (options_.keep_every_steps < 0) refuse("keep_every_steps", options_.keep_every_steps);
    if (options_.parts && options_.max_shard_bytes > 0)
        throw argument_error("checkpoint_manager: max_shard_bytes is " + std::to_string(options_.max_shard_bytes) +
                             ", and files are one for each rank");
    if (!makes_folders()) return;
    io::detail::make_folder(folder_);
    io::remove_unfinished(folder_);
}

TG_DEFINITION checkpoint_manager::~checkpoint_manager() {
    if (writer_.joinable()) writer_.join();
    if (!options_.parts) return;
    try {
        if (std::uncaught_exceptions() > 0)
            options_.parts->abandon();
        else
            options_.parts->finish();
    } catch (...) { // callers that need the error call close()
    }
}

TG_DEFINITION std::optional<std::int64_t> checkpoint_manager::best() const {
    std::optional<std::int64_t> found;
    if (options_.best.empty()) return found;
    const bool highest = detail::more_is_better(options_.best, options_.mode);
    double value = 0;
    for (const std::int64_t step : steps()) {
        const double offered = state_of(step).metric(options_.best);
        if (!io::detail::improves(offered, found.has_value(), value, highest)) continue;
        value = offered;
        found = step;
    }
    return found;
}

TG_DEFINITION void checkpoint_manager::write(const checkpoint_state& state) {
    io::atomic_folder place(path_of(state.step));
    const auto file = place.path() / "model.safetensors";
    if (options_.max_shard_bytes > 0)
        io::write_safetensors_shards({file, options_.max_shard_bytes}, snapshot_.entries, snapshot_.metadata);
    else
        io::write_safetensors_arrays(file, snapshot_.entries, snapshot_.metadata);
    io::atomic_file text(place.path() / "state.json");
    text.write(io::detail::text_of(state));
    text.commit();
    place.commit();
    remove_surplus(state.step);
}

TG_DEFINITION void checkpoint_manager::remove_surplus(std::int64_t written) const {
    const auto surplus = io::detail::surplus_of(steps(), options_.max_to_keep);
    const auto kept = surplus.empty() ? std::nullopt : best();
    for (const std::int64_t old : surplus)
        if (old != kept && old != written && (options_.keep_every_steps == 0 || old % options_.keep_every_steps != 0))
            io::remove_folder(path_of(old));
}

#endif

} // namespace tapegraph
