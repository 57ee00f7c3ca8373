#include <stdint.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

// Both return 0, or 1 when there is no memory.

// Assigns count strings (those that are not null) in one call.
int sqe_assign_strings(void *vector, uint64_t count, const char *bytes, const uint64_t *ends, const uint8_t *null);
// Makes the validity of a vector one that can be written.
int sqe_ensure_validity(void *vector);

#ifdef __cplusplus
}
#endif
