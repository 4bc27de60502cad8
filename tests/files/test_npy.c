/* The .npy header: what must be read, what must be refused with a clear line, and 100,000 damaged headers. */
#include "tests/support/check.h"
#include <inttypes.h>
#include <stdbool.h>
#include "src/files/npy.h"
#include "kernels/base/status.h"

#define DICT_U8 "{'descr': '<u8', 'fortran_order': False, 'shape': (1000,), }"

enum { HEADER_ROOM = 1 << 16, MUTATIONS = 100000 };

/* Put magic, version and length before a dictionary. Returns the header's bytes. */
static size_t build(int major, const char *dictionary, unsigned char *header)
{
    const size_t length_bytes = major == 1 ? 2 : 4, dict_bytes = strlen(dictionary);
    memcpy(header, "\x93NUMPY", 6);
    header[6] = (unsigned char)major;
    header[7] = 0;
    for (size_t i = 0; i < length_bytes; i++)
        header[8 + i] = (unsigned char)(dict_bytes >> (8 * i));
    memcpy(header + 8 + length_bytes, dictionary, dict_bytes);
    return 8 + length_bytes + dict_bytes;
}

/* Read a header as src/files/file.c does: the head first, then as much of the whole as there is. The copy is of
 * the exact size, so that the address sanitizer sees a byte read too far. */
static hsort_status read_header(const unsigned char *header, size_t bytes, struct npy_header *result)
{
    size_t announced = 0;
    status_clear();
    unsigned char *copy = malloc(bytes + 1);
    unsigned char *exact = bytes > 0 ? realloc(copy, bytes) : copy;
    memcpy(exact, header, bytes);
    hsort_status status =
        npy_header_bytes("in.npy", exact, bytes < NPY_HEAD_BYTES ? bytes : NPY_HEAD_BYTES, &announced);
    if (status == HSORT_OK)
        status = npy_parse("in.npy", exact, bytes < announced ? bytes : announced, result);
    free(exact);
    return status;
}

static void accept(int major, const char *dictionary, hsort_type type, bool swapped, int64_t count)
{
    unsigned char header[HEADER_ROOM];
    struct npy_header result = {0};
    const size_t bytes = build(major, dictionary, header);
    hsort_status status = read_header(header, bytes, &result);
    CHECK(status == HSORT_OK, "%s: %s", dictionary, status_text());
    CHECK(result.type == type && result.swapped == swapped && result.count == count, "%s", dictionary);
    CHECK(result.data_offset == (int64_t)bytes, "%s: keys at %" PRId64, dictionary, result.data_offset);
}

/* `cause` must be in the text, and the text must be one line that begins with the file's name. */
static void refuse_bytes(const unsigned char *header, size_t bytes, const char *cause)
{
    struct npy_header result;
    hsort_status status = read_header(header, bytes, &result);
    CHECK(status == HSORT_FORMAT, "\"%s\" expected, got status %d: %s", cause, status, status_text());
    CHECK(strstr(status_text(), cause), "\"%s\" is not in \"%s\"", cause, status_text());
    CHECK(strncmp(status_text(), "in.npy: ", 8) == 0 && !strchr(status_text(), '\n'), "%s", status_text());
}

static void refuse(const char *dictionary, const char *cause)
{
    unsigned char header[HEADER_ROOM];
    for (int major = 1; major <= 3; major++)
        refuse_bytes(header, build(major, dictionary, header), cause);
}

