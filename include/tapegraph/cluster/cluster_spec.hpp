#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/environment.hpp>
#include <tapegraph/core/error.hpp>
#include <tapegraph/formats/file.hpp>
#include <tapegraph/formats/json_reader.hpp>

#include <charconv>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Jobs and tasks named as in TensorFlow's clusters, and their mapping to ranks. MPI starts the
/// processes and knows their addresses: only the host of an address is used, for the lines that
/// start them.

namespace tapegraph {

/// The name of a process: "/job:worker/task:1".
struct task_name {
    std::string job;
    int task = 0;

    /// The name as `with_device` takes it: "/job:worker/task:0".
    std::string text() const { return "/job:" + job + "/task:" + std::to_string(task); }
    friend bool operator==(const task_name&, const task_name&) = default;
};

/// Parses "/job:worker/task:1", also with "/replica:0" and a device after it, as TensorFlow writes
/// them; a missing task is 0. Throws argument_error for anything else.
task_name parse_task_name(std::string_view text);

/// Jobs, and the addresses of the tasks of each. Tasks are ranks in the order of jobs and, within a
/// job, of tasks.
class cluster_spec {
public:
    using job = std::pair<std::string, std::vector<std::string>>;

    /// tg::cluster_spec{{"worker", {"one:2222", "two:2222"}}, {"ps", {"three:2222"}}}. Throws
    /// argument_error for a job named twice, one without a name or a task, and an address without a
    /// host.
    cluster_spec(std::initializer_list<job> jobs) : cluster_spec(std::vector<job>(jobs)) {}
    explicit cluster_spec(std::vector<job> jobs);
    /// Parses "worker=one:2222,two:2222;ps=three:2222".
    static cluster_spec from_string(std::string_view text);
    /// Parses JSON, {"worker": ["one:2222", ...], ...}, with tasks also by number: {"0":
    /// "one:2222", ...}. Throws data_error that begins with `origin`.
    static cluster_spec from_json(std::string_view text, const std::string& origin = "cluster_spec") {
        io::json_reader json(text, origin);
        cluster_spec result = read(json);
        json.end();
        return result;
    }
    /// Reads a specification in the form of `from_json`. Throws data_error that names the file.
    static cluster_spec from_file(const std::string& path) {
        const auto bytes = io::read_file(path);
        return from_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, "'" + path + "'");
    }
    /// Reads the next value of a JSON text.
    static cluster_spec read(io::json_reader& json);

    /// The jobs in their order, with the addresses of their tasks.
    const std::vector<job>& jobs() const { return jobs_; }
    /// The number of all tasks, which are the ranks of a job.
    int size() const {
        std::size_t count = 0;
        for (const job& each : jobs_) count += each.second.size();
        return static_cast<int>(count);
    }
    /// The addresses of a job's tasks. Throws argument_error that lists the existing jobs.
    const std::vector<std::string>& tasks(std::string_view name) const {
        std::string known;
        for (const job& each : jobs_) {
            if (each.first == name) return each.second;
            known.append(known.empty() ? "" : ", ").append(each.first);
        }
        throw argument_error("cluster_spec: no job '" + std::string(name) + "'; there are: " + known);
    }
    /// The rank of a task: jobs in their order, tasks within each. Throws range_error if there is none.
    int rank_of(const task_name& of) const;
    /// The task of a rank. Throws range_error if there is none.
    task_name task_of(int rank) const;

