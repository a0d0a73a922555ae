// The model is worth what its likeness to the code is worth. This reads native/src and compares each
// atomic access, its memory order and its place in its function with what the model takes for granted.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "config.hpp"

using namespace fabric::model;

namespace {

struct Access {
  const char* function;  // as its definition begins
  const char* text;      // the access up to its opening parenthesis
  std::vector<Order> orders;
};

struct Source {
  const char* path;
  std::vector<Access> accesses;  // all of them, in the order of the code
};

constexpr Orders kOrders;
// Read or written for status or before anybody else can see it: not part of the model.
constexpr Order kStatus = Order::Relaxed;

const Source kWriter{
    "src/ring_writer.cpp",
    {
        {"void count(", "counter.fetch_add(", {kStatus}},
        {"void set_length(", "__atomic_store_n(", {Order::Relaxed}},
        {"void raise(", "cell.load(", {kOrders.head_load}},
        {"void raise(", "cell.compare_exchange_weak(", {kOrders.head_raise, kOrders.head_raise_lost}},
        {"ClaimResult RingWriter::claim(", "closed_.load(", {kOrders.closed_load}},
        {"RingWriter::Space RingWriter::look(", "head_.load(", {kOrders.head_load}},
        {"RingWriter::Space RingWriter::look(", "writer_->tail.load(", {kOrders.tail_load}},
        {"RingWriter::Attempt RingWriter::try_claim(", "head_.load(", {kOrders.head_load}},
        {"RingWriter::Attempt RingWriter::try_claim(", "writer_->tail.compare_exchange_strong(",
         {kOrders.tail_exchange, kOrders.tail_exchange_lost}},
        {"RingWriter::Attempt RingWriter::claim_gap_only(", "writer_->tail.load(",
         {kOrders.tail_load}},
        {"RingWriter::Attempt RingWriter::claim_gap_only(", "writer_->tail.compare_exchange_strong(",
         {kOrders.tail_exchange, kOrders.tail_exchange_lost}},
        {"void RingWriter::publish_gap(", "stamp_ref(at(position)).store(", {kOrders.gap_stamp}},
        {"void RingWriter::begin_record(", "stamp_ref(at(position)).store(", {kOrders.busy_stamp}},
        {"void RingWriter::settle(", ".compare_exchange_strong(",
         {kOrders.settle, kOrders.settle_lost}},
        {"look_at(std::byte* record)", "__atomic_load_n(", {kOrders.look_at_stamp}},
        {"look_at(std::byte* record)", "__atomic_load_n(", {kOrders.look_at_length}},
        {"void RingWriter::advance_committed(", "committed_.load(", {kOrders.committed_load}},
        {"void RingWriter::advance_committed(", "writer_->tail.load(", {kOrders.tail_load}},
        {"void RingWriter::advance_committed(", "committed_.load(", {kOrders.committed_load}},
        {"void RingWriter::advance_committed(", "committed_.compare_exchange_strong(",
         {kOrders.committed_exchange, kOrders.committed_exchange_lost}},
        {"bool RingWriter::within_committed(", "committed_.load(", {kOrders.committed_load}},
        {"bool RingWriter::within_committed(", "committed_.load(", {kOrders.committed_load}},
        {"bool RingWriter::refresh_head(", "head_.load(", {kOrders.head_load}},
        {"bool RingWriter::refresh_head(", "reader_->read_position.load(",
         {kOrders.read_position_load}},
        {"RingWriter::taken_position(", "taken_.load(", {kOrders.head_load}},
        {"RingWriter::taken_position(", "reader_->taken_position.load(",
         {kOrders.taken_position_load}},
        {"void RingWriter::wake_reader(", "reader_->waiting.load(", {kOrders.waiting_load}},
        {"void RingWriter::wake_reader(", "reader_->waiting.exchange(", {kOrders.waiting_exchange}},
        // The futex word only has to differ from what the reader saw before it announced itself.
        {"void RingWriter::wake_reader(", "writer_->data_wakes.fetch_add(", {kOrders.data_wakes_add}},
        {"bool RingWriter::arm_space(", "space_waits_.fetch_add(", {kOrders.space_waits_add}},
        {"bool RingWriter::arm_space(", "writer_->space_waiting.store(",
         {kOrders.space_waiting_store}},
        {"bool RingWriter::arm_space(", "reader_->read_position.load(", {kOrders.space_recheck}},
        {"void RingWriter::disarm_space(", "writer_->space_waiting.store(", {kOrders.disarm_store}},
        {"bool RingWriter::space_moved(", "reader_->read_position.load(",
         {kOrders.space_moved_load}},
        {"void RingWriter::poison(", "poisoned_.store(", {kOrders.poisoned_store}},
        {"void RingWriter::poison(", "writer_->state.store(", {Order::Release}},
        {"void RingWriter::close(", "closed_.store(", {kOrders.closed_store}},
        {"void RingWriter::close(", "writer_->state.store(", {Order::Release}},
        {"RingStat RingWriter::stat(", "head_.load(", {kOrders.head_load}},
        {"RingStat RingWriter::stat(", "writer_->tail.load(", {kOrders.tail_load}},
        {"RingStat RingWriter::stat(", "committed_.load(", {kOrders.committed_load}},
        {"RingStat RingWriter::stat(", "counters.gap_bytes.load(", {kStatus}},
        {"RingStat RingWriter::stat(", "counters.claims.load(", {kStatus}},
        {"RingStat RingWriter::stat(", "counters.claim_retries.load(", {kStatus}},
        {"RingStat RingWriter::stat(", "counters.fulls.load(", {kStatus}},
        {"RingStat RingWriter::stat(", "counters.pads.load(", {kStatus}},
        {"RingStat RingWriter::stat(", "counters.aborts.load(", {kStatus}},
        {"RingStat RingWriter::stat(", "counters.wakeups.load(", {kStatus}},
    }};

const Source kWriterHeader{"include/fabric/ring_writer.hpp",
                           {{"bool closed() const", "closed_.load(", {kOrders.closed_load}},
                            {"std::uint64_t read_position() const", "head_.load(",
                             {kOrders.head_load}},
                            {"bool poisoned() const", "poisoned_.load(", {kOrders.poisoned_load}}}};

const Source kReader{
    "src/ring_reader.cpp",
    {
        {"RingReader::RingReader(", "read_position.load(", {kStatus}},
        // The order is the caller's: see the two calls below.
        {"RingReader::Found RingReader::look(", "stamp_ref(at(position_)).load(", {}},
        {"RingReader::Found RingReader::look_before_sleep(", "reader_->waiting.store(",
         {kOrders.waiting_set}},
        {"RingReader::Found RingReader::look_before_sleep(", "reader_->waiting.store(",
         {kOrders.waiting_clear}},
        // A sleep on the futex is announced, looked over once more and taken back as one on the pipe.
        {"bool RingReader::wait(", "writer_->data_wakes.load(", {kOrders.data_wakes_load}},
        {"bool RingReader::wait(", "reader_->waiting.store(", {kOrders.waiting_set}},
        {"bool RingReader::wait(", "reader_->waiting.store(", {kOrders.waiting_clear}},
        {"void RingReader::publish_taken(", "reader_->taken_position.store(",
         {kOrders.taken_position_store}},
        {"void RingReader::publish_released(", "reader_->read_position.store(",
         {kOrders.read_position_store}},
        {"void RingReader::wake_writer(", "writer_->space_waiting.load(",
         {kOrders.space_waiting_load}},
    }};

// Calls that pass an order on, or whose place among the accesses matters.
const std::vector<Access> kReaderCalls{
    {"RingReader::Found RingReader::look_before_sleep(", "reader_->waiting.store(",
     {kOrders.waiting_set}},
    {"RingReader::Found RingReader::look_before_sleep(", "= look(", {kOrders.look_again_stamp}},
    {"NextResult RingReader::next(", "= look(", {kOrders.look_stamp}},
    {"NextResult RingReader::next(", "look_before_sleep(", {}},
    {"bool RingReader::wait(", "look(", {kOrders.look_stamp}},
    {"bool RingReader::wait(", "writer_->data_wakes.load(", {kOrders.data_wakes_load}},
    {"bool RingReader::wait(", "reader_->waiting.store(", {kOrders.waiting_set}},
    {"bool RingReader::wait(", "look(", {kOrders.look_again_stamp}},
    {"bool RingReader::wait(", "futex_wait(", {}},
    {"bool RingReader::wait(", "look(", {kOrders.look_stamp}},
};

std::string without_comments(const std::string& text) {
  return std::regex_replace(text, std::regex("//[^\n]*"), "");
}

std::string read(const std::string& path) {
  std::ifstream file(std::string(FABRIC_NATIVE_DIR) + "/" + path);
  EXPECT_TRUE(file.good()) << path;
  std::stringstream text;
  text << file.rdbuf();
  return without_comments(text.str());
}

std::string body_of(const std::string& source, const std::string& function) {
  const std::size_t begin = source.find(function);
  EXPECT_NE(begin, std::string::npos) << "no function " << function;
  if (begin == std::string::npos) return {};
  const std::size_t line_end = source.find('\n', begin);
  // A function of one line ends on it; others end with a brace at the line's start.
  if (source.substr(begin, line_end - begin).ends_with("}")) {
    return source.substr(begin, line_end - begin);
  }
  return source.substr(begin, source.find("\n}", begin) - begin);
}

// The text between the parenthesis at `open` and its counterpart.
std::string arguments_at(const std::string& text, std::size_t open) {
  int depth = 0;
  std::size_t at = open;
  do {
    depth += text[at] == '(' ? 1 : text[at] == ')' ? -1 : 0;
  } while (++at < text.size() && depth > 0);
  return text.substr(open, at - open);
}

std::string orders_in(const std::string& arguments) {
  static const std::regex word("\\b(memory_order_|__ATOMIC_)?"
                               "(relaxed|acquire|release|acq_rel|seq_cst|RELAXED|ACQUIRE)"
                               "(_order)?\\b");
  std::string found;
  for (std::sregex_iterator at(arguments.begin(), arguments.end(), word), end; at != end; ++at) {
    std::string name = (*at)[2];
    for (char& letter : name) letter = static_cast<char>(std::tolower(letter));
    found += name + " ";
  }
  return found;
}

void compare(const std::string& source, const std::vector<Access>& accesses) {
  std::map<std::string, std::size_t> reached;  // for each function, how far it was compared
  for (const Access& access : accesses) {
    const std::string body = body_of(source, access.function);
    std::size_t& from = reached[access.function];
    const std::size_t at = body.find(access.text, from);
    ASSERT_NE(at, std::string::npos) << access.function << " has no " << access.text
                                     << " where the model has it";
    const std::size_t open = at + std::string(access.text).size() - 1;
    from = open;
    std::string expected;
    for (const Order order : access.orders) expected += std::string(name_of(order)) + " ";
    EXPECT_EQ(orders_in(arguments_at(body, open)), expected)
        << access.function << " " << access.text << ")";
  }
}

TEST(ModelOrders, EachAccessOfTheCodeHasTheOrderOfTheModel) {
  for (const Source* source : {&kWriter, &kWriterHeader, &kReader}) {
    compare(read(source->path), source->accesses);
  }
  compare(read(kReader.path), kReaderCalls);
}

TEST(ModelOrders, NoAccessIsMissingInTheModel) {
  static const std::regex access(
      "(\\.(load|store|exchange|compare_exchange_weak|compare_exchange_strong|fetch_add|fetch_sub|"
      "fetch_or|fetch_and)|__atomic_\\w+|atomic_thread_fence)\\(");
  for (const Source* source : {&kWriter, &kWriterHeader, &kReader}) {
    const std::string text = read(source->path);
    const auto count = std::distance(std::sregex_iterator(text.begin(), text.end(), access),
                                     std::sregex_iterator());
    EXPECT_EQ(static_cast<std::size_t>(count), source->accesses.size()) << source->path;
  }
}

}  // namespace
