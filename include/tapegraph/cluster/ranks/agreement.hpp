#pragma once

#include <tapegraph/cluster/ranks/collectives.hpp>
#include <tapegraph/core/component.hpp>
#include <tapegraph/core/hash.hpp>

#include <cstring>
#include <initializer_list>

/// Compares values that all ranks must agree on once, at the start: later a difference would cause
/// drifting numbers, or an endless wait.

namespace tapegraph::distributed {

using tapegraph::detail::hash_bytes;
using tapegraph::detail::hash_text;
using tapegraph::detail::hash_values;

/// A value that all ranks must agree on. `shown`, if it is not empty, appears in the error instead
/// of the hash.
struct agreed_field {
    std::string name;
    std::uint64_t hash = 0;
    std::string shown{};
};

/// A field whose value is a word or a number, which the error shows.
inline agreed_field agreed_value(std::string name, std::string value) {
    const std::uint64_t hash = hash_text(value);
    return {std::move(name), hash, std::move(value)};
}

/// Throws exchange_error, the same on every rank, unless all ranks pass the same fields in the same
/// order: "ranks do not agree: rank 2 has shards 4, rank 0 has 8".
void agree(exchange& ranks, std::span<const agreed_field> fields);
inline void agree(exchange& ranks, std::initializer_list<agreed_field> fields) {
    agree(ranks, std::span<const agreed_field>(fields.begin(), fields.size()));
}

#if TG_DEFINES(cluster)

TG_DEFINITION void agree(exchange& ranks, std::span<const agreed_field> fields) {
    std::string own;
    const auto put = [&own](std::string_view text) {
        const std::uint64_t length = text.size();
        own.append(reinterpret_cast<const char*>(&length), sizeof length).append(text);
    };
    for (const agreed_field& each : fields) {
        put(each.name);
        own.append(reinterpret_cast<const char*>(&each.hash), sizeof each.hash);
        put(each.shown);
    }
    block_gather gather(ranks, "agreement at the start", exchange::waiting_channel);
    gather.start(std::as_bytes(std::span(own.data(), own.size())));
    gather.wait();

    struct cursor {
        std::span<const std::byte> left;
        std::uint64_t number() {
            std::uint64_t value = 0;
            if (left.size() < sizeof value) throw exchange_error("ranks do not agree: one speaks another version");
            std::memcpy(&value, left.data(), sizeof value);
            left = left.subspan(sizeof value);
            return value;
        }
        std::string text() {
            const std::uint64_t length = number();
            if (length > left.size()) throw exchange_error("ranks do not agree: one speaks another version");
            std::string value(reinterpret_cast<const char*>(left.data()), length);
            left = left.subspan(length);
            return value;
        }
        agreed_field field() {
            agreed_field value;
            value.name = text();
            value.hash = number();
            value.shown = text();
            return value;
        }
    };
    const auto shown = [](const agreed_field& of) {
        if (!of.shown.empty()) return of.shown;
        char digits[17] = "";
        const auto end = std::to_chars(digits, digits + 16, of.hash, 16);
        return "0x" + std::string(digits, end.ptr);
    };
    for (int r = 1; r < ranks.size(); ++r) {
        cursor first{gather.block(0)}, other{gather.block(r)};
        const std::string who = "ranks do not agree: rank " + std::to_string(r);
        while (!first.left.empty() && !other.left.empty()) {
            const agreed_field a = first.field(), b = other.field();
            if (a.name != b.name) throw exchange_error(who + " compares " + b.name + ", rank 0 " + a.name);
            if (a.hash != b.hash || a.shown != b.shown)
                throw exchange_error(who + " has " + a.name + " " + shown(b) + ", rank 0 has " + shown(a));
        }
        if (first.left.empty() != other.left.empty())
            throw exchange_error(who + " compares " + (first.left.empty() ? "more" : "less") + " than rank 0");
    }
}

#endif

} // namespace tapegraph::distributed
