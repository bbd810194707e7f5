#pragma once

#include <tapegraph/cluster/ranks/agreement.hpp>
#include <tapegraph/cluster/ranks/tree_sum.hpp>
#include <tapegraph/cluster/sharded/buckets.hpp>
#include <tapegraph/cluster/sharded/options.hpp>
#include <tapegraph/cluster/sharded/rows.hpp>
#include <tapegraph/cluster/sharded/sums.hpp>
#include <tapegraph/cluster/sharded/turns.hpp>
#include <tapegraph/core/component.hpp>
#include <tapegraph/train/trainer.hpp>

#include <array>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// The state of models of both modes for their shards, and for the ranks that share them.

namespace tapegraph::detail {

/// Gathers rows of sparse gradients over ranks.
class rank_rows {
public:
    /// Gathers all ranks' rows of each gradient, those of rank 0 first.
    void gather(distributed::exchange& ranks, row_sums& rows);

private:
    std::optional<distributed::block_gather> blocks_;
};

/// A model's shards. Trainer: its base, from the mode.
template <class Trainer>
class shard_owner : public Trainer {
public:
    /// The number of shards per batch.
    int shards() const { return shards_; }
    /// The number of ranks that share them.
    int rank_count() const { return ranks_ == nullptr ? 1 : ranks_->size(); }
    /// Sets the number of shards for fit; 0 keeps it. Returns it. Throws argument_error for an
    /// impossible number, the same on every rank.
    int use_shards(std::int64_t batch_size, int shards) {
        const int requested_shards = shards != 0 ? shards : shards_;
        check_shards(requested_shards, rank_count());
        if (batch_size < requested_shards)
            throw argument_error("fit: batch_size is " + std::to_string(batch_size) + ", less than the " +
                                 std::to_string(requested_shards) + " shards that it is cut into");
        shards_ = requested_shards;
        if (ranks_ == nullptr) return shards_;
        this->writes_files_ = ranks_->is_chief();
        distributed::barrier(*ranks_, "begin of fit"); // waits for the chief's files before others look for them
        return shards_;
    }
    /// The sums over ranks in a step, in the order in which they start; none before the first step,
    /// or in one process.
    std::vector<exchange_report> exchanges() const {
        return ranks_ == nullptr ? std::vector<exchange_report>() : over_ranks_->reports(sums_);
    }
    /// The same as a table, which follows the plan printed by tg::explain.
    std::string exchanges_text() const {
        const std::vector<exchange_report> all = exchanges();
        std::string text;
        if (!all.empty()) text = "exchanges: bytes, call after which they start, ms of a step that wait for them\n";
        for (const exchange_report& e : all) {
            char line[80];
            std::snprintf(line, sizeof line, "  %9zu  %5d  %8.3f  ", e.bytes, e.after_step,
                          e.steps > 0 ? 1e3 * e.exposed / static_cast<double>(e.steps) : 0.0);
            text += line + e.name + "\n";
        }
        return text;
    }
    /// Checks an epoch in which each rank read a part of the set. Throws exchange_error unless
    /// together they have read every record of its batches once.
    void count_records(const data::loader& from) {
        if (ranks_ == nullptr) return;
        std::uint64_t read[2]{static_cast<std::uint64_t>(from.read().count), from.read().sum};
        distributed::sum_over_ranks(*ranks_, std::span<std::uint64_t>(read), "count of records");
        if (read[0] == static_cast<std::uint64_t>(from.whole().count) && read[1] == from.whole().sum) return;
        throw exchange_error("fit: all ranks together have read " + std::to_string(read[0]) +
                             " records of an epoch, which has " + std::to_string(from.whole().count) + " on rank " +
                             std::to_string(ranks_->rank()) +
                             ", or not the same ones; is the set the same everywhere?");
    }
    /// Bytes of the sums over shards.
    std::size_t shard_sum_bytes() const { return sums_.memory(); }

protected:
    explicit shard_owner(const sharded& how)
        : Trainer(how.options), ranks_(how.ranks), devices_(how.devices), shards_(how.shards) {
        check_shards(shards_, rank_count());
        if (how.options.tasks != nullptr)
            throw argument_error(
                "shards: a step is cut by records; `.tasks`, which compute parts of a model, cannot cut "
                "it, too");
        if (devices_ != nullptr &&
            (ranks_ == nullptr || ranks_->size() != devices_->size() || ranks_->rank() != devices_->rank()))
            throw argument_error("shards: `.devices` are " + std::to_string(devices_->size()) + " ranks, `.ranks` " +
                                 std::to_string(rank_count()) + "; they have to be the same");
        if (ranks_ == nullptr) return;
        over_ranks_.emplace(devices_ != nullptr ? *devices_ : *ranks_);
        this->rank_ = ranks_->rank();
        this->rank_count_ = ranks_->size();
        this->writes_files_ = ranks_->is_chief();
    }

