# Draw the plots of a CSV of jobs/ladder.sh:
#
#   gnuplot -c jobs/ladder.gnuplot CSV FOLDER svg|png
#
# rates, inputs, peters_rate, peters_degree, peters_size, threads and cpu, as far as the CSV has their rows.

csv = ARG1
folder = ARG2
format_word = ARG3 eq "png" ? "png" : "svg"

# The terminal for a plot of some size, and its file.
start(name, width, height) = sprintf("set terminal %s size %d,%d font 'sans,11'; set output '%s/%s.%s'", \
    format_word eq "png" ? "pngcairo" : "svg background 'white'", width, height, folder, name, format_word)

# The rows for which an awk expression of the columns holds: $1 experiment, $2 what, $3 variant, $4 type, $5 keys,
# $6 input.
# In order of keys, because lines join what follows each other in the CSV.
rows(condition) = sprintf("< awk -F, '%s' %s | sort -t, -g -k5,5", condition, csv)
list(condition, column) = \
    system(sprintf("awk -F, '%s && !seen[$%d]++ { print $%d }' %s", condition, column, column, csv))
rungs(condition) = system(sprintf("awk -F, '%s { print $2 }' %s | sort -u", condition, csv))
# "256 threads", "512 threads" in column 3: "256 512".
numbers(condition) = \
    system(sprintf("awk -F, '%s && gsub(/[^0-9]/, \"\", $3) && !seen[$3]++ { print $3 }' %s", condition, csv))
has(condition) = list(condition, 1) ne ""

# "rung_4_bitonic_multistep" as a title.
title_of(what) = \
    system(sprintf("echo %s | sed 's/rung_\\([0-9]*\\)_/\\1 /; s/cub_merge_sort/CUB merge sort/; s/_/ /g'", what))

# A rung has its colour in every plot, by its number; CUB's merge sort is grey.
array colour[10] = [0x000000, 0xa6761d, 0xb07cc6, 0x66a3d9, 0x1f4e9e, 0xe41a1c, 0xff7f00, 0x33a02c, 0xe7298a, 0x999999]
number_of(what) = what eq "cub_merge_sort" ? 9 : int(word(system("echo ".what." | tr _ ' '"), 2))
colour_of(what) = colour[number_of(what) + 1]

set datafile separator ","
set grid lt 1 lw 0.5 lc rgb "#dddddd"
set style data linespoints
set pointsize 0.6
do for [i = 1:9] { set linetype i lw 1.5 }
gpu = system(sprintf("sed -n 's/^# gpus: *[0-9]* //p' %s", csv))

# ---- sorting rate by type -----------------------------------------------------------------------------------

set logscale x 2
set format x "2^{%L}"
set logscale y 10
set format y "%g"
set xlabel "keys"
set ylabel "Gkeys/s"
set key inside right bottom reverse Left font ",10"

if (has('$1 == "ladder" && $6 == "uniform"')) {
    eval start("rates", 1200, 1350)
    set multiplot layout 3,2 title "Sorting rate, uniform keys, ".gpu
    do for [type in list('$1 == "ladder" && $6 == "uniform"', 4)] {
        these = sprintf('$1 == "ladder" && $6 == "uniform" && $4 == "%s"', type)
        set title type
        plot for [what in rungs(these)] rows(these.sprintf(' && $2 == "%s"', what)) using 5:10 \
            lc rgb colour_of(what) pt 7 title title_of(what)
    }
    unset multiplot
}

if (has('$1 == "peters-rate"')) {
    eval start("peters_rate", 1200, 520)
    set multiplot layout 1,2 title "Sorting rate against n, as in figure 4 of Peters et al., ".gpu
    do for [type in list('$1 == "peters-rate"', 4)] {
        these = sprintf('$1 == "peters-rate" && $4 == "%s"', type)
        set title type eq "u32" ? "keys of 4 bytes" : "pairs of 4 + 4 bytes"
        plot for [what in rungs(these)] rows(these.sprintf(' && $2 == "%s"', what)) using 5:10 \
            lc rgb colour_of(what) pt 7 title title_of(what)
    }
    unset multiplot
}

# ---- what one number changes --------------------------------------------------------------------------------

