# Draw the plot of jobs/scaling.sh from the lines of `scaling_table.py --points`, as scaling.svg or scaling.png:
#
#   gnuplot -c jobs/scaling.gnuplot POINTS FOLDER svg|png
#
# Strong scaling in red (u32), blue (u64) and green (f64), darker for more keys; weak scaling, u64, by input; rings: the plan.

csv = ARG1
folder = ARG2
format_word = ARG3 eq "png" ? "png" : "svg"
eval sprintf("set terminal %s size 1200,950 font 'sans,11'; set output '%s/scaling.%s'", \
    format_word eq "png" ? "pngcairo" : "svg background 'white'", folder, format_word)

# $1 scaling, $2 type, $3 input, $4 keys in all or on each GPU, $5 GPUs, $6 ms, $7 efficiency, $8 link's share, $9 plan, ms.
rows(scaling, type, input, keys) = sprintf("< awk -F, '$1 == \"%s\" && $2 == \"%s\" && $3 == \"%s\" && $4 == %s' %s", \
    scaling, type, input, keys, csv)
list(condition, column) = \
    system(sprintf("awk -F, '%s && !seen[$%d]++ { print $%d }' %s | sort -g", condition, column, column, csv))
in_order(condition, column) = \
    system(sprintf("awk -F, '%s && !seen[$%d]++ { print $%d }' %s", condition, column, column, csv))
power_of(keys) = sprintf("2^{%.0f}", log(keys + 0) / log(2))

sizes = list('$1 == "strong"', 4)
types = in_order('$1 == "strong"', 2)
inputs = in_order('$1 == "weak"', 3)
each = list('$1 == "weak"', 4)
gpus = list('$5 + 0 > 0', 5)
linked = list('$8 + 0 > 0', 5)
machine = system(sprintf("sed -n 's/^# //p' %s", csv))

array blue[3] = [0x8fc3e8, 0x3f82c4, 0x123a7a]
array red[3] = [0xf5a08c, 0xe0472f, 0x8a1410]
array green[3] = [0x9ed6a5, 0x42a452, 0x14602a]
array by_input[3] = [0x000000, 0xd98200, 0x8c3fb5]
colour_of(type, i) = i > 3 ? 0x777777 : type eq "u32" ? red[i] : type eq "u64" ? blue[i] : green[i]
colour_of_input(i) = i > 3 ? 0x777777 : by_input[i]

set datafile separator ","
set grid lt 1 lw 0.5 lc rgb "#dddddd"
set style data linespoints
set pointsize 0.7
do for [i = 1:9] { set linetype i lw 1.8 pt 7 }
set logscale x 2
set xrange [0.9 : word(gpus, words(gpus)) * 1.1]
set xtics ()
do for [count in gpus] { set xtics add (count int(count)) }
set xlabel "GPUs"
set multiplot layout 2,2 title "Sorts over ".machine.", keys in their memory"

set logscale y 2
set title "Strong: uniform keys in all"
set ylabel "ms"
set key left bottom font ",10"
plot for [type in types] for [i = 1:words(sizes)] rows("strong", type, "uniform", word(sizes, i)) \
    using 5:6 lc rgb colour_of(type, i) title type." ".power_of(word(sizes, i))

unset logscale y
set yrange [0:]
set title words(each) > 0 ? "Weak: ".power_of(word(each, 1))." keys of u64 on each; rings: plan" : "Weak"
set key left top
plot for [i = 1:words(inputs)] rows("weak", "u64", word(inputs, i), word(each, 1)) \
        using 5:6 lc rgb colour_of_input(i) title word(inputs, i), \
     rows("weak", "u64", "uniform", word(each, 1)) using 5:9 with points pt 6 ps 1.6 lc rgb 0x000000 notitle

set title "Efficiency: strong, uniform (thin), and weak (thick)"
set ylabel "time of one GPU / (GPUs x time), or / time"
set yrange [0:1.1]
set key left bottom
plot for [type in types] for [i = 1:words(sizes)] rows("strong", type, "uniform", word(sizes, i)) \
        using 5:7 lw 1.2 lc rgb colour_of(type, i) notitle, \
     for [i = 1:words(inputs)] rows("weak", "u64", word(inputs, i), word(each, 1)) \
        using 5:7 lw 3 lc rgb colour_of_input(i) title word(inputs, i)

if (linked ne "") {
    set title "Share of a sort's time that the link takes at least"
    set ylabel "bytes that a GPU sends / rate of the link / time"
    plot for [type in types] for [i = 1:words(sizes)] rows("strong", type, "uniform", word(sizes, i)) \
            using ($5 > 1 ? $5 : NaN):8 lw 1.2 lc rgb colour_of(type, i) notitle, \
         for [i = 1:words(inputs)] rows("weak", "u64", word(inputs, i), word(each, 1)) \
            using ($5 > 1 ? $5 : NaN):8 lw 3 lc rgb colour_of_input(i) title word(inputs, i)
}
unset multiplot
