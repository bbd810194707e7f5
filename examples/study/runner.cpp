#include "runner.hpp"

#include "interruption.hpp"
#include "memory.hpp"

#include <tapegraph/train/progress.hpp>

#include <chrono>
#include <cstdlib>
#include <iostream>

namespace study {

namespace {

/// Whether a row is final.
bool settled(const json* row, const common_options& o) {
    if (row == nullptr) return false;
    if (text(*row, "status") != "out of memory") return true;
    const std::uint64_t limit = o.memory_limit > 0 ? o.memory_limit : available_memory();
    return number(*row, "needed_bytes") > static_cast<double>(limit);
}

} // namespace

bool conduct(const std::string& study, const common_options& o, int argc, char** argv,
             const std::vector<planned_run>& runs, results& into, const std::function<void(const json& row)>& show) {
    note_interruptions();
    double left = 0, done = 0;
    std::size_t kept = 0;
    for (const planned_run& run : runs) {
        const bool known = settled(into.find(run.key), o);
        kept += known ? 1 : 0;
        left += known ? 0 : run.weight;
    }
    if (kept > 0)
        std::cerr << study << ": " << kept << " of " << runs.size() << " runs stand in " << into.json_file().string()
                  << '\n';
    const auto start = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < runs.size(); ++i) {
        const planned_run& run = runs[i];
        if (const json* const row = into.find(run.key); settled(row, o)) {
            show(*row);
            continue;
        }
        std::cerr << study << ": run " << i + 1 << " of " << runs.size() << ": " << run.label;
        if (done > 0) {
            const double spent = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
            std::cerr << "; about " << tapegraph::io::duration_text(spent / done * left) << " left";
        }
        std::cerr << '\n';
        json row = run_in_child(argc, argv, run.word, run.label, o.device);
        if (interrupted() || row.is_null()) {
            std::cerr << study << ": interrupted; " << into.json_file().string()
                      << " holds what is done, the same command goes on from there\n";
            return false;
        }
        into.put(run.key, std::move(row));
        show(*into.find(run.key));
        done += run.weight;
        left -= run.weight;
    }
    return true;
}

int run_study(const std::string& study, const std::function<int()>& run) {
    int status = EXIT_SUCCESS;
    const int error = examples::run_program(study, [&] {
        try {
            status = run();
        } catch (const child_failed&) {
            status = EXIT_FAILURE; // the child has printed why
        }
    });
    return error != EXIT_SUCCESS ? error : status;
}

tapegraph::device chosen_device(tapegraph::device requested_device) {
    const tapegraph::device device = tapegraph::available_or_cpu(requested_device);
    if (device.is_cuda())
        for (const tapegraph::device_report& r : tapegraph::list_devices())
            if (r.id == device) std::cout << "on " << device.name() << ", " << r.name << "\n\n";
    return device;
}

} // namespace study
