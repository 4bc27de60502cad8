#!/bin/bash
# The layers, as the build cannot check them: who includes whom (src -> mpi -> kernels, never back), what the library
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

# includes FOLDER ALLOWED...: lines of FOLDER that include, by "", what is neither in FOLDER nor ALLOWED.
foreign_includes()
{
    local folder=$1 file name
    grep -rE '^ *# *include *"' "$folder" | sed -E 's/^([^:]*):[^"]*"(.*)".*/\1 \2/' | while read -r file name; do
        if [ ! -e "$(dirname "$file")/$name" ] && [ ! -e "$folder/$name" ] && [[ " ${*:2} " != *" $name "* ]]; then
            echo "$file: $name"
        fi
    done
}

mapfile -t kernel_files < <(sources kernels)
mapfile -t mpi_files < <(sources mpi)
mapfile -t core_files < <(sed -n '/^add_library(core /,/)/p' CMakeLists.txt | grep -o 'src/[a-z_]*\.c')
library_files=("${kernel_files[@]}" "${mpi_files[@]}" "${core_files[@]}")
leaves=(hypersort.h status.h fault.h keytype.h)
if [ ${#kernel_files[@]} -lt 3 ] || [ ${#mpi_files[@]} -lt 3 ] || [ ${#core_files[@]} -lt 3 ]; then
    fail "the sources were not found in $SOURCE"
fi

none "kernels/ includes what is above it" foreign_includes kernels "${leaves[@]}"
none "kernels/ includes mpi.h" grep -nE 'include *[<"]mpi\.h' "${kernel_files[@]}"
none "mpi/ includes more than the engine's face and the leaves" foreign_includes mpi engine.h "${leaves[@]}"
none "mpi/ launches kernels or calls CUDA" grep -nE '<<<|cuda_runtime|\bcuda[A-Z][A-Za-z]*\(' "${mpi_files[@]}"

# What belongs to the program that calls a library.
manners='(^|[^A-Za-z0-9_])(v?printf|puts|putchar|perror|exit|_exit|_Exit|quick_exit|abort|assert'
manners+='|MPI_Abort|MPI_Init|MPI_Init_thread|MPI_Finalize) *\(|fprintf *\( *std(out|err)|fput[cs] *\([^;]*std(out|err)'
polite() { code "${library_files[@]}" | grep -E "$manners"; }
none "the library prints, exits, aborts, or starts or ends MPI" polite

long_files()
{
    { sources kernels mpi src tests; find jobs tests -name '*.sh'; } | xargs wc -l | awk '$2 != "total" && $1 > 600'
}
none "files of more than 600 lines" long_files

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
