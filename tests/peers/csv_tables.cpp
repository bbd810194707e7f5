#include <tapegraph/formats/csv.hpp>
#include <tapegraph/formats/csv_reader.hpp>

#include <cstdio>
#include <string>
#include <vector>

/// Copies a table for csv_tables.py: peer_csv_tables IN.csv OUT.csv SEPARATOR. Columns whose names begin with "f64", "f32" or "i64" are read as such
/// numbers and written from them.

namespace {

using namespace tapegraph;

std::string copied(const io::csv_reader& in, std::size_t k) {
    const std::string& name = in.columns()[k];
    if (name.starts_with("f64")) return io::csv_field(in.number<double>(k));
    if (name.starts_with("f32")) return io::csv_field(in.number<float>(k));
    if (name.starts_with("i64")) return io::csv_field(in.number<std::int64_t>(k));
    return in[k];
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 4) return 2;
    try {
        io::csv_reader in(argv[1], {.separator = argv[3][0]});
        io::csv_writer out(argv[2], in.columns());
        while (in.next()) {
            std::vector<std::string> row;
            for (std::size_t k = 0; k < in.columns().size(); ++k) row.push_back(copied(in, k));
            out.row(row);
        }
    } catch (const error& failure) {
        std::fprintf(stderr, "%s\n", failure.what());
        return 1;
    }
    return 0;
}
