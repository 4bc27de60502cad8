#include "src/files/npy_fields.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "kernels/base/status.h"

/* One entry of a structure: ('pos', '<f4', (3,)). */
struct entry {
    struct npy_word name;
    const char *dtype, *dtype_end; /* its text */
    size_t bytes;                  /* of one item, if it is an array */
    int dimensions;
    int64_t extent[NPY_DIMENSIONS];
    size_t all_bytes;
};

/* ---- Numbers and strings ------------------------------------------------------------------------------- */

/* Can a number of this kind have `number` bytes? */
static bool has_width(char kind, size_t number)
{
    static const struct {
        char kind;
        uint64_t widths; /* bit n: of n bytes */
    } kinds[] = {{'b', 1 << 1},
                 {'i', 1 << 1 | 1 << 2 | 1 << 4 | 1 << 8},
                 {'u', 1 << 1 | 1 << 2 | 1 << 4 | 1 << 8},
                 {'f', 1 << 2 | 1 << 4 | 1 << 8 | 1 << 12 | 1 << 16},
                 {'c', 1 << 8 | 1 << 16 | 1 << 24 | UINT64_C(1) << 32},
                 {'m', 1 << 8},
                 {'M', 1 << 8}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].kind == kind)
            return number < 64 && kinds[i].widths >> number & 1;
    return kind == 'S' || kind == 'U' || kind == 'V';
}

/* Read a dtype such as '<u4': byte order, kind, bytes; times also have a unit, as in '<M8[ns]'. False: it is no such dtype. */
static bool read_scalar(struct npy_word word, struct npy_field *field)
{
    const char *end = word.begin + word.length, *at = word.begin + 2;
    size_t number = 0;
    if (word.length < 3 || !memchr("<>|", word.begin[0], 3))
        return false;
    for (; at < end && *at >= '0' && *at <= '9'; at++) {
        number = number * 10 + (size_t)(*at - '0');
        if (number > NPY_ELEMENT_MAX)
            return false;
    }
    field->order = word.begin[0];
    field->kind = word.begin[1];
    field->bytes = field->kind == 'U' ? 4 * number : number;
    npy_printable(word, field->dtype);
    const bool is_time = field->kind == 'm' || field->kind == 'M', is_text = memchr("SUV", field->kind, 3);
    const bool has_unit = is_time && at < end && *at == '[' && end[-1] == ']';
    return at > word.begin + 2 && has_width(field->kind, number) && field->bytes <= NPY_ELEMENT_MAX &&
           (at == end || has_unit) && (field->order != '|' || field->bytes == 1 || is_text);
}

static hsort_status take_scalar(struct npy_text *text, struct npy_field *field)
{
    struct npy_word word = {0};
    char shown[32];
    TRY(npy_take_string(text, &word));
    if (word.length >= 2 && word.begin[1] == 'O')
        return status_fail(HSORT_FORMAT, "%s: dtype '%s' has Python objects, which cannot be moved",
                           text->path, npy_printable(word, shown));
    if (!read_scalar(word, field))
        return status_fail(HSORT_FORMAT, "%s: dtype '%s' is not known", text->path,
                           npy_printable(word, shown));
    return HSORT_OK;
}

/* ---- Structures ---------------------------------------------------------------------------------------- */

static hsort_status fail_size(const struct npy_text *text)
{
    return status_fail(HSORT_FORMAT, "%s: .npy header with elements of more than %d bytes", text->path,
                       NPY_ELEMENT_MAX);
}

/* Take extents: (3,) or (2, 3) or 3. */
static hsort_status take_extents(struct npy_text *text, struct entry *entry)
{
    bool comma = true;
    if (!npy_take(text, "(")) {
        entry->dimensions = 1;
        return npy_take_extent(text, &entry->extent[0]);
    }
    while (!npy_take(text, ")")) {
        if (!comma)
            return npy_expected(text, "',' or ')'");
        if (entry->dimensions == NPY_DIMENSIONS)
            return status_fail(HSORT_FORMAT, "%s: .npy header with a field of more than %d dimensions",
                               text->path, NPY_DIMENSIONS);
        TRY(npy_take_extent(text, &entry->extent[entry->dimensions++]));
        comma = npy_take(text, ",");
    }
    return HSORT_OK;
}

/* Take a name, or (title, name). */
static hsort_status take_name(struct npy_text *text, struct npy_word *name)
{
    if (!npy_take(text, "("))
        return npy_take_string(text, name);
    TRY(npy_take_string(text, name));
    if (!npy_take(text, ","))
        return npy_expected(text, "','");
    TRY(npy_take_string(text, name));
    return npy_take(text, ")") ? HSORT_OK : npy_expected(text, "')'");
}

