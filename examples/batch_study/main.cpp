/// The batch-size study: one CNN, trained in both modes over several batch sizes. `--help` lists the options.

#include "child.hpp"
#include "images.hpp"
#include "options.hpp"
#include "report.hpp"
#include "run.hpp"

#include <tapegraph/cpu/parallel.hpp>

#include <cstdlib>
#include <exception>
#include <iostream>
#include <new>
#include <string>

#if defined(__linux__)
#include <csignal>
#include <sys/prctl.h>
#endif

namespace {

using namespace batch_study;

/// The child: one run, its progress on stderr, its result to the parent.
void run_one(const options& o) {
#if defined(__linux__)
    ::prctl(PR_SET_PDEATHSIG, SIGTERM); // nobody would read the result
#endif
    const auto colon = o.only.find(':');
    const std::string mode = o.only.substr(0, colon);
    const std::int64_t batch_size = std::atoll(o.only.c_str() + colon + 1);
    if (o.threads > 0) tapegraph::set_thread_count(o.threads);
    const image_sets images = load_images(o);
    std::cerr << mode << " mode, batch size " << batch_size << '\n';
    report_result(o.report_to, mode == "graph" ? run_graph(o, batch_size, images) : run_eager(o, batch_size, images));
}

void run_all(const options& o, int argc, char** argv) {
    // Read here as well: what is wrong with the data shows before anything is trained.
    std::int64_t train_size = 0;
    {
        const image_sets images = load_images(o);
        train_size = images.train.size();
        std::cout << layer_table() << '\n' << images.description << "\n\n" << std::flush;
    }
    const tapegraph::device device = tapegraph::available_or_cpu(o.device);
    if (device.is_cuda())
        for (const tapegraph::device_report& r : tapegraph::list_devices())
            if (r.id == device) std::cout << "on " << device.name() << ", " << r.name << "\n\n";
    report results(o.out);
    for (const std::int64_t size : o.batch_sizes)
        if (size > train_size)
            std::cerr << "batch_study: batch size " << size << ": there are only " << train_size
                      << " training images, so every step has " << train_size << '\n';
    std::cout << report::table_head() << std::flush;
    bool stopped_early = false;
    for (const run_key& key : o.runs()) {
        const run_result r = run_in_child(argc, argv, key, device);
        std::cout << results.add(r) << '\n' << std::flush;
        stopped_early = stopped_early || r.epochs.front().steps < r.batches;
    }
    if (stopped_early) std::cout << "(epochs stopped early; seconds/epoch is for the whole training set)\n";
    std::cout << "\nwritten: " << results.finish() << '\n';
}

} // namespace

int main(int argc, char** argv) {
    try {
        options o;
        if (!parse(argc, argv, o)) return EXIT_SUCCESS;
        if (o.only.empty())
            run_all(o, argc, argv);
        else
            run_one(o);
        return EXIT_SUCCESS;
    } catch (const child_failed&) {
        return EXIT_FAILURE; // the child has said why
    } catch (const usage_error& e) {
        std::cerr << "batch_study: " << e.what() << '\n';
        return 2;
    } catch (const std::bad_alloc&) {
        std::cerr << "batch_study: not enough memory\n";
        return EXIT_FAILURE;
    } catch (const std::exception& e) {
        std::cerr << "batch_study: " << e.what() << '\n';
        return EXIT_FAILURE;
    }
}
