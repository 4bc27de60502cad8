/* Which options go together, and which names may be names of key files: cli_options.c asks this when it has taken the options. */
#include <string.h>
#include "src/command/cli_rows.h"
#include "src/command/records_hdf5.h"
#include "src/files/gensort.h"
#include "src/files/hdf5_place.h"

/* ---- Names ----------------------------------------------------------------------------------------------- */

static bool knows_hdf5(const struct cli_options *options)
{
    return options->command == CLI_SORT || options->command == CLI_CHECK;
}

/* Complain of an HDF5 file without a path in it. option: the option that says that it is another kind of file, or NULL. */
static hsort_status complain_of_path(const struct cli_options *options, const char *name, const char *option)
{
    const size_t length = hdf5_place_lacks_path(name);
    const bool named = name[length] == ':' && name[length + 1] != '\0';
    return cli_complain(options, "%.200s: name a group or a dataset of this HDF5 file, as %.*s:/%.100s%s%s%s",
                        name, (int)(length < 100 ? length : 100), name, named ? &name[length + 1] : "NAME",
                        option ? "; for raw keys in a file of that name give " : "", option ? option : "",
                        option ? " raw" : "");
}

/* May the file, by its name, hold keys? */
static hsort_status check_name(const struct cli_options *options, const char *name, enum file_format format,
                               const char *option)
{
    if (!name)
        return HSORT_OK;
    if (strcmp(name, "-") == 0)
        return cli_complain(
            options, "'-': keys are in files, not in standard input or output; a file of that name is ./-");
    if (hdf5_place_is(name) && (!option || !knows_hdf5(options)))
        return cli_complain(options, "%.200s: only sort and check know HDF5, and only as FILE, OUT and OTHER",
                            name);
    const char *suffix = format == FILE_AUTO ? file_foreign_suffix(name) : NULL;
    const bool may_be_hdf5 = format == FILE_AUTO && option && knows_hdf5(options);
    const size_t length = may_be_hdf5 ? hdf5_place_lacks_path(name) : 0;
    if (length > 0 && (suffix || name[length] == ':'))
        return complain_of_path(options, name, option);
    if (suffix && !option)
        return cli_complain(options, "%.200s: '%s' files are not known here", name, suffix);
    if (suffix)
        return cli_complain(
            options, "%.200s: '%s' files are not known here; for raw keys in a file of that name give %s raw",
            name, suffix, option);
    return HSORT_OK;
}

hsort_status cli_check_names(const struct cli_options *options)
{
    if (options->command == CLI_REPORT) // it reads no keys
        return HSORT_OK;
    const bool sorts = options->command == CLI_SORT || options->command == CLI_GATHER;
    for (int i = 0; i < options->files_count; i++)
        TRY(check_name(options, options->files[i], options->format, "--format"));
    for (int i = 0; i < options->against.count; i++)
        TRY(check_name(options, options->against.text[i], options->format, "--format"));
    const char *const by_name[] = {options->by, options->index, options->values, options->values_output,
                                   options->counts};
    for (size_t i = 0; i < sizeof by_name / sizeof *by_name; i++)
        TRY(check_name(options, by_name[i], FILE_AUTO, NULL));
    return check_name(options, options->output, sorts ? options->output_format : options->format,
                      sorts ? "--output-format" : "--format");
}

/* Refuse options of gen and check that --format gensort has no use for. */
static hsort_status check_gensort(const struct cli_options *options)
{
    if (options->command == CLI_GEN && (cli_is_given(options, "dist") || cli_is_given(options, "seed")))
        return cli_complain(
            options, "--dist and --seed do not go with --format gensort, whose records are those of gensort");
    if (options->command == CLI_GEN && options->key)
        return cli_complain(options, "--key does not go with --format gensort, whose records are those of gensort");
    if (options->command != CLI_CHECK)
        return HSORT_OK;
    if (options->key && options->against.count == 0)
        return cli_complain(options,
                            "--format gensort: check says of its own keys what valsort does; by "
                            "others it looks with --record %d --key KEY",
                            (int)GENSORT_RECORD_BYTES);
    if (options->summary && options->against.count > 0)
        return cli_complain(options, "--summary and --against: one at a time");
    if (options->summary && file_is_pattern(options->summary))
        return cli_complain(options, "--summary: %.200s: is written to one file, and not to one per rank",
                            options->summary);
    return HSORT_OK;
}

/* Fill in what --format gensort stands for: raw records with one key. */
static hsort_status resolve_gensort(struct cli_options *options)
{
    options->gensort = options->format == FILE_GENSORT;
    if (options->output_format == FILE_GENSORT && options->command == CLI_SORT && !options->gensort &&
        !options->key)
        return cli_complain(options,
                            "--output-format gensort is for records: it needs --format gensort or --key");
    if (!options->gensort &&
        (options->ascii || options->skewed || cli_is_given(options, "first") || options->summary))
        return cli_complain(options, "-a, --skew, --first and --summary need --format gensort");
    if (!options->gensort)
        return HSORT_OK;
    TRY(check_gensort(options));
    if (cli_is_given(options, "record") && options->record_bytes != GENSORT_RECORD_BYTES)
        return cli_complain(options, "--format gensort: its records have %d bytes",
                            (int)GENSORT_RECORD_BYTES);
    options->format = FILE_RAW;
    options->record_bytes = GENSORT_RECORD_BYTES;
    if (!options->key && options->command != CLI_GATHER)
        options->key = "@0:bytes10";
    return HSORT_OK;
}

