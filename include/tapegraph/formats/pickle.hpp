#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/error.hpp>

#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

/// Reads Python's pickles, protocols 2 to 5, without executing anything: a call becomes a node that
/// names the callee, and the caller decides which names are allowed. Opcodes: pickletools.py of
/// CPython.

namespace tapegraph::io {

/// The type of a value in a pickle, of those that files of weights have.
enum class pickle_kind : std::uint8_t {
    none,
    boolean,
    integer,
    /// Of more than 64 bits: `text` has its decimal digits, or is empty if it has more than 1024;
    /// `integer` is their number.
    large_integer,
    real,
    text,
    bytes,
    tuple,
    list,
    dict,
    set,
    global,    ///< a class or function, `text` is "module.name"
    call,      ///< items: the callee, its arguments, and the state set on the result, if any
    persistent ///< items: the reference to something outside the pickle
};

/// One value. Its items are indices of other nodes, so that values can be shared, and even contain
/// themselves.
struct pickle_node {
    pickle_kind kind = pickle_kind::none;
    std::int64_t integer = 0; ///< the value of an integer or a boolean
    double real = 0;
    std::string text{};                 ///< the content of a text, bytes or a global
    std::vector<std::uint32_t> items{}; ///< for a dict: key, value, key, value
};

/// A pickle's values, which refer to each other by number.
struct pickle_value {
    std::vector<pickle_node> nodes;
    std::uint32_t root = 0;
    /// The value of that number.
    const pickle_node& operator[](std::uint32_t node) const { return nodes[node]; }
};

/// Whether a pickle may name "module.name".
using pickle_rule = bool (*)(std::string_view name);

namespace detail {

class pickle_machine {
public:
    pickle_machine(std::span<const std::byte> file, pickle_rule allowed, const std::string& what)
        : file_(file), allowed_(allowed), what_(what) {}

    pickle_value run(std::size_t* end);

private:
    void perform(unsigned opcode);

    [[noreturn]] void fail(const std::string& why) const {
        throw data_error(what_ + ", byte " + std::to_string(opcode_at_) + " of the pickle: " + why);
    }
    unsigned take() {
        if (at_ == file_.size()) fail("truncated");
        return static_cast<unsigned>(file_[at_++]);
    }
    std::uint64_t integer(int bytes) {
        std::uint64_t value = 0;
        for (int i = 0; i < bytes; ++i) value |= std::uint64_t{take()} << (8 * i);
        return value;
    }
    std::string piece(std::uint64_t bytes) {
        if (bytes > file_.size() - at_) fail("truncated: " + std::to_string(bytes) + " bytes should follow");
        std::string text(reinterpret_cast<const char*>(file_.data()) + at_, bytes);
        at_ += bytes;
        return text;
    }
    std::string line() {
        std::string text;
        for (unsigned c = take(); c != '\n'; c = take()) text += static_cast<char>(c);
        return text;
    }
    void long_integer(std::uint64_t bytes);
    /// Little-endian, in two's complement.
    void large_integer(std::string digits, bool negative);
    void decimal_integer(std::string text);
    void real() { // big-endian, as an exception
        std::uint64_t bits = 0;
        for (int i = 0; i < 8; ++i) bits = bits << 8 | take();
        add(pickle_kind::real).real = std::bit_cast<double>(bits);
    }
    void add_text(pickle_kind kind, std::uint64_t bytes) {
        std::string text = piece(bytes);
        add(kind).text = std::move(text);
    }
    void global(std::string name);

