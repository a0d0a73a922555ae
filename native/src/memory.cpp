#include "fabric/memory.hpp"

#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <new>

#include "fabric/errors.hpp"
#include "fabric/fault_guard.hpp"
#include "seals.hpp"

namespace fabric {

UniqueFd& UniqueFd::operator=(UniqueFd&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = other.release();
  }
  return *this;
}

void UniqueFd::reset() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  if (this != &other) {
    reset();
    data_ = std::exchange(other.data_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
  }
  return *this;
}

void Mapping::reset() {
  if (data_) munmap(data_, bytes_);
  data_ = nullptr;
  bytes_ = 0;
}

namespace {

std::uint64_t random_word() {
  std::uint64_t word = 0;
  while (getrandom(&word, sizeof word, 0) != sizeof word) {
    if (errno != EINTR) {
      throw RingFailure(ErrorCode::SystemCallFailed, "getrandom failed: " + errno_text(errno));
    }
  }
  return word;
}

void open_pipe(UniqueFd& read_end, UniqueFd& write_end) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
    throw RingFailure(ErrorCode::SystemCallFailed, "pipe failed: " + errno_text(errno));
  }
  read_end = UniqueFd(ends[0]);
  write_end = UniqueFd(ends[1]);
}

// One 4 KiB page that is there before anyone maps it.
void open_control(const char* name, UniqueFd& fd, Mapping& mapping) {
  fd = anonymous_file(name, 0);
  int error = fd.valid() ? posix_fallocate(fd.get(), 0, kControlBytes) : errno;
  if (error == 0) {
    mapping = map_shared(fd.get(), kControlBytes, PROT_READ | PROT_WRITE);
    if (!mapping) error = errno;
  }
  if (error != 0) {
    throw RingFailure(ErrorCode::MemoryUnavailable,
                      std::string("no memory for ") + name + ": " + errno_text(error));
  }
}

void check_request(std::uint64_t capacity, std::uint64_t start) {
  const bool power_of_two = capacity != 0 && (capacity & (capacity - 1)) == 0;
  if (!power_of_two || capacity < kCapacityMinBytes || capacity > kCapacityMaxBytes) {
    throw RingFailure(ErrorCode::CapacityInvalid,
                      "capacityBytes must be a power of two from 4 MiB to 16 GiB, not " +
                          std::to_string(capacity),
                      "capacityBytes");
  }
  if (start % kLineBytes != 0) {
    throw RingFailure(ErrorCode::OptionInvalid, "startPosition must be a multiple of 64",
                      "startPosition");
  }
}

void write_identity(WriterControl& writer, std::uint64_t capacity, Pages pages,
                    std::uint64_t start) {
  writer.magic = kMagic;
  writer.abi_version = kAbiVersion;
  writer.header_bytes = kHeaderBytes;
  writer.ring_id = random_word();
  writer.capacity = capacity;
  writer.key = random_word();
  writer.start_position = start;
  writer.guard_bytes = kGuardBytes;
  writer.page_bytes = page_bytes_of(pages);
  writer.pages = pages;
  writer.creator_pid = static_cast<std::uint32_t>(getpid());
  // relaxed: the descriptors are passed afterwards, and passing them orders all of this.
  writer.tail.store(start, std::memory_order_relaxed);
  writer.state.store(RingState::Open, std::memory_order_relaxed);
}

}  // namespace

std::uint32_t page_bytes_of(Pages pages) {
  return static_cast<std::uint32_t>(pages == Pages::Base ? kBasePageBytes : kHugePageBytes);
}

RingMemory RingMemory::create(std::uint64_t capacity, HugePages huge_pages, std::uint64_t start) {
  check_request(capacity, start);
  RingMemory memory;
  open_pipe(memory.data_pipe_read_, memory.data_pipe_write_);
  open_pipe(memory.space_pipe_read_, memory.space_pipe_write_);
  open_control("fabric-wctl", memory.wctl_fd_, memory.wctl_);
  open_control("fabric-rctl", memory.rctl_fd_, memory.rctl_);
  memory.data_ = allocate_data(capacity, huge_pages);

  auto* writer = new (memory.wctl_.data()) WriterControl{};
  auto* reader = new (memory.rctl_.data()) ReaderControl{};
  write_identity(*writer, capacity, memory.data_.pages, start);
  reader->read_position.store(start, std::memory_order_relaxed);
  reader->taken_position.store(start, std::memory_order_relaxed);

  // After our own writable mappings exist: the seals forbid every later one.
  seal_against_writers(memory.data_.fd.get(), capacity);
  seal_against_writers(memory.wctl_fd_.get(), kControlBytes);
  seal_size(memory.rctl_fd_.get());
  return memory;
}