    /// Hosts and the number of ranks on each, in order of ranks: a host occurs once for each run of
    /// consecutive ranks.
    std::vector<std::pair<std::string, int>> hosts() const;
    /// A host file for Open MPI ("one slots=2"), or MPICH ("one:2"). Throws argument_error if a
    /// host's ranks are not consecutive, which host files cannot express; mpirun_line can.
    std::string host_file(bool mpich = false) const;
    /// The command that starts every task on its host: "mpirun -n 2 --host one:2 ./train : -n 1
    /// --host three:1 ./train".
    std::string mpirun_line(const std::string& program, bool mpich = false) const;
    /// The text that from_string parses.
    std::string text() const {
        std::string result;
        for (const job& each : jobs_) {
            result += (result.empty() ? "" : ";") + each.first;
            for (std::size_t t = 0; t < each.second.size(); ++t) result += (t == 0 ? "=" : ",") + each.second[t];
        }
        return result;
    }
    // nvcc does not accept a defaulted one in a template.
    friend bool operator==(const cluster_spec& a, const cluster_spec& b) { return a.jobs_ == b.jobs_; }

private:
    // The host of "host", "host:2222", "[::1]:2222".
    static std::string host_of(const std::string& address) {
        if (address.starts_with('[')) {
            const std::size_t end = address.find(']');
            return end == address.npos ? "" : address.substr(1, end - 1);
        }
        return address.substr(0, address.find(':'));
    }
    static std::vector<std::string_view> split(std::string_view text, char at) {
        std::vector<std::string_view> parts;
        for (;;) {
            const std::size_t end = text.find(at);
            parts.push_back(text.substr(0, end));
            if (end == text.npos) return parts;
            text.remove_prefix(end + 1);
        }
    }

    std::vector<job> jobs_;
};

/// A cluster, and the task of this process in it.
struct cluster_config {
    cluster_spec cluster;
    std::optional<task_name> task;
};

/// Parses TF_CONFIG: {"cluster": {"worker": [...]}, "task": {"type": "worker", "index": 1}};
/// nullopt if it is not set. Throws data_error for an invalid value, argument_error or range_error
/// for a task that the cluster does not have.
std::optional<cluster_config> cluster_of_environment();

#if TG_DEFINES_FOR_HOST(cluster)

TG_DEFINITION task_name parse_task_name(std::string_view text) {
    const auto refuse = [&] {
        throw argument_error("'" + std::string(text) + "' names no task; expected /job:NAME/task:NUMBER");
    };
    task_name result;
    std::string_view left = text;
    while (!left.empty()) {
        if (left[0] != '/') refuse();
        const std::size_t colon = left.find(':'), end = std::min(left.find('/', 1), left.size());
        if (colon == left.npos || colon > end) refuse();
        const std::string_view key = left.substr(1, colon - 1), value = left.substr(colon + 1, end - colon - 1);
        if (value.empty()) refuse();
        if (key == "job") {
            result.job = value;
        } else if (key == "task") {
            const auto read = std::from_chars(value.data(), value.data() + value.size(), result.task);
            if (read.ec != std::errc{} || read.ptr != value.data() + value.size() || result.task < 0) refuse();
        } else if (key != "replica" && key != "device") {
            refuse();
        }
        left.remove_prefix(end);
    }
    if (result.job.empty()) refuse();
    return result;
}

TG_DEFINITION cluster_spec::cluster_spec(std::vector<job> jobs) : jobs_(std::move(jobs)) {
    if (jobs_.empty()) throw argument_error("cluster_spec: no job");
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
        const auto& [name, tasks] = jobs_[i];
        if (name.empty() || name.find_first_of("/:") != name.npos)
            throw argument_error("cluster_spec: '" + name + "' names no job");
        for (std::size_t k = 0; k < i; ++k)
            if (jobs_[k].first == name) throw argument_error("cluster_spec: job '" + name + "' appears twice");
        if (tasks.empty()) throw argument_error("cluster_spec: job '" + name + "' has no task");
        for (const std::string& address : tasks)
            if (host_of(address).empty())
                throw argument_error("cluster_spec: job '" + name + "': '" + address + "' names no host");
    }
}

TG_DEFINITION cluster_spec cluster_spec::from_string(std::string_view text) {
    std::vector<job> jobs;
    for (const std::string_view part : split(text, ';')) {
        const std::size_t equals = part.find('=');
        if (equals == part.npos)
            throw argument_error("cluster_spec: '" + std::string(part) + "'; expected JOB=HOST,HOST");
        jobs.emplace_back(part.substr(0, equals), std::vector<std::string>{});
        for (const std::string_view address : split(part.substr(equals + 1), ','))
            jobs.back().second.emplace_back(address);
    }
    return cluster_spec(std::move(jobs));
}