    const pickle_node& node(std::uint32_t which) const { return result_.nodes[which]; }
    void push(std::uint32_t which) { stack_.push_back(which); }
    pickle_node& add(pickle_kind kind) {
        push(static_cast<std::uint32_t>(result_.nodes.size()));
        result_.nodes.push_back({kind});
        return result_.nodes.back();
    }
    std::uint32_t top() const {
        if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) fail("pops a value from an empty stack");
        return stack_.back();
    }
    std::uint32_t pop() {
        const std::uint32_t which = top();
        stack_.pop_back();
        return which;
    }
    std::vector<std::uint32_t> marked();
    void tuple_of(int count) {
        std::vector<std::uint32_t> items(static_cast<std::size_t>(count));
        for (std::size_t i = items.size(); i-- > 0;) items[i] = pop();
        add(pickle_kind::tuple).items = std::move(items);
    }
    void collect(pickle_kind kind) {
        std::vector<std::uint32_t> items = marked();
        if (kind == pickle_kind::dict && items.size() % 2 != 0) fail("a key without a value");
        add(kind).items = std::move(items);
    }
    /// Adds items to a container, or to the result of a call: an OrderedDict is filled like a dict.
    void extend(pickle_kind kind, const std::vector<std::uint32_t>& items);
    void memorize(std::uint64_t place);
    void recall(std::uint64_t place) {
        if (place >= memo_.size() || memo_[place] == none) fail("nothing is in memory place " + std::to_string(place));
        push(memo_[place]);
    }

    static constexpr std::uint32_t none = ~std::uint32_t{0};
    std::span<const std::byte> file_;
    pickle_rule allowed_;
    const std::string& what_;
    std::size_t at_ = 0, opcode_at_ = 0;
    pickle_value result_;
    std::vector<std::uint32_t> stack_, memo_;
    std::vector<std::size_t> marks_;
};

} // namespace detail

/// Reads a pickle; `what` is its name in errors. Throws data_error, naming the byte, if it is
/// truncated, of another protocol, names something that `allowed` refuses, or uses an opcode that
/// neither plain data nor objects need. Nothing is ever called. `end` receives the position after
/// the pickle; without it the pickle must end with the bytes.
inline pickle_value read_pickle(std::span<const std::byte> file, pickle_rule allowed, const std::string& what,
                                std::size_t* end = nullptr) {
    return detail::pickle_machine(file, allowed, what).run(end);
}

} // namespace tapegraph::io

