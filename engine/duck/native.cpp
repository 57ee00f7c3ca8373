#include "native.h"

// Of DuckDB's C API; the library is linked by the bindings. Some of it lets C++
// exceptions through, when there is no memory: they must not reach the Go code that
// calls this, which would end the process.
extern "C" {
void duckdb_unsafe_vector_assign_string_element_len(void *vector, uint64_t index, const char *str, uint64_t len);
void duckdb_vector_ensure_validity_writable(void *vector);
}

int sqe_assign_strings(void *vector, uint64_t count, const char *bytes, const uint64_t *ends, const uint8_t *null) {
	try {
		uint64_t start = 0;
		for (uint64_t i = 0; i < count; i++) {
			uint64_t end = ends[i];
			if (!null[i]) {
				duckdb_unsafe_vector_assign_string_element_len(vector, i, bytes + start, end - start);
			}
			start = end;
		}
		return 0;
	} catch (...) {
		return 1;
	}
}

int sqe_ensure_validity(void *vector) {
	try {
		duckdb_vector_ensure_validity_writable(vector);
		return 0;
	} catch (...) {
		return 1;
	}
}
