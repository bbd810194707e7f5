#pragma once

#include <tapegraph/cluster/ranks/exchange.hpp>

// The deprecated C++ bindings are not used, do not link with the C library alone, and are long.
#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif
#ifndef MPICH_SKIP_MPICXX
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

/// Initializes, checks and finalizes the program's MPI.

namespace tapegraph::distributed {

/// Throws exchange_error with MPI's message unless a call succeeded.
inline void check_mpi(int code, const char* call) {
    if (code == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    throw exchange_error(std::string("MPI: ") + call + " failed: " + text);
}

/// "Open MPI 4.1.4", "MPICH 4.0.2": the implementation that the program was compiled with.
inline std::string compiled_mpi() {
#if defined(OPEN_MPI)
    return "Open MPI " + std::to_string(OMPI_MAJOR_VERSION) + "." + std::to_string(OMPI_MINOR_VERSION) + "." +
           std::to_string(OMPI_RELEASE_VERSION);
#elif defined(MPICH_VERSION)
    return std::string("MPICH ") + MPICH_VERSION;
#else
    return "MPI " + std::to_string(MPI_VERSION) + "." + std::to_string(MPI_SUBVERSION);
#endif
}

/// The number of processes according to a launcher's environment; 0 if no known launcher sets it.
inline int launched_processes() {
    for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS"})
        if (const char* const text = tapegraph::detail::environment(variable)) {
            int count = 0;
            const std::string_view whole = text;
            if (std::from_chars(whole.data(), whole.data() + whole.size(), count).ec == std::errc{}) return count;
        }
    return 0;
}

/// MPI from initialization to finalization. If the program has initialized it before, the program
/// also finalizes it.
class mpi_library {
public:
    /// Throws exchange_error if this MPI cannot be used: started by another implementation's
    /// mpirun, different from the one at compile time, or without support for programs with
    /// threads.
    mpi_library(int* argc, char*** argv) {
        int begun = 0, level = 0;
        check_mpi(MPI_Initialized(&begun), "MPI_Initialized");
        ours_ = begun == 0;
        if (ours_)
            check_mpi(MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &level), "MPI_Init_thread");
        else
            check_mpi(MPI_Query_thread(&level), "MPI_Query_thread");
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        if (level < MPI_THREAD_FUNNELED)
            throw exchange_error("MPI: " + compiled_mpi() +
                                 " was begun for programs of one thread; expected MPI_THREAD_FUNNELED at least");
        char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
        int length = 0, size = 0;
        check_mpi(MPI_Get_library_version(version, &length), "MPI_Get_library_version");
        require_same_library({version, static_cast<std::size_t>(length)});
        check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
        require_same_launcher(size, launched_processes());
    }
    mpi_library(const mpi_library&) = delete;
    mpi_library& operator=(const mpi_library&) = delete;
    ~mpi_library() {
        int ended = 0;
        if (ours_ && MPI_Finalized(&ended) == MPI_SUCCESS && ended == 0) MPI_Finalize();
    }

    /// Throws exchange_error if the running library is not the one whose header was compiled.
    static void require_same_library(std::string_view running) {
        const std::string compiled = compiled_mpi();
        const std::string_view family = compiled.starts_with("Open MPI") ? "Open MPI"
                                        : compiled.starts_with("MPICH")  ? "MPICH"
                                                                         : "";
        if (running.find(family) == running.npos)
            throw exchange_error(
                "MPI: the program was compiled with " + compiled +
                ", and runs with another library: " + std::string(running.substr(0, running.find('\n'))));
    }
    /// Throws exchange_error if processes that were started together are not connected.
    static void require_same_launcher(int size, int launched) {
        if (size == 1 && launched > 1)
            throw exchange_error("MPI: one of " + std::to_string(launched) +
                                 " processes is alone: the program was compiled with " + compiled_mpi() +
                                 " and started by the mpirun of another MPI");
    }

    /// Prints the error and ends all processes of the job, after giving the others a moment to
    /// print theirs.
    [[noreturn]] static void abort(const std::string& what, int code = 1) {
        int rank = 0;
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        std::fflush(stdout);
        if (!what.empty()) std::fprintf(stderr, "rank %d: %s\n", rank, what.c_str());
        std::fflush(stderr);
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        MPI_Abort(MPI_COMM_WORLD, code);
        std::abort();
    }

private:
    bool ours_ = false;
};

} // namespace tapegraph::distributed
