! Every public call from Fortran, with the module mpi_f08, on any number of ranks: results that are known are compared, others
! checked by the library's own checks, which are calls too. Exit code 0 or 1.
program test_calls
    use mpi_f08
    use hypersort
    implicit none

    type, bind(c) :: particle
        integer(c_int32_t) :: cell
        real(c_float) :: energy
        integer(c_int64_t) :: id
    end type

    type(c_ptr) :: ctx
    integer(c_int) :: rank, ranks
    integer :: failures = 0
    integer(c_int64_t) :: count, total, before
    logical, target :: stop_now = .false.
    integer, target :: steps = 0

    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks)
    count = 1000 + 10 * rank ! another count on each rank
    total = 1000_c_int64_t * ranks + 5_c_int64_t * ranks * (ranks - 1)
    before = 1000_c_int64_t * rank + 5_c_int64_t * rank * (rank - 1)

    call test_names()
    call test_context()
    call test_keys()
    call test_elements()
    call test_records()
    call test_reports()
    call test_stop()
    call hsort_destroy(ctx)
    call check(.not. c_associated(ctx), 'hsort_destroy leaves a context')

    call MPI_Allreduce(MPI_IN_PLACE, failures, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
    if (rank == 0) print '(i0, a, i0, a)', failures, ' failures on ', ranks, ' ranks'
    call MPI_Finalize()
    if (failures /= 0) stop 1

contains

    subroutine check(condition, text)
        logical, intent(in) :: condition
        character(*), intent(in) :: text
        if (condition) return
        failures = failures + 1
        print '(a, i0, 2a)', 'failed on rank ', rank, ': ', text
    end subroutine

    subroutine ok(status, text)
        integer(c_int), intent(in) :: status
        character(*), intent(in) :: text
        call check(status == HSORT_OK, text//': '//hsort_strerror(status)//': '//hsort_last_error(ctx))
    end subroutine

    ! Key i of all ranks: spread over the integers, each of them twice.
    elemental integer(c_int64_t) function drawn(i)
        integer(c_int64_t), intent(in) :: i
        drawn = mod((i / 2) * 7919_c_int64_t, 104729_c_int64_t)
    end function

    ! What all keys are like, in result.
    subroutine inspect(keys, keys_count, result, text)
        real(c_double), intent(in) :: keys(:)
        integer(c_int64_t), intent(in) :: keys_count
        type(hsort_check_result), intent(out) :: result
        character(*), intent(in) :: text
        result%struct_size = c_sizeof(result)
        call ok(hsort_check(ctx, HSORT_F64, HSORT_ASCENDING, keys, keys_count, c_null_ptr, result), text)
        call check(result%count == total, text//': not all keys are there')
    end subroutine

    logical function same(a, b)
        type(hsort_check_result), intent(in) :: a, b
        same = all(a%fingerprint == b%fingerprint)
    end function

    subroutine test_names()
        call check(hsort_version() >= 200, 'the version')
        call check(index(hsort_build_info(), 'MPI') > 0, 'the build is not described: '//hsort_build_info())
        call check(hsort_strerror(HSORT_HOST_MEMORY) == 'out of host memory', 'the text of a status')
        call check(hsort_exit_code(HSORT_HOST_MEMORY) == 5, 'the exit code of a status')
        call check(hsort_type_name(HSORT_BF16) == 'bf16' .and. hsort_type_name(1000_c_int) == '', 'names of types')
        call check(hsort_type_bytes(HSORT_U128) == 16, 'bytes of a type')
        call check(hsort_engine_name(HSORT_ENGINE_HOST) == 'host', 'the name of an engine')
        call check(hsort_exchange_name(HSORT_EXCHANGE_DIRECT) == 'direct', 'the name of an exchange')
        call check(hsort_transport_name(HSORT_TRANSPORT_STAGED) == 'staged', 'the name of a transport')
    end subroutine

    ! A context that cannot be had says why; then the one of the other tests, with callbacks.
    subroutine test_context()
        type(hsort_options) :: options

        call check(hsort_options_init(options, c_sizeof(options)) == HSORT_OK, 'options')
        call check(options%local_rung == -1 .and. options%threads == 0, 'defaults of options')
        options%threads = 1000000
        call check(hsort_create(MPI_COMM_WORLD%mpi_val, options, ctx) == HSORT_ARGUMENT, 'a million threads')
        call check(.not. c_associated(ctx), 'a context after an error')
        call check(index(hsort_last_error(ctx), 'thread') > 0, 'the error says: '//hsort_last_error(ctx))
        call check(hsort_create(MPI_COMM_WORLD%mpi_val, ctx=ctx) == HSORT_OK, 'a context without options')
        call hsort_destroy(ctx)

        call check(hsort_options_init(options, c_sizeof(options)) == HSORT_OK, 'options')
        options%engine = HSORT_ENGINE_HOST
        options%threads = 2
        options%progress = c_funloc(count_steps)
        options%progress_user = c_loc(steps)
        options%should_stop = c_funloc(should_stop)
        options%should_stop_user = c_loc(stop_now)
        options%trace_spans = 5000
        call ok(hsort_create(MPI_COMM_WORLD%mpi_val, options, ctx), 'a context')
        call check(hsort_engine_in_use(ctx) == HSORT_ENGINE_HOST, 'the engine')
    end subroutine

    subroutine test_keys()
        real(c_double), allocatable :: keys(:), fewer(:), distinct(:)
        real(c_double) :: selected(2)
        integer(c_int64_t), allocatable :: counts(:), first(:), ids(:)
        integer(c_int64_t) :: i, kept, out_count, positions(2)
        type(hsort_check_result) :: drawn_keys, sorted

        keys = real(drawn([(before + i, i = 0, count - 1)]), c_double)
        positions = [0_c_int64_t, total - 1]
        call ok(hsort_select(ctx, HSORT_F64, HSORT_ASCENDING, keys, count, positions, 2_c_int64_t, selected, c_null_ptr), 'select')
        call inspect(keys, count, drawn_keys, 'drawn keys')
        call check(drawn_keys%first_disorder > 0, 'drawn keys are in order')

        ! All keys to the last rank.
        out_count = merge(total, 0_c_int64_t, rank == ranks - 1)
        allocate (fewer(out_count))
        call ok(hsort_sort_to(ctx, HSORT_F64, HSORT_ASCENDING, keys, count, fewer, out_count, c_null_ptr), 'sort_to')
        call inspect(fewer, out_count, sorted, 'sort_to')
        call check(sorted%first_disorder == -1 .and. same(drawn_keys, sorted), 'sort_to does not sort')
        if (rank == ranks - 1) call check(all(selected == [fewer(1), fewer(total)]), 'select does not select')

        call ok(hsort_sort(ctx, HSORT_F64, HSORT_ASCENDING, keys, count, c_null_ptr), 'sort')
        call inspect(keys, count, sorted, 'sort')
        call check(sorted%first_disorder == -1 .and. same(drawn_keys, sorted), 'sort does not sort')
        call check(steps > 0 .or. rank /= 0, 'progress was not called')

        allocate (distinct(count), counts(count), first(count), ids(count))
        call ok(hsort_unique(ctx, HSORT_F64, keys, count, kept=kept, stream=c_null_ptr), 'unique, which only counts')
        call ok(hsort_unique(ctx, HSORT_F64, keys, count, distinct, kept, counts, first, ids, c_null_ptr), 'unique')
        call check(all(counts(:kept) == 2), 'unique counts')
        call check(all(distinct(2:kept) > distinct(:kept - 1)), 'unique keys')
        call check(all(first(2:kept) - first(:kept - 1) == 2), 'unique positions')
        call check(all(ids(2:) >= ids(:count - 1)), 'unique numbers')
        call MPI_Allreduce(MPI_IN_PLACE, kept, 1, MPI_INTEGER8, MPI_SUM, MPI_COMM_WORLD)
        call check(kept == total / 2, 'unique keeps')
    end subroutine

    ! argsort, gather and scatter; pairs, whose values say where they come from.
    subroutine test_elements()
        integer(c_int64_t), allocatable :: keys(:), sorted(:), gathered(:), back(:), position(:), values(:), values_out(:)
        integer(c_int64_t) :: i
        type(hsort_check_result) :: is, was

        keys = drawn([(before + i, i = 0, count - 1)])
        allocate (position(count), sorted(count), gathered(count), back(count), values_out(count))
        call ok(hsort_argsort(ctx, HSORT_I64, HSORT_DESCENDING, keys, count, position, out_count=count, stream=c_null_ptr), &
            'argsort of positions alone')
        call ok(hsort_argsort(ctx, HSORT_I64, HSORT_DESCENDING, keys, count, position, sorted, count, c_null_ptr), 'argsort')
        call check(all(sorted(2:) <= sorted(:count - 1)), 'argsort does not sort')
        call check(all(drawn(position) == sorted), 'positions are not those of the keys')
        call ok(hsort_gather(ctx, keys, count, 8_c_size_t, position, gathered, count, c_null_ptr), 'gather')
        call check(all(gathered == sorted), 'gather does not gather')
        call ok(hsort_scatter(ctx, gathered, count, 8_c_size_t, position, back, count, c_null_ptr), 'scatter')
        call check(all(back == keys), 'scatter does not bring back')

        values = [(before + i, i = 0, count - 1)]
        was%struct_size = c_sizeof(was)
        is%struct_size = c_sizeof(is)
        call ok(hsort_check_pairs(ctx, HSORT_I64, HSORT_ASCENDING, keys, values, 8_c_size_t, count, stream=c_null_ptr, &
            result=was), 'check_pairs')
        call ok(hsort_sort_pairs_to(ctx, HSORT_I64, HSORT_ASCENDING, keys, values, 8_c_size_t, count, values_out=values_out, &
            out_count=count, stream=c_null_ptr), 'sort_pairs_to of values alone')
        call ok(hsort_sort_pairs(ctx, HSORT_I64, HSORT_ASCENDING, keys, values, 8_c_size_t, count, c_null_ptr), 'sort_pairs')
        call check(all(values == values_out), 'the two sorts of pairs differ')
        call check(all(drawn(values) == keys), 'values are not with their keys')
        call ok(hsort_check_pairs(ctx, HSORT_I64, HSORT_ASCENDING, keys, values, 8_c_size_t, count, values, c_null_ptr, is), &
            'check_pairs')
        call check(is%first_disorder == -1 .and. is%first_unstable == -1, 'pairs are not in order')
        call check(same(is, was) .and. all(is%placed_fingerprint == was%placed_fingerprint), 'pairs are not the same')
        call check(any(is%placed_fingerprint /= is%fingerprint), 'two fingerprints are one')
    end subroutine

    ! By cell, then by energy from the greatest on.
    subroutine test_records()
        type(particle), allocatable :: records(:), out(:)
        integer(c_int32_t), allocatable, target :: cells(:)
        real(c_float), allocatable, target :: energies(:)
        integer(c_int64_t), allocatable :: position(:)
        integer(c_int64_t) :: i
        integer(c_size_t) :: bytes
        type(hsort_field) :: fields(2)
        type(hsort_check_result) :: is, was

        allocate (records(count), out(count), position(count))
        cells = int(mod(drawn([(before + i, i = 0, count - 1)]), 10_c_int64_t), c_int32_t)
        energies = real(drawn([(before + i, i = 0, count - 1)]), c_float)
        records = [(particle(cells(i + 1), energies(i + 1), before + i), i = 0, count - 1)]
        bytes = c_sizeof(records(1))
        fields = [hsort_field(0, HSORT_I32, HSORT_ASCENDING), hsort_field(4, HSORT_F32, HSORT_DESCENDING)]
        was%struct_size = c_sizeof(was)
        is%struct_size = c_sizeof(is)
        call ok(hsort_check_records(ctx, records, bytes, fields, 2_c_int, count, stream=c_null_ptr, result=was), 'check_records')
        call ok(hsort_sort_records_to(ctx, records, bytes, fields, 2_c_int, count, out, count, c_null_ptr), 'sort_records_to')
        call ok(hsort_sort_records(ctx, records, bytes, fields, 2_c_int, count, c_null_ptr), 'sort_records')
        call check(all(records%id == out%id), 'the two sorts of records differ')
        call ok(hsort_check_records(ctx, out, bytes, fields, 2_c_int, count, out%id, c_null_ptr, is), 'check_records')
        call check(is%first_disorder == -1 .and. is%first_unstable == -1 .and. same(is, was), 'records are not in order')
        call check(all(out(2:)%cell >= out(:count - 1)%cell), 'cells are not in order')

        fields%offset = 0
        call ok(hsort_argsort_columns(ctx, [c_loc(cells), c_loc(energies)], fields, 2_c_int, count, position, count, c_null_ptr), &
            'argsort_columns')
        call check(all(position == out%id), 'columns and records are in another order')
    end subroutine

    subroutine test_reports()
        type(hsort_stats) :: stats
        type(hsort_rank_info), allocatable :: infos(:)
        type(hsort_path_speed), allocatable :: speeds(:)
        type(hsort_rates) :: rates
        type(hsort_plan_result) :: plan
        integer(c_size_t) :: bytes
        integer(c_int64_t) :: spans
        logical :: is_there

        call ok(hsort_write_trace(ctx, 'trace.json'//c_null_char, spans), 'trace')
        inquire (file='trace.json', exist=is_there)
        call check(spans > 0 .and. (is_there .or. rank > 0), 'no trace was written')
        stats%struct_size = c_sizeof(stats)
        call ok(hsort_get_stats(ctx, stats), 'statistics')
        call check(stats%keys == total .and. stats%passes == 1 .and. stats%runs == 0, 'statistics count')
        call check(sum(stats%paths%moved_bytes) == stats%moved_bytes, 'statistics of paths')
        call check(stats%total_seconds > 0 .and. stats%seconds(HSORT_PHASE_LOCAL_SORT + 1) > 0, 'statistics of time')
        allocate (infos(ranks), speeds(ranks))
        call ok(hsort_topology(ctx, infos, c_sizeof(infos(1))), 'topology')
        call check(hsort_text(infos(1)%host) /= '' .and. all(infos%cores > 0) .and. all(infos%gpu_index == -1), 'topology says')
        call ok(hsort_measure_paths(ctx, speeds, c_sizeof(speeds(1))), 'measure_paths')
        call check(ranks == 1 .or. speeds(mod(rank + 1, ranks) + 1)%bytes_per_second > 0, 'no path was measured')
        call check(hsort_path(ctx, rank) == HSORT_TRANSPORT_AUTO, 'a path to oneself')
        call check(ranks == 1 .or. hsort_path(ctx, mod(rank + 1, ranks)) /= HSORT_TRANSPORT_AUTO, 'no path')
        call check(hsort_exchange_in_use(ctx) >= HSORT_EXCHANGE_AUTO, 'the exchange')
        call check(hsort_mpi_takes_device_pointers(ctx) == -1, 'device pointers without a GPU')
        call ok(hsort_workspace(ctx, HSORT_F64, count, bytes), 'workspace')
        call check(bytes >= 8 * count, 'the workspace is too small')
        call ok(hsort_host_workspace(ctx, HSORT_F64, count, bytes), 'host workspace')
        call check(bytes == 0, 'few keys take two passes')

        call check(hsort_rates_init(rates, c_sizeof(rates), HSORT_ENGINE_CUDA, HSORT_TRANSPORT_IPC) == HSORT_OK, 'rates')
        rates%value(HSORT_RATE_SORT_8 + 1) = 1e9_c_double
        rates%source(HSORT_RATE_SORT_8 + 1) = HSORT_RATE_GIVEN
        plan%struct_size = c_sizeof(plan)
        call check(hsort_plan(rates, 8_c_int, 4_c_int, HSORT_F64, 8000000000_c_int64_t, plan) == HSORT_OK, 'a plan')
        call check(plan%shard_capacity == 1000000000 .and. plan%shard_bytes == 8e9_c_double .and. plan%passes == 1, 'a plan says')
        call check(plan%direct%seconds(HSORT_PHASE_LOCAL_SORT + 1) > 0.5_c_double, 'a plan does not use the rate')
        call check(plan%counted%total_seconds == 0, 'a plan counts keys of 8 bytes')
    end subroutine

    ! Asked to stop, all ranks return HSORT_STOPPED and say who asked. A wrong argument has a text too.
    subroutine test_stop()
        integer(c_int64_t), allocatable :: keys(:)
        integer(c_int64_t) :: i
        integer(c_int) :: status

        keys = drawn([(before + i, i = 0, count - 1)])
        stop_now = rank == ranks - 1
        status = hsort_sort(ctx, HSORT_I64, HSORT_ASCENDING, keys, count, c_null_ptr)
        call check(status == HSORT_STOPPED, 'a sort that is to stop: '//hsort_strerror(status))
        stop_now = .false.
        call ok(hsort_sort(ctx, HSORT_I64, HSORT_ASCENDING, keys, count, c_null_ptr), 'the sort after a stop')
        status = hsort_sort(ctx, 99_c_int, HSORT_ASCENDING, keys, count, c_null_ptr)
        call check(status == HSORT_ARGUMENT .and. index(hsort_last_error(ctx), 'type') > 0, &
            'an unknown type: '//hsort_last_error(ctx))
    end subroutine

    subroutine count_steps(user, phase, done, total_steps) bind(c)
        type(c_ptr), value :: user, phase
        integer(c_int64_t), value :: done, total_steps
        integer, pointer :: counter
        call c_f_pointer(user, counter)
        if (hsort_string(phase) /= '' .and. done <= total_steps) counter = counter + 1
    end subroutine

    integer(c_int) function should_stop(user) bind(c)
        type(c_ptr), value :: user
        logical, pointer :: wanted
        call c_f_pointer(user, wanted)
        should_stop = merge(1_c_int, 0_c_int, wanted)
    end function
end program
