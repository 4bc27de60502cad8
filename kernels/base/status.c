#include "kernels/base/status.h"
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

static _Thread_local char text[STATUS_TEXT_BYTES];
static _Thread_local bool is_of_mpi; /* the text */

hsort_status status_fail(hsort_status status, const char *format, ...)
{
    if (text[0] != '\0' && (status != HSORT_MPI || is_of_mpi))
        return status;
    is_of_mpi = status == HSORT_MPI;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return status;
}

const char *status_text(void)
{
    return text;
}

void status_clear(void)
{
    text[0] = '\0';
    is_of_mpi = false;
}

const char *hsort_strerror(hsort_status status)
{
    switch (status) {
#define X(name, exit_code, message) \
    case name:                      \
        return message;
        HSORT_STATUS_LIST(X)
#undef X
    }
    return "unknown status";
}

int hsort_exit_code(hsort_status status)
{
    switch (status) {
#define X(name, exit_code, message) \
    case name:                      \
        return exit_code;
        HSORT_STATUS_LIST(X)
#undef X
    }
    return 70;
}

const char *hsort_type_name(hsort_type type)
{
    switch (type) {
#define X(name, short_name, bytes) \
    case name:                     \
        return short_name;
        HSORT_TYPE_LIST(X)
#undef X
    }
    return NULL;
}

size_t hsort_type_bytes(hsort_type type)
{
    switch (type) {
#define X(name, short_name, bytes) \
    case name:                     \
        return bytes;
        HSORT_TYPE_LIST(X)
#undef X
    }
    return 0;
}

#define X(name, short_name) short_name,
static const char *const engine_names[] = {HSORT_ENGINE_LIST(X)};
static const char *const exchange_names[] = {HSORT_EXCHANGE_LIST(X)};
static const char *const transport_names[] = {HSORT_TRANSPORT_LIST(X)};
#undef X

const char *hsort_engine_name(hsort_engine engine)
{
    return (unsigned)engine < HSORT_ENGINES ? engine_names[engine] : NULL;
}

const char *hsort_exchange_name(hsort_exchange exchange)
{
    return (unsigned)exchange < HSORT_EXCHANGES ? exchange_names[exchange] : NULL;
}

const char *hsort_transport_name(hsort_transport transport)
{
    return (unsigned)transport < HSORT_TRANSPORTS ? transport_names[transport] : NULL;
}
