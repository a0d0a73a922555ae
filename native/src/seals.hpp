// What neither side may do to a ring's memory once it is offered.
#pragma once

#include <cstdint>

namespace fabric {

// No resize and no new writable mapping, by anyone; then tries one, for a kernel before 5.13
// accepts the seal on 2 MiB pages and ignores it. Throws RingFailure.
void seal_against_writers(int fd, std::uint64_t bytes);

// No resize. For rctl, which the consumer writes: if it could cut the file, the broker's next look
// would be a SIGBUS. Throws RingFailure.
void seal_size(int fd);

bool size_is_sealed(int fd);

}  // namespace fabric
