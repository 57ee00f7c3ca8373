#ifndef SQE_NATIVE_H
#define SQE_NATIVE_H

#include <stdint.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

// An account counts the texts of the native functions of one database: those of the rows
// at hand, until the same function has its next rows, and those that are being made.
// DuckDB counts neither. Its statements may have limit bytes together, and half of them each.
void *sqe_account(int64_t limit);
int64_t sqe_account_used(void *account);

// What a native function has as extra info.
typedef struct {
	int64_t function; // its index
	void *account;
} sqe_native;

// Makes a function, whose extra info is a sqe_native, count its texts: for each thread that
// computes it, and for each place of it.
void sqe_native_counts(void *function);
// Counts bytes for the function beside its last texts, until sqe_assign_strings ends.
// Returns 1, and counts nothing, when they are too many.
int sqe_reserve(void *info, int64_t bytes);

// These return 0, or 1 when there is no memory.

// Assigns count strings (those that are not null) in one call, and counts them.
int sqe_assign_strings(void *info, void *vector, uint64_t count, const char *bytes, const uint64_t *ends, const uint8_t *null);
// Makes the validity of a vector one that can be written.
int sqe_ensure_validity(void *vector);

#ifdef __cplusplus
}
#endif

#endif