/* Do the options of records, values and indices go together? */
static hsort_status check_records(const struct cli_options *options)
{
    const bool makes = options->command == CLI_GEN, gathers = options->command == CLI_GATHER;
    const struct {
        const char *name;
        size_t bytes;
    } widths[] = {{"record", options->record_bytes}, {"value-bytes", options->value_bytes}};
    if (options->record_bytes > CLI_RECORD_MOST || options->value_bytes > CLI_RECORD_MOST)
        return cli_complain(options, "--%s: more than %d bytes",
                            options->record_bytes > CLI_RECORD_MOST ? "record" : "value-bytes",
                            CLI_RECORD_MOST);
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        if (widths[i].bytes == 0 && cli_is_given(options, widths[i].name))
            return cli_complain(options, "--%s: an element cannot have 0 bytes", widths[i].name);
    if (gathers && !options->by)
        return cli_complain(options, "--by INDEX is missing");
    if ((options->record_bytes > 0 && !gathers && !options->key) ||
        (makes && options->key && options->record_bytes == 0))
        return cli_complain(options, "--record and --key need each other");
    if (options->key && options->reverse)
        return cli_complain(options, "-r is for bare keys: write KEY:desc");
    if (options->unique && options->gensort && options->command == CLI_CHECK)
        return cli_complain(options,
                            "--format gensort: check counts its duplicates by itself, without --unique");
    if (options->key && options->type_given)
        return cli_complain(options, "--type is for bare keys: records name their types, raw ones in --key");
    if (!options->values != !options->values_output && options->command != CLI_PLAN)
        return cli_complain(options, "--values and -O need each other");
    if (options->value_bytes > 0 && !options->values)
        return cli_complain(options, "--value-bytes without --values");
    if (options->counts && options->command == CLI_CHECK && (options->key || options->against.count == 0))
        return cli_complain(options, "--counts is for bare keys, with --against OTHER");
    if (options->counts && !options->unique)
        return cli_complain(options, "--counts without --unique");
    return HSORT_OK;
}

/* Check the options of sorts by way of the disk. */
static hsort_status check_disk(const struct cli_options *options)
{
    const struct comm none = {.node_size = 1};
    size_t bytes;
    if (options->memory_size && cli_memory(&none, options, &bytes) != HSORT_OK) {
        status_clear(); // the line below says more
        return cli_complain(options, "--memory: '%.128s' is not a size, such as 8G, nor a part, such as 50%%",
                            options->memory_size);
    }
    if (options->temporary_limit == 0 && cli_is_given(options, "temp-limit"))
        return cli_complain(options,
                            "--temp-limit: 0 is not a size, such as 8G; without the option there is no limit");
    return HSORT_OK;
}

/* ---- HDF5 ------------------------------------------------------------------------------------------------ */

bool hdf5_is_asked(const struct cli_options *options)
{
    bool asked = hdf5_place_is(options->output);
    for (int i = 0; i < options->files_count && !asked; i++)
        asked = hdf5_place_is(options->files[i]);
    for (int i = 0; i < options->against.count && !asked; i++)
        asked = hdf5_place_is(options->against.text[i]);
    return asked && knows_hdf5(options);
}

/* Refuse what does not go with HDF5: places in HDF5 files go to places in HDF5 files, sorted as records in memory are. */
static hsort_status check_hdf5(const struct cli_options *options)
{
    const struct {
        bool given;
        const char *name;
    } others[] = {{options->index, "--index"},
                  {options->values, "--values"},
                  {options->unique && options->command == CLI_SORT, "--unique"},
                  {options->counts, "--counts"},
                  {options->checkpoint, "--checkpoint"},
                  {options->record_bytes > 0, "--record"},
                  {options->type_given, "--type"},
                  {options->format != FILE_AUTO, "--format"},
                  {options->output_format != FILE_AUTO, "--output-format"}};
    const char *plain = options->output && !hdf5_place_is(options->output) ? options->output : NULL;
    if (!hdf5_is_asked(options))
        return HSORT_OK;
    for (int i = 0; i < options->files_count && !plain; i++)
        plain = hdf5_place_is(options->files[i]) ? NULL : options->files[i];
    for (int i = 0; i < options->against.count && !plain; i++)
        plain = hdf5_place_is(options->against.text[i]) ? NULL : options->against.text[i];
    if (plain && hdf5_place_lacks_path(plain) > 0)
        return complain_of_path(options, plain, NULL);
    if (plain)
        return cli_complain(
            options,
            "%.200s: the others are HDF5, and so must this be: FILE:/PATH, where FILE ends in " HDF5_SUFFIXES,
            plain);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i].given)
            return cli_complain(options, "%s is not for HDF5", others[i].name);
    if (options->output && file_is_pattern(options->output))
        return cli_complain(options, "%.200s: HDF5 is written to one file, and not to one per rank",
                            options->output);
    return HSORT_OK;
}

hsort_status cli_check_together(struct cli_options *options)
{
    if (options->quiet && options->json)
        return cli_complain(options, "--quiet and --json: one leaves out the report that the other prints");
    if (options->quiet && options->progress == PROGRESS_AUTO)
        options->progress = PROGRESS_OFF;
    if (options->no_verify && cli_is_given(options, "verify"))
        return cli_complain(options, "--verify and --no-verify: one forbids the other");
    TRY(resolve_gensort(options));
    if (options->sort.trace_spans > 0 && !options->trace)
        return cli_complain(options, "--trace-spans without --trace");
    TRY(check_records(options));
    TRY(check_hdf5(options));
    return check_disk(options);
}