std::vector<int> RingMemory::descriptors() const {
  return {data_.fd.get(), wctl_fd_.get(), rctl_fd_.get(), data_pipe_read_.get(),
          space_pipe_write_.get()};
}

void RingMemory::close_peer_descriptors() {
  data_pipe_read_.reset();
  space_pipe_write_.reset();
}

namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw RingFailure(ErrorCode::DescriptorInvalid, "not the descriptors of a ring: " + what,
                    "descriptors");
}

// fstat() of a newer glibc would need glibc 2.33; the structure is the kernel's on 64-bit hosts.
int describe(const UniqueFd& fd, struct stat& info) {
  return static_cast<int>(syscall(SYS_fstat, fd.get(), &info));
}

std::uint64_t checked_memory_size(const UniqueFd& fd, const char* name) {
  struct stat info {};
  if (describe(fd, info) != 0) refuse(std::string(name) + ": " + errno_text(errno));
  // Without these seals the peer could cut the file short, which is a SIGBUS here.
  if (!S_ISREG(info.st_mode) || !size_is_sealed(fd.get())) {
    refuse(std::string(name) + " is not memory whose size is sealed");
  }
  return static_cast<std::uint64_t>(info.st_size);
}

void check_pipe(const UniqueFd& fd, const char* name) {
  struct stat info {};
  if (describe(fd, info) != 0 || !S_ISFIFO(info.st_mode)) {
    refuse(std::string(name) + " is not a pipe");
  }
}

Mapping map_or_refuse(const UniqueFd& fd, std::uint64_t bytes, int protection, const char* name) {
  Mapping mapping = map_shared(fd.get(), bytes, protection);
  if (!mapping) refuse(std::string(name) + " can't be mapped: " + errno_text(errno));
  return mapping;
}

void check_identity(const WriterControl& writer, std::uint64_t data_bytes) {
  if (writer.magic != kMagic) refuse("the magic word is missing");
  if (writer.abi_version != kAbiVersion || writer.header_bytes != kHeaderBytes) {
    throw RingFailure(ErrorCode::AbiMismatch, "the broker's ring has ABI version " +
                                                  std::to_string(writer.abi_version) +
                                                  ", this consumer reads version " +
                                                  std::to_string(kAbiVersion));
  }
  const std::uint64_t capacity = writer.capacity;
  if (capacity != data_bytes || capacity < kCapacityMinBytes || capacity > kCapacityMaxBytes ||
      (capacity & (capacity - 1)) != 0) {
    refuse("the capacity does not match the memory");
  }
}

}  // namespace

RingAttachment RingAttachment::attach(std::vector<UniqueFd> descriptors) {
  if (descriptors.size() != kDescriptors) {
    refuse(std::to_string(descriptors.size()) + " descriptors, not " +
           std::to_string(kDescriptors));
  }
  const std::uint64_t data_bytes = checked_memory_size(descriptors[0], "data");
  if (checked_memory_size(descriptors[1], "wctl") != kControlBytes ||
      checked_memory_size(descriptors[2], "rctl") != kControlBytes) {
    refuse("a control page has a wrong size");
  }
  check_pipe(descriptors[3], "the data pipe");
  check_pipe(descriptors[4], "the space pipe");

  RingAttachment ring;
  ring.wctl_ = map_or_refuse(descriptors[1], kControlBytes, PROT_READ, "wctl");
  check_identity(*ring.writer(), data_bytes);
  ring.rctl_ = map_or_refuse(descriptors[2], kControlBytes, PROT_READ | PROT_WRITE, "rctl");
  // relaxed: passing the descriptors ordered it. The reader starts here, and a header that is not on
  // a line of its own could reach over the end of the data.
  if (ring.reader()->read_position.load(std::memory_order_relaxed) % kLineBytes != 0) {
    refuse("the read position is not aligned");
  }
  ring.data_ = map_or_refuse(descriptors[0], data_bytes, PROT_READ, "data");
  // Only saves the first lap its page faults, so a kernel without it changes nothing.
  (void)madvise(ring.data_.data(), ring.data_.bytes(), 22 /* MADV_POPULATE_READ */);
  ring.data_pipe_ = std::move(descriptors[3]);
  ring.space_pipe_ = std::move(descriptors[4]);
  guard_readonly(ring.data_.data(), ring.data_.bytes(), ring.writer()->ring_id);
  return ring;
}

RingAttachment::~RingAttachment() {
  if (data_) unguard_readonly(data_.data());
}

}  // namespace fabric
