#!/bin/bash
# No function or struct of one name stands in two files of the program, so that a search for a name finds one place. Twins are the
# exception: files whose names are the same except for folder, ending, _body, _host and _cuda; a file of kernels/host and one of
# kernels/cuda, which are two forms of one engine; and no_cuda.c and no_hdf5.c, which replace the CUDA or the HDF5 files if those are
# not built. The examples are programs of their own, and not looked at.
set -euo pipefail

cd "$SOURCE"
if ! ctags --version 2>/dev/null | grep -q 'Universal Ctags'; then
    echo "skipped: there are no Universal Ctags to list the names"
    exit 77
fi

# KIND NAME, FILE for each definition outside of another; NAMED is the macro that gives the names in *_body.h the width of a key.
definitions()
{
    ctags -x --languages=C,CUDA --langmap=C:.c.h,CUDA:.cu.cuh --kinds-C=fsu --kinds-CUDA=fsu -I __launch_bounds__+ \
        --_xformat='%K %N	%F	%Z' --exclude=src/examples -R kernels mpi src |
        awk -F '\t' '($3 == "-" || $3 == "") && $1 !~ / (NAMED$|__anon|operator)/ { print $1 "\t" $2 }' | sort -u
}

found=$(definitions)
if [ "$(wc -l <<<"$found")" -lt 500 ]; then
    echo "failed: only $(wc -l <<<"$found") names were found in $SOURCE"
    exit 1
fi
twice=$(awk -F '\t' '{
        stem = $2
        sub(/.*\//, "", stem)
        sub(/\.[a-z]*$/, "", stem)
        if (stem ~ /^no_(cuda|hdf5)$/)
            next
        sub(/_(body|host|cuda)$/, "", stem)
        if (!seen[$1, stem]++) {
            stems[$1]++
            on_host[$1] += $2 ~ /^kernels\/host\//
            on_cuda[$1] += $2 ~ /^kernels\/cuda\//
            files[$1] = files[$1] " " $2
        }
    }
    END {
        for (name in stems)
            if (stems[name] > 1 && !(stems[name] == 2 && on_host[name] == 1 && on_cuda[name] == 1))
                print name ":" files[name]
    }' <<<"$found" | sort)
if [ -n "$twice" ]; then
    echo "failed: these names are defined in several files:"
    printf '%s\n' "$twice" | sed 's/^/    /'
    exit 1
fi
echo "$(wc -l <<<"$found") names, each in one file or its twin"
