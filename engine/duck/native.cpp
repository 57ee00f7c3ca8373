#include "native.h"

#include <atomic>
#include <mutex>
#include <unordered_map>

// Of DuckDB's C API; the library is linked by the bindings. Some of it lets C++
// exceptions through, when there is no memory: they must not reach the Go code that
// calls this, which would end the process.
extern "C" {
void duckdb_unsafe_vector_assign_string_element_len(void *vector, uint64_t index, const char *str, uint64_t len);
void duckdb_vector_ensure_validity_writable(void *vector);
void duckdb_scalar_function_set_init(void *function, void (*init)(void *));
void *duckdb_scalar_function_init_get_extra_info(void *info);
void duckdb_scalar_function_init_get_client_context(void *info, void **context);
void duckdb_scalar_function_init_set_state(void *info, void *state, void (*destroy)(void *));
void duckdb_scalar_function_init_set_error(void *info, const char *error);
void *duckdb_scalar_function_get_state(void *info);
uint64_t duckdb_client_context_get_connection_id(void *context);
void duckdb_destroy_client_context(void **context);
}

namespace {

// What one statement has of an account; a connection runs one statement at a time.
struct share {
	std::atomic<int64_t> used {0};
	int64_t states = 0;
};

struct account {
	explicit account(int64_t limit) : limit(limit) {
	}
	const int64_t limit;
	std::atomic<int64_t> used {0};
	std::mutex lock;
	std::unordered_map<uint64_t, share> shares; // by connection
};

// One place of a function, in one thread.
struct state {
	account *of;
	uint64_t connection;
	share *statement;
	int64_t live = 0;     // bytes of the last texts
	int64_t reserved = 0; // bytes of texts that are being made

	bool add(int64_t bytes) {
		int64_t mine = statement->used.fetch_add(bytes) + bytes;
		int64_t all = of->used.fetch_add(bytes) + bytes;
		if (bytes > 0 && (mine > of->limit / 2 || all > of->limit)) {
			statement->used -= bytes;
			of->used -= bytes;
			return false;
		}
		return true;
	}
	// Short texts are not worth the work.
	static int64_t counted(int64_t bytes) {
		return bytes < (1 << 16) ? 0 : bytes;
	}
	bool hold(int64_t bytes) {
		bytes = counted(bytes);
		if (bytes != live || reserved != 0) {
			if (!add(bytes - live - reserved)) {
				return false;
			}
			live = bytes;
			reserved = 0;
		}
		return true;
	}
};

void destroy(void *p) {
	auto s = static_cast<state *>(p);
	s->hold(0);
	{
		std::lock_guard<std::mutex> guard(s->of->lock);
		if (--s->statement->states == 0) {
			s->of->shares.erase(s->connection);
		}
	}
	delete s;
}

} // namespace

static void begin(void *info) {
	try {
		auto of = static_cast<account *>(static_cast<sqe_native *>(duckdb_scalar_function_init_get_extra_info(info))->account);
		void *context = nullptr;
		duckdb_scalar_function_init_get_client_context(info, &context);
		uint64_t connection = duckdb_client_context_get_connection_id(context);
		duckdb_destroy_client_context(&context);
		auto s = new state();
		s->of = of;
		s->connection = connection;
		{
			std::lock_guard<std::mutex> guard(of->lock);
			s->statement = &of->shares[connection]; // stays where it is
			s->statement->states++;
		}
		duckdb_scalar_function_init_set_state(info, s, destroy);
	} catch (...) {
		duckdb_scalar_function_init_set_error(info, "no memory");
	}
}

void sqe_native_counts(void *function) {
	duckdb_scalar_function_set_init(function, begin);
}

void *sqe_account(int64_t limit) {
	return new account(limit);
}

int64_t sqe_account_used(void *p) {
	return static_cast<account *>(p)->used;
}

int sqe_reserve(void *info, int64_t bytes) {
	auto s = static_cast<state *>(duckdb_scalar_function_get_state(info));
	if (!s->add(bytes)) {
		return 1;
	}
	s->reserved += bytes;
	return 0;
}

int sqe_assign_strings(void *info, void *vector, uint64_t count, const char *bytes, const uint64_t *ends, const uint8_t *null) {
	auto s = static_cast<state *>(duckdb_scalar_function_get_state(info));
	// What was made is there until it is copied.
	int64_t reserved = s->reserved;
	s->reserved = 0;
	bool done = s->hold(ends[count - 1]);
	try {
		uint64_t start = 0;
		for (uint64_t i = 0; done && i < count; i++) {
			uint64_t end = ends[i];
			if (!null[i]) {
				duckdb_unsafe_vector_assign_string_element_len(vector, i, bytes + start, end - start);
			}
			start = end;
		}
	} catch (...) {
		done = false;
	}
	s->add(-reserved);
	return done ? 0 : 1;
}

int sqe_ensure_validity(void *vector) {
	try {
		duckdb_vector_ensure_validity_writable(vector);
		return 0;
	} catch (...) {
		return 1;
	}
}