static void test_good(void)
{
    for (int major = 1; major <= 3; major++) {
        accept(major, DICT_U8 "                  \n", HSORT_U64, false, 1000);
        accept(major, "{'descr': '<u4', 'fortran_order': False, 'shape': (1,)}", HSORT_U32, false, 1);
        accept(major, "{'descr': '<i4', 'fortran_order': False, 'shape': (0,), }\n", HSORT_I32, false, 0);
        accept(major, "{\"shape\": (7,), \"descr\": \">f4\", \"fortran_order\": True}", HSORT_F32, true, 7);
        accept(major, " {\t'fortran_order' :\nFalse , 'shape':( 12 , ) ,'descr':\">i8\",} ", HSORT_I64, true,
               12);
        accept(major, "{'descr': '<f8', 'fortran_order': False, 'shape': (3L,), }", HSORT_F64, false, 3);
        accept(major, "{'descr':'>u8','fortran_order':False,'shape':(9007199254740993,)}", HSORT_U64, true,
               INT64_C(9007199254740993));
        accept(major, "{'descr':'>u4','fortran_order':False,'shape':(5,)}", HSORT_U32, true, 5);
        accept(major, "{'descr':'>i4','fortran_order':False,'shape':(5,)}", HSORT_I32, true, 5);
        accept(major, "{'descr':'>f8','fortran_order':False,'shape':(5,)}", HSORT_F64, true, 5);
        accept(major, "{'descr':'<f4','fortran_order':False,'shape':(5,)}", HSORT_F32, false, 5);
        accept(major, "{'descr':'<i8','fortran_order':False,'shape':(5,)}", HSORT_I64, false, 5);
        accept(major, "{'descr':'|u1','fortran_order':False,'shape':(5,)}", HSORT_U8, false, 5);
        accept(major, "{'descr':'|i1','fortran_order':False,'shape':(5,)}", HSORT_I8, false, 5);
        accept(major, "{'descr':'>i1','fortran_order':False,'shape':(5,)}", HSORT_I8, false, 5);
        accept(major, "{'descr':'<u2','fortran_order':False,'shape':(5,)}", HSORT_U16, false, 5);
        accept(major, "{'descr':'>i2','fortran_order':False,'shape':(5,)}", HSORT_I16, true, 5);
        accept(major, "{'descr':'<f2','fortran_order':False,'shape':(5,)}", HSORT_F16, false, 5);
    }
}

static void test_bad_dtypes(void)
{
    const char *const dtypes[] = {"=u4", "|u4",     "=f8", "|b1", "|u2", "|f2", "<f1",  "<b1", "<f16", "<c8",
                                  "<U5", "<M8[ns]", "|O",  "u4",  "",    "<",   "<u48", "f8",  "<b8",  "<V8",
                                  "<b2", "<u16",    "|i2", "u1",  "|f1", "<i3"};
    char dictionary[128], cause[64];
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        snprintf(dictionary, sizeof dictionary, "{'descr': '%s', 'fortran_order': False, 'shape': (4,), }",
                 dtypes[i]);
        snprintf(cause, sizeof cause, "dtype '%s' is not a key type", dtypes[i]);
        refuse(dictionary, cause);
    }
    // What --key 0 sorts all the same, and what it does not.
    const char *const columns[] = {"|b1", "<M8[ns]", ">m8[D]", "<m8", "|S1", "|S16", "|V16", "<V8"};
    const char *const no_columns[] = {"<U1", "|S0", "|S17", "|V17", "<c8", "<f16",
                                      "<M4", "|b2", "|O",   "=b1",  "|S",  "|Sx"};
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        snprintf(dictionary, sizeof dictionary, "{'descr': '%s', 'fortran_order': False, 'shape': (4,), }",
                 columns[i]);
        refuse(dictionary, "forms are; --key 0 sorts it");
    }
    for (size_t i = 0; i < sizeof no_columns / sizeof *no_columns; i++) {
        snprintf(dictionary, sizeof dictionary, "{'descr': '%s', 'fortran_order': False, 'shape': (4,), }",
                 no_columns[i]);
        refuse(dictionary, "forms are");
        CHECK(!strstr(status_text(), "--key 0"), "%s", status_text());
    }
    refuse("{'descr': [('x', '<f8'), ('y', '<f8')], 'fortran_order': False, 'shape': (4,), }",
           "structured dtype");
    refuse("{'descr': ('<f8', (3,)), 'fortran_order': False, 'shape': (4,), }", "structured dtype");
    refuse("{'descr': '\x1b[31m\x07', 'fortran_order': False, 'shape': (4,), }", "dtype '?[31m?'");
    refuse("{'descr': '0123456789012345678901234567890123456789', 'shape': (4,)}",
           "0123456789012345678901234567...");
}

