#pragma once

#include <tapegraph/graph/scan_program.hpp>
#include <tapegraph/runtime/interpreted_kernels.hpp>

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

/// The CPU kernel of scans in graphs that are made at run time: one function for every scan.

namespace tapegraph::ir {

/// What a call of the kernel refers to: the step's program, its table, and plans for recent
/// extents, which calls take and give back. Calls of several threads may overlap.
struct traced_scan : cpu::interpreted_region {
    const program_view* step = nullptr;
    scan_table table;

    /// Owns a plan for the duration of a call.
    class plan {
    public:
        explicit plan(const kernel_call& c)
            : owner_(*static_cast<const traced_scan*>(c.region)), program_(owner_.taken(c)) {}
        plan(const plan&) = delete;
        plan& operator=(const plan&) = delete;
        ~plan() { owner_.give_back(std::move(program_)); }
        scan_program<>* operator->() const { return program_.get(); }

    private:
        const traced_scan& owner_;
        std::unique_ptr<scan_program<>> program_;
    };

private:
    static constexpr std::size_t most_plans = 16;

    std::unique_ptr<scan_program<>> taken(const kernel_call& c) const {
        {
            const std::lock_guard one_at_a_time(mutex_);
            for (std::size_t i = plans_.size(); i-- > 0;) // the most recent are last
                if (plans_[i]->planned_for(c, nullptr)) {
                    std::unique_ptr<scan_program<>> found = std::move(plans_[i]);
                    plans_.erase(plans_.begin() + static_cast<std::ptrdiff_t>(i));
                    return found;
                }
        }
        return std::make_unique<scan_program<>>(*step, table, c, nullptr);
    }
    void give_back(std::unique_ptr<scan_program<>> one) const {
        const std::lock_guard one_at_a_time(mutex_);
        if (plans_.size() == most_plans) plans_.erase(plans_.begin());
        plans_.reserve(most_plans);
        plans_.push_back(std::move(one));
    }

    mutable std::mutex mutex_;
    mutable std::vector<std::unique_ptr<scan_program<>>> plans_;
};

inline void run_traced_scan(const kernel_call& c) {
    const traced_scan::plan plan(c);
    plan->run_over_time(c);
}
inline std::size_t traced_scan_workspace(const kernel_call& c) {
    const traced_scan::plan plan(c);
    return plan->workspace_bytes();
}

} // namespace tapegraph::ir
