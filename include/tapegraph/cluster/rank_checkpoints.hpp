#pragma once

#include <tapegraph/cluster/ranks/agreement.hpp>
#include <tapegraph/core/component.hpp>
#include <tapegraph/io/checkpoint_manager.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

/// Checkpoints that ranks write together: step-000120/model-00002-of-00004.safetensors is the part
/// of rank 1, next to an index that any number of ranks can read, even one, and state.json.

namespace tapegraph {

namespace detail {

/// The part of a model that each rank writes, and the index's text.
struct rank_plan {
    std::vector<std::vector<io::safetensors_entry>> entries; ///< by rank
    std::vector<std::string> files;                          ///< by rank
    std::string index;
    std::uint64_t fields = 0; ///< names, types and shapes, on which all ranks must agree
};

inline std::size_t bytes_of(const io::safetensors_entry& e) {
    std::int64_t count = 0;
    io::checked_size(e.shape, size_of(e.type), count);
    return static_cast<std::size_t>(count) * size_of(e.type);
}

/// Assigns whole tensors, the largest first, to the rank that has least; a tensor of more than a
/// fair share is cut into slices, one per rank. The state of a run goes to the chief, because only
/// the chief has all of it.
rank_plan plan_ranks(std::vector<io::safetensors_entry> all, int ranks, int chief, const std::string& saved);

/// A rank among those that write a checkpoint. A thread writes files, and the training thread sends
/// messages.
class rank_checkpoints final : public checkpoint_parts {
public:
    explicit rank_checkpoints(distributed::exchange& ranks)
        : ranks_(&ranks), reports_(ranks, "checkpoint, reports of ranks") {}
    rank_checkpoints(const rank_checkpoints&) = delete;
    rank_checkpoints& operator=(const rank_checkpoints&) = delete;
    ~rank_checkpoints() override { abandon(); }

    bool leads() const override { return ranks_->is_chief(); }
    void take(model_entries all) override;
    void begin(const files::path& folder, const std::string& state, bool background,
               std::function<void()> committed) override;
    void poll() override {
        if (!under_way_ || !written_) return;
        report();
        ranks_->progress();
        if (reports_.done()) conclude();
    }
    void finish() override;
    void abandon() noexcept override {
        if (writer_.joinable()) writer_.join();
        folder_.reset();
        claim_.reset();
        committed_ = nullptr;
        under_way_ = false;
    }

private:
    static void put_text(const files::path& to, const std::string& text) {
        io::atomic_file out(to);
        out.write(text);
        out.commit();
    }
    /// Sends the chief's text to every rank.
    std::string from_chief(std::string text);
    /// Reports the result of writing to the others, once.
    void report() {
        if (writer_.joinable()) writer_.join();
        if (std::exchange(reported_, true)) return;
        reports_.start(std::as_bytes(std::span(report_.data(), report_.size())));
    }
    /// Concludes when all have written, or one failed: the first failure in order of ranks is
    /// reported to all.
    void conclude();

    distributed::exchange* ranks_;
    weight_snapshot snapshot_;
    files::path name_;
    std::string saved_, fields_, file_, index_, report_, outcome_;
    std::optional<io::folder_claim> claim_; // the chief's, like the next
    std::optional<io::atomic_folder> folder_;
    std::function<void()> committed_;
    std::thread writer_;
    std::atomic<bool> written_{false};
    bool under_way_ = false, reported_ = false, concluded_ = false;
    distributed::block_gather reports_; // sends the members above
};

} // namespace detail

/// Checkpoints whose parts these ranks write together, in a folder visible to all of them:
///
///     model.fit(train, options, tg::keep_checkpoints{.folder = "run", .options = {.parts = tg::by_rank(ranks)}});
///
/// Every rank passes the same options, and calls the manager's functions in the same order. Throws
/// data_error, the same on every rank, that names the rank which could not write, or has other
/// variables or another step. The exchange must outlive it.
inline std::shared_ptr<checkpoint_parts> by_rank(distributed::exchange& ranks) {
    return std::make_shared<detail::rank_checkpoints>(ranks);
}

} // namespace tapegraph