static void test_bad_shapes(void)
{
#define WITH_SHAPE(shape) "{'descr': '<u4', 'fortran_order': False, 'shape': " shape ", }"
    refuse(WITH_SHAPE("()"), "0 dimensions");
    refuse(WITH_SHAPE("(3, 4)"), "2 dimensions");
    refuse(WITH_SHAPE("(3, 1,)"), "2 dimensions");
    refuse("{'descr': '<u4', 'fortran_order': True, 'shape': (3, 4), }", "2 dimensions");
    refuse(WITH_SHAPE("(1, 2, 3, 4, 5)"), "5 dimensions");
    refuse(WITH_SHAPE("(-1,)"), "negative shape");
    refuse(WITH_SHAPE("(9223372036854775808,)"), "beyond 64 bits");
    refuse(WITH_SHAPE("(18446744073709551617,)"), "beyond 64 bits");
    refuse(WITH_SHAPE("(99999999999999999999999999999999,)"), "beyond 64 bits");
    refuse(WITH_SHAPE("(2305843009213693952,)"), "more than 64-bit offsets");
    refuse(WITH_SHAPE("(5)"), "tuple");
    refuse(WITH_SHAPE("5"), "tuple");
    refuse(WITH_SHAPE("[5]"), "tuple");
    refuse(WITH_SHAPE("(,)"), "a number");
    refuse(WITH_SHAPE("(5,,)"), "a number");
    refuse(WITH_SHAPE("(5 6)"), "',' or ')'");
    refuse(WITH_SHAPE("(0x10,)"), "',' or ')'");
    refuse(WITH_SHAPE("(1e3,)"), "',' or ')'");
    refuse(WITH_SHAPE("(5.0,)"), "',' or ')'");
#undef WITH_SHAPE
}

static void test_bad_dictionaries(void)
{
    refuse("", "'{' expected");
    refuse("   \n", "'{' expected");
    refuse("{}", "without an entry 'descr'");
    refuse("{'fortran_order': False, 'shape': (4,), }", "without an entry 'descr'");
    refuse("{'descr': '<u4', 'shape': (4,), }", "without an entry 'fortran_order'");
    refuse("{'descr': '<u4', 'fortran_order': False, }", "without an entry 'shape'");
    refuse("{'descr': '<u4', 'descr': '<u4', 'fortran_order': False, 'shape': (4,), }",
           "two entries 'descr'");
    refuse("{'descr': '<u4', 'fortran_order': False, 'shape': (4,), 'x': 1}", "unknown entry 'x'");
    refuse("{'descr': '<u4', 'fortran_order': False, 'shape': (4,), ", "a string expected");
    refuse("{'descr': '<u4', 'fortran_order': False, 'shape': (4,", "a number expected");
    refuse("{'descr': '<u4', 'fortran_order': Fals", "True or False expected");
    refuse("{'descr': '<u4", "a closing quote expected");
    refuse("{'descr': '<u4\"", "a closing quote expected");
    refuse("{'descr': '\\x3cu4', 'fortran_order': False, 'shape': (4,)}", "a backslash at character 11");
    refuse("{'descr'; '<u4'}", "':' expected");
    refuse("{'descr': '<u4' 'fortran_order': False}", "',' or '}' expected");
    refuse("{'descr': '<u4',, 'fortran_order': False}", "a string expected");
    refuse("{,}", "a string expected");
    refuse("{'descr': <u4}", "a string expected");
    refuse("{'descr': 4}", "a string expected");
    refuse("{'fortran_order': 0}", "True or False expected");
    refuse("{'fortran_order': 'False'}", "True or False expected");
    refuse("{'fortran_order': Falsehood}", "',' or '}' expected");
    refuse(DICT_U8 " x", "nothing more expected");
    refuse(DICT_U8 DICT_U8, "nothing more expected");
}

static void test_bad_heads(void)
{
    unsigned char header[HEADER_ROOM], head[NPY_HEAD_BYTES];
    size_t announced = 0;
    const size_t bytes = build(1, DICT_U8, header);
    refuse_bytes(header, 0, "is empty");
    for (size_t cut = 1; cut < 6; cut++)
        refuse_bytes(header, cut, "is not a .npy file");
    for (size_t cut = 6; cut < bytes; cut++)
        refuse_bytes(header, cut, "cut off");
    for (size_t cut = 6, whole = build(3, DICT_U8, header); cut < whole; cut++)
        refuse_bytes(header, cut, "cut off");
    refuse_bytes((const unsigned char *)"PK\003\004 a zip file", 15, "is not a .npy file");

    build(1, DICT_U8, header);
    const unsigned char versions[][2] = {{0, 0}, {4, 0}, {255, 0}, {1, 1}, {2, 1}, {3, 7}};
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        char cause[32];
        memcpy(header + 6, versions[i], 2);
        snprintf(cause, sizeof cause, "version %d.%d is unknown", versions[i][0], versions[i][1]);
        refuse_bytes(header, bytes, cause);
    }

    // Headers of 4 GiB and of one byte too many must be refused by their first 12 bytes alone; the largest
    // may pass.
    memcpy(head, "\x93NUMPY\2\0\xff\xff\xff\xff", NPY_HEAD_BYTES);
    refuse_bytes(head, NPY_HEAD_BYTES, "claims 4294967295 bytes");
    memcpy(head + 8, "\1\0\0\1", 4);
    refuse_bytes(head, NPY_HEAD_BYTES, "claims 16777217 bytes");
    memcpy(head + 8, "\0\0\0\1", 4);
    status_clear();
    CHECK(npy_header_bytes("in.npy", head, NPY_HEAD_BYTES, &announced) == HSORT_OK, "%s", status_text());
    CHECK(announced == NPY_HEAD_BYTES + NPY_DICT_MAX, "%zu", announced);
}

