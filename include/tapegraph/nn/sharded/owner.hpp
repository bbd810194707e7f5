#pragma once

#include <tapegraph/distributed/agreement.hpp>
#include <tapegraph/distributed/tree_sum.hpp>
#include <tapegraph/nn/sharded/options.hpp>
#include <tapegraph/nn/sharded/rows.hpp>
#include <tapegraph/nn/sharded/sums.hpp>
#include <tapegraph/nn/trainer.hpp>

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>

/// What models of both modes keep of their shards, and of the ranks that share them.

namespace tapegraph::detail {

/// The upper levels of the tree: sums over ranks, of doubles and floats, and rows in order of ranks.
template <class = void>
class basic_rank_sums {
public:
    explicit basic_rank_sums(distributed::exchange& ranks) : ranks_(&ranks) {}

    /// In place of this rank's sums come those of all. Waits until they are there.
    void sum(shard_sums& sums) {
        if (!doubles_) {
            const std::size_t count = sums.bytes_of_doubles() / sizeof(double);
            doubles_.emplace(*ranks_, count, distributed::sum_of<double>, "sums of doubles over shards");
            floats_.emplace(*ranks_, (sums.bytes() - sums.bytes_of_doubles()) / sizeof(float),
                            distributed::sum_of<float>, "sums of floats over shards");
        }
        doubles_->start_all_reduce(sums.sum());
        floats_->start_all_reduce(sums.sum() + sums.bytes_of_doubles());
        doubles_->wait();
        floats_->wait();
    }
    /// All ranks' rows of each gradient, those of rank 0 first.
    void gather(row_sums& rows) {
        if (rows.size() > 0 && !blocks_) blocks_.emplace(*ranks_, "rows of sparse gradients");
        for (std::size_t k = 0; k < rows.size(); ++k)
            for (const bool of_rows : {true, false}) {
                blocks_->start(rows.bytes(k, of_rows));
                blocks_->wait();
                rows.replace(k, of_rows, blocks_->blocks());
            }
    }
    bool known() const { return doubles_.has_value(); }

private:
    distributed::exchange* ranks_;
    std::optional<distributed::tree_sum> doubles_, floats_;
    std::optional<distributed::block_gather> blocks_;
};

/// A model's shards. Trainer: what of the mode it is based on.
template <class Trainer>
class shard_owner : public Trainer {
public:
    /// Into how many shards a batch is cut.
    int shards() const { return shards_; }
    /// What fit asks for: 0 leaves the number as it is. Throws argument_error for one that cannot be, the same on every rank.
    void use_shards(std::int64_t batch_size, int shards) {
        const int asked = shards != 0 ? shards : shards_;
        check_shards(asked, rank_count());
        if (batch_size < asked)
            throw argument_error("fit: batch_size is " + std::to_string(batch_size) + ", less than the " +
                                 std::to_string(asked) + " shards that it is cut into");
        shards_ = asked;
        if (ranks_ == nullptr) return;
        this->writes_files_ = ranks_->is_chief();
        distributed::barrier(*ranks_, "begin of fit"); // what the chief wrote before is there when others look for it
    }
    /// Bytes of the sums over shards.
    std::size_t shard_sum_bytes() const { return sums_.memory(); }

protected:
    explicit shard_owner(const sharded& how) : Trainer(how.options), ranks_(how.ranks), shards_(how.shards) {
        check_shards(shards_, rank_count());
        if (this->device_ != nullptr)
            throw argument_error("shards: models that are cut into shards compute on the CPU");
        if (ranks_ == nullptr) return;
        over_ranks_.emplace(*ranks_);
        this->writes_files_ = ranks_->is_chief();
    }

    /// This rank's shards.
    int first_shard() const { return ranks_ == nullptr ? 0 : shards_ / rank_count() * ranks_->rank(); }
    int own_shards() const { return shards_ / rank_count(); }

    /// The records of a batch, of which each rank is given all. Before the first step ranks compare what they must have alike. A rank
    /// may be without records once it knows what it adds up: `planned` says that it does before it has run a shard.
    std::int64_t begin_step(batch_columns columns, std::size_t count, bool planned = false) {
        const bool known = ranks_ == nullptr || over_ranks_->known();
        const std::int64_t records = records_to_cut(columns, count, shards_, this->fitting_ && (known || planned));
        if (ranks_ == nullptr) return records;
        ranks_->set_step(this->step_);
        if (!known) agree_at_start(columns, count);
        return records;
    }
    /// Over the shards of all ranks.
    void sum_over_ranks() {
        if (ranks_ == nullptr) return;
        over_ranks_->sum(sums_);
        over_ranks_->gather(rows_);
    }

    distributed::exchange* ranks_;
    std::optional<basic_rank_sums<>> over_ranks_;
    shard_sums sums_;
    row_sums rows_;
    int shards_;

private:
    int rank_count() const { return ranks_ == nullptr ? 1 : ranks_->size(); }

    void agree_at_start(batch_columns columns, std::size_t count) const {
        std::uint64_t weights = 0, batch = 0;
        const auto bytes_of = [](const void* data, std::size_t size) {
            return std::span(static_cast<const std::byte*>(data), size);
        };
        for (const variable& v : this->variables_)
            weights = distributed::hash_values(bytes_of(v.data().read(), v.data().outline_view().bytes()),
                                               distributed::hash_text(v.path(), weights));
        for (std::size_t i = 0; i < count; ++i)
            batch = distributed::hash_values(bytes_of(columns[i].data, columns[i].bytes()), batch);
        const std::array<distributed::agreed_field, 5> fields{
            distributed::agreed_value("shards", std::to_string(shards_)),
            distributed::agreed_value("seed", std::to_string(this->options_.seed)),
            distributed::agreed_value("step", std::to_string(this->step_)),
            distributed::agreed_field{"weights", weights}, distributed::agreed_field{"first batch", batch}};
        distributed::agree(*ranks_, std::span<const distributed::agreed_field>(fields));
    }
};

} // namespace tapegraph::detail
