#include "shared_ring.hpp"

#include <algorithm>
#include <unordered_map>

#include "fabric/wake.hpp"

namespace fabric::addon {

namespace {

// The addon is loaded once for the process however many environments use it, and so is this.
std::mutex published_mutex;
std::unordered_map<std::uint64_t, std::weak_ptr<SharedRing>>& published() {
  // Never destroyed: a worker may outlive the statics of a process that exits.
  static auto* const rings = new std::unordered_map<std::uint64_t, std::weak_ptr<SharedRing>>();
  return *rings;
}

}  // namespace

SharedRing::SharedRing(std::uint64_t capacity, HugePages huge_pages, std::uint64_t start)
    : memory(RingMemory::create(capacity, huge_pages, start)),
      ring({memory.data(), capacity, memory.writer(), memory.reader(), memory.data_pipe()}, start) {
}

SharedRing::~SharedRing() {
  ring.close();
  const std::lock_guard lock(published_mutex);
  published().erase(memory.writer()->ring_id);
}

void SharedRing::publish(const std::shared_ptr<SharedRing>& ring) {
  const std::lock_guard lock(published_mutex);
  published()[ring->memory.writer()->ring_id] = ring;
}

std::shared_ptr<SharedRing> SharedRing::find(std::uint64_t ring_id) {
  const std::lock_guard lock(published_mutex);
  const auto found = published().find(ring_id);
  return found == published().end() ? nullptr : found->second.lock();
}

bool SharedRing::wait_for_space(int bell, std::uint64_t seen) {
  const std::lock_guard lock(waiters_mutex_);
  const auto me = std::find(waiters_.begin(), waiters_.end(), bell);
  const bool armed = ring.arm_space(seen);
  if (armed && me == waiters_.end()) waiters_.push_back(bell);
  if (!armed && me != waiters_.end()) waiters_.erase(me);
  // What did not arm has disarmed, for all: the others arm again, each with what it saw.
  if (!armed) ring_bells_but(bell);
  return armed;
}

void SharedRing::stop_waiting(int bell) {
  const std::lock_guard lock(waiters_mutex_);
  std::erase(waiters_, bell);
  if (waiters_.empty()) ring.disarm_space();
}

void SharedRing::ring_other_bells(int bell) {
  const std::lock_guard lock(waiters_mutex_);
  ring_bells_but(bell);
}

void SharedRing::ring_bells_but(int bell) const {
  for (const int other : waiters_) {
    if (other != bell && other >= 0) ring_bell(other);
  }
}

}  // namespace fabric::addon