/* What NumPy writes for np.zeros(1000, '<u8'), byte for byte, and back from it for counts at every border. */
static void test_round_trip(void)
{
    unsigned char header[128];
    const char *text = DICT_U8;
    CHECK(npy_format(HSORT_U64, 1000, header, sizeof header) == 128, "length");
    CHECK(memcmp(header, "\x93NUMPY\1\0\x76\0", 10) == 0, "magic, version, length");
    CHECK(memcmp(header + 10, text, strlen(text)) == 0, "dictionary");
    for (size_t i = 10 + strlen(text); i < 127; i++)
        CHECK(header[i] == ' ', "padding at %zu", i);
    CHECK(header[127] == '\n', "last byte");

    const int64_t counts[] = {0, 1, 9, 10, (INT64_C(1) << 31) + 1, (INT64_C(1) << 53) + 1, INT64_MAX / 8};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (int type = HSORT_U32; type <= HSORT_BF16; type++) {
            struct npy_header result = {0};
            if (!npy_has_dtype((hsort_type)type))
                continue;
            const size_t bytes = npy_format((hsort_type)type, counts[i], header, sizeof header);
            hsort_status status = read_header(header, bytes, &result);
            CHECK(status == HSORT_OK, "%s", status_text());
            CHECK(bytes % 64 == 0 && result.data_offset == (int64_t)bytes, "%zu", bytes);
            CHECK(result.type == (hsort_type)type && result.count == counts[i] && !result.swapped,
                  "type %d, %" PRId64 " keys", type, counts[i]);
        }
}

/* ---- Elements of any kind ------------------------------------------------------------------------------ */

#define EVENTS                                                                                            \
    "[('id', '<u8'), ('pos', '<f4', (3,)), ('in', [('x', '>i4'), ('', '|V4'), ('x.y', '|S3', (2, 2))]), " \
    "(('a title', 'when'), '<M8[25us]'), ('n', '<U2', 2), ('half', '<f2')]"
#define DICT_OF(descr, shape) "{'descr': " descr ", 'fortran_order': False, 'shape': " shape ", }"

static hsort_status read_any(const char *dictionary, unsigned char *header, struct npy_header *result)
{
    status_clear();
    return npy_parse_any("in.npy", header, build(1, dictionary, header), result);
}

static void accept_any(const char *dictionary, size_t bytes, int64_t count, bool is_key)
{
    unsigned char header[HEADER_ROOM], again[HEADER_ROOM];
    struct npy_header result = {0}, back = {0};
    CHECK(read_any(dictionary, header, &result) == HSORT_OK, "%s: %s", dictionary, status_text());
    CHECK(result.element.bytes == bytes && result.count == count && result.is_key == is_key, "%s: %zu bytes",
          dictionary, result.element.bytes);
    // Written again, it says the same.
    const size_t written = npy_format_any(&result.element, count + 1, again, sizeof again);
    CHECK(npy_parse_any("in.npy", again, written, &back) == HSORT_OK && written % 64 == 0, "%s",
          status_text());
    CHECK(back.element.bytes == bytes && back.count == count + 1 &&
              back.element.dimensions == result.element.dimensions,
          "%s", dictionary);
    CHECK(back.element.descr_bytes == result.element.descr_bytes &&
              memcmp(back.element.descr, result.element.descr, back.element.descr_bytes) == 0,
          "%s", dictionary);
}

static void refuse_any(const char *dictionary, const char *cause)
{
    unsigned char header[HEADER_ROOM];
    struct npy_header result;
    CHECK(read_any(dictionary, header, &result) == HSORT_FORMAT, "\"%s\" expected", cause);
    CHECK(strstr(status_text(), cause), "\"%s\" is not in \"%s\"", cause, status_text());
}

