/* How many threads a rank may have. OpenMP ends the process where it cannot make the threads that are asked
 * for, so whoever takes a number of threads from outside compares it with this first. A leaf: every layer may
 * include it. */
#ifndef THREADS_H
#define THREADS_H

/* 4 for each processing unit of the machine, and at least 64. Not collective. */
int threads_max(void);

#endif
