! hypersort from Fortran 2018: the functions of hypersort.h under their own names, with the same arguments in the same order.
! hypersort.h says what they do. Compile this file with your program, because module files differ between compilers:
!
!     mpifort -c hypersort.f90 && mpifort program.f90 hypersort.o -lhypersort
!
!     use mpi_f08                                         ! or: use mpi
!     use hypersort
!     type(c_ptr) :: ctx
!     integer(c_int) :: status
!     status = hsort_create(MPI_COMM_WORLD%mpi_val, ctx=ctx)         ! of the module mpi: MPI_COMM_WORLD
!     status = hsort_sort(ctx, HSORT_F64, HSORT_ASCENDING, keys, count, c_null_ptr)
!     call hsort_destroy(ctx)
!
! What differs from C
!   communicator  an integer: hsort_create() is hsort_create_f() of C
!   arrays        of any type and rank, passed as they are; if they are not contiguous, the compiler copies them. Arrays that may be
!                 NULL in C are optional: leave them out, and pass what follows by name. c_f_pointer() makes an array of GPU memory
!   indices       global positions and ranks count from 0, as in C
!   stream        a cudaStream_t as type(c_ptr); c_null_ptr is the default stream, or host memory
!   structs       types of the same name; set struct_size to c_sizeof() of the variable
!   texts         character strings; "" where C has NULL
module hypersort
    use, intrinsic :: iso_c_binding
    implicit none
    public

    enum, bind(c) ! hsort_status
        enumerator :: HSORT_OK = 0, HSORT_STOPPED, HSORT_MISMATCH, HSORT_ARGUMENT, HSORT_FORMAT, HSORT_IO, HSORT_NO_DEVICE
        enumerator :: HSORT_LAUNCH, HSORT_DEVICE_MEMORY, HSORT_HOST_MEMORY, HSORT_CUDA, HSORT_MPI, HSORT_INTERNAL
    end enum
    enum, bind(c) ! hsort_type
        enumerator :: HSORT_U32 = 0, HSORT_I32, HSORT_F32, HSORT_U64, HSORT_I64, HSORT_F64, HSORT_U128
        enumerator :: HSORT_U8, HSORT_I8, HSORT_U16, HSORT_I16, HSORT_F16, HSORT_BF16
    end enum
    enum, bind(c)
        enumerator :: HSORT_ASCENDING = 0, HSORT_DESCENDING
    end enum
    enum, bind(c)
        enumerator :: HSORT_ENGINE_AUTO = 0, HSORT_ENGINE_HOST, HSORT_ENGINE_CUDA
    end enum
    enum, bind(c)
        enumerator :: HSORT_EXCHANGE_AUTO = 0, HSORT_EXCHANGE_BITONIC, HSORT_EXCHANGE_DIRECT, HSORT_EXCHANGE_PARTITION
    end enum
    enum, bind(c)
        enumerator :: HSORT_TRANSPORT_AUTO = 0, HSORT_TRANSPORT_STAGED, HSORT_TRANSPORT_MPI, HSORT_TRANSPORT_IPC
    end enum
    enum, bind(c)
        enumerator :: HSORT_BINDING_AUTO = 0, HSORT_BINDING_NONE
    end enum
    enum, bind(c)
        enumerator :: HSORT_CHOICE_AUTO = 0, HSORT_CHOICE_OFF, HSORT_CHOICE_ON
    end enum
    enum, bind(c) ! hsort_phase. In arrays by phase, transport or rate, the index is the number plus 1
        enumerator :: HSORT_PHASE_H2D = 0, HSORT_PHASE_LOCAL_SORT, HSORT_PHASE_EXCHANGE, HSORT_PHASE_MERGE, HSORT_PHASE_D2H
        enumerator :: HSORT_PHASE_GATHER
    end enum
    enum, bind(c)
        enumerator :: HSORT_RATE_SORT_4 = 0, HSORT_RATE_SORT_8, HSORT_RATE_MERGE, HSORT_RATE_HOST_COPY, HSORT_RATE_STEP
        enumerator :: HSORT_RATE_MESSAGE, HSORT_RATE_LINK_LATENCY, HSORT_RATE_LINK, HSORT_RATE_NETWORK_LATENCY
        enumerator :: HSORT_RATE_NETWORK
    end enum
    enum, bind(c)
        enumerator :: HSORT_RATE_DEFAULT = 0, HSORT_RATE_GIVEN
    end enum
    integer(c_int), parameter :: HSORT_PHASES_MAX = 8, HSORT_TRANSPORTS_MAX = 8, HSORT_RATES_MAX = 16
    integer(c_int), parameter :: HSORT_FIELDS_MAX = 8, HSORT_KEY_BYTES_MAX = 16

    type, bind(c) :: hsort_options
        integer(c_size_t) :: struct_size
        integer(c_int) :: engine
        integer(c_int) :: local_rung
        integer(c_int) :: exchange
        integer(c_int) :: transport
        integer(c_int) :: peer_memory
        integer(c_int) :: shared_memory
        integer(c_int) :: mpi_device_pointers
        integer(c_int) :: binding
        integer(c_int) :: threads
        integer(c_size_t) :: chunk_bytes
        integer(c_size_t) :: device_memory_limit
        type(c_funptr) :: progress ! c_funloc() of an hsort_progress_fn
        type(c_ptr) :: progress_user
        type(c_funptr) :: should_stop ! c_funloc() of an hsort_should_stop_fn
        type(c_ptr) :: should_stop_user
        integer(c_int) :: overwrite_input
        integer(c_int64_t) :: trace_spans
        integer(c_int) :: keep_host_memory
    end type

    type, bind(c) :: hsort_check_result
        integer(c_size_t) :: struct_size
        integer(c_int64_t) :: count
        integer(c_int64_t) :: first_disorder
        integer(c_int64_t) :: fingerprint(2)
        integer(c_int64_t) :: first_unstable
        integer(c_int64_t) :: placed_fingerprint(2)
    end type

    type, bind(c) :: hsort_field
        integer(c_size_t) :: offset = 0 ! the first byte of the record is 0
        integer(c_int) :: type = HSORT_U32
        integer(c_int) :: order = HSORT_ASCENDING
        integer(c_int) :: bytes = 0
        integer(c_int) :: big_endian = 0
    end type

    type, bind(c) :: hsort_path_stats
        integer(c_int64_t) :: pairs
        integer(c_int64_t) :: moved_bytes
        integer(c_int64_t) :: moved_bytes_largest
        real(c_double) :: seconds
    end type

    type, bind(c) :: hsort_stats
        integer(c_size_t) :: struct_size
        integer(c_int64_t) :: keys
        integer(c_int64_t) :: moved_bytes
        integer(c_int) :: rounds
        real(c_double) :: seconds(HSORT_PHASES_MAX)
        real(c_double) :: total_seconds
        type(hsort_path_stats) :: paths(HSORT_TRANSPORTS_MAX)
        integer(c_int64_t) :: passes
        integer(c_int64_t) :: runs
        integer(c_int64_t) :: segments
        integer(c_int64_t) :: crossed_bytes
        integer(c_int64_t) :: crossed_plain_bytes
        integer(c_int64_t) :: paths_crossed_bytes(HSORT_TRANSPORTS_MAX)
        integer(c_int) :: engine
    end type

    type, bind(c) :: hsort_rank_info
        character(c_char) :: host(64) ! hsort_text() makes a string of it
        character(c_char) :: gpu_name(64)
        character(c_char) :: gpu_uuid(48)
        character(c_char) :: gpu_pci(16)
        integer(c_int64_t) :: gpu_bytes
        integer(c_int) :: gpu_index
        integer(c_int) :: gpu_sharers
        integer(c_int) :: numa_node
        integer(c_int) :: cores
        character(c_char) :: cpus(64)
        integer(c_int) :: bound_by_launcher
    end type

    type, bind(c) :: hsort_path_speed
        real(c_double) :: bytes_per_second
        real(c_double) :: latency
    end type

    type, bind(c) :: hsort_rates
        integer(c_size_t) :: struct_size
        integer(c_int) :: engine
        integer(c_int) :: link
        real(c_double) :: value(HSORT_RATES_MAX)
        integer(c_int) :: source(HSORT_RATES_MAX)
        real(c_double) :: engine_bytes
    end type

    type, bind(c) :: hsort_plan_exchange
        real(c_double) :: messages
        real(c_double) :: messages_all
        real(c_double) :: moved_bytes_largest
        real(c_double) :: moved_bytes
        real(c_double) :: seconds(HSORT_PHASES_MAX)
        real(c_double) :: total_seconds
    end type

    type, bind(c) :: hsort_plan_crossing
        real(c_double) :: bytes
        real(c_double) :: plain_bytes
    end type

    type, bind(c) :: hsort_plan_result
        integer(c_size_t) :: struct_size
        integer(c_int64_t) :: shard_capacity
        real(c_double) :: shard_bytes
        real(c_double) :: engine_bytes
        real(c_double) :: caller_bytes
        integer(c_int) :: exchange
        type(hsort_plan_exchange) :: bitonic
        type(hsort_plan_exchange) :: direct
        integer(c_int) :: can_partition
        type(hsort_plan_exchange) :: partition
        integer(c_int64_t) :: passes
        integer(c_int64_t) :: runs
        integer(c_int64_t) :: segments
        real(c_double) :: host_bytes
        type(hsort_plan_exchange) :: two_passes
        type(hsort_plan_exchange) :: counted
        type(hsort_plan_crossing) :: bitonic_crossing
        type(hsort_plan_crossing) :: direct_crossing
        type(hsort_plan_crossing) :: partition_crossing
        type(hsort_plan_crossing) :: two_passes_crossing
    end type

    abstract interface
        subroutine hsort_progress_fn(user, phase, done, total) bind(c)
            import
            type(c_ptr), value :: user
            type(c_ptr), value :: phase ! a C string
            integer(c_int64_t), value :: done, total
        end subroutine
        integer(c_int) function hsort_should_stop_fn(user) bind(c)
            import
            type(c_ptr), value :: user
        end function
    end interface

    ! ---- Context, options, plans
    interface
        integer(c_int) function hsort_version() bind(c, name='hsort_version')
            import
        end function

        integer(c_int) function hsort_exit_code(status) bind(c, name='hsort_exit_code')
            import
            integer(c_int), value :: status
        end function

        integer(c_size_t) function hsort_type_bytes(type) bind(c, name='hsort_type_bytes')
            import
            integer(c_int), value :: type
        end function

        integer(c_int) function hsort_options_init(options, struct_size) bind(c, name='hsort_options_init')
            import
            type(hsort_options), intent(out) :: options
            integer(c_size_t), value :: struct_size
        end function

        integer(c_int) function hsort_create(comm, options, ctx) bind(c, name='hsort_create_f')
            import
            integer(c_int), value :: comm
            type(hsort_options), intent(in), optional :: options
            type(c_ptr), intent(out) :: ctx
        end function

        subroutine hsort_destroy(ctx) bind(c, name='hsort_destroy')
            import
            type(c_ptr), intent(inout) :: ctx
        end subroutine

        integer(c_int) function hsort_rates_init(rates, struct_size, engine, link) bind(c, name='hsort_rates_init')
            import
            type(hsort_rates), intent(out) :: rates
            integer(c_size_t), value :: struct_size
            integer(c_int), value :: engine, link
        end function

        integer(c_int) function hsort_plan(rates, ranks, ranks_per_node, type, count, plan) bind(c, name='hsort_plan')
            import
            type(hsort_rates), intent(in) :: rates
            integer(c_int), value :: ranks, ranks_per_node, type
            integer(c_int64_t), value :: count
            type(hsort_plan_result), intent(inout) :: plan
        end function

        integer(c_int) function hsort_workspace(ctx, type, count, bytes) bind(c, name='hsort_workspace')
            import
            type(c_ptr), value :: ctx
            integer(c_int), value :: type
            integer(c_int64_t), value :: count
            integer(c_size_t), intent(out) :: bytes
        end function

        integer(c_int) function hsort_host_workspace(ctx, type, count, bytes) bind(c, name='hsort_host_workspace')
            import
            type(c_ptr), value :: ctx
            integer(c_int), value :: type
            integer(c_int64_t), value :: count
            integer(c_size_t), intent(out) :: bytes
        end function
    end interface

    ! ---- Keys
    interface
        integer(c_int) function hsort_sort(ctx, type, order, keys, count, stream) bind(c, name='hsort_sort')
            import
            type(c_ptr), value :: ctx, stream
            integer(c_int), value :: type, order
            type(*), intent(inout) :: keys(*)
            integer(c_int64_t), value :: count
        end function

        integer(c_int) function hsort_sort_to(ctx, type, order, in, count, out, out_count, stream) bind(c, name='hsort_sort_to')
            import
            type(c_ptr), value :: ctx, stream
            integer(c_int), value :: type, order
            type(*), intent(in) :: in(*)
            type(*), intent(inout) :: out(*)
            integer(c_int64_t), value :: count, out_count
        end function

        integer(c_int) function hsort_check(ctx, type, order, keys, count, stream, result) bind(c, name='hsort_check')
            import
            type(c_ptr), value :: ctx, stream
            integer(c_int), value :: type, order
            type(*), intent(in) :: keys(*)
            integer(c_int64_t), value :: count
            type(hsort_check_result), intent(inout) :: result
        end function

        integer(c_int) function hsort_select(ctx, type, order, keys, count, positions, wanted, selected, stream) &
            bind(c, name='hsort_select')
            import
            type(c_ptr), value :: ctx, stream
            integer(c_int), value :: type, order
            type(*), intent(in) :: keys(*)
            integer(c_int64_t), value :: count, wanted
            integer(c_int64_t), intent(in) :: positions(*)
            type(*), intent(inout) :: selected(*)
        end function

        integer(c_int) function hsort_unique(ctx, type, keys, count, keys_out, kept, counts, first, ids, stream) &
            bind(c, name='hsort_unique')
            import
            type(c_ptr), value :: ctx, stream
            integer(c_int), value :: type
            type(*), intent(in) :: keys(*)
            integer(c_int64_t), value :: count
            type(*), intent(inout), optional :: keys_out(*)
            integer(c_int64_t), intent(out) :: kept
            integer(c_int64_t), intent(inout), optional :: counts(*), first(*), ids(*)
        end function
    end interface

    ! ---- What travels with keys
    interface
        integer(c_int) function hsort_argsort(ctx, type, order, keys, count, index, keys_out, out_count, stream) &
            bind(c, name='hsort_argsort')
            import
            type(c_ptr), value :: ctx, stream
            integer(c_int), value :: type, order
            type(*), intent(in) :: keys(*)
            integer(c_int64_t), value :: count, out_count
            integer(c_int64_t), intent(inout) :: index(*)
            type(*), intent(inout), optional :: keys_out(*)
        end function

        integer(c_int) function hsort_argsort_columns(ctx, columns, fields, field_count, count, index, out_count, stream) &
            bind(c, name='hsort_argsort_columns')
            import
            type(c_ptr), value :: ctx, stream
            type(c_ptr), intent(in) :: columns(*) ! c_loc() of each
            type(hsort_field), intent(in) :: fields(*)
            integer(c_int), value :: field_count
            integer(c_int64_t), value :: count, out_count
            integer(c_int64_t), intent(inout) :: index(*)
        end function

        integer(c_int) function hsort_sort_pairs(ctx, type, order, keys, values, value_bytes, count, stream) &
            bind(c, name='hsort_sort_pairs')
            import
            type(c_ptr), value :: ctx, stream
            integer(c_int), value :: type, order
            type(*), intent(inout) :: keys(*), values(*)
            integer(c_size_t), value :: value_bytes
            integer(c_int64_t), value :: count
        end function

        integer(c_int) function hsort_sort_pairs_to(ctx, type, order, keys, values, value_bytes, count, keys_out, values_out, &
            out_count, stream) bind(c, name='hsort_sort_pairs_to')
            import
            type(c_ptr), value :: ctx, stream
            integer(c_int), value :: type, order
            type(*), intent(in) :: keys(*), values(*)
            integer(c_size_t), value :: value_bytes
            integer(c_int64_t), value :: count, out_count
            type(*), intent(inout), optional :: keys_out(*)
            type(*), intent(inout) :: values_out(*)
        end function

        integer(c_int) function hsort_sort_records(ctx, records, record_bytes, fields, field_count, count, stream) &
            bind(c, name='hsort_sort_records')
            import
            type(c_ptr), value :: ctx, stream
            type(*), intent(inout) :: records(*)
            integer(c_size_t), value :: record_bytes
            type(hsort_field), intent(in) :: fields(*)
            integer(c_int), value :: field_count
            integer(c_int64_t), value :: count
        end function

        integer(c_int) function hsort_sort_records_to(ctx, records, record_bytes, fields, field_count, count, out, out_count, &
            stream) bind(c, name='hsort_sort_records_to')
            import
            type(c_ptr), value :: ctx, stream
            type(*), intent(in) :: records(*)
            integer(c_size_t), value :: record_bytes
            type(hsort_field), intent(in) :: fields(*)
            integer(c_int), value :: field_count
            integer(c_int64_t), value :: count, out_count
            type(*), intent(inout) :: out(*)
        end function

        integer(c_int) function hsort_gather(ctx, in, count, element_bytes, index, out, out_count, stream) &
            bind(c, name='hsort_gather')
            import
            type(c_ptr), value :: ctx, stream
            type(*), intent(in) :: in(*)
            integer(c_int64_t), value :: count, out_count
            integer(c_size_t), value :: element_bytes
            integer(c_int64_t), intent(in) :: index(*)
            type(*), intent(inout) :: out(*)
        end function

        integer(c_int) function hsort_scatter(ctx, in, count, element_bytes, index, out, out_count, stream) &
            bind(c, name='hsort_scatter')
            import
            type(c_ptr), value :: ctx, stream
            type(*), intent(in) :: in(*)
            integer(c_int64_t), value :: count, out_count
            integer(c_size_t), value :: element_bytes
            integer(c_int64_t), intent(in) :: index(*)
            type(*), intent(inout) :: out(*)
        end function

        integer(c_int) function hsort_check_pairs(ctx, type, order, keys, values, value_bytes, count, index, stream, result) &
            bind(c, name='hsort_check_pairs')
            import
            type(c_ptr), value :: ctx, stream
            integer(c_int), value :: type, order
            type(*), intent(in) :: keys(*), values(*)
            integer(c_size_t), value :: value_bytes
            integer(c_int64_t), value :: count
            integer(c_int64_t), intent(in), optional :: index(*)
            type(hsort_check_result), intent(inout) :: result
        end function

        integer(c_int) function hsort_check_records(ctx, records, record_bytes, fields, field_count, count, index, stream, result) &
            bind(c, name='hsort_check_records')
            import
            type(c_ptr), value :: ctx, stream
            type(*), intent(in) :: records(*)
            integer(c_size_t), value :: record_bytes
            type(hsort_field), intent(in) :: fields(*)
            integer(c_int), value :: field_count
            integer(c_int64_t), value :: count
            integer(c_int64_t), intent(in), optional :: index(*)
            type(hsort_check_result), intent(inout) :: result
        end function
    end interface

    ! ---- What happened, and where
    interface
        integer(c_int) function hsort_get_stats(ctx, stats) bind(c, name='hsort_get_stats')
            import
            type(c_ptr), value :: ctx
            type(hsort_stats), intent(inout) :: stats
        end function

        ! path: ends with c_null_char
        integer(c_int) function hsort_write_trace(ctx, path, spans, lost) bind(c, name='hsort_write_trace')
            import
            type(c_ptr), value :: ctx
            character(c_char), intent(in) :: path(*)
            integer(c_int64_t), intent(out), optional :: spans, lost
        end function

        integer(c_int) function hsort_topology(ctx, infos, info_size) bind(c, name='hsort_topology')
            import
            type(c_ptr), value :: ctx
            type(hsort_rank_info), intent(inout) :: infos(*)
            integer(c_size_t), value :: info_size
        end function

        integer(c_int) function hsort_engine_in_use(ctx) bind(c, name='hsort_engine_in_use')
            import
            type(c_ptr), value :: ctx
        end function

        integer(c_int) function hsort_exchange_in_use(ctx) bind(c, name='hsort_exchange_in_use')
            import
            type(c_ptr), value :: ctx
        end function

        integer(c_int) function hsort_path(ctx, peer) bind(c, name='hsort_path')
            import
            type(c_ptr), value :: ctx
            integer(c_int), value :: peer
        end function

        integer(c_int) function hsort_measure_paths(ctx, speeds, speed_size) bind(c, name='hsort_measure_paths')
            import
            type(c_ptr), value :: ctx
            type(hsort_path_speed), intent(inout) :: speeds(*)
            integer(c_size_t), value :: speed_size
        end function

        integer(c_int) function hsort_mpi_takes_device_pointers(ctx) bind(c, name='hsort_mpi_takes_device_pointers')
            import
            type(c_ptr), value :: ctx
        end function
    end interface

    ! ---- Texts, as C returns them: the functions below make strings of them
    interface
        type(c_ptr) function hsort_c_build_info() bind(c, name='hsort_build_info')
            import
        end function
        type(c_ptr) function hsort_c_last_error(ctx) bind(c, name='hsort_last_error')
            import
            type(c_ptr), value :: ctx
        end function
        type(c_ptr) function hsort_c_strerror(status) bind(c, name='hsort_strerror')
            import
            integer(c_int), value :: status
        end function
        type(c_ptr) function hsort_c_type_name(type) bind(c, name='hsort_type_name')
            import
            integer(c_int), value :: type
        end function
        type(c_ptr) function hsort_c_engine_name(engine) bind(c, name='hsort_engine_name')
            import
            integer(c_int), value :: engine
        end function
        type(c_ptr) function hsort_c_exchange_name(exchange) bind(c, name='hsort_exchange_name')
            import
            integer(c_int), value :: exchange
        end function
        type(c_ptr) function hsort_c_transport_name(transport) bind(c, name='hsort_transport_name')
            import
            integer(c_int), value :: transport
        end function
        integer(c_size_t) function hsort_c_strlen(string) bind(c, name='strlen')
            import
            type(c_ptr), value :: string
        end function
    end interface