static void find(const char *name, size_t offset, size_t bytes, char kind, char order)
{
    struct npy_field field = {0};
    status_clear();
    CHECK(npy_find_field("in.npy", EVENTS, strlen(EVENTS), name, &field) == HSORT_OK, "%s: %s", name,
          status_text());
    CHECK(field.offset == offset && field.bytes == bytes && field.kind == kind && field.order == order,
          "%s: %zu bytes at %zu, '%s'", name, field.bytes, field.offset, field.dtype);
}

static void miss_in(const char *dtype, const char *name, const char *cause)
{
    struct npy_field field;
    status_clear();
    CHECK(npy_find_field("in.npy", dtype, strlen(dtype), name, &field) == HSORT_ARGUMENT, "%s", name);
    CHECK(strstr(status_text(), cause), "%s: \"%s\" is not in \"%s\"", name, cause, status_text());
}

static void miss(const char *name, const char *cause)
{
    miss_in(EVENTS, name, cause);
}

static void test_fields(void)
{
    find("id", 0, 8, 'u', '<');
    find("pos[0]", 8, 4, 'f', '<');
    find("pos[2]", 16, 4, 'f', '<');
    find("in.x", 20, 4, 'i', '>');
    find("in.x.y[0][0]", 28, 3, 'S', '|');
    find("in.x.y[1][0]", 34, 3, 'S', '|');
    find("when", 40, 8, 'M', '<');
    find("n[1]", 56, 8, 'U', '<');
    find("half", 64, 2, 'f', '<');
    miss("-id", "; descending is NAME:desc");
    miss("in.x:descending", "; descending is NAME:desc");
    miss("none", "has no field 'none'; its fields are id, pos, in, when, n, half");
    miss("", "has no field ''");
    miss("i", "has no field 'i'");
    miss("idx", "has no field 'idx'");
    miss_in("[('a,b', '<u4')]", "a", "its fields are a,b; --key takes no name with a comma");
    miss_in("[('t:desc', '<u4')]", "t",
            "; --key takes a name that ends in :asc or :desc with an order behind it");
    miss_in("[('t:asc', '<u4')]", "t", "; --key takes a name that ends in :asc or :desc");
    miss("in.y", "has no field 'in.y'; those of in are x, x.y");
    miss("in", "is a structure of x, x.y: name one of them, as 'in.x'");
    miss("in.", "has no field 'in.'");
    miss("id.x", "has no field 'id.x': 'id' is not a structure");
    miss("id[0]", "nothing is expected behind 'id'");
    miss("pos", "field 'pos' is an array: name one of it, as 'pos[0]'");
    miss("pos[3]", "from 0 to 2");
    miss("pos[-1]", "from 0 to 2");
    miss("pos[99999999999999999999]", "from 0 to 2");
    miss("pos[1", "from 0 to 2");
    miss("pos[1][0]", "nothing is expected behind 'pos[1]'");
    miss("in.x.y[1]", "as 'in.x.y[1][0]'");
    miss_in("[('a', '<f4', (2, 0)), ('k', '<u4')]", "a[1][0]", "'a[1]' is an array without elements");
    // Of many names as many as there is room for.
    char many[1024] = "[", names[NPY_NAMES_ROOM + 8] = "its fields are ";
    for (int i = 0; i < 10; i++) {
        sprintf(many + strlen(many), "('%d%027d', '<u4'),", i, 0);
        if (i < 6)
            sprintf(names + strlen(names), "%d%027d, ", i, 0);
    }
    miss_in(strcat(many, "]"), "none", strcat(names, "..."));
}

