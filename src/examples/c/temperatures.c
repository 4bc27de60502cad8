/* Which stations are the hottest? Each rank has some readings, a temperature and the station that took it. hsort_argsort() says
 * where the readings are, from the hottest on; hsort_gather() brings the stations from there. */
#include <hypersort.h>
#include <stdio.h>
#include <stdlib.h>

enum { READINGS = 3 };

static void check(hsort_status status, const hsort_context *ctx)
{
    if (status != HSORT_OK) {
        fprintf(stderr, "%s\n", hsort_last_error(ctx));
        MPI_Abort(MPI_COMM_WORLD, hsort_exit_code(status)); // the same status on every rank
    }
}

int main(int argc, char **argv)
{
    hsort_context *ctx;
    double temperature[READINGS], hottest[READINGS];
    int32_t station[READINGS], hottest_station[READINGS];
    int64_t from[READINGS];
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < READINGS; i++) {
        temperature[i] = (rank * READINGS + i) * 7 % 11 + 0.5;
        station[i] = 100 * rank + i;
    }

    check(hsort_create(MPI_COMM_WORLD, NULL, &ctx), NULL);
    check(
        hsort_argsort(ctx, HSORT_F64, HSORT_DESCENDING, temperature, READINGS, from, hottest, READINGS, NULL),
        ctx);
    check(hsort_gather(ctx, station, READINGS, sizeof station[0], from, hottest_station, READINGS, NULL),
          ctx);
    for (int i = 0; i < READINGS; i++)
        printf("%d: %4.1f at station %d\n", rank * READINGS + i, hottest[i], (int)hottest_station[i]);

    hsort_destroy(&ctx);
    MPI_Finalize();
    return 0;
}
