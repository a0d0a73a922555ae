// The same targets without a fuzzer: every input of a corpus, then inputs drawn from a seed, some of
// them made from the corpus by changing bytes. Runs with every compiler, so it runs in the tests.
//
//   NAME_replay FOLDER [SEEDS]
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "input.hpp"

namespace {

using Bytes = std::vector<std::uint8_t>;

std::uint64_t random_state = 0x9e3779b97f4a7c15;

std::uint64_t draw() {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return random_state >> 8;
}

std::vector<Bytes> corpus_in(const char* folder) {
  std::vector<Bytes> corpus;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return corpus;
}

Bytes drawn(const std::vector<Bytes>& corpus) {
  Bytes bytes;
  if (!corpus.empty() && draw() % 4 != 0) bytes = corpus[draw() % corpus.size()];
  if (bytes.empty()) bytes.resize(1 + draw() % 400);
  for (std::uint64_t edits = draw() % 16; edits > 0; edits--) {
    bytes[draw() % bytes.size()] = static_cast<std::uint8_t>(draw());
  }
  if (draw() % 4 == 0) {
    for (std::uint64_t more = draw() % 100; more > 0; more--) {
      bytes.push_back(static_cast<std::uint8_t>(draw()));
    }
  }
  return bytes;
}

}  // namespace

int main(int count, char** words) {
  if (count < 2) return 2;
  const std::vector<Bytes> corpus = corpus_in(words[1]);
  const long seeds = count > 2 ? std::atol(words[2]) : 1000;
  for (const Bytes& bytes : corpus) LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  for (long i = 0; i < seeds; i++) {
    const Bytes bytes = drawn(corpus);
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
  std::printf("%zu inputs kept and %ld drawn\n", corpus.size(), seeds);
  return corpus.empty() ? 1 : 0;
}