namespace tapegraph::io::detail {

#if TG_DEFINES(formats)

TG_DEFINITION pickle_value pickle_machine::run(std::size_t* end) {
    if (file_.size() < 2 || take() != 0x80) fail("not a pickle of protocol 2 or later");
    const unsigned protocol = take();
    if (protocol < 2 || protocol > 5) fail("a pickle of protocol " + std::to_string(protocol) + ", 2 to 5 are read");
    for (;;) {
        opcode_at_ = at_;
        const unsigned opcode = take();
        if (opcode == '.') break;
        perform(opcode);
    }
    if (stack_.size() != 1 || !marks_.empty()) fail("ends with " + std::to_string(stack_.size()) + " values");
    if (end != nullptr)
        *end = at_;
    else if (at_ != file_.size())
        fail("continues past its end");
    result_.root = stack_.back();
    return std::move(result_);
}

TG_DEFINITION void pickle_machine::perform(unsigned opcode) {
    switch (opcode) {
    case 0x95: integer(8); return; // a frame: the length of the following part, which is in memory
    case '(': marks_.push_back(stack_.size()); return;
    case '0': pop(); return;
    case '1': static_cast<void>(marked()); return;
    case '2': push(top()); return;
    case 'N': add(pickle_kind::none); return;
    case 0x88: add(pickle_kind::boolean).integer = 1; return;
    case 0x89: add(pickle_kind::boolean); return;
    case 'I': decimal_integer(line()); return; // from Python 2, like the next
    case 'L': decimal_integer(line()); return;
    case 'K': add(pickle_kind::integer).integer = static_cast<std::int64_t>(integer(1)); return;
    case 'M': add(pickle_kind::integer).integer = static_cast<std::int64_t>(integer(2)); return;
    case 'J': add(pickle_kind::integer).integer = static_cast<std::int32_t>(integer(4)); return;
    case 0x8A: long_integer(integer(1)); return;
    case 0x8B: long_integer(integer(4)); return;
    case 'G': real(); return;
    case 'X': add_text(pickle_kind::text, integer(4)); return;
    case 0x8C: add_text(pickle_kind::text, integer(1)); return;
    case 0x8D: add_text(pickle_kind::text, integer(8)); return;
    case 'U': add_text(pickle_kind::text, integer(1)); return; // a str from Python 2
    case 'T': add_text(pickle_kind::text, integer(4)); return;
    case 'C': add_text(pickle_kind::bytes, integer(1)); return;
    case 'B': add_text(pickle_kind::bytes, integer(4)); return;
    case 0x8E:
    case 0x96: add_text(pickle_kind::bytes, integer(8)); return;
    case ')': add(pickle_kind::tuple); return;
    case 0x85: tuple_of(1); return;
    case 0x86: tuple_of(2); return;
    case 0x87: tuple_of(3); return;
    case 't': collect(pickle_kind::tuple); return;
    case ']': add(pickle_kind::list); return;
    case 'l': collect(pickle_kind::list); return;
    case 'a': extend(pickle_kind::list, {pop()}); return;
    case 'e': extend(pickle_kind::list, marked()); return;
    case '}': add(pickle_kind::dict); return;
    case 'd': collect(pickle_kind::dict); return;
    case 's': {
        const auto value = pop(), key = pop();
        extend(pickle_kind::dict, {key, value});
        return;
    }
    case 'u': extend(pickle_kind::dict, marked()); return;
    case 0x8F: add(pickle_kind::set); return;
    case 0x90: extend(pickle_kind::set, marked()); return;
    case 0x91: collect(pickle_kind::set); return;
    case 'q': memorize(integer(1)); return;
    case 'r': memorize(integer(4)); return;
    case 0x94: memorize(memo_.size()); return;
    case 'h': recall(integer(1)); return;
    case 'j': recall(integer(4)); return;
    case 'c': {
        const std::string module = line();
        global(module + "." + line());
        return;
    }
    case 0x93: {
        const auto name = pop(), module = pop();
        if (node(name).kind != pickle_kind::text || node(module).kind != pickle_kind::text)
            fail("a name that is not text");
        global(node(module).text + "." + node(name).text);
        return;
    }
    case 'R':
    case 0x81: {
        const auto arguments = pop(), callee = pop();
        if (node(arguments).kind != pickle_kind::tuple) fail("a call without a tuple of arguments");
        add(pickle_kind::call).items = {callee, arguments};
        return;
    }
    case 0x92: { // with keyword arguments in a dict after the others
        const auto named = pop(), arguments = pop(), callee = pop();
        if (node(arguments).kind != pickle_kind::tuple) fail("a call without a tuple of arguments");
        add(pickle_kind::tuple).items = {arguments, named};
        const auto both = pop();
        add(pickle_kind::call).items = {callee, both};
        return;
    }
    case 'b': {
        const auto state = pop();
        pickle_node& object = result_.nodes[top()];
        // For other objects, such as an OrderedDict, these are attributes in addition to the
        // items.
        if (object.kind == pickle_kind::call && object.items.size() == 2) object.items.push_back(state);
        return;
    }
    case 'Q': {
        const auto id = pop();
        add(pickle_kind::persistent).items = {id};
        return;
    }
    default: fail("opcode " + std::to_string(opcode) + " is not read; plain data need none but a few");
    }
}

TG_DEFINITION void pickle_machine::long_integer(std::uint64_t bytes) {
    const std::string digits = piece(bytes);
    const bool negative = !digits.empty() && (digits.back() & 0x80) != 0;
    if (digits.size() > 8) return large_integer(digits, negative);
    std::uint64_t value = negative ? ~std::uint64_t{0} : 0;
    for (std::size_t i = digits.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(digits[i]);
    add(pickle_kind::integer).integer = static_cast<std::int64_t>(value);
}

TG_DEFINITION void pickle_machine::large_integer(std::string digits, bool negative) {
    pickle_node& node = add(pickle_kind::large_integer);
    constexpr std::size_t most = 1024 / 8 + 1; // including a sign
    std::size_t used = digits.size();
    while (used > 1 && digits[used - 1] == (negative ? '\xFF' : '\0')) --used; // leading sign bytes
    const auto top = static_cast<unsigned char>(negative ? ~digits[used - 1] : digits[used - 1]);
    node.integer = static_cast<std::int64_t>(8 * (used - 1)) + std::bit_width(top);
    if (used > most) return;
    digits.resize(used);
    unsigned carry = negative ? 1 : 0;
    for (char& c : digits) {
        if (!negative) break;
        carry += static_cast<unsigned char>(~c);
        c = static_cast<char>(carry);
        carry >>= 8;
    }
    if (carry != 0) digits += '\1';
    std::string text; // the last digit first
    while (!digits.empty()) {
        unsigned rest = 0;
        for (std::size_t i = digits.size(); i-- > 0;) {
            rest = rest << 8 | static_cast<unsigned char>(digits[i]);
            digits[i] = static_cast<char>(rest / 10);
            rest %= 10;
        }
        text += static_cast<char>('0' + rest);
        while (!digits.empty() && digits.back() == '\0') digits.pop_back();
    }
    if (negative) text += '-';
    node.text.assign(text.rbegin(), text.rend());
}

TG_DEFINITION void pickle_machine::decimal_integer(std::string text) {
    if (text == "00" || text == "01") { // booleans in protocols 0 and 1
        add(pickle_kind::boolean).integer = text[1] - '0';
        return;
    }
    if (text.ends_with('L')) text.pop_back();
    std::int64_t value = 0;
    const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
    if (end.ptr != text.data() + text.size() || end.ec == std::errc::invalid_argument) fail("invalid digits");
    if (end.ec == std::errc{}) {
        add(pickle_kind::integer).integer = value;
        return;
    }
    pickle_node& node = add(pickle_kind::large_integer);
    node.integer = static_cast<std::int64_t>(static_cast<double>(text.size()) * 3.3219280948873626); // bits per digit
    if (text.size() <= 310) node.text = std::move(text);
}

TG_DEFINITION void pickle_machine::global(std::string name) {
    if (!allowed_(name)) {
        std::string shown;
        for (const char c : name.substr(0, 100)) shown += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
        fail("it names '" + shown + "', which is not read: tensors, numbers, texts and plain containers are");
    }
    add(pickle_kind::global).text = std::move(name);
}

TG_DEFINITION std::vector<std::uint32_t> pickle_machine::marked() {
    if (marks_.empty()) fail("pops values up to a missing mark");
    const auto from = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<std::uint32_t> values(from, stack_.end());
    stack_.erase(from, stack_.end());
    marks_.pop_back();
    return values;
}

TG_DEFINITION void pickle_machine::extend(pickle_kind kind, const std::vector<std::uint32_t>& items) {
    if (kind == pickle_kind::dict && items.size() % 2 != 0) fail("a key without a value");
    std::uint32_t to = top();
    if (node(to).kind == pickle_kind::call) {
        result_.nodes[to] = {kind}; // its class is an OrderedDict, or derived from a dict, a list or a set
    } else if (node(to).kind != kind) {
        fail("items for an object that is not a container of them");
    }
    auto& all = result_.nodes[to].items;
    all.insert(all.end(), items.begin(), items.end());
}

TG_DEFINITION void pickle_machine::memorize(std::uint64_t place) {
    // Indices are used one by one; a higher one in a damaged file would only waste memory.
    if (place > file_.size())
        fail("memory place " + std::to_string(place) + " in a pickle of " + std::to_string(file_.size()) + " bytes");
    if (place >= memo_.size()) memo_.resize(place + 1, none);
    memo_[place] = top();
}

#endif

} // namespace tapegraph::io::detail
