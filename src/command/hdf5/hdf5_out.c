/* All ranks write rows in the same calls of HDF5, because chunks that are packed must be written so: HDF5 then hands the parts of a chunk
 * to one rank, which packs it. Below HDF5 each rank writes its own bytes by itself: its rows lie one behind the other, so MPI-IO's
 * gathering of pieces at some ranks would only move them once more, and it hangs if the disk of one of these ranks fails.
 *
 *     rank 0  rows 0 1 2 | 3      chunk 0-3 is packed by one of both     H5Dwrite, together
 *     rank 1  rows       | 4 5    chunk 4-7                              MPI_File_write_at, each
 *
 * Rejected: ranks that write the file in turns, which chunks that two ranks share do not allow. */
#include "src/command/hdf5/hdf5_out.h"
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include "kernels/base/lesser.h"
#include "src/command/hdf5/hdf5_error.h"
#include "src/command/hdf5/hdf5_skeleton.h"
#include "src/command/launch.h"
#include "src/command/report.h"
#include "src/command/stop.h"
#include "src/files/file_internal.h"

/* ---- Creating ------------------------------------------------------------------------------------------------- */

/* Make the file, on rank 0. All space that is known to be needed is taken at once, so that a full disk shows before the work. */
static hsort_status make_file(const struct hdf5_in *in, const struct hdf5_out *out, struct hdf5_text *left,
                              struct progress *progress)
{
    struct stat facts;
    TRY(hdf5_make_skeleton(in, &out->place, &out->file, left, progress));
    if (fstat(out->file.fd, &facts) != 0)
        return status_fail(HSORT_IO, "%s: cannot be looked at: %s", out->file.path, strerror(errno));
    return file_reserve(out->file.path, out->file.fd, facts.st_size);
}

/* Open one file on all ranks together. */
static hsort_status open_on_all_ranks(struct hdf5_out *out)
{
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fapl_mpio(access, out->comm->world, MPI_INFO_NULL);
    out->handle = H5Fopen(out->file.temporary, H5F_ACC_RDWR, access);
    H5Pclose(access);
    return out->handle < 0 ? hdf5_fail(HSORT_IO, "%s: cannot be opened by all ranks together", out->file.path)
                           : HSORT_OK;
}

static hsort_status create_file(struct comm *comm, const struct hdf5_in *in,
                                const struct cli_options *options, struct hdf5_out *out)
{
    *out = (struct hdf5_out){.comm = comm, .in = in, .handle = H5I_INVALID_HID};
    TRY(comm_agree(comm, hdf5_place_parse(options->output, &out->place)));
    const struct npy_element bytes = {.bytes = 1, .dimensions = 1};
    const struct file_target target = {.path = out->place.file,
                                       .format = FILE_RAW,
                                       .element = &bytes,
                                       .input = &in->files,
                                       .direct_io = HSORT_CHOICE_OFF,
                                       .no_clobber = options->no_clobber};
    return file_create(comm, &target, &out->file);
}

hsort_status hdf5_check_out(struct comm *comm, const struct hdf5_in *in, const struct cli_options *options)
{
    struct hdf5_out out;
    TRY(create_file(comm, in, options, &out));
    file_drop(comm, &out.file);
    return HSORT_OK;
}

hsort_status hdf5_create_out(struct comm *comm, const struct hdf5_in *in, const struct cli_options *options,
                             struct hdf5_text *left, struct progress *progress, struct hdf5_out *out)
{
    TRY(create_file(comm, in, options, out));
    out->created = true;
    report_stale(comm, &out->file);
    TRY(comm_agree(comm, comm->rank == 0 ? make_file(in, out, left, progress) : HSORT_OK));
    return launch_agree_late(comm, open_on_all_ranks(out));
}

/* ---- Rows ----------------------------------------------------------------------------------------------------- */

static hsort_status fail_written(const struct hdf5_out *out)
{
    return hdf5_fail(HSORT_IO, "%s: cannot be written%s", out->file.path, hdf5_cause_of_disk(out->file.fd));
}

/* Write one piece of each rank. A rank that has failed takes part with no rows. Errors: this rank's. */
static hsort_status write_dataset_piece(const struct hdf5_out *out, hid_t dataset,
                                        const struct hdf5_column *column, int64_t first, int64_t count,
                                        const void *rows, hid_t transfer)
{
    hid_t in_file, in_memory;
    if (fault_hit(FAULT_APART))
        return status_fail(HSORT_IO, "%s: dataset '%.100s' cannot be written", out->file.path, column->name);
    hsort_status status = HSORT_OK;
    if (fault_hit(FAULT_WRITE))
        status = status_fail(HSORT_IO, "%s: dataset '%.100s' cannot be written: %s", out->file.path,
                             column->name, strerror(ENOSPC));
    hdf5_select_rows(dataset, column, first, status == HSORT_OK ? count : 0, &in_file, &in_memory);
    if (H5Dwrite(dataset, column->type, in_memory, in_file, transfer, rows) < 0 && status == HSORT_OK)
        status = hdf5_fail(HSORT_IO, "%s: dataset '%.100s' cannot be written%s", out->file.path, column->name,
                           hdf5_cause_of_disk(out->file.fd));
    H5Sclose(in_file);
    H5Sclose(in_memory);
    return status;
}

