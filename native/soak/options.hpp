// `--name value` arguments, all of them whole numbers.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace fabric::soak {

class Options {
 public:
  Options(int count, char** words) : count_(count), words_(words) {}

  std::uint64_t get(const char* name, std::uint64_t fallback) const {
    for (int i = 0; i + 1 < count_; i++) {
      if (std::strcmp(words_[i], name) == 0) return std::strtoull(words_[i + 1], nullptr, 0);
    }
    return fallback;
  }

 private:
  int count_;
  char** words_;
};

}  // namespace fabric::soak
