// Says in one line which ring a crash belongs to: a write through a read-only mapping is a SIGSEGV,
// and a bare one tells a user nothing.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fabric {

// Any thread. Installs the handler on first use; it prints and then hands over to the handler that
// was there before, so the process ends as it would have. At most 256 ranges have a line of their own.
void guard_readonly(const void* start, std::size_t bytes, std::uint64_t ring_id);
void unguard_readonly(const void* start);

}  // namespace fabric
