/* Records made from their numbers, and summaries of records in a row.
 *
 * Random numbers x(0) = 0, x(1), ... of 128 bits follow each other by one multiplication and one addition. Record i
 * begins at x(i + 1), so each record shares nine of its ten numbers with the next:
 *
 *     binary    bytes   0  key            upper 80 bits of x(i + 1)
 *                      10  nine times 10  upper 80 bits of x(i + 2) .. x(i + 10), each XORed with a constant
 *     ASCII             0  key            ten digits to the base 95, as ' ' .. '~': eight of the upper half of
 *                                         x(i + 1), least first, then two of its lower half
 *                      10  two blanks
 *                      12  number         i in 32 hexadecimal digits
 *                      44  two blanks
 *                      46  filler         the lowest 13 hexadecimal digits of x(i + 1), each four times
 *                      98  CR LF
 *     skewed            the key begins as that of record t does, where i has t bits, over a random part of its
 *                       first six bytes: so half of all records, those with the most bits, begin alike
 *
 * Facts: gensort and valsort 1.5 by Chris Nyberg, http://www.ordinal.com/gensort.html. Versions up to 1.4 have
 * other binary records. Jumps: Brown, "Random number generation with arbitrary strides", 1994. CRC by 16 bytes:
 * Kounavis and Berry, "A systematic approach to building high performance software-based CRC generators", 2005. */
#include "src/files/gensort.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "kernels/base/lesser.h"

/* ---- Random numbers ------------------------------------------------------------------------------------ */

#define WORDS(high, low) ((uint128)UINT64_C(high) << 64 | UINT64_C(low))
#define FACTOR WORDS(0x2360ed051fc65da4, 0x4385df649fccf645)
#define ADDEND WORDS(0x4a696d4772617952, 0x4950202020202001)

static uint128 number_after(uint128 number)
{
    return FACTOR * number + ADDEND;
}

/* x(position). The step is squared for each bit of the position, so that it is 1, 2, 4, ... numbers long. */
static uint128 number_at(uint128 position)
{
    uint128 factor = FACTOR, addend = ADDEND, number = 0;
    for (; position > 0; position >>= 1) {
        if (position & 1)
            number = factor * number + addend;
        addend *= factor + 1;
        factor *= factor;
    }
    return number;
}

static int bit_length(uint128 value)
{
    const uint64_t high = (uint64_t)(value >> 64), low = (uint64_t)value;
    if (high != 0)
        return 128 - __builtin_clzll(high);
    return low != 0 ? 64 - __builtin_clzll(low) : 0;
}

/* ---- Records ------------------------------------------------------------------------------------------- */

/* What the ten parts of a binary record are XORed with: 80 bits each. */
static const struct {
    uint64_t high;
    uint16_t low;
} parts[] = {{UINT64_C(0), 0},
             {UINT64_C(0xf0e8e4e2e1d8d4d2), 0xd1cc},
             {UINT64_C(0xcac9c6c5c3b8b4b2), 0xb1ac},
             {UINT64_C(0xaaa9a6a5a39c9a99), 0x9695},
             {UINT64_C(0x938e8d8b87787472), 0x716c},
             {UINT64_C(0x6a696665635c5a59), 0x5655},
             {UINT64_C(0x534e4d4b473c3a39), 0x3635},
             {UINT64_C(0x332e2d2b271e1d1b), 0x170f},
             {UINT64_C(0xc8c4c2c198949291), 0x8ce0},
             {UINT64_C(0x170f332e2d2b271e), 0x1d1b}};
enum { PARTS = sizeof parts / sizeof parts[0], PART_BYTES = GENSORT_RECORD_BYTES / PARTS };

static void put_part(unsigned char *bytes, int part, uint128 number)
{
    const uint64_t high = __builtin_bswap64((uint64_t)(number >> 64) ^ parts[part].high);
    const uint16_t low = __builtin_bswap16((uint16_t)((uint16_t)(number >> 48) ^ parts[part].low));
    memcpy(bytes, &high, sizeof high); // little-endian
    memcpy(bytes + sizeof high, &low, sizeof low);
}

static void put_digits(unsigned char *bytes, int digits, uint64_t value)
{
    for (int d = 0; d < digits; d++, value /= 95)
        bytes[d] = (unsigned char)(' ' + value % 95);
}

static void put_ascii_key(unsigned char *bytes, uint128 number)
{
    put_digits(bytes, 8, (uint64_t)(number >> 64));
    put_digits(bytes + 8, 2, (uint64_t)number);
}

/* `shared` is the number that the key may share a part with, if it is skewed. */
static void put_binary(bool skewed, uint128 number, uint128 shared, unsigned char *bytes)
{
    const int shared_bits = skewed ? (int)(number >> 32) & 63 : 0; // more than 48 mean none
    uint128 key = number;
    if (shared_bits > 0 && shared_bits <= 48)
        key ^= (key ^ shared) & ~(uint128)0 << (128 - shared_bits);
    put_part(bytes, 0, key);
    for (int part = 1; part < PARTS; part++) {
        number = number_after(number);
        put_part(bytes + part * PART_BYTES, part, number);
    }
}

