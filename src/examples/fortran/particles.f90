! Sort particles by the number of their cell; each brings its energy along.
program particles
    use mpi_f08
    use hypersort
    implicit none
    type(c_ptr) :: ctx
    integer(c_int64_t) :: cell(4)
    real(c_double) :: energy(4)
    integer :: rank, i

    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    cell = [(modulo((4 * rank + i) * 5, 9), i = 0, 3)]
    energy = [(rank + i / 10.0_c_double, i = 0, 3)]

    call check(hsort_create(MPI_COMM_WORLD%mpi_val, ctx=ctx))
    call check(hsort_sort_pairs(ctx, HSORT_I64, HSORT_ASCENDING, cell, energy, c_sizeof(energy(1)), size(cell, kind=c_int64_t), &
        c_null_ptr))
    print '(a, i0, 4(a, i0, a, f3.1))', 'rank ', rank, (': cell ', cell(i), ', energy ', energy(i), i = 1, 4)
    call hsort_destroy(ctx)
    call MPI_Finalize()

contains

    subroutine check(status)
        integer(c_int), intent(in) :: status
        if (status == HSORT_OK) return
        print '(a)', hsort_last_error(ctx)
        call MPI_Abort(MPI_COMM_WORLD, hsort_exit_code(status))
    end subroutine
end program