static hsort_status take_entry(struct npy_text *text, int depth, struct entry *entry)
{
    *entry = (struct entry){.dimensions = 0};
    if (!npy_take(text, "("))
        return npy_expected(text, "'('");
    TRY(take_name(text, &entry->name));
    if (!npy_take(text, ","))
        return npy_expected(text, "','");
    npy_take(text, ""); // white space
    entry->dtype = text->at;
    TRY(npy_take_dtype(text, depth + 1, &entry->bytes));
    entry->dtype_end = text->at;
    const bool comma = npy_take(text, ",");
    if (comma && !npy_take(text, ")")) {
        TRY(take_extents(text, entry));
        npy_take(text, ",");
        if (!npy_take(text, ")"))
            return npy_expected(text, "')'");
    } else if (!comma && !npy_take(text, ")")) {
        return npy_expected(text, "',' or ')'");
    }
    entry->all_bytes = entry->bytes;
    for (int i = 0; i < entry->dimensions; i++) {
        if (entry->extent[i] > NPY_ELEMENT_MAX ||
            entry->all_bytes * (size_t)entry->extent[i] > NPY_ELEMENT_MAX)
            return fail_size(text);
        entry->all_bytes *= (size_t)entry->extent[i];
    }
    return HSORT_OK;
}

hsort_status npy_take_dtype(struct npy_text *text, int depth, size_t *bytes)
{
    struct npy_field scalar = {0};
    struct entry entry;
    bool comma = true;
    *bytes = 0;
    if (!npy_take(text, "[")) {
        const hsort_status status = take_scalar(text, &scalar);
        *bytes = scalar.bytes;
        return status;
    }
    if (depth >= NPY_DEPTH)
        return status_fail(HSORT_FORMAT, "%s: .npy header with structures more than %d deep", text->path,
                           NPY_DEPTH);
    while (!npy_take(text, "]")) {
        if (!comma)
            return npy_expected(text, "',' or ']'");
        TRY(take_entry(text, depth, &entry));
        comma = npy_take(text, ",");
        *bytes += entry.all_bytes;
        if (*bytes > NPY_ELEMENT_MAX)
            return fail_size(text);
    }
    return HSORT_OK;
}

/* ---- A field by its name ------------------------------------------------------------------------------- */

/* A search under way. */
struct search {
    struct npy_text text; /* the dtype in which the rest of the name is looked for */
    const char *name, *rest;
    size_t offset;
};

/* How many characters of `rest` are this name; 0 if they are not, or are part of a longer name. */
static size_t match(struct npy_word name, const char *rest)
{
    const bool begins =
        name.length > 0 && strlen(rest) >= name.length && memcmp(rest, name.begin, name.length) == 0;
    return begins && memchr(".[", rest[name.length], 3) ? name.length : 0; // 3: also the 0 at the end of ".["
}

/* names [NPY_NAMES_ROOM] = the names of a structure's fields. */
static void list_names(struct npy_text text, char *names)
{
    struct entry entry;
    size_t length = 0;
    names[0] = '\0';
    for (npy_take(&text, "["); !npy_take(&text, "]"); npy_take(&text, ",")) {
        char shown[32];
        if (take_entry(&text, 0, &entry) != HSORT_OK)
            return;
        if (entry.name.length == 0)
            continue;
        if (length > NPY_NAMES_ROOM - 40) {
            strcpy(names + length, ", ...");
            return;
        }
        length +=
            (size_t)sprintf(names + length, "%s%s", length > 0 ? ", " : "", npy_printable(entry.name, shown));
    }
}

static bool ends_with(struct npy_word name, const char *end)
{
    const size_t length = strlen(end);
    return name.length >= length && memcmp(name.begin + name.length - length, end, length) == 0;
}

/* What to know about a name before it is given to --key, or "". */
static const char *advice_on(struct npy_word name)
{
    if (memchr(name.begin, ',', name.length))
        return "; --key takes no name with a comma";
    return ends_with(name, ":asc") || ends_with(name, ":desc")
               ? "; --key takes a name that ends in :asc or :desc with an order behind it, as NAME:desc:asc"
               : "";
}

/* What may have been meant by a name that no field has, or "". */
static const char *advice_on_order(const char *name)
{
    return name[0] == '-' || strchr(name, ':') ? "; descending is NAME:desc" : "";
}