contains

    ! The text that an array of characters in a struct holds, up to its end.
    function hsort_text(characters) result(text)
        character(c_char), intent(in) :: characters(:)
        character(:), allocatable :: text
        integer :: i

        text = ''
        do i = 1, size(characters)
            if (characters(i) == c_null_char) exit
            text = text//characters(i)
        end do
    end function

    ! A C string, such as the phase that an hsort_progress_fn gets; '' for c_null_ptr.
    function hsort_string(pointer) result(text)
        type(c_ptr), intent(in) :: pointer
        character(:), allocatable :: text
        character(c_char), pointer :: characters(:)

        text = ''
        if (.not. c_associated(pointer)) return
        call c_f_pointer(pointer, characters, [hsort_c_strlen(pointer) + 1])
        text = hsort_text(characters)
    end function

    function hsort_build_info() result(text)
        character(:), allocatable :: text
        text = hsort_string(hsort_c_build_info())
    end function

    ! With c_null_ptr, which a failed hsort_create() leaves in ctx: the error of the last hsort_create().
    function hsort_last_error(ctx) result(text)
        type(c_ptr), intent(in) :: ctx
        character(:), allocatable :: text
        text = hsort_string(hsort_c_last_error(ctx))
    end function

    function hsort_strerror(status) result(text)
        integer(c_int), intent(in) :: status
        character(:), allocatable :: text
        text = hsort_string(hsort_c_strerror(status))
    end function

    function hsort_type_name(type) result(text)
        integer(c_int), intent(in) :: type
        character(:), allocatable :: text
        text = hsort_string(hsort_c_type_name(type))
    end function

    function hsort_engine_name(engine) result(text)
        integer(c_int), intent(in) :: engine
        character(:), allocatable :: text
        text = hsort_string(hsort_c_engine_name(engine))
    end function

    function hsort_exchange_name(exchange) result(text)
        integer(c_int), intent(in) :: exchange
        character(:), allocatable :: text
        text = hsort_string(hsort_c_exchange_name(exchange))
    end function

    function hsort_transport_name(transport) result(text)
        integer(c_int), intent(in) :: transport
        character(:), allocatable :: text
        text = hsort_string(hsort_c_transport_name(transport))
    end function
end module
