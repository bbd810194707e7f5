// needs: proto
// needs: zlib
#include <tapegraph/data/readers/example.hpp>
#include <tapegraph/data/readers/record_file.hpp>

#include <cstdio>
#include <string>

/// `write FOLDER` leaves plain, gzip and zlib files of Examples; `read FILE` prints what the Examples of a file hold.

namespace {

namespace data = tapegraph::data;

void write(const std::string& folder) {
    const std::pair<const char*, data::record_compression> kinds[] = {{"plain", data::record_compression::none},
                                                                      {"gzip", data::record_compression::gzip},
                                                                      {"zlib", data::record_compression::zlib}};
    for (const auto& [name, kind] : kinds) {
        data::record_file_writer out(folder + "/" + name, kind);
        for (int i = 0; i < 100; ++i)
            out.write(
                serialize(data::example()
                              .set("i", data::int64_feature({i, -i, std::int64_t{i} << 40}))
                              .set("x", data::float_feature(std::vector<float>(static_cast<std::size_t>(i % 3), 0.25f)))
                              .set("s", data::bytes_feature({"\xff" + std::to_string(i), ""}))));
        out.commit();
    }
}

void read(const std::string& path) {
    const data::record_file file(path);
    for (std::int64_t i = 0; i < file.size(); ++i) {
        const data::example one = data::parse_example(file.read(i));
        for (const char* name : {"i", "x", "s"})
            if (const data::feature* f = one.find(name)) {
                for (const auto v : f->integers) std::printf("%lld ", static_cast<long long>(v));
                for (const auto v : f->floats) std::printf("%g ", static_cast<double>(v));
                for (const auto& v : f->bytes) std::printf("'%s' ", v.c_str());
            }
        std::printf("\n");
    }
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    std::string(argv[1]) == "write" ? write(argv[2]) : read(argv[2]);
    return 0;
}
