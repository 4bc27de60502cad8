# Draw the plot of a CSV of jobs/simulate.sh, seconds of a sort by ranks, as simulated.svg or simulated.png:
#
#   gnuplot -c jobs/simulate.gnuplot CSV FOLDER svg|png

csv = ARG1
folder = ARG2
format_word = ARG3 eq "png" ? "png" : "svg"
eval sprintf("set terminal %s size 1100,480 font 'sans,11'; set output '%s/simulated.%s'", \
    format_word eq "png" ? "pngcairo" : "svg background 'white'", folder, format_word)

# Rows of one exchange and one size, in order of ranks. $1 ranks, $3 exchange, $5 keys, $18 total_s, 19 on: the plan.
rows(exchange, keys) = sprintf("< awk -F, '$3 == \"%s\" && $5 == %s' %s | sort -t, -g -k1,1", exchange, keys, csv)
sizes = system(sprintf("awk -F, '/^[0-9]/ && !seen[$5]++ { print $5 }' %s | sort -nr", csv))

set datafile separator ","
set grid lt 1 lw 0.5 lc rgb "#dddddd"
set logscale x 2
set logscale y 10
set format y "%g"
set xlabel "ranks, 8 to a node"
set ylabel "seconds, simulated"
set key left top reverse Left font ",10"
set multiplot layout 1,words(sizes) title "Sort of simulated H200s; lines: simulated, rings: sort, exchange and merge by plan"
do for [keys in sizes] {
    set title sprintf("%s keys of 8 bytes on each rank", keys)
    plot rows("bitonic", keys) using 1:18 with linespoints lw 1.5 pt 7 ps 0.5 lc rgb "#1f4e9e" title "bitonic", \
         "" using 1:($21 + $22 + $23) with points pt 6 ps 1.2 lc rgb "#1f4e9e" notitle, \
         rows("direct", keys) using 1:18 with linespoints lw 1.5 pt 7 ps 0.5 lc rgb "#e41a1c" title "direct", \
         "" using 1:($21 + $22 + $23) with points pt 6 ps 1.2 lc rgb "#e41a1c" notitle
}
unset multiplot