static void test_any(void)
{
    accept_any(DICT_OF(EVENTS, "(7,)"), 66, 7, false);
    accept_any(DICT_OF("'<u8'", "(7,)"), 8, 7, true);
    accept_any(DICT_OF("'>f4'", "(7,)"), 4, 7, true);
    accept_any(DICT_OF("'<u8'", "(7, 3)"), 24, 7, false);
    accept_any(DICT_OF("'|b1'", "(0, 3, 2)"), 6, 0, false);
    accept_any(DICT_OF("'|S5'", "(7,)"), 5, 7, false);
    accept_any(DICT_OF("[('x', '<u8')]", "(7,)"), 8, 7, false);
    accept_any(DICT_OF("[('x', '<u8', ()), ('', '|V3'), ('y', '|S0')]", "(7,)"), 11, 7, false);
    accept_any(DICT_OF("[('x', '<u8', (1, 1, 1, 2, 1, 1, 1, 1))]", "(7,)"), 16, 7, false);
    accept_any(DICT_OF("[('f', '<f16'), ('g', '<f12'), ('c', '<c24'), ('d', '>c32')]", "(7,)"), 84, 7, false);
    refuse_any(DICT_OF("[]", "(7,)"), "elements of 0 bytes");
    refuse_any(DICT_OF("'<u8'", "(7, 0)"), "elements of 0 bytes");
    refuse_any(DICT_OF("'<u8'", "()"), "0 dimensions");
    refuse_any(DICT_OF("'<u8'", "(1, 1, 1, 1, 1, 1, 1, 1, 1)"), "9 dimensions; 1 to 8");
    refuse_any(DICT_OF("'<u8'", "(1, 134217729)"), "rows of more than 1073741824 bytes");
    refuse_any(DICT_OF("'<u8'", "(1, 9223372036854775807)"), "rows of more than 1073741824 bytes");
    refuse_any(DICT_OF("'<u8'", "(1, 2305843009213693953)"),
               "rows of more than 1073741824 bytes"); // 2^64 and 8
    refuse_any(DICT_OF("'|V1073741824'", "(9223372036854775807,)"), "more than 64-bit offsets");
    refuse_any(DICT_OF("'<u8'", "(1152921504606846975, 3)"), "more than 64-bit offsets");
    refuse_any(DICT_OF("[('x', '|V1073741824'), ('y', '|V1')]", "(1,)"), "more than 1073741824 bytes");
    refuse_any(DICT_OF("[('x', '|V1073741824', (3,))]", "(1,)"), "more than 1073741824 bytes");
    refuse_any(DICT_OF("[('x', '<u8', (2305843009213693953,))]", "(1,)"), "more than 1073741824 bytes");
    refuse_any(DICT_OF("[('x', '<u8', (1, 1, 1, 1, 1, 1, 1, 1, 1))]", "(7,)"),
               "a field of more than 8 dimensions");
    refuse_any("{'descr': '<u8', 'fortran_order': True, 'shape': (7, 3), }", "Fortran order");
    refuse_any(DICT_OF("[('x', '|O')]", "(7,)"), "Python objects");
    const char *const dtypes[] = {
        "<u3", "<u16",   "=u8",  "|u4", "u8", "<b2",          "<f1",         "<x8",
        "<M4", "<M8[ns", "<u8x", "<S",  "",   "<V1073741825", "<U268435457", "<V99999999999999999999"};
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        char dictionary[160], cause[64];
        snprintf(dictionary, sizeof dictionary, DICT_OF("[('x', '%s')]", "(7,)"), dtypes[i]);
        snprintf(cause, sizeof cause, "dtype '%s' is not known", dtypes[i]);
        refuse_any(dictionary, cause);
    }
    refuse_any(DICT_OF("('<u8', (3,))", "(7,)"), "a string expected");
    refuse_any(DICT_OF("['<u8']", "(7,)"), "'(' expected");
    refuse_any(DICT_OF("[('x' '<u8')]", "(7,)"), "',' expected");
    refuse_any(DICT_OF("[('x', '<u8' (3,))]", "(7,)"), "',' or ')' expected");
    refuse_any(DICT_OF("[('x', '<u8', (-3,))]", "(7,)"), "negative shape");
    refuse_any(DICT_OF("[('x', '<u8') ('y', '<u8')]", "(7,)"), "',' or ']' expected");
    refuse_any(DICT_OF("[(('t', 'x', '<u8')]", "(7,)"), "')' expected");
    for (int depth = 16; depth <= 17; depth++) {
        char descr[256] = "", dictionary[512];
        for (int i = 0; i < depth; i++)
            strcat(descr, "[('x', ");
        strcat(descr, "'<u8'");
        for (int i = 0; i < depth; i++)
            strcat(descr, ")]");
        snprintf(dictionary, sizeof dictionary, DICT_OF("%s", "(7,)"), descr);
        if (depth == 16)
            accept_any(dictionary, 8, 7, false);
        else
            refuse_any(dictionary, "more than 16 deep");
    }
}

