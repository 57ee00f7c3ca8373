#include <stdint.h>
#include <stdlib.h>

// Assigns count strings (those that are not null) in one call.
void sqe_assign_strings(void *vector, uint64_t count, const char *bytes, const uint64_t *ends, const uint8_t *null);