/* Write all pieces, in rounds that every rank takes part in until the last rank is done. */
static hsort_status write_dataset_pieces(struct hdf5_out *out, hid_t dataset,
                                         const struct hdf5_column *column, int64_t first, int64_t count,
                                         const char *rows, struct progress *progress, int64_t *done)
{
    const int64_t piece = hdf5_piece_rows(column), width = (int64_t)column->row_bytes, total = out->in->count;
    const int64_t own = launch_share(total, out->comm->rank + 1, out->comm->size) -
                        launch_share(total, out->comm->rank, out->comm->size);
    const hid_t transfer = H5Pcreate(H5P_DATASET_XFER);
    H5Pset_dxpl_mpio(transfer, H5FD_MPIO_COLLECTIVE);
    H5Pset_dxpl_mpio_collective_opt(transfer, H5FD_MPIO_INDIVIDUAL_IO);
    hsort_status status = HSORT_OK;
    int64_t all_left = 1;
    for (int64_t at = first; all_left > 0 && status == HSORT_OK;) {
        const int64_t border = (at / piece + 1) * piece, end = first + count;
        const int64_t part = (border < end ? border : end) - at;
        stop_hold(FAULT_HOLD_WRITE, "before the next rows are written", NULL);
        status = launch_agree_late(out->comm, write_dataset_piece(out, dataset, column, at, part,
                                                                  rows + (at - first) * width, transfer));
        at += part;
        *done += part * width;
        progress_bytes(progress, "carry", *done, own * (int64_t)out->in->row_bytes,
                       total * (int64_t)out->in->row_bytes);
        if (status == HSORT_OK)
            status = comm_sum(out->comm, end - at, &all_left);
    }
    H5Pclose(transfer);
    return status;
}

hsort_status hdf5_write_rows(struct hdf5_out *out, int column, int64_t first, int64_t count, const void *rows,
                             struct progress *progress, int64_t *done)
{
    const struct hdf5_column *written = &out->in->column[column];
    char path[HDF5_PATH_ROOM];
    if (out->in->count == 0 || written->row_bytes == 0)
        return HSORT_OK;
    hdf5_column_path(out->in, column, &out->place, path);
    const hid_t dataset = H5Dopen2(out->handle, path, H5P_DEFAULT);
    TRY(launch_agree_late(out->comm, dataset < 0
                                         ? hdf5_fail(HSORT_IO, "%s: dataset '%.100s' cannot be opened",
                                                     out->file.path, written->name)
                                         : HSORT_OK));
    // After a failure HDF5 is left as it is: closing takes all ranks, and what failed may fail again.
    TRY(write_dataset_pieces(out, dataset, written, first, count, rows, progress, done));
    return launch_agree_late(out->comm, H5Dclose(dataset) < 0 ? fail_written(out) : HSORT_OK);
}

hsort_status hdf5_finish_rows(struct hdf5_out *out)
{
    const herr_t failed = H5Fclose(out->handle);
    out->handle = H5I_INVALID_HID;
    return launch_agree_late(out->comm, failed < 0 ? fail_written(out) : HSORT_OK);
}

hsort_status hdf5_read_back(const struct hdf5_out *out, int column, int64_t first, int64_t count, void *rows)
{
    char path[HDF5_PATH_ROOM];
    const struct hdf5_column *wanted = &out->in->column[column];
    hdf5_column_path(out->in, column, &out->place, path);
    const hid_t file = H5Fopen(out->file.temporary, H5F_ACC_RDONLY, H5P_DEFAULT);
    const hid_t dataset = file < 0 ? H5I_INVALID_HID : H5Dopen2(file, path, H5P_DEFAULT);
    const hsort_status status =
        dataset < 0
            ? hdf5_fail(HSORT_IO, "%s: dataset '%.100s' cannot be read back", out->file.path, wanted->name)
            : hdf5_read_dataset(dataset, wanted, out->file.path, first, count, rows);
    if (dataset >= 0)
        H5Dclose(dataset);
    if (file >= 0)
        H5Fclose(file);
    return status;
}

hsort_status hdf5_end_out(struct hdf5_out *out, hsort_status status)
{
    return out->created ? launch_commit(out->comm, &out->file, status) : status;
}