    /// This rank's shards.
    int first_shard() const { return ranks_ == nullptr ? 0 : shards_ / rank_count() * ranks_->rank(); }
    int own_shards() const { return shards_ / rank_count(); }

    /// Begins a step and returns the records of its batch, all of which each rank receives. Before
    /// the first step ranks compare values that must agree. A rank may be without records once it
    /// knows what it adds up: `planned` says that it does before it has run a shard.
    std::int64_t begin_step(batch_columns columns, std::size_t count, bool planned = false) {
        const bool known = ranks_ == nullptr || over_ranks_->known();
        const std::int64_t records = records_to_cut(columns, count, shards_, this->fitting_ && (known || planned));
        if (ranks_ == nullptr) return records;
        ranks_->set_step(this->step_);
        if (devices_ != nullptr) devices_->set_step(this->step_);
        over_ranks_->begin();
        if (!known) agree_at_start(columns, count);
        return records;
    }
    /// Starts all remaining sums over the shards of all ranks, and gathers all ranks' rows.
    /// wait_for_ranks awaits them.
    void sum_over_ranks() {
        if (ranks_ == nullptr) return;
        over_ranks_->open(sums_);
        over_ranks_->start_all(sums_);
        rows_over_ranks_.gather(*ranks_, rows_);
    }
    void wait_for_ranks() {
        if (ranks_ != nullptr) over_ranks_->wait_all(sums_);
        if (devices_ != nullptr) devices_->finish();
    }
    /// Refuses devices, for models that add in the CPU's memory.
    void refuse_devices(const char* what) const {
        if (devices_ != nullptr) throw argument_error(std::string("shards: `.devices` adds up on GPUs, ") + what);
    }

    /// This rank's shards that have records, counted from its first.
    const std::vector<int>& live_shards(std::int64_t records) {
        live_.clear();
        for (int s = 0; s < own_shards(); ++s)
            if (shard_range(records, first_shard() + s, shards_).count > 0) live_.push_back(s);
        return live_;
    }
    shard_turns& turns() {
        if (!turns_) turns_ = std::make_unique<shard_turns>(ranks_);
        return *turns_;
    }

    distributed::exchange *ranks_, *devices_;
    std::optional<rank_sums> over_ranks_;
    rank_rows rows_over_ranks_;
    shard_sums sums_;
    row_sums rows_;
    int shards_;

private:
    std::vector<int> live_;
    std::unique_ptr<shard_turns> turns_; // by pointer: models move

    void agree_at_start(batch_columns columns, std::size_t count) const {
        std::uint64_t weights = 0, batch = 0;
        const auto bytes_of = [](const void* data, std::size_t size) {
            return std::span(static_cast<const std::byte*>(data), size);
        };
        for (const variable& v : this->variables_)
            weights = distributed::hash_values(bytes_of(v.data().read(), v.data().outline_view().bytes()),
                                               distributed::hash_text(v.path(), weights));
        for (std::size_t i = 0; i < count; ++i) { // if each rank has its own records, only their number and shape
            batch = distributed::hash_values(
                bytes_of(columns[i].extents, static_cast<std::size_t>(columns[i].rank) * sizeof(std::int64_t)), batch);
            if (this->reads_part_) continue;
            const void* data = columns[i].data;
            std::vector<std::byte> home;
            if (columns[i].memory != 0) {
                home.resize(columns[i].bytes());
                this->device_->download(home.data(), data, home.size());
                data = home.data();
            }
            batch = distributed::hash_values(bytes_of(data, columns[i].bytes()), batch);
        }
        const std::array<distributed::agreed_field, 5> fields{
            distributed::agreed_value("shards", std::to_string(shards_)),
            distributed::agreed_value("seed", std::to_string(this->options_.seed)),
            distributed::agreed_value("step", std::to_string(this->step_)),
            distributed::agreed_field{"weights", weights}, distributed::agreed_field{"first batch", batch}};
        distributed::agree(*ranks_, std::span<const distributed::agreed_field>(fields));
    }
};

#if TG_DEFINES_FOR_HOST(cluster)

TG_DEFINITION void rank_rows::gather(distributed::exchange& ranks, row_sums& rows) {
    if (rows.size() > 0 && !blocks_) blocks_.emplace(ranks, "rows of sparse gradients");
    for (std::size_t k = 0; k < rows.size(); ++k)
        for (const bool of_rows : {true, false}) {
            blocks_->start(rows.bytes(k, of_rows));
            blocks_->wait();
            rows.replace(k, of_rows, blocks_->blocks());
        }
}

#endif

} // namespace tapegraph::detail
