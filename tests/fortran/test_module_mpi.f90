! With the older module mpi, where a communicator is an integer: four keys on each rank, in order. Exit code 0 or 1.
program test_module_mpi
    use mpi
    use hypersort
    implicit none
    type(c_ptr) :: ctx
    integer(c_int32_t) :: keys(4)
    integer :: rank, error

    call MPI_Init(error)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
    keys = [30, 10, 20, 0] - rank
    error = 0
    if (hsort_create(MPI_COMM_WORLD, ctx=ctx) /= HSORT_OK) error = 1
    if (hsort_sort(ctx, HSORT_I32, HSORT_DESCENDING, keys, 4_c_int64_t, c_null_ptr) /= HSORT_OK) error = 1
    if (any(keys(2:) > keys(:3)) .or. (rank == 0 .and. keys(1) /= 30)) error = 1
    call hsort_destroy(ctx)
    call MPI_Allreduce(MPI_IN_PLACE, error, 1, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, rank)
    call MPI_Finalize(rank)
    if (error /= 0) stop 1
end program
