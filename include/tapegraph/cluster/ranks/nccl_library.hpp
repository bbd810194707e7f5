#pragma once

#include <tapegraph/cluster/ranks/exchange.hpp>

#include <dlfcn.h>

/// NCCL, loaded on demand: neither its header nor its library is needed to compile or to start.
/// Names, types and numbers are those of NCCL 2's binary interface
/// (https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/api.html).

namespace tapegraph::distributed {

/// Identifies a communicator, the same on all its ranks; passed by value.
struct nccl_unique_id {
    char bytes[128];
};
using nccl_communicator = void*;

inline constexpr int nccl_success = 0, nccl_in_progress = 7;
inline constexpr int nccl_bytes = 0; ///< ncclInt8

/// The functions used, with their types.
struct nccl_functions {
    int (*get_version)(int* version);
    int (*get_unique_id)(nccl_unique_id* id);
    int (*init_rank)(nccl_communicator* made, int ranks, nccl_unique_id id, int rank);
    int (*destroy)(nccl_communicator of);
    int (*abort)(nccl_communicator of);
    int (*async_error)(nccl_communicator of, int* error);
    const char* (*error_string)(int error);
    const char* (*last_error)(nccl_communicator of); ///< since 2.13; null before
    int (*group_start)();
    int (*group_end)();
    int (*send)(const void* from, std::size_t count, int type, int peer, nccl_communicator of, void* stream);
    int (*receive)(void* to, std::size_t count, int type, int peer, nccl_communicator of, void* stream);
};

/// The library, open until the process ends.
class nccl_library {
public:
    /// The oldest version whose sends and receives can be captured into a CUDA graph.
    static constexpr int oldest = 20900;

    /// Opens `file`, by default that of TAPEGRAPH_NCCL, or libnccl.so.2. Throws exchange_error if
    /// it is missing, lacks a function, or is older than 2.9.
    explicit nccl_library(std::string file = {}) : file_(std::move(file)) {
        if (file_.empty()) {
            const char* const given = tapegraph::detail::environment("TAPEGRAPH_NCCL");
            file_ = given != nullptr ? given : "libnccl.so.2";
        }
        void* const library = ::dlopen(file_.c_str(), RTLD_NOW | RTLD_GLOBAL);
        if (library == nullptr) {
            const char* const why = ::dlerror();
            throw exchange_error("NCCL: " + file_ + " cannot be loaded" +
                                 (why != nullptr ? ": " + std::string(why) : std::string()) +
                                 "; install it (pip install nvidia-nccl-cu13) and name it in TAPEGRAPH_NCCL");
        }
        find(library, functions_.get_version, "ncclGetVersion");
        int version = 0;
        check(functions_.get_version(&version), "ncclGetVersion");
        if (version < oldest)
            throw exchange_error("NCCL: " + file_ + " is version " + text_of(version) + "; expected 2.9 or newer");
        version_ = text_of(version);
        find(library, functions_.get_unique_id, "ncclGetUniqueId");
        find(library, functions_.init_rank, "ncclCommInitRank");
        find(library, functions_.destroy, "ncclCommDestroy");
        find(library, functions_.abort, "ncclCommAbort");
        find(library, functions_.async_error, "ncclCommGetAsyncError");
        find(library, functions_.error_string, "ncclGetErrorString");
        find(library, functions_.last_error, "ncclGetLastError", false);
        find(library, functions_.group_start, "ncclGroupStart");
        find(library, functions_.group_end, "ncclGroupEnd");
        find(library, functions_.send, "ncclSend");
        find(library, functions_.receive, "ncclRecv");
    }

    /// The functions of NCCL that were found.
    const nccl_functions& functions() const { return functions_; }
    /// "2.32.3".
    const std::string& version() const { return version_; }

    /// Throws exchange_error with NCCL's message unless a call succeeded; `where` follows the
    /// call's name.
    void check(int code, const std::string& call, const std::string& where = {}, nccl_communicator of = nullptr) const {
        if (code == nccl_success || code == nccl_in_progress) return;
        std::string text = "NCCL: " + call + " failed" + where + ": ";
        text += functions_.error_string != nullptr ? functions_.error_string(code) : "error " + std::to_string(code);
        if (functions_.last_error != nullptr && of != nullptr)
            if (const char* const more = functions_.last_error(of); more != nullptr && *more != 0)
                text.append(" (").append(more).append(")");
        throw exchange_error(text);
    }

private:
    template <class F>
    void find(void* library, F*& to, const char* name, bool needed = true) const {
        to = reinterpret_cast<F*>(::dlsym(library, name));
        if (to == nullptr && needed) throw exchange_error("NCCL: " + file_ + " has no " + name);
    }
    // Until 2.8 the number was 1000 X + 100 Y + Z.
    static std::string text_of(int version) {
        const int unit = version < 10000 ? 1000 : 10000;
        return std::to_string(version / unit) + "." + std::to_string(version % unit / 100) + "." +
               std::to_string(version % 100);
    }

    std::string file_, version_;
    nccl_functions functions_{};
};

} // namespace tapegraph::distributed
