// One measurement of one native contestant, as one line of JSON; bench/ring/native-bench.mjs runs many in
// turns.
//
//   ring_bench CONTESTANT PAGES RECORD_BYTES TOTAL_BYTES WRITERS COPY SUM CAPACITY_BYTES
//
// CONTESTANT: copy (one thread, nobody reads), copyread (one thread reads each record back), bare
// (two processes and nothing but two counters between them), ring (two processes). Source and target
// are cycled, so neither is warm in a small cache. The clock starts when the reader has read a first
// lap, and stops when it has read the last word.
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <string>

#include "fabric/ring_reader.hpp"
#include "fabric/ring_writer.hpp"
#include "region.hpp"
#include "source.hpp"

namespace {

using bench::Backoff;
using bench::Region;
using bench::Source;

struct Job {
  std::string contestant;
  std::string pages;
  std::uint64_t record_bytes;
  std::uint64_t records;  // measured
  std::uint64_t warm_records;
  std::uint64_t writers;
  bench::Copy copy;
  bench::Sum sum;
  std::uint64_t capacity;
};

// Between the two processes; the reader writes only at the two marks.
struct Shared {
  std::atomic<std::uint64_t> ready{0};
  std::atomic<std::uint64_t> warm{0};
  std::atomic<std::uint64_t> end_ns{0};
  std::atomic<std::uint64_t> sum{0};
  // Of the contestant `bare`.
  alignas(128) std::atomic<std::uint64_t> written{0};
  alignas(128) std::atomic<std::uint64_t> read{0};
};

// Counts what the reader has seen and sets the marks.
class Progress {
 public:
  Progress(const Job& job, Shared& shared) : job_(job), shared_(shared) {}

  // False after the last record.
  bool add(std::uint64_t sum) {
    sum_ += sum;
    count_++;
    if (count_ == job_.warm_records) {
      sum_ = 0;
      shared_.warm.store(1);
    }
    if (count_ < job_.warm_records + job_.records) return true;
    const std::uint64_t end = bench::now_ns();
    shared_.sum.store(sum_);
    shared_.end_ns.store(end);
    return false;
  }

 private:
  const Job& job_;
  Shared& shared_;
  std::uint64_t count_ = 0;
  std::uint64_t sum_ = 0;
};

void wait_for(const std::atomic<std::uint64_t>& word) {
  Backoff backoff;
  while (word.load() == 0) backoff.pause();
}

// The least that hands bytes over: no header, no check, no wake-up. Records never cross the end.
class BareWriter {
 public:
  BareWriter(const Job& job, const Region& region, Shared& shared)
      : job_(job), region_(region), shared_(shared) {}

  void write(const std::byte* from, std::uint64_t) {
    const std::uint64_t limit = job_.capacity - job_.record_bytes;
    Backoff backoff;
    while (written_ - shared_.read.load(std::memory_order_acquire) > limit) backoff.pause();
    job_.copy(region_.data.data() + written_ % job_.capacity, from, job_.record_bytes);
    written_ += job_.record_bytes;
    shared_.written.store(written_, std::memory_order_release);
  }

 private:
  const Job& job_;
  const Region& region_;
  Shared& shared_;
  std::uint64_t written_ = 0;
};

void read_bare(const Job& job, const Region& region, Shared& shared) {
  Progress progress(job, shared);
  std::uint64_t read = 0;
  for (bool more = true; more;) {
    Backoff backoff;
    while (shared.written.load(std::memory_order_acquire) == read) backoff.pause();
    const std::byte* record = region.data.data() + read % job.capacity;
    more = progress.add(job.sum(record, job.record_bytes));
    read += job.record_bytes;
    shared.read.store(read, std::memory_order_release);
  }
}

class RingBenchWriter {
 public:
  RingBenchWriter(const Job& job, const Region& region, int data_pipe)
      : job_(job),
        ring_({region.data.data(), job.capacity, region.writer(), region.reader(), data_pipe}, 0) {}

  void write(const std::byte* from, std::uint64_t record) {
    Backoff backoff;
    for (;;) {
      fabric::ClaimResult result = ring_.claim(job_.record_bytes);
      if (auto* claim = std::get_if<fabric::Claim>(&result)) {
        job_.copy(claim->payload(), from, job_.record_bytes);
        claim->commit(record);
        return;
      }
      if (std::get<fabric::Refused>(result).why != fabric::Refusal::Full) std::abort();
      backoff.pause();
    }
  }

