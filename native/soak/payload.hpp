// What the records of a long run hold: who wrote them, which number, and a checksum over all of it,
// so that a byte of another record, of another lap or of nobody is found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace fabric::soak {

inline std::uint64_t next_random(std::uint64_t& state) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

struct PayloadHead {
  std::uint64_t checksum;  // of everything after it
  std::uint64_t writer;
  std::uint64_t number;  // counted by each writer for itself
  std::uint64_t seed;
};

inline constexpr std::uint64_t kPayloadMin = sizeof(PayloadHead);

inline std::uint64_t mixed(std::uint64_t sum, std::uint64_t word) {
  return (sum << 7 | sum >> 57) * 0x9e3779b97f4a7c15 + word;
}

// By words: a run of gigabytes shall wait for the ring and not for this.
inline std::uint64_t checksum(const std::byte* bytes, std::size_t count) {
  std::uint64_t sum = count;
  std::size_t at = 0;
  for (; at + 8 <= count; at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes + at, 8);
    sum = mixed(sum, word);
  }
  for (; at < count; at++) sum = mixed(sum, static_cast<std::uint64_t>(bytes[at]));
  return sum;
}

inline void fill_payload(std::byte* payload, std::size_t bytes, std::uint64_t writer,
                         std::uint64_t number) {
  PayloadHead head{0, writer, number, writer << 40 ^ number};
  std::uint64_t word = head.seed * 0x9e3779b97f4a7c15 + 1;
  std::size_t at = kPayloadMin;
  for (; at + 8 <= bytes; at += 8) {
    word = word * 6364136223846793005ULL + 1442695040888963407ULL;
    std::memcpy(payload + at, &word, 8);
  }
  for (; at < bytes; at++) payload[at] = static_cast<std::byte>(word >> (at % 8 * 8));
  std::memcpy(payload, &head, sizeof head);
  head.checksum = checksum(payload + 8, bytes - 8);
  std::memcpy(payload, &head.checksum, 8);
}

inline bool payload_is_whole(const std::byte* payload, std::size_t bytes, PayloadHead& head) {
  if (bytes < kPayloadMin) return false;
  std::memcpy(&head, payload, sizeof head);
  return head.checksum == checksum(payload + 8, bytes - 8);
}

// Mostly small, some of many pages, now and then the largest that the ring takes.
inline std::uint64_t mixed_size(std::uint64_t& random, std::uint64_t max_bytes) {
  const std::uint64_t draw = next_random(random) >> 16;
  const std::uint64_t kind = draw % 10'000;
  const std::uint64_t more = draw >> 14;
  std::uint64_t bytes = kPayloadMin + more % 480;
  if (kind >= 8'000) bytes = kPayloadMin + more % 8'192;
  if (kind >= 9'900) bytes = kPayloadMin + more % 65'536;
  if (kind >= 9'999) bytes = max_bytes;
  return bytes < max_bytes ? bytes : max_bytes;
}

}  // namespace fabric::soak
