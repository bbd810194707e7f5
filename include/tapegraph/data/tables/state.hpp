#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/data/tables/encoding.hpp>
#include <tapegraph/formats/file.hpp>
#include <tapegraph/formats/json_reader.hpp>
#include <tapegraph/formats/path.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Saves the state of preprocessing steps in small JSON files, so that a program that serves a
/// model has the same numbers.

namespace tapegraph::data {

namespace detail {

/// {"tapegraph": "normalization", "mean": [...], ...}
class state_writer {
public:
    explicit state_writer(std::string_view kind) { word("tapegraph", kind); }

    void word(std::string_view name, std::string_view value) { member(name) += io::json_string(value); }
    void integer(std::string_view name, std::int64_t value) { member(name) += std::to_string(value); }
    void numbers(std::string_view name, const std::vector<double>& values) {
        list(name, values, [](double value) { return io::json_number(value); });
    }
    void integers(std::string_view name, const std::vector<std::int64_t>& values) {
        list(name, values, [](std::int64_t value) { return std::to_string(value); });
    }
    void words(std::string_view name, const std::vector<std::string>& values) {
        list(name, values, [](const std::string& value) { return io::json_string(value); });
    }
    std::string text() const { return text_ + "}\n"; }

private:
    std::string& member(std::string_view name) {
        return text_.append(text_.size() > 1 ? ", " : "").append(io::json_string(name)).append(": ");
    }
    template <class T, class Write>
    void list(std::string_view name, const std::vector<T>& values, const Write& write) {
        member(name) += '[';
        for (std::size_t i = 0; i < values.size(); ++i) text_.append(i > 0 ? ", " : "").append(write(values[i]));
        text_ += ']';
    }
    std::string text_ = "{";
};

inline bool read_numbers(io::json_reader& json, std::vector<double>& values) {
    json.begin_array();
    while (json.next_element()) values.push_back(json.number());
    return true;
}
inline bool read_integers(io::json_reader& json, std::vector<std::int64_t>& values) {
    json.begin_array();
    while (json.next_element()) values.push_back(json.integer());
    return true;
}
inline bool read_words(io::json_reader& json, std::vector<std::string>& values) {
    json.begin_array();
    while (json.next_element()) values.push_back(json.string());
    return true;
}

bool read_mode(io::json_reader& json, output_mode& mode);

/// Calls `read(name, json)` for the members of a state of that kind; `read` returns false for a
/// name that the kind does not have.
template <class Read>
void read_state(std::string_view text, const std::string& origin, std::string_view kind, const Read& read) {
    io::json_reader json(text, origin);
    bool is_kind = false;
    json.begin_object();
    for (std::string name; json.next_name(name);) {
        if (name == "tapegraph") {
            const std::string found = json.string();
            is_kind = found == kind;
            if (!is_kind) json.refuse("holds a " + io::quoted_text(found) + ", not a " + io::quoted_text(kind));
        } else if (!read(name, json)) {
            json.refuse("a " + std::string(kind) + " has no " + io::quoted_text(name));
        }
    }
    json.end();
    if (!is_kind) throw data_error(origin + ": does not say that it is a " + io::quoted_text(kind));
}
/// Turns errors about the numbers in a file into errors of the file.
template <class Make>
auto restored(const std::string& origin, const Make& make) {
    try {
        return make();
    } catch (const argument_error& wrong) {
        throw data_error(origin + ": " + wrong.what());
    }
}

} // namespace detail

/// Writes the state of a preprocessing step (normalization, string_lookup, ...); an older file is
/// only replaced by a complete new one. Throws data_error.
template <class Step>
void save_state(const files::path& path, const Step& step) {
    io::atomic_file out(path);
    out.write(step.to_json());
    out.commit();
}
/// Reads the result of save_state: `load_state<normalization>("scale.json")`. Throws data_error
/// naming the file and the problem.
template <class Step>
Step load_state(const files::path& path) {
    const auto bytes = io::read_file(path);
    return Step::from_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, io::detail::quoted(path));
}

} // namespace tapegraph::data

namespace tapegraph::data::detail {

#if TG_DEFINES(data)

TG_DEFINITION bool read_mode(io::json_reader& json, output_mode& mode) {
    const std::string name = json.string();
    for (const auto each :
         {output_mode::index, output_mode::one_hot, output_mode::multi_hot, output_mode::count, output_mode::tf_idf})
        if (name == name_of(each)) {
            mode = each;
            return true;
        }
    json.refuse(io::quoted_text(name) + " is not an output mode");
}

#endif

} // namespace tapegraph::data::detail
