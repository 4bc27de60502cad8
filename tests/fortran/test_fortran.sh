#!/bin/bash
# The Fortran module, installed and moved: it names everything that the binary interface has, with the same numbers, sizes and offsets
# as C, and programs that use it by mpi_f08 and by mpi sort, on one and on three ranks.
set -euo pipefail
# shellcheck source=../package/installed.sh
. "$(dirname "${BASH_SOURCE[0]}")/../package/installed.sh"

echo 'end' >"$work/nothing.f90"
"$mpifort" "$work/nothing.f90" -o "$work/nothing" >/dev/null 2>&1 || skip "there is no Fortran compiler of MPI, $mpifort"

module=$prefix/share/hypersort/fortran/hypersort.f90
abi=$SOURCE/tests/library/abi.txt
here=$SOURCE/tests/fortran
cd "$work"
quiet "the module does not compile" "$mpifort" -std=f2018 -Wall -Wextra -Werror -c "$module"

# hsort_create() is bound to hsort_create_f() in C.
sed -n 's/^function //p' "$abi" | grep -v '^hsort_create$' | while read -r function; do
    grep -q "name='$function'" "$module" || fail "the module has no $function()"
done

# FUNCTION ARGUMENT ARGUMENT ... of each one that returns a status or a number, by C and by Fortran: who names arguments counts on them.
cat "$prefix"/include/*.h | gcc -fpreprocessed -E -P -x c - | tr '\n' ' ' | grep -oE 'HSORT_API [^;]*;' | grep -v 'char \*hsort_' |
    sed -E 's/.* \*?(hsort_[a-z_]+)\((.*)\);/\1,\2/; s/,[^,]*[ *]([a-z_]+)/ \1/g; s/ void$//; s/,void//' | grep -v '^hsort_create ' |
    sed 's/^hsort_create_f /hsort_create /' | sort >c.txt
tr '\n' ' ' <"$module" | sed 's/& *//g' | grep -oE "(function|subroutine) hsort_[a-z_]*\([a-z_, ]*\) +bind\(c, name" |
    grep -v ' hsort_c_' | sed -E 's/^[a-z]* ([a-z_]*)\(([^)]*)\).*/\1 \2/; s/,//g; s/  +/ /g; s/ $//' |
    sort >fortran.txt
[ "$(wc -l <fortran.txt)" -gt 20 ] || fail "the arguments of the functions were not found"
diff c.txt fortran.txt || fail "arguments differ: < is C, > is Fortran"

mapfile -t structs < <(sed -n 's/^struct \([a-z_]*\) .*/\1/p' "$abi")

# TYPE MEMBER of all structs, as the module has them.
awk '/^    type, bind\(c\) :: / { type = $4 } /^    end type/ { type = "" }
     type != "" && / :: / && $0 !~ /type, bind/ { sub(/.*:: /, ""); sub(/[( =!].*/, ""); print type, $0 }' "$module" >members
[ "$(wc -l <members)" -gt 50 ] || fail "the members of the structs were not found"

# A list by Fortran, and the same by C.
{
    echo "program list; use hypersort; implicit none"
    for struct in "${structs[@]}"; do echo "type($struct), target :: x_$struct"; done
    for struct in "${structs[@]}"; do echo "print '(a, i0)', '$struct ', c_sizeof(x_$struct)"; done
    awk '{ printf "call place(\"%s %s \", &\nc_loc(x_%s), c_loc(x_%s%%%s), c_sizeof(x_%s%%%s))\n", $1, $2, $1, $1, $2, $1, $2 }' members
    sed -nE "s/^(status|type|value) ([A-Z0-9_]+) .*/print '(a, i0)', '\2 ', \2/p" "$abi"
    echo "contains; subroutine place(name, whole, part, bytes)
    character(*) :: name; type(c_ptr) :: whole, part; integer(c_size_t) :: bytes
    print '(a, i0, a, i0)', name, transfer(part, 0_c_intptr_t) - transfer(whole, 0_c_intptr_t), ' ', bytes
    end subroutine; end program"
} | tr ';' '\n' >list.f90
{
    echo "#include <hypersort.h>
#include <stdio.h>
int main(void) {"
    printf '%s\n' "${structs[@]}" | awk '{ printf "printf(\"%s %%zu\\n\", sizeof(%s));\n", $1, $1 }'
    awk '{ printf "printf(\"%s %s %%zu %%zu\\n\", offsetof(%s, %s), sizeof(((%s *)0)->%s));\n", $1, $2, $1, $2, $1, $2 }' members
    sed -nE 's/^(status|type|value) ([A-Z0-9_]+) .*/printf("\2 %d\\n", \2);/p' "$abi"
    echo "}"
} >list.c
quiet "the list in Fortran does not compile" "$mpifort" list.f90 hypersort.o -o list_fortran -L"$libraries" -lhypersort \
    "-Wl,-rpath,$libraries"
quiet "the list in C does not compile" "$mpicc" -I"$prefix/include" list.c -o list_c
./list_c >c.txt
./list_fortran >fortran.txt
diff c.txt fortran.txt || fail "the module differs from the header: < is C, > is Fortran"

for program in test_calls test_module_mpi; do
    quiet "$program does not compile" "$mpifort" -std=f2018 -Wall -Wextra -fcheck=all -g "$here/$program.f90" hypersort.o -o $program \
        -L"$libraries" -lhypersort "-Wl,-rpath,$libraries"
    for ranks in 1 3; do
        # shellcheck disable=SC2086 # MPIRUN holds options too
        quiet "$program on $ranks ranks" timeout 100 $MPIRUN -n $ranks ./$program
    done
done
echo "$(wc -l <c.txt) names, sizes and offsets are those of C; the programs sorted on 1 and 3 ranks"
