#include "fabric/checksum.hpp"

#include <array>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_acle.h>
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace fabric {

namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::uint32_t kPolynomial = 0xedb88320;
using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

// Table t: what a byte with t bytes behind it makes of a CRC.
constexpr Tables make_tables() {
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; byte++) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; bit++) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    tables[0][byte] = crc;
  }
  for (std::size_t behind = 1; behind < 8; behind++) {
    for (std::size_t byte = 0; byte < 256; byte++) {
      const std::uint32_t crc = tables[behind - 1][byte];
      tables[behind][byte] = (crc >> 8) ^ tables[0][crc & 255];
    }
  }
  return tables;
}

constexpr Tables kTables = make_tables();

template <typename Word>
Word load(const std::byte* bytes) {
  Word word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

// The functions below take and give the CRC's register, which is its complement.
std::uint32_t by_tables(std::uint32_t state, const std::byte* bytes, std::size_t length) {
  for (; length >= 8; length -= 8, bytes += 8) {
    const auto low = load<std::uint32_t>(bytes) ^ state;
    const auto high = load<std::uint32_t>(bytes + 4);
    state = kTables[7][low & 255] ^ kTables[6][(low >> 8) & 255] ^ kTables[5][(low >> 16) & 255] ^
            kTables[4][low >> 24] ^ kTables[3][high & 255] ^ kTables[2][(high >> 8) & 255] ^
            kTables[1][(high >> 16) & 255] ^ kTables[0][high >> 24];
  }
  for (; length > 0; length--, bytes++) {
    state = (state >> 8) ^ kTables[0][(state ^ static_cast<std::uint32_t>(*bytes)) & 255];
  }
  return state;
}

#if defined(__x86_64__)

#define FABRIC_CLMUL __attribute__((target("pclmul,sse4.1")))

FABRIC_CLMUL __m128i block(const std::byte* bytes) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
}

// What stands in `sum`, moved ahead by as many bits as the two constants are for, and `next`.
FABRIC_CLMUL __m128i fold(__m128i sum, __m128i constants, __m128i next) {
  const __m128i low = _mm_clmulepi64_si128(sum, constants, 0x00);
  const __m128i high = _mm_clmulepi64_si128(sum, constants, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

// 128 bits to the 32 of a register: V. Gopal et al., Fast CRC Computation for Generic Polynomials Using
// PCLMULQDQ Instruction, Intel 2009, whose names the constants have.
FABRIC_CLMUL std::uint32_t reduce(__m128i sum) {
  const __m128i k4 = _mm_set_epi64x(0, 0x00ccaa009e);
  const __m128i k5 = _mm_set_epi64x(0, 0x0163cd6124);
  const __m128i mu_and_p = _mm_set_epi64x(0x01f7011641, 0x01db710641);
  const __m128i low32 = _mm_setr_epi32(-1, 0, 0, 0);
  sum = _mm_xor_si128(_mm_srli_si128(sum, 8), _mm_clmulepi64_si128(k4, sum, 0x00));
  sum = _mm_xor_si128(_mm_srli_si128(sum, 4),
                      _mm_clmulepi64_si128(_mm_and_si128(sum, low32), k5, 0x00));
  __m128i quotient = _mm_clmulepi64_si128(_mm_and_si128(sum, low32), mu_and_p, 0x10);
  quotient = _mm_clmulepi64_si128(_mm_and_si128(quotient, low32), mu_and_p, 0x00);
  return static_cast<std::uint32_t>(_mm_extract_epi32(_mm_xor_si128(sum, quotient), 1));
}

FABRIC_CLMUL std::uint32_t by_clmul(std::uint32_t state, const std::byte* bytes,
                                    std::size_t length) {
  if (length < 64) return by_tables(state, bytes, length);
  const __m128i k1_k2 = _mm_set_epi64x(0x01c6e41596, 0x0154442bd4);
  const __m128i k3_k4 = _mm_set_epi64x(0x00ccaa009e, 0x01751997d0);
  __m128i a = _mm_xor_si128(block(bytes), _mm_cvtsi32_si128(static_cast<int>(state)));
  __m128i b = block(bytes + 16);
  __m128i c = block(bytes + 32);
  __m128i d = block(bytes + 48);
  bytes += 64;
  length -= 64;
  // Four chains: a multiplication takes longer than until the next may begin.
  for (; length >= 64; length -= 64, bytes += 64) {
    a = fold(a, k1_k2, block(bytes));
    b = fold(b, k1_k2, block(bytes + 16));
    c = fold(c, k1_k2, block(bytes + 32));
    d = fold(d, k1_k2, block(bytes + 48));
  }
  __m128i sum = fold(fold(fold(a, k3_k4, b), k3_k4, c), k3_k4, d);
  for (; length >= 16; length -= 16, bytes += 16) sum = fold(sum, k3_k4, block(bytes));
  return by_tables(reduce(sum), bytes, length);
}

#elif defined(__aarch64__)

__attribute__((target("+crc"))) std::uint32_t by_crc_extension(std::uint32_t state,
                                                               const std::byte* bytes,
                                                               std::size_t length) {
  for (; length >= 8; length -= 8, bytes += 8) {
    state = __crc32d(state, load<std::uint64_t>(bytes));
  }
  for (; length > 0; length--, bytes++) {
    state = __crc32b(state, static_cast<std::uint8_t>(*bytes));
  }
  return state;
}

#endif

detail::Crc32 choose() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("pclmul") != 0 && __builtin_cpu_supports("sse4.1") != 0) {
    return [](std::uint32_t crc, const std::byte* bytes, std::size_t length) {
      return ~by_clmul(~crc, bytes, length);
    };
  }
#elif defined(__aarch64__)
  if ((getauxval(AT_HWCAP) & HWCAP_CRC32) != 0) {
    return [](std::uint32_t crc, const std::byte* bytes, std::size_t length) {
      return ~by_crc_extension(~crc, bytes, length);
    };
  }
#endif
  return detail::crc32_by_tables;
}

std::string check(const Crc32Rows& job) {
  if (job.rows > job.row_offset.size() || job.rows > job.row_length.size() ||
      job.rows > job.crcs.size()) {
    return "rows is larger than the arrays that describe them";
  }
  const std::uint64_t size = job.source.size();
  for (std::uint64_t row = 0; row < job.rows; row++) {
    // Both are 32-bit in 64-bit arithmetic: the sum can't wrap.
    const std::uint64_t offset = job.row_offset[row];
    const std::uint64_t end = offset + job.row_length[row];
    if (end <= size) continue;
    return "row " + std::to_string(row) + ": bytes " + std::to_string(offset) + " to " +
           std::to_string(end) + " of a source of " + std::to_string(size);
  }
  return {};
}

}  // namespace

namespace detail {

std::uint32_t crc32_by_tables(std::uint32_t crc, const std::byte* bytes, std::size_t length) {
  return ~by_tables(~crc, bytes, length);
}

Crc32 fastest_crc32() {
  static const Crc32 fastest = choose();
  return fastest;
}

}  // namespace detail

std::uint32_t crc32(std::uint32_t crc, std::span<const std::byte> bytes) {
  return detail::fastest_crc32()(crc, bytes.data(), bytes.size());
}

std::string crc32_rows(const Crc32Rows& job) {
  if (std::string wrong = check(job); !wrong.empty()) return wrong;
  const detail::Crc32 fastest = detail::fastest_crc32();
  for (std::uint64_t row = 0; row < job.rows; row++) {
    job.crcs[row] =
        fastest(job.crcs[row], job.source.data() + job.row_offset[row], job.row_length[row]);
  }
  return {};
}

}  // namespace fabric