 private:
  const Job& job_;
  fabric::RingWriter ring_;
};

void read_ring(const Job& job, const Region& region, Shared& shared) {
  fabric::RingReader ring(
      {region.data.data(), job.capacity, region.writer(), region.reader(), -1});
  Progress progress(job, shared);
  Backoff backoff;
  for (bool more = true; more;) {
    const fabric::NextResult result = ring.next();
    const auto* record = std::get_if<fabric::Record>(&result);
    if (!record) {
      backoff.pause();
      continue;
    }
    backoff.reset();
    more = progress.add(job.sum(record->payload, record->payload_bytes));
    ring.release(record->position);
  }
}

// Writer w of W takes records w, w + W, ... @returns the sum that the reader must find.
template <class Writer>
std::uint64_t write_share(const Job& job, const Source& source, Writer& writer, std::uint64_t first,
                          std::uint64_t count) {
  std::uint64_t sum = 0;
  for (std::uint64_t record = first; record < count; record += job.writers) {
    writer.write(source.at(record), record);
    sum += source.sum(record);
  }
  return sum;
}

struct Outcome {
  std::uint64_t ns;
  bool correct;
};

template <class Writer>
Outcome write_all(const Job& job, const Source& source, Shared& shared, Writer& writer) {
  std::atomic<std::uint64_t> expected{0};
  std::atomic<std::uint64_t> start{0};
  std::vector<std::thread> threads;
  const auto run = [&](std::uint64_t first) {
    write_share(job, source, writer, first, job.warm_records);
    wait_for(shared.warm);
    std::uint64_t none = 0;
    start.compare_exchange_strong(none, bench::now_ns());
    expected += write_share(job, source, writer, first, job.records);
  };
  for (std::uint64_t i = 1; i < job.writers; i++) threads.emplace_back(run, i);
  run(0);
  for (std::thread& thread : threads) thread.join();
  wait_for(shared.end_ns);
  return {shared.end_ns.load() - start.load(), shared.sum.load() == expected.load()};
}

Outcome two_processes(const Job& job, const Source& source, Region& region, Shared& shared) {
  int data_pipe[2];
  // Nobody empties it, as in a consumer that spins: from the 65,536th wake-up on it says EAGAIN.
  if (pipe2(data_pipe, O_NONBLOCK | O_CLOEXEC) != 0) std::abort();
  const bool bare = job.contestant == "bare";
  const pid_t child = fork();
  if (child == 0) {
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);  // else it would wait for ever for a writer that failed
    if (job.writers == 1) bench::pin(1);
    bench::map_again_as_reader(region);
    shared.ready.store(1);
    bare ? read_bare(job, region, shared) : read_ring(job, region, shared);
    _exit(0);
  }
  // A core each, as for the ring in Node. Several writers share what the scheduler gives.
  if (job.writers == 1) bench::pin(0);
  wait_for(shared.ready);
  Outcome outcome{};
  if (bare) {
    BareWriter writer(job, region, shared);
    outcome = write_all(job, source, shared, writer);
  } else {
    RingBenchWriter writer(job, region, data_pipe[1]);
    outcome = write_all(job, source, shared, writer);
  }
  waitpid(child, nullptr, 0);
  return outcome;
}

Outcome one_thread(const Job& job, const Source& source, const Region& region, bool read_back) {
  const std::uint64_t slots = job.capacity / job.record_bytes;
  std::uint64_t sum = 0;
  std::uint64_t expected = 0;
  const auto run = [&](std::uint64_t records) {
    for (std::uint64_t record = 0; record < records; record++) {
      std::byte* to = region.data.data() + record % slots * job.record_bytes;
      job.copy(to, source.at(record), job.record_bytes);
      expected += source.sum(record);
      if (read_back) sum += job.sum(to, job.record_bytes);
    }
  };
  run(job.warm_records);
  const std::uint64_t start = bench::now_ns();
  run(job.records);
  return {bench::now_ns() - start, !read_back || sum == expected};
}

Outcome measure(const Job& job) {
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                      -1, 0);
  if (memory == MAP_FAILED) std::abort();
  auto* shared = new (memory) Shared();
  const Source source(job.record_bytes);
  Region region = bench::open_region(job.capacity, job.pages);
  if (job.contestant == "copy") return one_thread(job, source, region, false);
  if (job.contestant == "copyread") return one_thread(job, source, region, true);
  return two_processes(job, source, region, *shared);
}

int usage() {
  std::fprintf(stderr,
               "ring_bench copy|copyread|bare|ring huge|transparent|base RECORD_BYTES TOTAL_BYTES "
               "WRITERS COPY SUM CAPACITY_BYTES\n");
  return 2;
}

}  // namespace

int main(int count, char** words) {
  if (count != 9) return usage();
  Job job{};
  job.contestant = words[1];
  job.pages = words[2];
  job.record_bytes = std::strtoull(words[3], nullptr, 10);
  const std::uint64_t total = std::strtoull(words[4], nullptr, 10);
  job.writers = std::strtoull(words[5], nullptr, 10);
  job.copy = bench::copy_named(words[6]);
  job.sum = bench::sum_named(words[7]);
  job.capacity = std::strtoull(words[8], nullptr, 10);
  if (!job.sum || job.record_bytes == 0 || job.writers == 0) return usage();
  if (fabric::record_bytes(job.record_bytes) > fabric::max_record_bytes(job.capacity)) return usage();
  if (!job.copy) {
    std::printf("{\"unsupported\":\"%s\"}\n", words[6]);
    return 0;
  }
  job.records = total / job.record_bytes;
  job.warm_records = job.capacity / job.record_bytes;
  try {
    const Outcome outcome = measure(job);
    std::printf("{\"ns\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"correct\":%s}\n", outcome.ns,
                job.records * job.record_bytes, outcome.correct ? "true" : "false");
    return outcome.correct ? 0 : 1;
  } catch (const std::exception& failure) {
    std::printf("{\"unavailable\":\"%s\"}\n", failure.what());
    return 0;
  }
}
