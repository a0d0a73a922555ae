// Ring memory on a chosen kind of pages, mapped by two processes of one program.
#pragma once

#include <cstdint>
#include <string_view>

#include "fabric/memory.hpp"

namespace bench {

struct Region {
  fabric::UniqueFd data_fd;
  fabric::UniqueFd control_fd;  // two pages: WriterControl, ReaderControl
  fabric::Mapping data;
  fabric::Mapping control;
  fabric::Pages pages;

  fabric::WriterControl* writer() const {
    return reinterpret_cast<fabric::WriterControl*>(control.data());
  }
  fabric::ReaderControl* reader() const {
    return reinterpret_cast<fabric::ReaderControl*>(control.data() + fabric::kControlBytes);
  }
};

// `pages`: huge, transparent or base; exactly these or RingFailure.
Region open_region(std::uint64_t capacity, std::string_view pages);

// After fork(): the ring's mappings are not inherited. The data becomes read-only, as a consumer's is.
void map_again_as_reader(Region& region);

}  // namespace bench
