// One ring of this process with all handles that write into it, each on the thread of its own
// environment. The ring lives as long as one of them.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "fabric/memory.hpp"
#include "fabric/ring_writer.hpp"

namespace fabric::addon {

class SharedRing {
 public:
  // Throws RingFailure.
  SharedRing(std::uint64_t capacity, HugePages huge_pages, std::uint64_t start);
  // Closes the ring: by now no handle has a claim open.
  ~SharedRing();
  SharedRing(const SharedRing&) = delete;
  SharedRing& operator=(const SharedRing&) = delete;

  // From now on find() knows the ring, as long as a handle holds it.
  static void publish(const std::shared_ptr<SharedRing>& ring);
  // Null: there is no such ring in this process, or its last handle is gone.
  static std::shared_ptr<SharedRing> find(std::uint64_t ring_id);

  // All writers that wait for space share one number in wctl and one pipe, from which only one
  // thread gets each byte. So they are listed, and who learns something tells the others.
  // `bell`: the waiter's own eventfd, or -1 as long as it is the ring's only handle.
  // True: `bell` waits, and the ring is armed. False: space has come since `seen`, nobody waits.
  [[nodiscard]] bool wait_for_space(int bell, std::uint64_t seen);
  void stop_waiting(int bell);
  // The pipe was read: whoever else waits looks at the ring again.
  void ring_other_bells(int bell);

  RingMemory memory;
  RingWriter ring;

 private:
  void ring_bells_but(int bell) const;

  // Never held while a record is claimed or settled, only while somebody starts or stops to wait.
  std::mutex waiters_mutex_;
  std::vector<int> waiters_;
};

}  // namespace fabric::addon