if (has('$1 == "peters-degree"')) {
    eval start("peters_degree", 1200, 520)
    unset logscale y
    set yrange [0:]
    set key left bottom
    set ylabel "times as fast as rung 1"
    set multiplot layout 1,2 title "Steps per pass over the trivial form, Peters et al., section 3.2, ".gpu
    do for [type in list('$1 == "peters-degree"', 4)] {
        these = sprintf('$1 == "peters-degree" && $4 == "%s"', type)
        set title type eq "u32" ? "keys of 4 bytes" : "pairs of 4 + 4 bytes"
        over_rung_1 = "< awk -F, '$1 == \"peters-degree\" && $4 == \"".type."\" { if ($3 == \"\") base[$5] = $7; " \
            ."else if ($3 == \"degree %d\" && base[$5]) print $5 \",\" base[$5] / $7 }' ".csv
        plot for [degree in numbers(these)] sprintf(over_rung_1, int(degree)) using 1:2 \
            lt int(degree) pt 7 title "degree ".degree
    }
    unset multiplot
    set yrange [*:*]
    set logscale y 10
}

set key left top
set ylabel "ms"
if (has('$1 == "threads"')) {
    eval start("threads", 1200, 520)
    set multiplot layout 1,2 title "Threads per block, Disabato, figures 4 and 5, ".gpu
    do for [what in rungs('$1 == "threads"')] {
        these = sprintf('$1 == "threads" && $2 == "%s"', what)
        set title title_of(what)
        plot for [threads in numbers(these)] rows(these.sprintf(' && $3 == "%s threads"', threads)) using 5:7 \
            lt int(threads) / 256 pt 7 title threads." threads"
    }
    unset multiplot
}

if (has('$1 == "cpu"')) {
    eval start("cpu", 1200, 520)
    set multiplot layout 1,2 title "CPU and GPU, whole calls, Disabato, figure 6, ".gpu
    do for [what in rungs('$1 == "cpu"')] {
        these = sprintf('$1 == "cpu" && $2 == "%s"', what)
        set title title_of(what)." and its form on the host"
        plot rows(these.' && $3 == "host"') using 5:7 lc rgb 0x000000 pt 7 title "CPU, all cores", \
             rows(these.' && $3 == "gpu"') using 5:7 lc rgb 0xe41a1c pt 7 title "GPU, keys in its memory", \
             rows(these.' && $3 ~ /^gpu from/') using 5:7 lc rgb 0x377eb8 pt 7 title "GPU, keys in host memory"
    }
    unset multiplot
}

unset logscale
set format x "%g"
if (has('$1 == "peters-size"')) {
    eval start("peters_size", 1100, 560)
    set title "Absolute time, any n, as in figure 3 of Peters et al., ".gpu
    set xlabel "million keys"
    set key outside right top
    set logscale y 10
    plot for [what in rungs('$1 == "peters-size"')] \
        rows(sprintf('$1 == "peters-size" && $2 == "%s"', what)) using ($5 / 1e6):7 \
        lc rgb colour_of(what) pt 7 title title_of(what)
    unset logscale
}

# ---- inputs -------------------------------------------------------------------------------------------------

largest = system(sprintf("awk -F, '%s && $5 > most { most = $5 } END { print most }' %s", \
    '$1 == "ladder" && $6 != "uniform"', csv))
if (largest ne "") {
    kinds = '$1 == "ladder" && $6 != "uniform" && $5 == '.largest
    types = list(kinds, 4)
    eval start("inputs", 1200, 330 * words(types))
    set style data histograms
    set style histogram clustered gap 1
    set style fill solid 0.9 noborder
    set xlabel ""
    set ylabel "times as fast as CUB"
    set logscale y 10
    set yrange [0.01:]
    set xtics rotate by -30
    set key outside right top
    set multiplot layout words(types),1 title sprintf("By input, 2^{%.0f} keys, %s", log(largest) / log(2), gpu)
    # Every input in the same place, also where a rung was left out.
    each = "< awk -F, '$1 == \"ladder\" && $5 == %s && $4 == \"%s\" { if (!seen[$6]++) input[++n] = $6; " \
        ."if ($2 == \"%s\") ratio[$6] = $12 } END { for (i = 1; i <= n; i++) print input[i] \",\" " \
        ."(input[i] in ratio ? ratio[input[i]] : \"NaN\") }' ".csv
    do for [type in types] {
        these = kinds.sprintf(' && $4 == "%s" && $2 != "rung_0_cub"', type)
        set title type
        plot for [what in rungs(these)] sprintf(each, largest, type, what) \
            using 2:xtic(1) lc rgb colour_of(what) title title_of(what)
    }
    unset multiplot
}
