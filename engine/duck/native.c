#include "native.h"

// Of DuckDB's C API; the library is linked by the bindings.
extern void duckdb_unsafe_vector_assign_string_element_len(void *vector, uint64_t index, const char *str, uint64_t len);

void sqe_assign_strings(void *vector, uint64_t count, const char *bytes, const uint64_t *ends, const uint8_t *null) {
	uint64_t start = 0;
	for (uint64_t i = 0; i < count; i++) {
		uint64_t end = ends[i];
		if (!null[i]) {
			duckdb_unsafe_vector_assign_string_element_len(vector, i, bytes + start, end - start);
		}
		start = end;
	}
}