/* A text that is too long for version 1.0, and one in UTF-8. */
static void test_versions(void)
{
    enum { LONG = 1 << 18 };
    static char descr[LONG];
    static unsigned char header[LONG + NPY_HEADER_ROOM];
    size_t length = (size_t)sprintf(descr, "[('x', '<u8')");
    while (length < UINT16_MAX - 600)
        length += (size_t)sprintf(descr + length, ", ('f%zu', '<u8')", length);
    length += (size_t)sprintf(descr + length, "]");
    struct npy_element element = {
        .bytes = 8, .descr = descr, .descr_bytes = length, .major = 1, .dimensions = 1};
    struct npy_header result;
    size_t bytes = npy_format_any(&element, 5, header, sizeof header);
    CHECK(npy_parse_any("in.npy", header, bytes, &result) == HSORT_OK && result.count == 5, "%s",
          status_text());
    CHECK(header[6] == 1, "version %d", header[6]);
    length--; // the bracket
    while (length < sizeof descr - 100)
        length += (size_t)sprintf(descr + length, ", ('f%zu', '<u8')", length);
    length += (size_t)sprintf(descr + length, "]");
    element.descr_bytes = length;
    bytes = npy_format_any(&element, 5, header, sizeof header);
    CHECK(header[6] == 2 && bytes % 64 == 0, "version %d", header[6]);
    CHECK(npy_parse_any("in.npy", header, bytes, &result) == HSORT_OK && result.count == 5 &&
              result.element.descr_bytes == length,
          "%zu bytes of dtype: %s", length, status_text());
    // Around the longest that 16 bits can say.
    for (length = UINT16_MAX - 700; length < UINT16_MAX + 100; length += 7) {
        memset(descr, 'x', length);
        memcpy(descr, "[('", 3);
        memcpy(descr + length - 10, "', '<u8')]", 10);
        element.descr_bytes = length;
        const int64_t count = length % 2 ? 5 : INT64_MAX / 8;
        bytes = npy_format_any(&element, count, header, sizeof header);
        CHECK(npy_parse_any("in.npy", header, bytes, &result) == HSORT_OK && result.count == count &&
                  result.data_offset == (int64_t)bytes && result.element.descr_bytes == length,
              "%zu bytes of dtype: %s", length, status_text());
    }
    element =
        (struct npy_element){.bytes = 4, .descr = "[('\xce\xb1', '<u4')]", .descr_bytes = 15, .major = 3};
    bytes = npy_format_any(&element, 5, header, sizeof header);
    CHECK(header[6] == 3 && npy_parse_any("in.npy", header, bytes, &result) == HSORT_OK, "%s", status_text());
    element.descr = NULL;
    bytes = npy_format_any(&element, 5, header, sizeof header);
    CHECK(npy_parse_any("in.npy", header, bytes, &result) == HSORT_OK && header[6] == 1 &&
              result.element.bytes == 4 && memcmp(result.element.descr, "'|V4'", 5) == 0,
          "%s", status_text());
}

/* Names beyond ASCII: one field in Latin-1, as versions 1.0 and 2.0 have it, and in UTF-8 are one field. */
static void test_names(void)
{
    static const char latin[] = "[('\xe9', '<u4'), ('\xb5', '<u2')]",
                      utf8[] = "[('\xc3\xa9', '<u4'), ('\xc2\xb5', '<u2')]";
    const struct npy_element old = {
        .bytes = 6, .descr = latin, .descr_bytes = strlen(latin), .major = 1, .dimensions = 1};
    const struct npy_element now = {
        .bytes = 6, .descr = utf8, .descr_bytes = strlen(utf8), .major = 3, .dimensions = 1};
    struct npy_element second = old;
    second.major = 2;
    const struct npy_element *const elements[] = {&old, &second, &now};
    unsigned char header[NPY_HEADER_ROOM + 100];
    struct npy_field field;
    for (int i = 0; i < 3; i++) {
        struct npy_element copy = *elements[i];
        status_clear();
        char *descr = npy_copy_descr(elements[i], &copy.descr_bytes);
        copy.descr = descr;
        CHECK(descr && copy.descr_bytes == strlen(utf8) && memcmp(descr, utf8, strlen(utf8)) == 0,
              "version %d", copy.major);
        CHECK(npy_find_field("in.npy", descr, copy.descr_bytes, "\xc2\xb5", &field) == HSORT_OK &&
                  field.offset == 4,
              "%s", status_text());
        CHECK(npy_find_field("in.npy", descr, copy.descr_bytes, "e", &field) == HSORT_ARGUMENT &&
                  strstr(status_text(), "its fields are \xc3\xa9, \xc2\xb5"),
              "%s", status_text());
        status_clear();
        struct npy_header result = {0};
        const size_t bytes = npy_format_any(&copy, 5, header, sizeof header);
        CHECK(header[6] == 3 && npy_parse_any("in.npy", header, bytes, &result) == HSORT_OK &&
                  memcmp(result.element.descr, utf8, strlen(utf8)) == 0,
              "version %d: %s", header[6], status_text());
        free(descr);
    }
}

