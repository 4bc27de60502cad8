#!/bin/bash
# The rules of the layers that the build cannot check: who includes whom (src -> mpi -> kernels, never back), what the library
# may not do (print, exit, start MPI), what the header must say, and what the shared library exports.
set -euo pipefail

cd "$SOURCE"
failures=0

# fail TEXT [LINES]: count a failure; LINES says where.
fail()
{
    echo "failed: $1"
    if [ -n "${2:-}" ]; then
        printf '%s\n' "$2" | sed 's/^/    /'
    fi
    failures=$((failures + 1))
}

# none TEXT COMMAND...: fail with TEXT and what COMMAND prints, if it prints anything.
none()
{
    local found
    found=$("${@:2}" || true)
    if [ -n "$found" ]; then
        fail "$1" "$found"
    fi
}

sources() { find "$@" -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh'; }

# The code of a file, each line with its place, comments removed.
code()
{
    local file
    for file in "$@"; do
        # -fpreprocessed: only comments go, macros stay as they are written.
        gcc -fpreprocessed -dD -E -x c "$file" 2>/dev/null | grep -v '^# ' | sed "s|^|$file: |"
    done
}

# foreign_includes FOLDER ALLOWED: the includes, by "", of files below FOLDER whose paths do not match ALLOWED, an extended
# regular expression. Every include names a file of the tree by its path from the root.
foreign_includes()
{
    if ! grep -rqE '^ *# *include *"' "$1"; then
        echo "$1: no includes are there; has the folder moved?"
    fi
    grep -rE '^ *# *include *"' "$1" | sed -E 's/^([^:]*):[^"]*"(.*)".*/\1 \2/' | grep -vE " ($2)\$"
}

# Includes of a file that is not there, by its path from the root; the two public headers, and what the build makes, are found
# by their names.
lost_includes()
{
    local file name
    grep -rE '^ *# *include *"' src mpi kernels tests | sed -E 's/^([^:]*):[^"]*"(.*)".*/\1 \2/' | while read -r file name; do
        if [ ! -e "$name" ] && [[ " hypersort.h hypersort_types.h build_info.h " != *" $name "* ]]; then
            echo "$file: $name"
        fi
    done
}

mapfile -t kernel_files < <(sources kernels)
mapfile -t mpi_files < <(sources mpi)
mapfile -t core_files < <(sources src/library)
library_files=("${kernel_files[@]}" "${mpi_files[@]}" "${core_files[@]}")
if [ ${#kernel_files[@]} -lt 3 ] || [ ${#mpi_files[@]} -lt 3 ] || [ ${#core_files[@]} -lt 3 ]; then
    fail "the sources were not found in $SOURCE"
fi

leaves='kernels/base/[a-z_]+\.h'
none "an include does not name a file by its path from the root" lost_includes
none "kernels/base/ includes what is not a leaf" foreign_includes kernels/base "$leaves|hypersort_types\.h"
none "kernels/host/ includes more than the engine's face and the leaves" \
    foreign_includes kernels/host "kernels/(host/[a-z_]+|engine|in_place|numbered_keys|transfer_queue)\.h|$leaves"
none "kernels/cuda/ includes more than itself, the engine's face and the leaves" \
    foreign_includes kernels/cuda "kernels/(cuda/[a-z]+/[a-z0-9_]+\.(h|cuh)|(engine|in_place|numbered_keys|transfer_queue)\.h)|$leaves"
none "kernels/ includes what is above it" foreign_includes kernels 'kernels/.*|hypersort_types\.h'
none "kernels/ includes mpi.h" grep -nE 'include *[<"]mpi\.h' "${kernel_files[@]}"
none "mpi/ includes more than the engine's face and the leaves" foreign_includes mpi "mpi/.*|kernels/(engine|in_place|numbered_keys|spare_memory)\.h|$leaves"
none "mpi/comm/ includes what is above it" foreign_includes mpi/comm "mpi/comm/.*|kernels/.*"
none "mpi/transport/ includes what is above it" foreign_includes mpi/transport "mpi/(comm|transport)/.*|kernels/.*"
none "mpi/ launches kernels or calls CUDA" grep -nE '<<<|cuda_runtime|\bcuda[A-Z][A-Za-z]*\(' "${mpi_files[@]}"
none "src/library/ includes what belongs to the command" \
    foreign_includes src/library 'src/library/.*|mpi/.*|kernels/.*|hypersort\.h|build_info\.h'
none "src/files/ includes what is above it" foreign_includes src/files 'src/files/.*|mpi/comm/comm\.h|kernels/.*|hypersort\.h'
none "src/checkpoint/ includes what is above it" \
    foreign_includes src/checkpoint 'src/(files|checkpoint)/.*|src/library/run_store\.h|mpi/comm/comm\.h|kernels/.*|hypersort\.h'
# The command is a user of the library, and of what the library has and does not offer: of that only these.
none "src/command/ includes more of the library's inside than it may" foreign_includes src/command \
    'src/(command|files|checkpoint)/.*|src/library/(verify|key_stream|unique_codes|element_columns|disk_forecast|plan_elements|trace_file)\.h|mpi/comm/(comm|node_memory)\.h|kernels/engine\.h|hypersort\.h|'"$leaves"
none "src/ launches kernels or calls CUDA" grep -rnE '<<<|cuda_runtime|\bcuda[A-Z][A-Za-z]*\(' src

# What belongs to the program that calls a library.
manners='(^|[^A-Za-z0-9_])(v?printf|puts|putchar|perror|exit|_exit|_Exit|quick_exit|abort|assert'
manners+='|MPI_Abort|MPI_Init|MPI_Init_thread|MPI_Finalize) *\(|fprintf *\( *std(out|err)|fput[cs] *\([^;]*std(out|err)'
polite() { code "${library_files[@]}" | grep -E "$manners"; }
none "the library prints, exits, aborts, or starts or ends MPI" polite

# The program that calls may have set a locale, by which these write and read a decimal comma.
local_numbers() { code "${library_files[@]}" | grep -E '"[^"]*%[-+#0-9.*]*[aAeEfFgG]|(^|[^A-Za-z0-9_])(strto(d|f|ld)|atof) *\('; }
none "the library writes or reads fractions as the caller's locale has them" local_numbers

long_files()
{
    { sources kernels mpi src tests; find jobs tests -name '*.sh'; } | xargs wc -l | awk '$2 != "total" && $1 > 600'
}
none "files of more than 600 lines" long_files

wide_lines() { awk 'length > 110 { print FILENAME ":" FNR ": " $0 }' src/hypersort.h kernels/base/hypersort_types.h; }
none "a public header has lines of more than 110 columns" wide_lines

# The comment above each function, up to the blank line before it, says whether it is collective.
undocumented()
{
    awk '/^$/ { comment = "" }
         { comment = comment $0 }
         /^HSORT_API / && comment !~ /ollective/ { print FILENAME ":" FNR ": " $0 }' src/hypersort.h
}
none "public functions that do not say whether they are collective" undocumented

library=$BUILD/libhypersort.so
exports() { nm -D --defined-only "$library" | awk '$3 !~ /^hsort_/ { print $3 }' | grep -v '^__odr_asan'; }
if [ "$(nm -D --defined-only "$library" 2>&1 | grep -c ' hsort_')" -lt 10 ]; then
    fail "$library does not export the library's functions"
fi
none "the shared library exports more than hsort_" exports

if [ "$failures" != 0 ]; then
    exit 1
fi
echo "layers, manners, header and exports are as they should be"
