// A fuzzer's bytes, read as numbers and runs of bytes until they are used up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace fabric::fuzz {

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : bytes_(data, size) {}

  bool empty() const { return bytes_.empty(); }
  std::size_t left() const { return bytes_.size(); }

  // 0 once nothing is left.
  template <typename T>
  T take() {
    T value{};
    const std::size_t count = bytes_.size() < sizeof(T) ? bytes_.size() : sizeof(T);
    if (count > 0) std::memcpy(&value, bytes_.data(), count);
    bytes_ = bytes_.subspan(count);
    return value;
  }

  std::span<const std::uint8_t> run(std::size_t wanted) {
    const auto part = bytes_.first(wanted < bytes_.size() ? wanted : bytes_.size());
    bytes_ = bytes_.subspan(part.size());
    return part;
  }

 private:
  std::span<const std::uint8_t> bytes_;
};

// What a fuzzer and a test both stop at.
inline void require(bool holds) {
  if (!holds) __builtin_trap();
}

}  // namespace fabric::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