static void put_ascii(bool skewed, uint128 record, uint128 number, const unsigned char *shared_key,
                      unsigned char *bytes)
{
    static const char hex[] = "0123456789ABCDEF";
    const int shared_bytes = skewed ? (int)(number >> 32) & 7 : 0; // more than 6 mean none
    put_ascii_key(bytes, number);
    if (shared_bytes <= 6)
        memcpy(bytes, shared_key, (size_t)shared_bytes);
    memset(bytes + 10, ' ', 2);
    for (int d = 0; d < 32; d++)
        bytes[12 + d] = (unsigned char)hex[(int)(record >> (124 - 4 * d)) & 15];
    memset(bytes + 44, ' ', 2);
    for (int d = 0; d < 13; d++)
        memset(bytes + 46 + 4 * d, hex[(int)(number >> (48 - 4 * d)) & 15], 4);
    memcpy(bytes + 98, "\r\n", 2);
}

/* Make records in a row, by one thread. The number that keys are skewed to changes when the record's number gets
 * another bit, which is rare. */
static void fill_block(const struct gensort *kind, uint128 first, int count, unsigned char *bytes)
{
    uint128 number = number_at(first + 1), shared = 0;
    unsigned char shared_key[GENSORT_KEY_BYTES] = {0};
    int length = -1;
    for (int i = 0; i < count; i++, bytes += GENSORT_RECORD_BYTES) {
        const uint128 record = first + (uint128)i;
        if (kind->skewed && bit_length(record) != length) {
            length = bit_length(record);
            shared = number_at((uint128)length + 1);
            put_ascii_key(shared_key, shared);
        }
        if (kind->ascii)
            put_ascii(kind->skewed, record, number, shared_key, bytes);
        else
            put_binary(kind->skewed, number, shared, bytes);
        number = number_after(number);
    }
}

void gensort_fill(const struct gensort *kind, uint128 first, int64_t count, void *records)
{
    enum { BLOCK_RECORDS = 4096 }; // a jump costs as much as about 50 records
    const int64_t blocks = divide_up(count, BLOCK_RECORDS);
#pragma omp parallel for if (blocks > 1)
    for (int64_t b = 0; b < blocks; b++) {
        const int64_t begin = b * BLOCK_RECORDS, left = count - begin;
        fill_block(kind, first + (uint128)begin, left < BLOCK_RECORDS ? (int)left : BLOCK_RECORDS,
                   (unsigned char *)records + begin * GENSORT_RECORD_BYTES);
    }
}

/* ---- CRC-32 -------------------------------------------------------------------------------------------- */

enum { SLICES = 16 };

/* of[k][b]: what a byte b does to the remainder if k more bytes follow it. */
struct crc_table {
    uint32_t of[SLICES][256];
};

static void make_crc_table(struct crc_table *table)
{
    const uint32_t polynomial = UINT32_C(0xedb88320); // of IEEE 802.3, lowest bit first
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t remainder = byte;
        for (int bit = 0; bit < 8; bit++)
            remainder = remainder >> 1 ^ (remainder & 1 ? polynomial : 0);
        table->of[0][byte] = remainder;
    }
    for (int slice = 1; slice < SLICES; slice++)
        for (int byte = 0; byte < 256; byte++) {
            const uint32_t before = table->of[slice - 1][byte];
            table->of[slice][byte] = before >> 8 ^ table->of[0][before & 255];
        }
}

/* What the four bytes of a little-endian word do to the remainder if `slice` more bytes follow them. */
static uint32_t crc_word(const struct crc_table *table, int slice, uint32_t word)
{
    return table->of[slice + 3][word & 255] ^ table->of[slice + 2][word >> 8 & 255] ^
           table->of[slice + 1][word >> 16 & 255] ^ table->of[slice][word >> 24];
}

static uint32_t crc_of_record(const struct crc_table *table, const unsigned char *bytes)
{
    uint32_t remainder = ~UINT32_C(0), words[4];
    for (int at = 0; at < GENSORT_RECORD_BYTES / SLICES; at++, bytes += SLICES) {
        memcpy(words, bytes, sizeof words);
        remainder = crc_word(table, 12, words[0] ^ remainder) ^ crc_word(table, 8, words[1]) ^
                    crc_word(table, 4, words[2]) ^ crc_word(table, 0, words[3]);
    }
    static_assert(GENSORT_RECORD_BYTES % SLICES == 4, "one word is left");
    memcpy(words, bytes, sizeof words[0]);
    return ~crc_word(table, 0, words[0] ^ remainder);
}

/* ---- Summaries ----------------------------------------------------------------------------------------- */

