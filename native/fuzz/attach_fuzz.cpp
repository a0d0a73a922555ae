// Descriptors and pages that a peer sent, of whatever kind and content: attach() maps a ring or says
// why not, and what it mapped can be read.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fabric/errors.hpp"
#include "fabric/memory.hpp"
#include "fabric/ring_reader.hpp"
#include "input.hpp"

using namespace fabric;
using namespace fabric::fuzz;

namespace {

constexpr std::uint64_t kDataBytes = kCapacityMinBytes;
constexpr int kSealed = F_SEAL_SHRINK | F_SEAL_GROW;

UniqueFd file_of(std::uint64_t bytes, int seals) {
  UniqueFd fd = anonymous_file("fabric-fuzz", 0);
  if (ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) __builtin_trap();
  if (seals) fcntl(fd.get(), F_ADD_SEALS, seals);
  return fd;
}

// Filled once: 4 MiB for each input would be all that the fuzzer does.
int data_file() {
  static const UniqueFd fd = file_of(kDataBytes, kSealed);
  return fd.get();
}

// A ring's page as a broker writes it, with some of its bytes changed.
UniqueFd page(Input& input, std::uint64_t bytes, int seals, bool identity) {
  UniqueFd fd = file_of(bytes, 0);
  WriterControl writer{};
  if (identity) {
    writer.magic = kMagic;
    writer.abi_version = kAbiVersion;
    writer.header_bytes = kHeaderBytes;
    writer.capacity = kDataBytes;
  }
  std::uint8_t raw[sizeof writer];
  std::memcpy(raw, static_cast<const void*>(&writer), sizeof raw);
  for (int edits = input.take<std::uint8_t>() % 8; edits > 0; edits--) {
    raw[input.take<std::uint16_t>() % sizeof raw] ^= input.take<std::uint8_t>();
  }
  if (pwrite(fd.get(), raw, sizeof raw, 0) < 0) __builtin_trap();
  if (seals) fcntl(fd.get(), F_ADD_SEALS, seals);
  return fd;
}

void pipe_of(UniqueFd& read_end, UniqueFd& write_end) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) __builtin_trap();
  read_end = UniqueFd(ends[0]);
  write_end = UniqueFd(ends[1]);
}

std::vector<UniqueFd> descriptors(Input& input) {
  const std::uint8_t shape = input.take<std::uint8_t>();
  const std::uint64_t bytes = shape & 1 ? input.take<std::uint16_t>() + sizeof(WriterControl)
                                        : kControlBytes;
  const int seals = shape & 2 ? input.take<std::uint8_t>() & kSealed : kSealed;
  std::vector<UniqueFd> all(RingAttachment::kDescriptors);
  all[0] = UniqueFd(fcntl(data_file(), F_DUPFD_CLOEXEC, 0));
  all[1] = page(input, bytes, seals, true);
  all[2] = page(input, bytes, seals, false);
  UniqueFd other_read;
  UniqueFd other_write;
  pipe_of(all[3], other_write);
  pipe_of(other_read, all[4]);
  if (shape & 4) std::swap(all[input.take<std::uint8_t>() % 5], all[input.take<std::uint8_t>() % 5]);
  if (shape & 8) all[input.take<std::uint8_t>() % 5].reset();
  if (shape & 16) all.pop_back();
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  try {
    const RingAttachment memory = RingAttachment::attach(descriptors(input));
    require(memory.capacity() == kDataBytes);
    require(memory.reader()->read_position % kLineBytes == 0);
    RingReader reader({memory.data(), memory.capacity(), memory.writer(), memory.reader(),
                       memory.space_pipe()});
    for (int i = 0; i < 4; i++) {
      const NextResult result = reader.next();
      if (const auto* record = std::get_if<Record>(&result)) reader.release(record->position);
    }
  } catch (const RingFailure& failure) {
    require(failure.what()[0] != 0);
  }
  return 0;
}
