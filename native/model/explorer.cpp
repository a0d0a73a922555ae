#include "explorer.hpp"

#include <cstring>

namespace fabric::model {

namespace {

std::uint64_t mix(std::uint64_t value) {
  value ^= value >> 33;
  value *= 0xff51afd7ed558ccdULL;
  value ^= value >> 33;
  value *= 0xc4ceb9fe1a85ec53ULL;
  return value ^ (value >> 33);
}

}  // namespace

Fingerprint fingerprint_of(const std::string& bytes) {
  Fingerprint print{0x9e3779b97f4a7c15ULL ^ bytes.size(), 0xc2b2ae3d27d4eb4fULL + bytes.size()};
  for (std::size_t at = 0; at < bytes.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min<std::size_t>(8, bytes.size() - at));
    print.low = mix(print.low ^ word);
    print.high = mix(print.high + word * 0x9e3779b97f4a7c15ULL) ^ print.low;
  }
  return print;
}

std::pair<std::uint32_t, bool> StateSet::insert(Fingerprint print) {
  if (2 * prints_.size() >= slots_.size()) grow();
  std::size_t slot = print.low & (slots_.size() - 1);
  for (; slots_[slot] != 0; slot = (slot + 1) & (slots_.size() - 1)) {
    if (prints_[slots_[slot] - 1] == print) return {slots_[slot] - 1, false};
  }
  prints_.push_back(print);
  slots_[slot] = size();
  return {size() - 1, true};
}

void StateSet::grow() {
  std::vector<std::uint32_t> slots(slots_.size() * 4, 0);
  for (std::uint32_t number = 0; number < size(); number++) {
    std::size_t slot = prints_[number].low & (slots.size() - 1);
    while (slots[slot] != 0) slot = (slot + 1) & (slots.size() - 1);
    slots[slot] = number + 1;
  }
  slots_ = std::move(slots);
}

std::vector<bool> can_reach(std::uint32_t states, const std::vector<Edge>& edges,
                            const std::vector<std::uint32_t>& finished) {
  // The edges by their target, so that the search can walk them backwards.
  std::vector<std::uint32_t> begin(states + 1, 0);
  for (const Edge& edge : edges) begin[edge.to + 1]++;
  for (std::uint32_t state = 0; state < states; state++) begin[state + 1] += begin[state];
  std::vector<std::uint32_t> sources(edges.size());
  std::vector<std::uint32_t> filled(begin.begin(), begin.end() - 1);
  for (const Edge& edge : edges) sources[filled[edge.to]++] = edge.from;

  std::vector<bool> reached(states, false);
  std::vector<std::uint32_t> open = finished;
  for (const std::uint32_t state : finished) reached[state] = true;
  while (!open.empty()) {
    const std::uint32_t state = open.back();
    open.pop_back();
    for (std::uint32_t at = begin[state]; at < begin[state + 1]; at++) {
      if (reached[sources[at]]) continue;
      reached[sources[at]] = true;
      open.push_back(sources[at]);
    }
  }
  return reached;
}

}  // namespace fabric::model
