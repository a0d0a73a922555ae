// Owners of what the kernel gives: descriptors, mappings, and the memory of one ring on either side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "fabric/layout.hpp"

namespace fabric {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept;
  ~UniqueFd() { reset(); }
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset();

 private:
  int fd_ = -1;
};

class Mapping {
 public:
  Mapping() = default;
  Mapping(std::byte* data, std::size_t bytes) : data_(data), bytes_(bytes) {}
  Mapping(Mapping&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping() { reset(); }
  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  explicit operator bool() const { return data_ != nullptr; }
  void reset();

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

enum class HugePages { Require, Try, Off };

// Maps a shared file at an address that is a multiple of 2 MiB, as a transparent huge page needs.
// Not kept over fork: a child must neither hold the pages nor write them. Empty = failed, errno set.
Mapping map_shared(int fd, std::size_t bytes, int protection);

// memfd_create with CLOEXEC, sealing and no exec bit; mode 0600. Invalid = failed, errno set.
UniqueFd anonymous_file(const char* name, unsigned flags);

struct DataRegion {
  UniqueFd fd;
  Mapping mapping;  // every page of it is there: neither side meets a SIGBUS later
  Pages pages = Pages::Base;
  std::string reason;
};

// 2 MiB pages, else transparent huge pages, else 4 KiB. Throws RingFailure; a failed try leaves
// nothing allocated.
DataRegion allocate_data(std::uint64_t capacity, HugePages huge_pages);

std::uint32_t page_bytes_of(Pages pages);

// The broker's side. Owns memory, descriptors and pipes.
class RingMemory {
 public:
  // `start`: a multiple of 64, other than 0 in tests only. Throws RingFailure.
  static RingMemory create(std::uint64_t capacity, HugePages huge_pages, std::uint64_t start);

  WriterControl* writer() const { return reinterpret_cast<WriterControl*>(wctl_.data()); }
  ReaderControl* reader() const { return reinterpret_cast<ReaderControl*>(rctl_.data()); }
  std::byte* data() const { return data_.mapping.data(); }
  Pages pages() const { return data_.pages; }
  const std::string& reason() const { return data_.reason; }
  int data_pipe() const { return data_pipe_write_.get(); }
  int space_pipe() const { return space_pipe_read_.get(); }

  // [data, wctl, rctl, data pipe's read end, space pipe's write end]
  std::vector<int> descriptors() const;
  // The consumer has them now: with our copies open we would never learn that its ends are gone.
  void close_peer_descriptors();

 private:
  DataRegion data_;
  UniqueFd wctl_fd_;
  UniqueFd rctl_fd_;
  Mapping wctl_;
  Mapping rctl_;
  UniqueFd data_pipe_read_;
  UniqueFd data_pipe_write_;
  UniqueFd space_pipe_read_;
  UniqueFd space_pipe_write_;
};

// The consumer's side. Data and wctl are mapped read-only.
class RingAttachment {
 public:
  static constexpr std::size_t kDescriptors = 5;

  // Owns the descriptors from the call on, also when it throws RingFailure.
  static RingAttachment attach(std::vector<UniqueFd> descriptors);

  RingAttachment(RingAttachment&&) = default;
  ~RingAttachment();

  const WriterControl* writer() const {
    return reinterpret_cast<const WriterControl*>(wctl_.data());
  }
  ReaderControl* reader() const { return reinterpret_cast<ReaderControl*>(rctl_.data()); }
  const std::byte* data() const { return data_.data(); }
  std::uint64_t capacity() const { return data_.bytes(); }
  int data_pipe() const { return data_pipe_.get(); }
  int space_pipe() const { return space_pipe_.get(); }

 private:
  RingAttachment() = default;

  Mapping data_;
  Mapping wctl_;
  Mapping rctl_;
  UniqueFd data_pipe_;
  UniqueFd space_pipe_;
};

}  // namespace fabric