/* Each call makes its own table, in microseconds, so that nothing is shared between calls. */
void gensort_look(struct gensort_summary *summary, const void *records, int64_t count)
{
    enum { WORTH_THREADS = 4096 };
    const unsigned char *bytes = records;
    struct gensort_summary next = {.records = (uint64_t)count};
    struct crc_table table;
    // The sum of words of 32 bits has room here for 2^32 of them; not every compiler has a reduction of 128 bits.
    uint64_t checksum = 0, unordered = 0, first_unordered = UINT64_MAX, duplicates = 0;
    if (count <= 0)
        return;
    make_crc_table(&table);
#pragma omp parallel for if (count >= WORTH_THREADS) reduction(+ : checksum, unordered, duplicates)          \
    reduction(min : first_unordered)
    for (int64_t i = 0; i < count; i++) {
        const unsigned char *record = bytes + i * GENSORT_RECORD_BYTES;
        checksum += crc_of_record(&table, record);
        // The join below judges the first record.
        const int order = i > 0 ? memcmp(record - GENSORT_RECORD_BYTES, record, GENSORT_KEY_BYTES) : -1;
        duplicates += order == 0;
        unordered += order > 0;
        if (order > 0 && (uint64_t)i < first_unordered)
            first_unordered = (uint64_t)i;
    }
    next.checksum = checksum;
    next.unordered = unordered;
    next.first_unordered = unordered > 0 ? first_unordered : 0;
    next.duplicates = duplicates;
    memcpy(next.first, bytes, GENSORT_RECORD_BYTES);
    memcpy(next.last, bytes + (count - 1) * GENSORT_RECORD_BYTES, GENSORT_RECORD_BYTES);
    gensort_join(summary, &next);
}

void gensort_join(struct gensort_summary *all, const struct gensort_summary *next)
{
    if (next->records == 0)
        return;
    if (all->records == 0) {
        *all = *next;
        return;
    }
    const int order = memcmp(all->last, next->first, GENSORT_KEY_BYTES);
    if (all->unordered == 0 && order > 0)
        all->first_unordered = all->records;
    else if (all->unordered == 0 && next->unordered > 0)
        all->first_unordered = all->records + next->first_unordered;
    all->unordered += next->unordered + (order > 0);
    all->duplicates += next->duplicates + (order == 0);
    all->records += next->records;
    all->checksum += next->checksum;
    memcpy(all->last, next->last, GENSORT_RECORD_BYTES);
}

/* ---- Summaries as bytes: five numbers of 128 bits, the upper half first, each half in the byte order of the
 * machine; then the first and the last record. ---- */

enum { FIRST_UNORDERED, UNORDERED, RECORDS, DUPLICATES, CHECKSUM, NUMBERS };
static_assert(NUMBERS * 16 + 2 * GENSORT_RECORD_BYTES == GENSORT_SUMMARY_BYTES, "nothing is between them");

void gensort_write_summary(const struct gensort_summary *summary, void *bytes)
{
    uint64_t numbers[NUMBERS][2] = {[FIRST_UNORDERED] = {0, summary->first_unordered},
                                    [UNORDERED] = {0, summary->unordered},
                                    [RECORDS] = {0, summary->records},
                                    [DUPLICATES] = {0, summary->duplicates}};
    numbers[CHECKSUM][0] = (uint64_t)(summary->checksum >> 64);
    numbers[CHECKSUM][1] = (uint64_t)summary->checksum;
    unsigned char *out = bytes;
    memcpy(out, numbers, sizeof numbers);
    memcpy(out + sizeof numbers, summary->first, GENSORT_RECORD_BYTES);
    memcpy(out + sizeof numbers + GENSORT_RECORD_BYTES, summary->last, GENSORT_RECORD_BYTES);
}

bool gensort_read_summary(struct gensort_summary *summary, const void *bytes)
{
    const unsigned char *in = bytes;
    uint64_t numbers[NUMBERS][2];
    memcpy(numbers, in, sizeof numbers);
    for (int n = 0; n < CHECKSUM; n++)
        if (numbers[n][0] != 0)
            return false;
    const uint64_t records = numbers[RECORDS][1], first_unordered = numbers[FIRST_UNORDERED][1];
    const uint64_t unordered = numbers[UNORDERED][1], duplicates = numbers[DUPLICATES][1];
    // Each record except the first is unordered, a duplicate or neither.
    if (records == 0 || unordered >= records || duplicates >= records - unordered)
        return false;
    if ((unordered == 0) != (first_unordered == 0) || first_unordered > records - unordered)
        return false;
    summary->checksum = (uint128)numbers[CHECKSUM][0] << 64 | numbers[CHECKSUM][1];
    summary->records = records;
    summary->unordered = unordered;
    summary->first_unordered = first_unordered;
    summary->duplicates = duplicates;
    memcpy(summary->first, in + sizeof numbers, GENSORT_RECORD_BYTES);
    memcpy(summary->last, in + sizeof numbers + GENSORT_RECORD_BYTES, GENSORT_RECORD_BYTES);
    return true;
}

void gensort_checksum_text(uint128 checksum, char text[33])
{
    const uint64_t high = (uint64_t)(checksum >> 64), low = (uint64_t)checksum;
    if (high != 0)
        snprintf(text, 33, "%" PRIx64 "%016" PRIx64, high, low);
    else
        snprintf(text, 33, "%" PRIx64, low);
}
