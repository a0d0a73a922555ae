// Ways to copy a record and ways to read it: the candidates, and the one plain loop that reads every
// word in every contestant.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace bench {

using Copy = void (*)(std::byte* to, const std::byte* from, std::size_t bytes);
using Sum = std::uint64_t (*)(const std::byte* from, std::size_t bytes);

// Sums are compared, so no load can be left out. Modulo 2^64, whatever the order of the words.
// `Ahead` bytes are asked for early; 0 leaves that to the hardware.
template <std::size_t Ahead>
std::uint64_t sum_words(const std::byte* from, std::size_t bytes) {
  using Words = std::uint64_t __attribute__((vector_size(32)));
  Words sums[2] = {};
  std::size_t at = 0;
  for (; at + 64 <= bytes; at += 64) {
    if constexpr (Ahead != 0) __builtin_prefetch(from + at + Ahead, 0, 3);
    Words low;
    Words high;
    std::memcpy(&low, from + at, 32);  // may be unaligned: a peer's buffer begins anywhere
    std::memcpy(&high, from + at + 32, 32);
    sums[0] += low;
    sums[1] += high;
  }
  std::uint64_t total = 0;
  for (; at + 8 <= bytes; at += 8) {
    std::uint64_t word;
    std::memcpy(&word, from + at, 8);
    total += word;
  }
  for (int lane = 0; lane < 4; lane++) total += sums[0][lane] + sums[1][lane];
  return total;
}

inline void copy_plain(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}

#if defined(__x86_64__)
// `to` is 64-aligned, as every payload is; what is left over goes by memcpy.
__attribute__((target("avx2"))) inline void copy_stream(std::byte* to, const std::byte* from,
                                                        std::size_t bytes) {
  std::size_t at = 0;
  for (; at + 64 <= bytes; at += 64) {
    const auto low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + at));
    const auto high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + at + 32));
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + at), low);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + at + 32), high);
  }
  std::memcpy(to + at, from + at, bytes - at);
  // Non-temporal stores are not ordered by the release of the stamp that follows.
  _mm_sfence();
}

__attribute__((target("avx512f"))) inline void copy_stream_512(std::byte* to, const std::byte* from,
                                                               std::size_t bytes) {
  std::size_t at = 0;
  for (; at + 64 <= bytes; at += 64) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + at), _mm512_loadu_si512(from + at));
  }
  std::memcpy(to + at, from + at, bytes - at);
  _mm_sfence();
}

// Ordinary stores, source and target asked for ahead of use.
__attribute__((target("avx2,prfchw"))) inline void copy_prefetch(std::byte* to,
                                                                 const std::byte* from,
                                                                 std::size_t bytes) {
  constexpr std::size_t ahead = 1024;
  std::size_t at = 0;
  for (; at + 64 <= bytes; at += 64) {
    __builtin_prefetch(from + at + ahead, 0, 0);
    __builtin_prefetch(to + at + ahead, 1, 3);
    const auto low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + at));
    const auto high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + at + 32));
    _mm256_store_si256(reinterpret_cast<__m256i*>(to + at), low);
    _mm256_store_si256(reinterpret_cast<__m256i*>(to + at + 32), high);
  }
  std::memcpy(to + at, from + at, bytes - at);
}

// Then pushes the lines out to the cache that both cores share.
__attribute__((target("cldemote"))) inline void copy_demote(std::byte* to, const std::byte* from,
                                                            std::size_t bytes) {
  std::memcpy(to, from, bytes);
  for (std::size_t at = 0; at < bytes; at += 64) _cldemote(to + at);
}

inline void copy_string(std::byte* to, const std::byte* from, std::size_t bytes) {
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}
#endif

// Null: unknown here, or the CPU lacks it.
inline Copy copy_named(std::string_view name) {
  if (name == "memcpy") return copy_plain;
#if defined(__x86_64__)
  if (name == "stream" && __builtin_cpu_supports("avx2")) return copy_stream;
  if (name == "stream512" && __builtin_cpu_supports("avx512f")) return copy_stream_512;
  if (name == "prefetch" && __builtin_cpu_supports("avx2")) return copy_prefetch;
  // A hint in the space of no-operations: older CPUs pass over it.
  if (name == "demote") return copy_demote;
  if (name == "movsb") return copy_string;
#endif
  return nullptr;
}

inline Sum sum_named(std::string_view name) {
  if (name == "plain") return sum_words<0>;
  if (name == "ahead512") return sum_words<512>;
  if (name == "ahead2k") return sum_words<2048>;
  return nullptr;
}

}  // namespace bench
