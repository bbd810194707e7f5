// needs: zlib
#include <damaged/folder.hpp>

#include <tapegraph/formats/pytorch.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace std::string_literals;

std::string tensor(const std::string& storage, char key, char elements, const std::string& shape_and_strides) {
    return "ctorch._utils\n_rebuild_tensor_v2\n((X\7\0\0\0storagectorch\n"s + storage + "\nX\1\0\0\0"s + key +
           "X\3\0\0\0cpuK"s + elements + "tQK\0"s + shape_and_strides +
           "\x89"
           "ccollections\nOrderedDict\n)RtR";
}

/// A state_dict as torch.save lays it out: [2, 3] f32, its transposed view, and three bools.
std::string pickle() {
    return "\x80\2ccollections\nOrderedDict\n)Rq\0(X\6\0\0\0weight"s +
           tensor("FloatStorage", '0', 6, "K\2K\3\x86K\3K\1\x86") + "X\4\0\0\0turn"s +
           tensor("FloatStorage", '0', 6, "K\3K\2\x86K\1K\3\x86") + "X\4\0\0\0flag"s +
           tensor("BoolStorage", '1', 3, "K\3\x85K\1\x85") +
           "X\5\0\0\0epochK\7X\2\0\0\0lrG?\xe0\0\0\0\0\0\0u}X\1\0\0\0a]sb."s;
}
/// The same beside what is not read, or in part: an integer of 65 bits, a set, an object with a tensor in it, a module, itself.
std::string mixed_pickle() {
    return "\x80\2}q\0(X\4\0\0\0seed\x8a\x09\0\0\0\0\0\0\0\0\1X\1\0\0\0s\x8f(K\1\x90X\4\0\0\0argscmine\nArgs\n)\x81}X\1\0\0\0w"s +
           tensor("FloatStorage", '0', 6, "K\2K\3\x86K\3K\1\x86") +
           "sbX\3\0\0\0netcmine\nNet\n)\x81}(X\x0b\0\0\0_parameters}X\1\0\0\0b"s +
           tensor("ComplexFloatStorage", '1', 3, "K\3\x85K\1\x85") + "sX\x08\0\0\0_modules}ubX\4\0\0\0selfh\0u."s;
}

/// The same as files were before PyTorch 1.6.
std::string legacy() {
    const auto stored = [](char elements, std::string bytes) {
        return elements + "\0\0\0\0\0\0\0"s + std::move(bytes);
    };
    return std::string(tapegraph::io::detail::pytorch_legacy_magic) +
           ".\x80\2M\xe9\3.\x80\2}X\x0d\0\0\0little_endian\x88s."s + pickle() +
           "\x80\2](X\1\0\0\0"
           "0X\1\0\0\0"
           "1e."s +
           stored(6, std::string(24, 'x')) + stored(3, "\1\0\1"s);
}

std::string archive(const tapegraph::io::zip_options& options) {
    const auto path = folder().path() / "sound";
    tapegraph::io::zip_writer writer(path, options);
    writer.add("archive/data.pkl", pickle());
    writer.add("archive/byteorder", "little");
    writer.add("archive/data/0", std::string(24, 'x'));
    writer.add("archive/data/1", "\1\0\1"s);
    writer.commit();
    return support::read_text(path);
}

/// The bytes as a file, and, what the archive's checksums would keep from the pickle's machine, as a pickle.
bool read(const std::string& bytes) {
    if (bytes.starts_with("PK") || bytes.starts_with(tapegraph::io::detail::pytorch_legacy_magic)) {
        static_cast<void>(tapegraph::io::read_pytorch_file(folder().write("damaged", bytes)));
        return true;
    }
    const auto path = folder().path() / "around";
    {
        tapegraph::io::zip_writer writer(path);
        writer.add("archive/data.pkl", bytes);
        writer.add("archive/data/0", std::string(24, 'x'));
        writer.add("archive/data/1", "\1\0\1"s);
        writer.commit();
    }
    static_cast<void>(tapegraph::io::read_pytorch_file(path));
    return true;
}

} // namespace

std::vector<std::string> sound_files() {
    return {pickle(), mixed_pickle(), legacy(), archive({}), archive({.level = 9}), archive({.zip64_from = 0})};
}

bool read_damaged(const std::string& bytes) {
    try {
        return read(bytes);
    } catch (const tapegraph::error&) {
        return false;
    }
}

const std::size_t memory_factor = 4 * 1032; // what deflate can make of a byte, while it grows
