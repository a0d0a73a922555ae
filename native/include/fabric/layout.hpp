// The bytes that two processes share. Everything here is an ABI between two binaries, so each size
// and offset is pinned below; change one and RING_ABI_VERSION must change with it.
//
//   record (64-aligned)          wctl page                     rctl page
//   0x00 stamp                   0x000 identity, written once  0x000 read position
//   0x08 record, payload length  0x080 tail                    0x080 taken position
//   0x10 batch sequence          0x100 state                   0x100 waiting flag
//   0x18 kind, flags, writer     0x180 space-waiting number
//   0x20 time, checksum          0x200 counters
//   0x40 payload                 0x280 data wakes
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace fabric {

inline constexpr std::uint32_t kAbiVersion = 2;
inline constexpr std::uint64_t kMagic = 0x314e495246424146;  // "FABFRIN1" read little-endian

// One cache line. Records start on it, so typed arrays and vector loads are aligned on every CPU.
inline constexpr std::uint64_t kLineBytes = 64;
inline constexpr std::uint64_t kHeaderBytes = 64;
// One line that is never handed out: the write position cannot meet the read position.
inline constexpr std::uint64_t kGuardBytes = 64;
// Neighbouring lines are prefetched in pairs (x86) or are 128 bytes long (some arm64): fields that
// different cores write stand this far apart. Not hardware_destructive_interference_size, which
// differs between compilers and would make the layout differ too.
inline constexpr std::size_t kHotBytes = 128;

inline constexpr std::uint64_t kControlBytes = 4096;
inline constexpr std::uint64_t kCapacityMinBytes = 4ULL << 20;
// Lengths in a header are 32-bit and a record is at most an eighth of the ring.
inline constexpr std::uint64_t kCapacityMaxBytes = 16ULL << 30;
inline constexpr std::uint64_t kHugePageBytes = 2ULL << 20;
inline constexpr std::uint64_t kBasePageBytes = 4096;

// In the low six bits of a stamp, which positions (multiples of 64) leave free.
enum class State : std::uint64_t { Busy = 1, Committed = 2, Pad = 3 };

enum class Pages : std::uint32_t { Huge = 0, Transparent = 1, Base = 2 };

enum class RingState : std::uint32_t { Open = 1, Closed = 2, Poisoned = 3 };

// What the reader says in `waiting` before it sleeps. The writer takes any other value for Pipe.
enum Waiting : std::uint32_t { kAwake = 0, kWaitsOnPipe = 1, kWaitsOnFutex = 2 };

// A word left over from an earlier lap holds another position, and payload bytes cannot match a
// key that their producer does not know. So nothing needs zeroing and the reader writes nothing.
constexpr std::uint64_t stamp_of(std::uint64_t position, State state, std::uint64_t key) {
  return (position | static_cast<std::uint64_t>(state)) ^ key;
}

constexpr std::uint64_t record_bytes(std::uint64_t payload_bytes) {
  return (kHeaderBytes + payload_bytes + kLineBytes - 1) & ~(kLineBytes - 1);
}

constexpr std::uint64_t max_record_bytes(std::uint64_t capacity) { return capacity / 8; }

struct RecordHeader {
  std::uint64_t stamp;  // only through stamp_ref(): the one word both sides synchronise on
  std::uint32_t record_length;
  std::uint32_t payload_length;
  std::uint64_t batch_sequence;
  std::uint16_t kind;
  std::uint16_t flags;
  std::uint32_t writer;
  std::uint64_t time_ns;
  std::uint32_t checksum;
  std::uint32_t reserved[5];
};

static_assert(sizeof(RecordHeader) == kHeaderBytes);
static_assert(offsetof(RecordHeader, stamp) == 0x00);
static_assert(offsetof(RecordHeader, record_length) == 0x08);
static_assert(offsetof(RecordHeader, payload_length) == 0x0c);
static_assert(offsetof(RecordHeader, batch_sequence) == 0x10);
static_assert(offsetof(RecordHeader, kind) == 0x18);
static_assert(offsetof(RecordHeader, writer) == 0x1c);
static_assert(offsetof(RecordHeader, time_ns) == 0x20);
static_assert(offsetof(RecordHeader, checksum) == 0x28);

struct Counters {
  std::atomic<std::uint64_t> claims;
  std::atomic<std::uint64_t> claim_retries;
  std::atomic<std::uint64_t> fulls;
  std::atomic<std::uint64_t> pads;
  std::atomic<std::uint64_t> gap_bytes;
  std::atomic<std::uint64_t> aborts;
  std::atomic<std::uint64_t> wakeups;
};

// Written by the broker only; the consumer maps it read-only.
struct WriterControl {
  std::uint64_t magic;
  std::uint32_t abi_version;
  std::uint32_t header_bytes;
  std::uint64_t ring_id;
  std::uint64_t capacity;
  std::uint64_t key;
  std::uint64_t start_position;
  std::uint32_t guard_bytes;
  std::uint32_t page_bytes;
  Pages pages;
  std::uint32_t creator_pid;  // for a person who looks; no code may take it for liveness
  alignas(kHotBytes) std::atomic<std::uint64_t> tail;
  alignas(kHotBytes) std::atomic<RingState> state;
  // 0 = no writer waits for space; each wait has a new number, so that a reader, which cannot
  // clear it, signals once for each.
  alignas(kHotBytes) std::atomic<std::uint64_t> space_waiting;
  alignas(kHotBytes) Counters counters;
  // The word that a reader sleeps on by FUTEX_WAIT; each wake-up of such a reader adds 1.
  alignas(kHotBytes) std::atomic<std::uint32_t> data_wakes;
};

static_assert(offsetof(WriterControl, magic) == 0x000);
static_assert(offsetof(WriterControl, abi_version) == 0x008);
static_assert(offsetof(WriterControl, ring_id) == 0x010);
static_assert(offsetof(WriterControl, capacity) == 0x018);
static_assert(offsetof(WriterControl, key) == 0x020);
static_assert(offsetof(WriterControl, start_position) == 0x028);
static_assert(offsetof(WriterControl, guard_bytes) == 0x030);
static_assert(offsetof(WriterControl, page_bytes) == 0x034);
static_assert(offsetof(WriterControl, pages) == 0x038);
static_assert(offsetof(WriterControl, tail) == 0x080);
static_assert(offsetof(WriterControl, state) == 0x100);
static_assert(offsetof(WriterControl, space_waiting) == 0x180);
static_assert(offsetof(WriterControl, counters) == 0x200);
static_assert(offsetof(WriterControl, data_wakes) == 0x280);
static_assert(sizeof(WriterControl) <= kControlBytes);

// Written by the consumer, read by the broker as hostile bytes. The broker writes one field of it:
// it takes `waiting` back when it sends a wake-up.
struct ReaderControl {
  alignas(kHotBytes) std::atomic<std::uint64_t> read_position;
  alignas(kHotBytes) std::atomic<std::uint64_t> taken_position;
  alignas(kHotBytes) std::atomic<std::uint32_t> waiting;
};

static_assert(offsetof(ReaderControl, read_position) == 0x000);
static_assert(offsetof(ReaderControl, taken_position) == 0x080);
static_assert(offsetof(ReaderControl, waiting) == 0x100);
static_assert(sizeof(ReaderControl) <= kControlBytes);

// Lock-free in every build, or an atomic on a read-only page would need a lock that it cannot take.
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);
static_assert(std::atomic_ref<std::uint64_t>::is_always_lock_free);
static_assert(sizeof(std::atomic<std::uint64_t>) == 8 && sizeof(std::atomic<std::uint32_t>) == 4);

inline std::atomic_ref<std::uint64_t> stamp_ref(std::byte* record) {
  return std::atomic_ref<std::uint64_t>(reinterpret_cast<RecordHeader*>(record)->stamp);
}

// C++20 has no atomic_ref to const. The load of a lock-free atomic never writes, so it is allowed on
// a page that is mapped read-only.
inline std::atomic_ref<std::uint64_t> stamp_ref(const std::byte* record) {
  return stamp_ref(const_cast<std::byte*>(record));
}

}  // namespace fabric
