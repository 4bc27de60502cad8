#include "src/files/hdf5_place.h"
#include <string.h>
#include <strings.h>

/* Does the name of `length` characters end in a suffix of HDF5 files? */
static bool has_suffix(const char *name, size_t length)
{
    static const char *const suffixes[] = {".h5", ".hdf5", ".hdf", ".he5", ".nc"};
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        const size_t bytes = strlen(suffixes[i]);
        if (length > bytes && strncasecmp(name + length - bytes, suffixes[i], bytes) == 0)
            return true;
    }
    return false;
}

/* Find the first ":/" after such a name, or NULL. */
static const char *find_border(const char *text)
{
    for (const char *at = text; at && (at = strstr(at, ":/")); at++)
        if (has_suffix(text, (size_t)(at - text)))
            return at;
    return NULL;
}

bool hdf5_place_is(const char *text)
{
    return text && find_border(text);
}

size_t hdf5_place_lacks_path(const char *text)
{
    const size_t length = strlen(text);
    if (find_border(text))
        return 0;
    for (const char *at = text; (at = strchr(at, ':')); at++)
        if (has_suffix(text, (size_t)(at - text)))
            return (size_t)(at - text);
    return has_suffix(text, length) ? length : 0;
}

/* path [PATH_MAX] = `text` without superfluous "/". False: it is too long. */
static bool copy_path(const char *text, char *path)
{
    size_t length = 0;
    for (; *text && length + 1 < PATH_MAX; text++)
        if (*text != '/' || length == 0 || path[length - 1] != '/')
            path[length++] = *text;
    if (length > 1 && path[length - 1] == '/')
        length--;
    path[length] = '\0';
    return *text == '\0';
}

hsort_status hdf5_place_parse(const char *text, struct hdf5_place *place)
{
    const char *border = find_border(text);
    const size_t length = border ? (size_t)(border - text) : 0;
    if (!border || length >= sizeof place->file || !copy_path(border + 1, place->path))
        return status_fail(HSORT_ARGUMENT, "%.200s: is not a FILE:/PATH, or is too long", text);
    memcpy(place->file, text, length);
    place->file[length] = '\0';
    return HSORT_OK;
}