TG_DEFINITION cluster_spec cluster_spec::read(io::json_reader& json) {
    std::vector<job> jobs;
    json.begin_object();
    for (std::string name; json.next_name(name);) {
        std::vector<std::string> tasks;
        if (json.peek() == io::json_kind::object) {
            json.begin_object();
            for (std::string number; json.next_name(number);) {
                if (number != std::to_string(tasks.size()))
                    json.refuse("job '" + name + "' has task '" + number + "' where " + std::to_string(tasks.size()) +
                                " is expected");
                tasks.push_back(json.string());
            }
        } else {
            json.begin_array();
            while (json.next_element()) tasks.push_back(json.string());
        }
        jobs.emplace_back(std::move(name), std::move(tasks));
    }
    try {
        return cluster_spec(std::move(jobs));
    } catch (const argument_error& e) {
        json.refuse(e.what());
    }
}

TG_DEFINITION int cluster_spec::rank_of(const task_name& of) const {
    const auto count = static_cast<int>(tasks(of.job).size());
    if (of.task < 0 || of.task >= count)
        throw range_error("cluster_spec: no " + of.text() + "; job '" + of.job + "' has " + std::to_string(count) +
                          " tasks");
    int before = 0;
    for (const job& each : jobs_) {
        if (each.first == of.job) break;
        before += static_cast<int>(each.second.size());
    }
    return before + of.task;
}

TG_DEFINITION task_name cluster_spec::task_of(int rank) const {
    int left = rank;
    for (const job& each : jobs_) {
        const auto count = static_cast<int>(each.second.size());
        if (left >= 0 && left < count) return {each.first, left};
        left -= count;
    }
    throw range_error("cluster_spec: no rank " + std::to_string(rank) + " among " + std::to_string(size()));
}

TG_DEFINITION std::vector<std::pair<std::string, int>> cluster_spec::hosts() const {
    std::vector<std::pair<std::string, int>> result;
    for (const job& each : jobs_)
        for (const std::string& address : each.second)
            if (const std::string host = host_of(address); !result.empty() && result.back().first == host)
                ++result.back().second;
            else
                result.emplace_back(host, 1);
    return result;
}

TG_DEFINITION std::string cluster_spec::host_file(bool mpich) const {
    std::string text;
    const auto machines = hosts();
    for (std::size_t i = 0; i < machines.size(); ++i) {
        for (std::size_t k = 0; k < i; ++k)
            if (machines[k].first == machines[i].first)
                throw argument_error("cluster_spec: the tasks of host '" + machines[i].first +
                                     "' are not consecutive; mpirun_line says where each runs");
        text += machines[i].first + (mpich ? ":" : " slots=") + std::to_string(machines[i].second) + "\n";
    }
    return text;
}

TG_DEFINITION std::string cluster_spec::mpirun_line(const std::string& program, bool mpich) const {
    std::string line = "mpirun";
    for (const auto& [host, count] : hosts()) {
        if (line != "mpirun") line += " :";
        line += " -n " + std::to_string(count) +
                (mpich ? " -host " + host : " --host " + host + ":" + std::to_string(count)) + " " + program;
    }
    return line;
}

TG_DEFINITION std::optional<cluster_config> cluster_of_environment() {
    const char* const text = detail::environment("TF_CONFIG");
    if (text == nullptr) return std::nullopt;
    io::json_reader json(text, "TF_CONFIG");
    std::optional<cluster_spec> cluster;
    std::optional<task_name> task;
    json.begin_object();
    for (std::string name; json.next_name(name);) {
        if (name == "cluster") {
            cluster = cluster_spec::read(json);
        } else if (name == "task") {
            task.emplace();
            json.begin_object();
            for (std::string field; json.next_name(field);)
                if (field == "type")
                    task->job = json.string();
                else if (field == "index")
                    task->task = static_cast<int>(json.integer());
                else
                    json.skip();
        } else {
            json.skip();
        }
    }
    json.end();
    if (!cluster) throw data_error("TF_CONFIG: no \"cluster\"");
    if (task) static_cast<void>(cluster->rank_of(*task));
    return cluster_config{std::move(*cluster), std::move(task)};
}

#endif

} // namespace tapegraph