/* Find the entry whose name `rest` begins with: the longest such name, because names may contain a dot. */
static hsort_status find_entry(struct search *search, struct entry *found)
{
    struct npy_text text = search->text;
    struct entry entry;
    char names[NPY_NAMES_ROOM];
    const char *advice = "";
    size_t longest = 0, offset = 0;
    if (!npy_take(&text, "["))
        return status_fail(HSORT_ARGUMENT, "%s: has no field '%.64s': '%.*s' is not a structure", text.path,
                           search->name, (int)(search->rest - search->name - 1), search->name);
    for (; !npy_take(&text, "]"); npy_take(&text, ",")) {
        TRY(take_entry(&text, 0, &entry));
        const size_t length = match(entry.name, search->rest);
        if (advice[0] == '\0')
            advice = advice_on(entry.name);
        if (length > longest) {
            longest = length;
            *found = entry;
            search->offset += offset;
            offset = 0;
        }
        offset += entry.all_bytes;
    }
    search->rest += longest;
    if (longest > 0)
        return HSORT_OK;
    const size_t above = (size_t)(search->rest - search->name);
    list_names(search->text, names);
    return status_fail(HSORT_ARGUMENT, "%s: has no field '%.64s'%s%.*s%s%s%s", text.path, search->name,
                       above > 1 ? "; those of " : "; its fields are ", above > 1 ? (int)(above - 1) : 0,
                       search->name, above > 1 ? " are " : "", names,
                       advice[0] != '\0' ? advice : advice_on_order(search->name));
}

/* Take the [i] after the name of an array, one for each dimension. */
static hsort_status take_places(struct search *search, const struct entry *entry)
{
    size_t bytes = entry->all_bytes;
    for (int i = 0; i < entry->dimensions; i++) {
        int64_t place = 0;
        struct npy_text text = {.path = search->text.path,
                                .begin = search->rest,
                                .at = search->rest,
                                .end = search->rest + strlen(search->rest)};
        if (search->rest[0] != '[')
            return status_fail(HSORT_ARGUMENT, "%s: field '%.64s' is an array: name one of it, as '%.*s%s'",
                               text.path, search->name, (int)(search->rest - search->name), search->name,
                               i + 1 < entry->dimensions ? "[0][0]" : "[0]");
        if (entry->extent[i] == 0)
            return status_fail(HSORT_ARGUMENT, "%s: '%.64s': '%.*s' is an array without elements", text.path,
                               search->name, (int)(search->rest - search->name), search->name);
        text.at++;
        if (npy_take_extent(&text, &place) != HSORT_OK || !npy_take(&text, "]") ||
            place >= entry->extent[i]) {
            status_clear();
            return status_fail(HSORT_ARGUMENT,
                               "%s: '%.64s': behind '%.*s' a number in brackets from 0 to %" PRId64
                               " is expected",
                               text.path, search->name, (int)(search->rest - search->name), search->name,
                               entry->extent[i] - 1);
        }
        bytes /= (size_t)entry->extent[i]; // the extent is not 0: `place` lies in it
        search->offset += (size_t)place * bytes;
        search->rest = text.at;
    }
    return HSORT_OK;
}

hsort_status npy_find_field(const char *path, const char *descr, size_t descr_bytes, const char *name,
                            struct npy_field *field)
{
    struct search search = {.text = {path, descr, descr, descr + descr_bytes}, .name = name, .rest = name};
    struct entry entry = {0};
    do {
        search.rest += search.rest > name && search.rest[0] == '.';
        TRY(find_entry(&search, &entry));
        TRY(take_places(&search, &entry));
        search.text = (struct npy_text){path, entry.dtype, entry.dtype, entry.dtype_end};
    } while (search.rest[0] == '.');
    char names[NPY_NAMES_ROOM];
    if (search.rest[0] != '\0')
        return status_fail(HSORT_ARGUMENT, "%s: '%.64s': nothing is expected behind '%.*s'", path, name,
                           (int)(search.rest - name), name);
    if (entry.dtype[0] == '[') {
        list_names(search.text, names);
        return status_fail(HSORT_ARGUMENT,
                           "%s: field '%.64s' is a structure of %s: name one of them, as '%.64s.%.*s'", path,
                           name, names, name, (int)strcspn(names, ","), names);
    }
    TRY(take_scalar(&search.text, field));
    field->offset = search.offset;
    return HSORT_OK;
}

hsort_status npy_find_scalar(const char *path, const char *descr, size_t descr_bytes, struct npy_field *field)
{
    struct npy_text text = {path, descr, descr, descr + descr_bytes};
    if (npy_take(&text, "["))
        return status_fail(HSORT_ARGUMENT,
                           "%s: has structures in more than one dimension: no key can be named", path);
    field->offset = 0;
    return take_scalar(&text, field);
}
