/* What reading (file.c) and writing (file_out.c) key files share. */
#ifndef FILE_INTERNAL_H
#define FILE_INTERNAL_H

#include "file.h"

/* Most bytes of one pread or pwrite; Linux itself moves at most 0x7ffff000 in a call. */
enum { FILE_PIECE_BYTES = 64 << 20 };

/* `format`, with FILE_AUTO decided by the name of the file. Not collective. */
enum file_format file_format_resolve(const char *path, enum file_format format);

/* HSORT_INTERNAL unless keys first .. first + count - 1 lie within `total`. Not collective. */
hsort_status file_range_check(const char *path, int64_t total, int64_t first, int64_t count);

#endif
