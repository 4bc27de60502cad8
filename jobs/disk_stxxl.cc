// Sorts the keys of a file by stxxl::sort, in a vector of STXXL's own on disk, and prints the seconds: for jobs/disk.sh.
//
//     disk_stxxl WORK IN MEMORY_BYTES
//
// The vector is made before, which is not counted, and read afterwards, when its order and the sum of its keys must be right. What is
// counted: the sort, with all that it reads and writes, past the page cache, and what is left to be written.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <stxxl/sort>
#include <stxxl/vector>
#include <unistd.h>

namespace {

struct less_key {
    bool operator()(std::uint64_t a, std::uint64_t b) const { return a < b; }
    std::uint64_t min_value() const { return std::numeric_limits<std::uint64_t>::min(); }
    std::uint64_t max_value() const { return std::numeric_limits<std::uint64_t>::max(); }
};

typedef stxxl::VECTOR_GENERATOR<std::uint64_t>::result key_vector;

// The sum of all keys of the file, which the vector then holds.
std::uint64_t fill(key_vector &keys, const char *path)
{
    static std::uint64_t buffer[1 << 17];
    std::uint64_t sum = 0;
    std::size_t got;
    std::FILE *file = std::fopen(path, "rb");
    if (!file) {
        std::perror(path);
        std::exit(1);
    }
    key_vector::bufwriter_type writer(keys);
    while ((got = std::fread(buffer, sizeof *buffer, sizeof buffer / sizeof *buffer, file)) > 0)
        for (std::size_t i = 0; i < got; i++) {
            writer << buffer[i];
            sum += buffer[i];
        }
    writer.finish();
    std::fclose(file);
    return sum;
}

bool is_sorted(const key_vector &keys, std::uint64_t sum)
{
    std::uint64_t last = 0;
    bool rises = true;
    for (key_vector::bufreader_type reader(keys); !reader.empty(); ++reader) {
        rises = rises && *reader >= last;
        last = *reader;
        sum -= last;
    }
    return rises && sum == 0;
}

} // namespace

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    const std::string disk = std::string(argv[1]) + "/out.stxxl";
    std::FILE *in = std::fopen(argv[2], "rb");
    if (!in || std::fseek(in, 0, SEEK_END) != 0) {
        std::perror(argv[2]);
        return 1;
    }
    const std::uint64_t bytes = static_cast<std::uint64_t>(std::ftell(in)), count = bytes / sizeof(std::uint64_t);
    std::fclose(in);
    // Sorted runs lie beside the vector.
    stxxl::disk_config config(disk, 2 * bytes + (1 << 28), "syscall");
    config.direct = stxxl::disk_config::DIRECT_TRY;
    config.unlink_on_open = true; // nothing stays, whatever ends this
    stxxl::config::get_instance()->add_disk(config);
    key_vector keys(count);
    const std::uint64_t sum = fill(keys, argv[2]);
    const auto begin = std::chrono::steady_clock::now();
    stxxl::sort(keys.begin(), keys.end(), less_key(), std::strtoull(argv[3], nullptr, 10));
    keys.flush();
    ::sync();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    if (!is_sorted(keys, sum)) {
        std::fprintf(stderr, "disk_stxxl: not in order, or other keys\n");
        return 1;
    }
    std::printf("%.3f\n", took.count());
    return 0;
}