/* Damage a header in one place: a byte changed, a byte taken out, a piece doubled, or the end cut off. */
static size_t mutate(unsigned char *header, size_t bytes, uint64_t *seed)
{
    const char likely[] = "{}()[]'\",:<>=|-0123456789LuifTrueFalse \n\\";
    const size_t at = check_random(seed) % bytes;
    size_t piece = check_random(seed) % 8 + 1;
    piece = piece < bytes - at ? piece : bytes - at;
    switch (check_random(seed) % 5) {
    case 0:
        header[at] = (unsigned char)check_random(seed);
        return bytes;
    case 1:
        header[at] = (unsigned char)likely[check_random(seed) % (sizeof likely - 1)];
        return bytes;
    case 2:
        memmove(header + at, header + at + piece, bytes - at - piece);
        return bytes - piece;
    case 3:
        memmove(header + at + piece, header + at, bytes - at);
        return bytes + piece;
    default:
        return at;
    }
}

/* The same header, for elements of any kind. */
static void mutated_any(const unsigned char *header, size_t bytes, int number)
{
    struct npy_header result;
    struct npy_field field;
    unsigned char *exact = malloc(bytes + (bytes == 0));
    memcpy(exact, header, bytes);
    status_clear();
    if (npy_parse_any("in.npy", exact, bytes, &result) == HSORT_OK) {
        const struct npy_element *element = &result.element;
        CHECK(element->bytes >= 1 && element->bytes <= NPY_ELEMENT_MAX && result.count >= 0 &&
                  result.count <= INT64_MAX / (int64_t)element->bytes,
              "mutation %d: %zu bytes", number, element->bytes);
        if (npy_find_field("in.npy", element->descr, element->descr_bytes, "in.x", &field) == HSORT_OK)
            CHECK(field.offset + field.bytes <= element->bytes, "mutation %d: field at %zu", number,
                  field.offset);
    } else {
        CHECK(strncmp(status_text(), "in.npy: ", 8) == 0, "mutation %d: %s", number, status_text());
    }
    free(exact);
}

static void test_mutations(uint64_t seed)
{
    const char *const dictionaries[] = {
        DICT_U8 "                     \n",
        "{\"shape\": (7,), \"descr\": \">f4\", \"fortran_order\": True}",
        "{'descr': '<i4', 'fortran_order': False, 'shape': (922337203685477580,), }",
        DICT_OF(EVENTS, "(7,)"),
    };
    int accepted = 0;
    for (int i = 0; i < MUTATIONS; i++) {
        unsigned char header[1024];
        struct npy_header result = {.count = -1};
        size_t bytes = build(1 + i % 3, dictionaries[check_random(&seed) % 4], header);
        for (uint64_t damages = check_random(&seed) % 3 + 1; damages > 0 && bytes > 0; damages--)
            bytes = mutate(header, bytes, &seed);
        mutated_any(header, bytes, i);
        hsort_status status = read_header(header, bytes, &result);
        if (status == HSORT_OK) {
            accepted++;
            CHECK(result.count >= 0 && result.count <= INT64_MAX / (int64_t)hsort_type_bytes(result.type),
                  "mutation %d: count %" PRId64, i, result.count);
            CHECK(result.data_offset > 0 && result.data_offset <= (int64_t)bytes, "mutation %d", i);
        } else {
            CHECK(status == HSORT_FORMAT && strncmp(status_text(), "in.npy: ", 8) == 0, "mutation %d: %s", i,
                  status_text());
            for (const char *c = status_text(); *c; c++)
                CHECK((unsigned char)*c >= ' ' && *c != 0x7f, "mutation %d: character %d in the text", i, *c);
        }
    }
    CHECK(accepted > 0 && accepted < MUTATIONS, "%d of %d mutations accepted", accepted, MUTATIONS);
}

int main(void)
{
    const uint64_t seed = check_seed();
    printf("seed %" PRIu64 "\n", seed);
    test_good();
    test_bad_dtypes();
    test_bad_shapes();
    test_bad_dictionaries();
    test_bad_heads();
    test_round_trip();
    test_fields();
    test_any();
    test_versions();
    test_names();
    test_mutations(seed);
    return check_failures > 0;
}
