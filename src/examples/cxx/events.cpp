// Sort structs that are spread over the ranks: by run, and in each run by energy, the greatest first.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <hypersort.h>
#include <stdexcept>
#include <vector>

struct event {
    int run;
    float energy;
    long id;
};

// A context that ends with its scope. It throws errors on all ranks at once, because all ranks have the same status.
class sorter
{
  public:
    explicit sorter(MPI_Comm comm)
    {
        check(hsort_create(comm, nullptr, &ctx));
    }
    ~sorter()
    {
        hsort_destroy(&ctx);
    }
    sorter(const sorter &) = delete;
    sorter &operator=(const sorter &) = delete;

    template <class record>
    void sort(std::vector<record> &records, const std::vector<hsort_field> &fields)
    {
        check(hsort_sort_records(ctx, records.data(), sizeof(record), fields.data(), (int)fields.size(),
                                 (std::int64_t)records.size(), nullptr));
    }

  private:
    void check(hsort_status status) const
    {
        if (status != HSORT_OK)
            throw std::runtime_error(hsort_last_error(ctx));
    }
    hsort_context *ctx = nullptr;
};

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int code = 0, rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    try {
        std::vector<event> events;
        for (int i = 0; i < 4; i++)
            events.push_back({i % 2, (float)((rank + 3 * i) % 5), 10 * rank + i});
        sorter(MPI_COMM_WORLD)
            .sort(events, {{offsetof(event, run), HSORT_I32, HSORT_ASCENDING, 0, 0},
                           {offsetof(event, energy), HSORT_F32, HSORT_DESCENDING, 0, 0}});
        for (const event &e : events)
            std::printf("rank %d: run %d, energy %g, event %ld\n", rank, e.run, e.energy, e.id);
    } catch (const std::exception &e) {
        std::fprintf(stderr, "%s\n", e.what());
        code = 1;
    }
    MPI_Finalize();
    return code;
}
