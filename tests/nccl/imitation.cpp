// NCCL for tests without one: the entry points that nccl_library.hpp asks for, between threads and in the host's memory. What is given to
// a stream is done at once. imitated_nccl_is and imitated_nccl_fail, which a test finds by dlsym, make it an old one or one that fails.

#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace {

struct group {
    int size = 0, joined = 0, left = 0;
    bool aborted = false;
    std::mutex mutex;
    std::condition_variable changed;
    std::map<std::pair<int, int>, std::deque<std::vector<char>>> sent; // from, to
};
struct communicator {
    std::shared_ptr<group> of;
    int rank;
};
struct work {
    communicator* on;
    int peer;
    const void* from;
    void* to;
    std::size_t bytes;
};

std::mutex all;
std::map<std::string, std::shared_ptr<group>> groups;
int failure = 0, number = 23203;
unsigned ids = 0;
thread_local int depth = 0;
thread_local std::vector<work> pending;

int run() {
    std::vector<work> now;
    now.swap(pending);
    for (const work& w : now)
        if (w.from != nullptr) {
            group& g = *w.on->of;
            const std::lock_guard lock(g.mutex);
            const char* const bytes = static_cast<const char*>(w.from);
            g.sent[{w.on->rank, w.peer}].emplace_back(bytes, bytes + w.bytes);
            g.changed.notify_all();
        }
    for (const work& w : now)
        if (w.from == nullptr) {
            group& g = *w.on->of;
            std::unique_lock lock(g.mutex);
            auto& from = g.sent[{w.peer, w.on->rank}];
            g.changed.wait(lock, [&] { return !from.empty() || g.aborted; });
            if (from.empty()) return 0; // the error is asked for
            if (from.front().size() != w.bytes) return 4;
            std::memcpy(w.to, from.front().data(), w.bytes);
            from.pop_front();
        }
    return 0;
}
int give(const work& w) {
    if (failure == 1) return 1;
    pending.push_back(w);
    return depth == 0 ? run() : 0;
}

} // namespace

extern "C" {

struct imitated_id {
    char bytes[128];
};

// 1: sends fail; 6: a peer has failed, which is told when it is asked for.
void imitated_nccl_fail(int how) { failure = how; }

void imitated_nccl_is(int version) { number = version; }

int ncclGetVersion(int* version) {
    *version = number;
    return 0;
}
int ncclGetUniqueId(imitated_id* id) {
    const std::lock_guard lock(all);
    std::memset(id->bytes, 0, sizeof id->bytes);
    const std::string text = "communicator " + std::to_string(++ids);
    std::memcpy(id->bytes, text.data(), text.size());
    return 0;
}
int ncclCommInitRank(void** made, int size, imitated_id id, int rank) {
    if (rank < 0 || rank >= size) return 4;
    std::shared_ptr<group> g;
    {
        const std::lock_guard lock(all);
        auto& known = groups[std::string(id.bytes, sizeof id.bytes)];
        if (known == nullptr) known = std::make_shared<group>();
        g = known;
    }
    std::unique_lock lock(g->mutex);
    g->size = size;
    ++g->joined;
    g->changed.notify_all();
    g->changed.wait(lock, [&] { return g->joined == size; });
    *made = new communicator{g, rank};
    return 0;
}
int ncclCommDestroy(void* of) {
    delete static_cast<communicator*>(of);
    return 0;
}
int ncclCommAbort(void* of) {
    group& g = *static_cast<communicator*>(of)->of;
    {
        const std::lock_guard lock(g.mutex);
        g.aborted = true;
        g.changed.notify_all();
    }
    return ncclCommDestroy(of);
}
int ncclCommGetAsyncError(void* of, int* error) {
    group& g = *static_cast<communicator*>(of)->of;
    const std::lock_guard lock(g.mutex);
    *error = g.aborted || failure == 6 ? 6 : 0;
    return 0;
}
const char* ncclGetErrorString(int error) {
    return error == 0   ? "no error"
           : error == 1 ? "unhandled cuda error"
           : error == 6 ? "remote process exited"
                        : "invalid argument";
}
const char* ncclGetLastError(void*) { return "imitated"; }
int ncclGroupStart() {
    ++depth;
    return 0;
}
int ncclGroupEnd() { return --depth == 0 ? run() : 0; }
int ncclSend(const void* from, std::size_t count, int type, int peer, void* of, void*) {
    return type != 0 ? 4 : give({static_cast<communicator*>(of), peer, from, nullptr, count});
}
int ncclRecv(void* to, std::size_t count, int type, int peer, void* of, void*) {
    return type != 0 ? 4 : give({static_cast<communicator*>(of), peer, nullptr, to, count});
}

} // extern "C"
