#include "fabric/gather.hpp"

#include <cstring>

namespace fabric {

namespace {

std::string check_row(const GatherRows& job, std::uint64_t row) {
  const std::uint64_t index = job.source_index[row];
  const std::uint64_t offset = job.source_offset[row];
  const std::uint64_t length = job.source_length[row];
  const std::string name = "row " + std::to_string(row);
  if (index >= job.sources.size()) return name + ": there is no source " + std::to_string(index);
  const std::uint64_t size = job.sources[index].size();
  // Both are 32-bit in 64-bit arithmetic: the sum can't wrap.
  if (offset + length > size) {
    return name + ": bytes " + std::to_string(offset) + " to " + std::to_string(offset + length) +
           " of a source of " + std::to_string(size);
  }
  if (job.row_stride != 0 && length > job.row_stride) {
    return name + ": " + std::to_string(length) + " bytes in a row of " +
           std::to_string(job.row_stride);
  }
  return {};
}

std::string check(const GatherRows& job) {
  if (job.rows > job.source_index.size() || job.rows > job.source_offset.size() ||
      job.rows > job.source_length.size()) {
    return "rows is larger than the arrays that describe them";
  }
  if (job.target_offset > job.target.size()) return "targetByteOffset is past the target's end";
  const std::uint64_t room = job.target.size() - job.target_offset;
  std::uint64_t packed = 0;
  for (std::uint64_t row = 0; row < job.rows; row++) {
    // One branch on the fast path; the text is made only for the row that is wrong.
    const std::uint64_t index = job.source_index[row];
    const std::uint64_t length = job.source_length[row];
    const bool fine = index < job.sources.size() &&
                      job.source_offset[row] + length <= job.sources[index].size() &&
                      (job.row_stride == 0 || length <= job.row_stride);
    if (!fine) return check_row(job, row);
    packed += length;
  }
  // Divided, not multiplied: rows times stride could wrap.
  const bool fits = job.row_stride == 0 ? packed <= room
                                        : job.rows == 0 || job.row_stride <= room / job.rows;
  return fits ? std::string() : "the rows do not fit in the target";
}

}  // namespace

std::string gather_rows(const GatherRows& job) {
  if (std::string wrong = check(job); !wrong.empty()) return wrong;
  std::byte* row_start = job.target.data() + job.target_offset;
  for (std::uint64_t row = 0; row < job.rows; row++) {
    const std::size_t length = job.source_length[row];
    const auto& source = job.sources[job.source_index[row]];
    // memcpy and memset take no null pointer, not even for no bytes.
    if (length > 0) std::memmove(row_start, source.data() + job.source_offset[row], length);
    if (job.row_stride > length) std::memset(row_start + length, 0, job.row_stride - length);
    row_start += job.row_stride == 0 ? length : job.row_stride;
  }
  return {};
}

}  // namespace fabric
