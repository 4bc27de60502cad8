/* Messages as MPI gets them: each message that begins must be ended, under the request it began with, and what is sent must not be
 * overwritten before it has left. Most MPI libraries copy short messages at once, and so hide both mistakes. A test can also have
 * messages that do not begin at all, or that bring other bytes. */
#ifndef WATCHED_MESSAGES_H
#define WATCHED_MESSAGES_H

#include <mpi.h>
#include <stdbool.h>
#include "tests/support/check.h"

enum {
    WATCHED_MOST = 64,
    WATCHED_BYTES = 16 /* of messages whose bytes are watched: notices, and few others */
};

static struct watched_message {
    const MPI_Request *request; /* NULL: no message */
    const void *sent;           /* NULL: it is received, or of another length */
    int bytes;
    char copy[WATCHED_BYTES];
} watched[WATCHED_MOST];

static bool watches;                     /* this rank: its messages are watched; all are of host memory */
static bool cannot_send, cannot_receive; /* this rank: messages do not begin */
static int wrong_message; /* 1: the next message that this rank begins to receive ends with another byte, 2: the one after; 0: none */
static char *wrong_byte;

static void watch_begin(const MPI_Request *request, const void *sent, int bytes)
{
    struct watched_message *place = NULL;
    for (int i = 0; watches && i < WATCHED_MOST; i++) {
        CHECK(watched[i].request != request, "a message begins under the request of one that has not ended");
        if (!place && !watched[i].request)
            place = &watched[i];
    }
    if (!place)
        return;
    *place = (struct watched_message){.request = request, .sent = sent, .bytes = bytes};
    if (sent)
        memcpy(place->copy, sent, (size_t)bytes);
}

static void watch_end(const MPI_Request *request)
{
    for (int i = 0; i < WATCHED_MOST; i++) {
        if (watched[i].request != request)
            continue;
        CHECK(!watched[i].sent || memcmp(watched[i].sent, watched[i].copy, (size_t)watched[i].bytes) == 0,
              "%d bytes were changed before they had left", watched[i].bytes);
        watched[i].request = NULL;
    }
}

/* Count the messages that have begun and not ended, and forget them. */
static inline int watched_left(void)
{
    int left = 0;
    for (int i = 0; i < WATCHED_MOST; i++) {
        left += watched[i].request != NULL;
        watched[i].request = NULL;
    }
    return left;
}

int MPI_Isend(const void *from, int n, MPI_Datatype type, int to, int tag, MPI_Comm all, MPI_Request *sent)
{
    if (cannot_send)
        return MPI_ERR_OTHER;
    watch_begin(sent, type == MPI_BYTE && n == WATCHED_BYTES ? from : NULL, n);
    return PMPI_Isend(from, n, type, to, tag, all, sent);
}

int MPI_Irecv(void *to, int count, MPI_Datatype type, int from, int tag, MPI_Comm world, MPI_Request *request)
{
    if (cannot_receive)
        return MPI_ERR_OTHER;
    watch_begin(request, NULL, 0);
    if (wrong_message > 0 && --wrong_message == 0)
        wrong_byte = (char *)to + count - 1;
    return PMPI_Irecv(to, count, type, from, tag, world, request);
}

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    const int code = PMPI_Test(request, flag, status);
    if (code == MPI_SUCCESS && *flag)
        watch_end(request);
    return code;
}

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    const int code = PMPI_Wait(request, status);
    watch_end(request);
    return code;
}

int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
    const int code = PMPI_Waitall(count, requests, statuses);
    if (wrong_byte)
        *wrong_byte ^= 1;
    wrong_byte = NULL;
    for (int i = 0; i < count; i++)
        watch_end(&requests[i]);
    return code;
}

#endif
