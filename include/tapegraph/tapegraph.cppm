// The umbrella header as a module: `import tapegraph;`. Its macros (TAPEGRAPH_VERSION_MAJOR) are not part of it. Compile it with
// the options and definitions of the files that import it, and with -DTG_MODULE; docs/compile_time.md says how.
module;

// What the library takes from others belongs to no module. tools/check_includes.py sees to it that this list is complete.
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <clocale>
#include <cmath>
#include <compare>
#include <concepts>
#include <condition_variable>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <dirent.h>
#include <exception>
#include <fcntl.h>
#include <initializer_list>
#include <iosfwd>
#include <iostream>
#include <iterator>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <numbers>
#include <numeric>
#include <optional>
#include <pthread.h>
#include <source_location>
#include <shared_mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <system_error>
#include <thread>
#include <time.h>
#include <tuple>
#include <type_traits>
#include <unistd.h>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#ifdef __linux__
#include <sched.h>
#include <sys/vfs.h>
#endif
#ifdef TAPEGRAPH_USE_CBLAS
#include <cblas.h>
#endif

export module tapegraph;

// Templates are instantiated where they are used. clang looks for the operators of the standard library's types among what that
// file sees.
export namespace std {
using std::operator+;
using std::operator-;
using std::operator==;
using std::operator<=>;
using std::operator<<;
} // namespace std
#ifdef __GLIBCXX__
export namespace __gnu_cxx { // iterators of vectors and strings
using __gnu_cxx::operator+;
using __gnu_cxx::operator-;
using __gnu_cxx::operator==;
using __gnu_cxx::operator<=>;
} // namespace __gnu_cxx
#endif

// Not attached to the module, so that files that include the headers and files that import it make one program.
export extern "C++" {
#include <tapegraph/tapegraph.hpp>
}
