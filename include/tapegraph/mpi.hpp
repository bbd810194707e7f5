#pragma once

/// Processes of MPI (Open MPI or MPICH) as ranks. CMake: find_package(tapegraph COMPONENTS mpi) and
/// link tapegraph::mpi.

#include <tapegraph/cluster/ranks/mpi_exchange.hpp>

#include <type_traits>

namespace tapegraph {

/// The main program of a rank: starts MPI, calls f(distributed::exchange&), ends MPI, and returns
/// the result of f, or 0 if it has none.
///
///     int main(int argc, char** argv) {
///         return tg::mpi_run(argc, argv, [](tg::distributed::exchange& ranks) { ... });
///     }
///
/// It prints an exception with the rank; an exception, like a result other than 0, ends all
/// processes of the job.
template <class F>
int mpi_run(int argc, char** argv, const F& f) {
    int result = 0;
    try {
        distributed::mpi_library library(&argc, &argv);
        try {
            distributed::mpi_exchange ranks;
            if constexpr (std::is_void_v<decltype(f(ranks))>)
                f(ranks);
            else
                result = f(ranks);
        } catch (const std::exception& e) {
            library.abort(e.what());
        }
        if (result != 0) library.abort({}, result);
    } catch (const std::exception& e) { // there is no MPI that could end the others
        std::fprintf(stderr, "%s\n", e.what());
        return 1;
    }
    return result;
}

} // namespace tapegraph
