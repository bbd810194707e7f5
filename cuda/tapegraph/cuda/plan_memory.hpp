#pragma once

#include <tapegraph/core/environment.hpp>
#include <tapegraph/core/error.hpp>
#include <tapegraph/formats/file.hpp>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

/// Remembers which of several kernels does a piece of work, and sets the policy by which this is
/// decided.

namespace tapegraph::cuda {

/// What happens when a process first meets a piece of work (an operation with its shape, types and
/// math_mode) for which no plan is remembered.
enum class plan_policy {
    predicted, ///< by a cost model: the same plan, and so the same bits, in every run (the default)
    measured   ///< the candidates are run on the device, and the fastest is remembered
};

namespace detail {
inline std::atomic<plan_policy>& plan_policy_setting() {
    static std::atomic<plan_policy> policy{static_cast<plan_policy>(
        tapegraph::detail::environment_choice("TAPEGRAPH_GPU_PLANS", {"predicted", "measured"}, 0))};
    return policy;
}
} // namespace detail

/// The policy of the process.
inline plan_policy current_plan_policy() { return detail::plan_policy_setting().load(std::memory_order_relaxed); }
/// Sets the policy of the process for all work that has no plan yet. TAPEGRAPH_GPU_PLANS in the
/// environment sets the initial one.
inline void set_plan_policy(plan_policy policy) {
    detail::plan_policy_setting().store(policy, std::memory_order_relaxed);
}

/// The name of a plan, and how long the work took with it.
struct remembered_plan {
    std::string plan;
    double microseconds = 0;
};

/// The plans that were measured or read from a file, by the device's name and the work, as text.
/// Thread-safe.
class plan_memory {
public:
    /// The memory of the process; never destroyed.
    static plan_memory& instance() {
        static auto& memory = *new plan_memory;
        return memory;
    }

    bool empty() const {
        const std::lock_guard lock(guard_);
        return plans_.empty();
    }
    /// The plan for the work on a device of that name, or nothing.
    std::optional<remembered_plan> find(const std::string& device, const std::string& work) const {
        const std::lock_guard lock(guard_);
        const auto found = plans_.find({device, work});
        if (found == plans_.end()) return std::nullopt;
        return found->second;
    }
    /// Stores the plan for the work on a device of that name, in place of an earlier one.
    void keep(const std::string& device, const std::string& work, remembered_plan plan) {
        const std::lock_guard lock(guard_);
        plans_.insert_or_assign({device, work}, std::move(plan));
    }
    /// Removes all plans.
    void forget() {
        const std::lock_guard lock(guard_);
        plans_.clear();
    }

    /// One line per plan: device, work, plan and microseconds, separated by tabs.
    std::string text() const {
        std::string all(first_line);
        const std::lock_guard lock(guard_);
        for (const auto& [of, plan] : plans_) {
            char time[32];
            const auto end = std::to_chars(time, time + sizeof time, plan.microseconds, std::chars_format::fixed, 2);
            all.append("\n").append(of.first).append("\t").append(of.second).append("\t").append(plan.plan);
            all.append("\t").append(time, end.ptr);
        }
        return all.append("\n");
    }
    /// Adds the plans of a text, all or none; they replace plans of the same work. Throws
    /// data_error that names `source` and the line.
    void add(std::string_view text, const std::string& source) {
        std::map<key, remembered_plan> found;
        std::int64_t number = 0;
        const auto refuse = [&](const std::string& why) {
            throw data_error(source + ", line " + std::to_string(number) + ": " + why);
        };
        while (!text.empty()) {
            ++number;
            const std::size_t length = std::min(text.find('\n'), text.size());
            const std::string_view line = text.substr(0, length);
            text.remove_prefix(std::min(length + 1, text.size()));
            if (number == 1) {
                if (line != first_line) refuse("not a file of plans, which begins with '" + first_line + "'");
                continue;
            }
            std::string_view fields[4], rest = line;
            for (std::string_view& field : fields) {
                const std::size_t end = &field == fields + 3 ? rest.size() : std::min(rest.find('\t'), rest.size());
                field = rest.substr(0, end);
                rest.remove_prefix(std::min(end + 1, rest.size()));
                if (field.empty()) refuse("expected device, work, plan and microseconds, with tabs between them");
                for (const char c : field)
                    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) refuse("a field has a control character");
            }
            double time = 0;
            const char* const last = fields[3].data() + fields[3].size();
            const auto [end, status] = std::from_chars(fields[3].data(), last, time, std::chars_format::fixed);
            if (status != std::errc{} || end != last || !std::isfinite(time) || time < 0)
                refuse("'" + std::string(fields[3]) + "' is not a number of microseconds");
            const bool fresh =
                found.emplace(key{fields[0], fields[1]}, remembered_plan{std::string(fields[2]), time}).second;
            if (!fresh) refuse("a second plan for the same work of one device");
        }
        if (number == 0) refuse("the file is empty");
        const std::lock_guard lock(guard_);
        for (auto& [of, plan] : found) plans_.insert_or_assign(of, std::move(plan));
    }

private:
    using key = std::pair<std::string, std::string>;
    static inline const std::string first_line = "tapegraph plans 1";
    std::map<key, remembered_plan> plans_;
    mutable std::mutex guard_;
};

/// Writes all plans that the process has measured or read to a file, atomically. Throws data_error
/// that names it.
inline void save_plans(const std::string& path) {
    try {
        io::atomic_file file(path);
        file.write(plan_memory::instance().text());
        file.commit();
    } catch (const data_error& e) {
        throw data_error(std::string("save_plans: ") + e.what());
    }
}
/// Reads a file of save_plans. Its plans apply under either policy, to work that has no plan yet;
/// plans that this version of the library does not have are ignored. Throws data_error that names
/// file and line, and then has read nothing.
inline void load_plans(const std::string& path) {
    std::string text;
    try {
        std::ifstream file;
        file.exceptions(std::ios::badbit | std::ios::failbit);
        file.open(path, std::ios::binary);
        text.assign(std::istreambuf_iterator<char>(file), {});
    } catch (const std::ios::failure&) {
        throw data_error("load_plans: '" + path + "' cannot be read");
    }
    plan_memory::instance().add(text, "load_plans: '" + path + "'");
}

/// The plans that have been given out. Scratch memory is sized by them, so the first plan for a key
/// stays until the process ends, whatever is measured, read or set afterwards. Thread-safe.
template <class Key, class Plan>
class lasting_plans {
public:
    /// The plan given out for the key, or nothing.
    std::optional<Plan> find(const Key& k) const {
        const std::lock_guard lock(guard_);
        const auto found = plans_.find(k);
        if (found == plans_.end()) return std::nullopt;
        return found->second;
    }
    /// Returns the plan that stays: this one, or another thread's that came first.
    Plan keep(const Key& k, const Plan& plan) {
        const std::lock_guard lock(guard_);
        return plans_.emplace(k, plan).first->second;
    }

private:
    std::map<Key, Plan> plans_;
    mutable std::mutex guard_;
};

} // namespace tapegraph::cuda
