#pragma once

#include <tapegraph/cluster/sharded/sums.hpp>
#include <tapegraph/core/component.hpp>
#include <tapegraph/graph/program.hpp>

#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

namespace tapegraph::detail {

/// A value that shards add up.
struct folded_value {
    int variable, sum, of; ///< its number in the shard's program, its number in the sums, and its owner (-1: none)
    std::string_view kind;
};

/// Staging for values that a shard cannot write straight into the sum: on a device, whose programs
/// are captured with their addresses, and from which values are copied to the host after the shard
/// unless the sums are on the device, too; and for shards that run in parallel.
class shard_values {
public:
    /// Allocates memory on the program's device, the first time.
    void make(const std::vector<folded_value>& folded, const ir::program& p);
    void* at(std::size_t number) const { return of_[number]->data(); }
    /// Copies the values to where the current shard is added.
    void take(const std::vector<folded_value>& folded, const shard_sums& sums, const ir::program& p);

private:
    std::vector<std::unique_ptr<ir::memory_block>> of_;
    std::vector<runtime::device_runtime::piece> pieces_;
};

#if TG_DEFINES_FOR_HOST(cluster)

TG_DEFINITION void shard_values::make(const std::vector<folded_value>& folded, const ir::program& p) {
    if (!of_.empty()) return;
    for (const folded_value& f : folded) {
        const auto& n = p.view().nodes[p.view().variables[f.variable].node];
        std::size_t bytes = size_of(n.type);
        for (int axis = 0; axis < n.rank; ++axis) bytes *= static_cast<std::size_t>(p.view().pool[n.dims + axis]);
        of_.push_back(std::make_unique<ir::memory_block>());
        of_.back()->reserve(p.device(), bytes + 1, "sum over shards");
        pieces_.push_back({nullptr, of_.back()->data(), bytes});
    }
}

TG_DEFINITION void shard_values::take(const std::vector<folded_value>& folded, const shard_sums& sums,
                                      const ir::program& p) {
    for (std::size_t i = 0; i < folded.size(); ++i) pieces_[i].to = sums.target(folded[i].sum);
    if (sums.on_device()) {
        for (const auto& each : pieces_)
            if (each.bytes > 0) p.device()->copy(each.to, each.from, each.bytes);
        return;
    }
    if (p.device() != nullptr) return p.device()->bring_to_host(pieces_.data(), static_cast<int>(pieces_.size()));
    for (const auto& each : pieces_)
        if (each.bytes > 0) std::memcpy(each.to, each.from, each.bytes);
}

#endif

} // namespace tapegraph::detail