namespace tapegraph::detail {

#if TG_DEFINES_FOR_HOST(cluster)

TG_DEFINITION rank_plan plan_ranks(std::vector<io::safetensors_entry> all, int ranks, int chief,
                                   const std::string& saved) {
    const auto count = static_cast<std::size_t>(ranks);
    rank_plan plan;
    plan.entries.resize(count);
    std::vector<std::size_t> load(count);
    std::string map, slices;
    for (std::size_t r = 0; r < count; ++r) plan.files.push_back(io::detail::shard_name("model", 0, r, count));
    const auto put = [&](std::size_t rank, io::safetensors_entry e) {
        load[rank] += bytes_of(e);
        map.append(map.empty() ? "" : ",").append(io::json_string(e.name)).append(":");
        map += io::json_string(plan.files[rank]);
        plan.entries[rank].push_back(std::move(e));
    };
    std::size_t total = 0, shared = 0;
    std::vector<io::safetensors_entry> model;
    for (io::safetensors_entry& e : all) {
        total += bytes_of(e);
        if (e.name.starts_with(run_prefix)) {
            put(static_cast<std::size_t>(chief), std::move(e));
            continue;
        }
        shared += bytes_of(e);
        plan.fields = distributed::hash_text(e.name + name_of(e.type) + io::shape_text(e.shape), plan.fields);
        model.push_back(std::move(e));
    }
    std::stable_sort(model.begin(), model.end(),
                     [](const auto& a, const auto& b) { return bytes_of(a) > bytes_of(b); });
    for (io::safetensors_entry& e : model) {
        const std::size_t bytes = bytes_of(e), elements = bytes / size_of(e.type);
        if (bytes <= shared / count || elements < count || count == 1) {
            put(static_cast<std::size_t>(std::min_element(load.begin(), load.end()) - load.begin()), std::move(e));
            continue;
        }
        slices.append(slices.empty() ? "" : ",").append(io::json_string(e.name)).append(":{\"shape\":");
        slices.append(io::shape_text(e.shape)).append(",\"parts\":[");
        for (std::size_t r = 0; r < count; ++r) {
            const std::size_t first = elements * r / count, end = elements * (r + 1) / count;
            const std::string name = e.name + "@" + std::to_string(first);
            slices.append(r == 0 ? "" : ",").append(io::json_string(name));
            put(r, {name,
                    e.type,
                    {static_cast<std::int64_t>(end - first)},
                    static_cast<const std::byte*>(e.data) + first * size_of(e.type)});
        }
        slices += "]}";
    }
    plan.index = "{\"metadata\":{\"total_size\":" + std::to_string(total) + ",\"saved\":" + io::json_string(saved) +
                 "},\"parts\":[";
    for (std::size_t r = 0; r < count; ++r) plan.index.append(r == 0 ? "" : ",").append(io::json_string(plan.files[r]));
    plan.index += "],\"slices\":{" + slices + "},\"weight_map\":{" + map + "}}\n";
    return plan;
}

TG_DEFINITION void rank_checkpoints::take(model_entries all) {
    finish();
    saved_ = leads() ? std::to_string(std::chrono::system_clock::now().time_since_epoch().count()) : "";
    saved_ = from_chief(saved_);
    rank_plan plan = plan_ranks(std::move(all.entries), ranks_->size(), ranks_->chief(), saved_);
    const auto own = static_cast<std::size_t>(ranks_->rank());
    all.metadata["rank"] = std::to_string(own);
    all.metadata["saved"] = saved_;
    fields_ = "model " + std::to_string(plan.fields) + ", step " + all.metadata["step"];
    file_ = plan.files[own];
    index_ = std::move(plan.index);
    snapshot_.take({std::move(plan.entries[own]), std::move(all.metadata)});
}

TG_DEFINITION void rank_checkpoints::begin(const files::path& folder, const std::string& state, bool background,
                                           std::function<void()> committed) {
    std::string place; // '+' and the path of the unfinished folder, or '-' and the reason why there is none
    if (leads()) {
        try {
            if (!claim_) claim_.emplace(folder.parent_path());
            folder_.emplace(folder);
            place = "+" + folder_->path().string();
        } catch (const std::exception& e) {
            place = std::string("-") + e.what();
        }
    }
    place = from_chief(place);
    if (place[0] == '-') throw data_error(place.substr(1));
    committed_ = std::move(committed);
    name_ = folder;
    under_way_ = true;
    reported_ = concluded_ = false;
    outcome_.clear();
    written_ = false;
    const auto write = [this, to = files::path(place.substr(1)), state] {
        try {
            io::write_safetensors_arrays(to / file_, snapshot_.entries, snapshot_.metadata);
            if (leads()) {
                put_text(to / "model.safetensors.index.json", index_);
                put_text(to / "state.json", state);
            }
            report_ = "+" + fields_;
        } catch (const std::exception& e) {
            report_ = std::string("-") + e.what();
        }
        written_ = true;
    };
    if (background) {
        writer_ = std::thread(write);
        return;
    }
    write();
    finish();
}

TG_DEFINITION void rank_checkpoints::finish() {
    if (!under_way_) return;
    try {
        report();
        reports_.wait();
        conclude();
        outcome_ = from_chief(outcome_);
    } catch (...) {
        abandon();
        throw;
    }
    under_way_ = false;
    if (!outcome_.empty()) throw data_error(outcome_);
}

TG_DEFINITION std::string rank_checkpoints::from_chief(std::string text) {
    std::uint64_t size = text.size();
    distributed::broadcast(*ranks_, ranks_->chief(), std::as_writable_bytes(std::span(&size, 1)),
                           "checkpoint, what the chief says");
    text.resize(static_cast<std::size_t>(size));
    distributed::broadcast(*ranks_, ranks_->chief(), std::as_writable_bytes(std::span(text.data(), text.size())),
                           "checkpoint, what the chief says");
    return text;
}

TG_DEFINITION void rank_checkpoints::conclude() {
    if (std::exchange(concluded_, true)) return;
    const auto report_of = [&](int rank) {
        const auto block = reports_.block(rank);
        return std::string(reinterpret_cast<const char*>(block.data()), block.size());
    };
    const std::string first = report_of(ranks_->chief());
    for (int r = 0; r < ranks_->size() && outcome_.empty(); ++r)
        if (const std::string text = report_of(r); text[0] == '-')
            outcome_ = io::detail::quoted(name_) + ": rank " + std::to_string(r) + ": " + text.substr(1);
        else if (text != first)
            outcome_ = io::detail::quoted(name_) + ": rank " + std::to_string(r) + " has " + text.substr(1) +
                       ", rank " + std::to_string(ranks_->chief()) + " has " + first.substr(1);
    if (!leads()) return;
    try {
        if (outcome_.empty()) folder_->commit();
        folder_.reset();
        if (outcome_.empty() && committed_) committed_();
    } catch (const std::exception& e) {
        outcome_ = e.what();
    }
}

#endif

} // namespace tapegraph::detail
