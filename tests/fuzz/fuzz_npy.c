/* The header of a .npy file: any bytes are read or refused, and what was read is the same after it is written and read again.
 * PLANTED_BUG is for tests/fuzz/test_fuzz.sh: a defect that only an accepted header reaches. */
#include "tests/fuzz/fuzz.h"
#include "src/files/npy.h"

static void write_and_read_again(const struct npy_header *read)
{
    unsigned char header[128];
    struct npy_header again;
    const size_t bytes = npy_format(read->type, read->count, header, sizeof header);
    PROMISE(bytes <= sizeof header && bytes % 64 == 0);
    PROMISE(npy_parse("again.npy", header, bytes, &again) == HSORT_OK);
    PROMISE(again.type == read->type && again.count == read->count && !again.swapped);
    PROMISE(again.data_offset == (int64_t)bytes);
}

/* The same header for elements of any kind: what is accepted has fields inside of it, and is written again the same. */
static void read_any(const unsigned char *header, size_t header_bytes)
{
    struct npy_header read = {.count = -1}, again;
    struct npy_field field;
    status_clear();
    if (npy_parse_any("in.npy", header, header_bytes, &read) != HSORT_OK) {
        PROMISE(strncmp(status_text(), "in.npy: ", 8) == 0 && !strchr(status_text(), '\n') &&
                read.count == -1);
        return;
    }
    const struct npy_element *element = &read.element;
    PROMISE(element->bytes >= 1 && element->bytes <= NPY_ELEMENT_MAX);
    PROMISE(read.count >= 0 && read.count <= INT64_MAX / (int64_t)element->bytes);
    for (const char *const *name = (const char *const[]){"x", "in.x", "pos[1]", "f0", "", NULL}; *name;
         name++)
        if (npy_find_field("in.npy", element->descr, element->descr_bytes, *name, &field) == HSORT_OK)
            PROMISE(field.offset + field.bytes <= element->bytes);
    const size_t room = element->descr_bytes + NPY_HEADER_ROOM;
    unsigned char *written = malloc(room);
    const size_t bytes = npy_format_any(element, read.count, written, room);
    PROMISE(bytes <= room && bytes % 64 == 0);
    // A text at the limit of what is read can be too long with what is written around it.
    if (bytes <= NPY_DICT_MAX) {
        PROMISE(npy_parse_any("again.npy", written, bytes, &again) == HSORT_OK && again.count == read.count);
        PROMISE(again.element.bytes == element->bytes && again.element.dimensions == element->dimensions);
    }
    free(written);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    size_t announced = 0;
    struct npy_header read = {.count = -1};
    const size_t head_bytes = bytes < NPY_HEAD_BYTES ? bytes : NPY_HEAD_BYTES;
    unsigned char *head = fuzz_copy(data, head_bytes);
    status_clear();
    hsort_status status = npy_header_bytes("in.npy", head, head_bytes, &announced);
    free(head);
    if (status == HSORT_OK) {
        PROMISE(announced <= NPY_HEAD_BYTES + NPY_DICT_MAX);
        const size_t header_bytes = bytes < announced ? bytes : announced;
        unsigned char *header = fuzz_copy(data, header_bytes);
        read_any(header, header_bytes);
        status_clear();
        status = npy_parse("in.npy", header, header_bytes, &read);
        free(header);
    }
    if (status != HSORT_OK) {
        PROMISE(status == HSORT_FORMAT && strncmp(status_text(), "in.npy: ", 8) == 0);
        PROMISE(!strchr(status_text(), '\n') && read.count == -1);
        return 0;
    }
    PROMISE(hsort_type_bytes(read.type) > 0 && read.data_offset == (int64_t)announced);
    PROMISE(read.count >= 0 && read.count <= INT64_MAX / (int64_t)hsort_type_bytes(read.type));
#ifdef PLANTED_BUG
    PROMISE(!(read.swapped && read.count > 7 && read.count < 1000000));
#endif
    write_and_read_again(&read);
    return 0;
}
