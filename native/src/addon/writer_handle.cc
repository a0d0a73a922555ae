#include "writer_handle.hpp"

#include <algorithm>
#include <cerrno>

#include "convert.hpp"
#include "fabric/wake.hpp"

namespace fabric::addon {

namespace {

// A consumer that wakes us this often in a row without reading is noise: its pipe is no longer
// watched, and the ring is looked at by a timer (10 ms, in the TypeScript half).
constexpr std::uint32_t kIdleWakeupsMax = 1000;

// What arm_space() answers and its callback is given; the same numbers stand in writer.ts.
enum Wake { kArmed = 0, kMoved = 1, kUseTimer = 2 };

}  // namespace

Napi::Function WriterHandle::define(Napi::Env env) {
  return DefineClass(env, "NativeRingWriter",
                     {InstanceMethod<&WriterHandle::claim>("claim"),
                      InstanceMethod<&WriterHandle::commit>("commit"),
                      InstanceMethod<&WriterHandle::abort>("abort"),
                      InstanceMethod<&WriterHandle::taken>("taken"),
                      InstanceMethod<&WriterHandle::arm_space>("armSpace"),
                      InstanceMethod<&WriterHandle::space_moved>("spaceMoved"),
                      InstanceMethod<&WriterHandle::disarm_space>("disarmSpace"),
                      InstanceMethod<&WriterHandle::share>("share"),
                      InstanceMethod<&WriterHandle::descriptors>("descriptors"),
                      InstanceMethod<&WriterHandle::close_peer_descriptors>("closePeerDescriptors"),
                      InstanceMethod<&WriterHandle::stat>("stat"),
                      InstanceMethod<&WriterHandle::memory>("memory"),
                      InstanceMethod<&WriterHandle::about>("about"),
                      InstanceMethod<&WriterHandle::close>("close")});
}

WriterHandle::WriterHandle(const Napi::CallbackInfo& info)
    : Napi::ObjectWrap<WriterHandle>(info), env_(info.Env()), owner_(info.Length() > 1) {
  const Napi::Env env = info.Env();
  if (owner_) {
    const std::uint64_t capacity = whole_number(info[0], "capacityBytes");
    const auto huge_pages = static_cast<HugePages>(whole_number(info[1], "hugePages"));
    const std::uint64_t start = position(info[2]);
    guarded(env, [&] { shared_ = std::make_shared<SharedRing>(capacity, huge_pages, start); });
  } else {
    shared_ = SharedRing::find(position(info[0]));
    if (!shared_ || shared_->ring.closed()) {
      throw_ring_error(env, ErrorCode::Closed, "the ring is closed, or is not of this process");
    }
  }
  guarded(env, [&] {
    if (!owner_) open_bell();
    try {
      poll_ = LoopPoll::open(env_, shared_->memory.space_pipe(), [this] { on_space_signal(); });
    } catch (const RingFailure&) {
      shut();  // no destructor runs for an object that was never whole
      throw;
    }
  });
  ring_ = &shared_->ring;
  full_at_ = ring_->read_position();
  // Each environment has a buffer of its own over the one mapping.
  auto buffer = Napi::ArrayBuffer::New(env, shared_->memory.data(), ring_->capacity());
  buffer_ = Napi::Reference<Napi::ArrayBuffer>::New(buffer, 1);
  napi_async_init(env_, nullptr, Napi::String::New(info.Env(), "fabric:ring-space"),
                  &async_context_);
  napi_add_env_cleanup_hook(env_, on_environment_end, this);
  // Until close() or the end of the environment: JavaScript may hold views longer than this object,
  // so a garbage collection must never unmap.
  Ref();
}

WriterHandle::~WriterHandle() { shut(); }

void WriterHandle::check_open(Napi::Env env) const {
  if (!ring_) throw_ring_error(env, ErrorCode::Closed, "the ring is closed");
}

Napi::Value WriterHandle::claim(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  check_open(env);
  ClaimResult result = ring_->claim(whole_number(info[0], "payloadBytes"));
  if (auto* claimed = std::get_if<Claim>(&result)) {
    const std::uint64_t position = claimed->position();
    open_claims_.push_back(std::move(*claimed));
    return Napi::BigInt::New(env, position);
  }
  const Refused refused = std::get<Refused>(result);
  switch (refused.why) {
    case Refusal::Full:
      full_at_ = refused.read_position;
      return env.Null();
    case Refusal::TooLarge:
      throw_ring_error(env, ErrorCode::RecordTooLarge,
                       "a payload is at most " + std::to_string(ring_->max_payload_bytes()) +
                           " bytes in this ring",
                       "payloadBytes");
    case Refusal::Poisoned:
      throw_ring_error(env, ErrorCode::Poisoned,
                       "the consumer published an impossible read position; the ring is lost");
    case Refusal::Closed:
      break;
  }
  throw_ring_error(env, ErrorCode::Closed, "the ring is closed");
}

void WriterHandle::settle_check(Napi::Env env, const Napi::Value& position_value,
                                std::size_t& index) const {
  check_open(env);
  const std::uint64_t wanted = position(position_value);
  const auto found = std::find_if(open_claims_.begin(), open_claims_.end(),
                                  [&](const Claim& claim) { return claim.position() == wanted; });
  if (found == open_claims_.end()) {
    throw_ring_error(env, ErrorCode::ClaimSettled, "the claim is committed or aborted already");
  }
  index = static_cast<std::size_t>(found - open_claims_.begin());
}

Napi::Value WriterHandle::commit(const Napi::CallbackInfo& info) {
  std::size_t index = 0;
  settle_check(info.Env(), info[0], index);
  open_claims_[index].commit(whole_number(info[1], "batchSequence"));
  open_claims_.erase(open_claims_.begin() + static_cast<std::ptrdiff_t>(index));
  return info.Env().Undefined();
}

Napi::Value WriterHandle::abort(const Napi::CallbackInfo& info) {
  std::size_t index = 0;
  settle_check(info.Env(), info[0], index);
  open_claims_[index].abort();
  open_claims_.erase(open_claims_.begin() + static_cast<std::ptrdiff_t>(index));
  return info.Env().Undefined();
}

Napi::Value WriterHandle::taken(const Napi::CallbackInfo& info) {
  const std::uint64_t end =
      position(info[0]) + record_bytes(whole_number(info[1], "payloadBytes"));
  const bool taken = ring_ ? ring_->taken(end) : static_cast<std::int64_t>(taken_to_ - end) >= 0;
  return Napi::Boolean::New(info.Env(), taken);
}

Napi::Value WriterHandle::arm_space(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  check_open(env);
  on_space_ = Napi::Persistent(function(info[0], "callback"));
  if (ring_->poisoned() || !shared_->wait_for_space(bell_.get(), full_at_)) {
    on_space_.Reset();
    return Napi::Number::New(env, kMoved);
  }
  if (polled_) return Napi::Number::New(env, kUseTimer);
  start_polls();
  return Napi::Number::New(env, kArmed);
}

Napi::Value WriterHandle::space_moved(const Napi::CallbackInfo& info) {
  check_open(info.Env());
  return Napi::Boolean::New(info.Env(), ring_->poisoned() || ring_->space_moved(full_at_));
}

Napi::Value WriterHandle::disarm_space(const Napi::CallbackInfo& info) {
  if (ring_) stop_waiting();
  return info.Env().Undefined();
}

void WriterHandle::on_space_signal() {
  const bool ended = drain_pipe(shared_->memory.space_pipe()) == Drain::EndOfFile;
  // Before our own look: the byte that woke us may have been for them, and it is gone.
  shared_->ring_other_bells(bell_.get());
  look_for_space(ended);
}

void WriterHandle::on_bell() {
  hush_bell(bell_.get());
  look_for_space(false);
}

void WriterHandle::look_for_space(bool ended) {
  if (on_space_.IsEmpty()) {
    stop_waiting();
    return;
  }
  // Armed anew if nothing moved: the reader answers each wait once, and may have spent this one on
  // a release that claim() had already seen.
  if (ring_->poisoned() || !shared_->wait_for_space(bell_.get(), full_at_)) {
    idle_wakeups_ = 0;
    fire(kMoved);
    return;
  }
  // With the pipe closed it would be readable for ever. A consumer that is gone is reported by its
  // control socket; one that only closed its pipe may still read.
  polled_ = ended || ++idle_wakeups_ >= kIdleWakeupsMax;
  if (polled_) fire(kUseTimer);
}

void WriterHandle::fire(int wake) {
  const Napi::Env env(env_);
  Napi::HandleScope scope(env);
  const Napi::Function callback = on_space_.Value();
  if (wake == kMoved) {
    stop_waiting();
  } else {
    stop_polls();
  }
  const napi_value argument = Napi::Number::New(env, wake);
  call_from_loop(env_, async_context_, callback, 1, &argument);
}

void WriterHandle::stop_waiting() {
  shared_->stop_waiting(bell_.get());
  on_space_.Reset();
  stop_polls();
}

void WriterHandle::start_polls() {
  for (LoopPoll* poll : {poll_, bell_poll_}) {
    if (!poll) continue;
    poll->start();
    poll->ref();
  }
}

void WriterHandle::stop_polls() {
  for (LoopPoll* poll : {poll_, bell_poll_}) {
    if (!poll) continue;
    poll->stop();
    poll->unref();
  }
}

// Only where a ring has several writers; most have one, and then need no further descriptor.
void WriterHandle::open_bell() {
  if (bell_.valid()) return;
  UniqueFd bell(make_bell());
  if (!bell.valid()) {
    throw RingFailure(ErrorCode::SystemCallFailed, "eventfd: " + errno_text(errno));
  }
  bell_poll_ = LoopPoll::open(env_, bell.get(), [this] { on_bell(); });
  bell_ = std::move(bell);
}

Napi::Value WriterHandle::share(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  check_open(env);
  if (!bell_.valid()) {
    guarded(env, [&] { open_bell(); });
    // It waits under a name that cannot be called: it does so anew under the bell's.
    if (!on_space_.IsEmpty() && !polled_) {
      shared_->stop_waiting(-1);
      start_polls();
      ring_bell(bell_.get());
    }
  }
  SharedRing::publish(shared_);
  return Napi::BigInt::New(env, shared_->memory.writer()->ring_id);
}

void WriterHandle::check_owner(Napi::Env env) const {
  check_open(env);
  if (!owner_) {
    throw_ring_error(env, ErrorCode::NotOwner, "the ring's descriptors belong to its maker");
  }
}

Napi::Value WriterHandle::descriptors(const Napi::CallbackInfo& info) {
  check_owner(info.Env());
  const std::vector<int> all = shared_->memory.descriptors();
  if (std::find(all.begin(), all.end(), -1) != all.end()) {
    throw_ring_error(info.Env(), ErrorCode::Closed, "the peer's descriptors are closed");
  }
  auto array = Napi::Array::New(info.Env(), all.size());
  for (std::uint32_t i = 0; i < all.size(); i++) array.Set(i, all[i]);
  return array;
}

Napi::Value WriterHandle::close_peer_descriptors(const Napi::CallbackInfo& info) {
  check_owner(info.Env());
  shared_->memory.close_peer_descriptors();
  return info.Env().Undefined();
}

Napi::Value WriterHandle::stat(const Napi::CallbackInfo& info) {
  check_open(info.Env());
  const RingStat stat = ring_->stat();
  auto object = Napi::Object::New(info.Env());
  const auto set_position = [&](const char* name, std::uint64_t position) {
    // As text: positions pass 2^53, and JSON has no bigint.
    object.Set(name, std::to_string(position));
  };
  set_position("claimedPosition", stat.claimed_position);
  set_position("committedPosition", stat.committed_position);
  set_position("takenPosition", stat.taken_position);
  set_position("readPosition", stat.read_position);
  object.Set("usedBytes", static_cast<double>(stat.used_bytes));
  object.Set("gapBytes", static_cast<double>(stat.gap_bytes));
  object.Set("claims", static_cast<double>(stat.claims));
  object.Set("claimRetries", static_cast<double>(stat.claim_retries));
  object.Set("fulls", static_cast<double>(stat.fulls));
  object.Set("pads", static_cast<double>(stat.pads));
  object.Set("aborts", static_cast<double>(stat.aborts));
  object.Set("wakeups", static_cast<double>(stat.wakeups));
  object.Set("poisoned", stat.poisoned);
  return object;
}

Napi::Value WriterHandle::memory(const Napi::CallbackInfo&) { return buffer_.Value(); }

Napi::Value WriterHandle::about(const Napi::CallbackInfo& info) {
  check_open(info.Env());
  auto object = Napi::Object::New(info.Env());
  const RingMemory& memory = shared_->memory;
  object.Set("capacityBytes", static_cast<double>(ring_->capacity()));
  object.Set("pages", static_cast<double>(memory.pages()));
  object.Set("pageSizeBytes", static_cast<double>(page_bytes_of(memory.pages())));
  object.Set("pagesReason", memory.reason());
  object.Set("maxPayloadBytes", static_cast<double>(ring_->max_payload_bytes()));
  object.Set("ringId", Napi::BigInt::New(info.Env(), memory.writer()->ring_id));
  return object;
}

Napi::Value WriterHandle::close(const Napi::CallbackInfo& info) {
  if (!ring_) return info.Env().Undefined();
  napi_detach_arraybuffer(env_, buffer_.Value());
  buffer_.Reset();
  on_space_.Reset();
  napi_remove_env_cleanup_hook(env_, on_environment_end, this);
  if (async_context_) napi_async_destroy(env_, async_context_);
  async_context_ = nullptr;
  shut();
  Unref();
  return info.Env().Undefined();
}

// The part without JavaScript: also at the end of the environment, and if the constructor throws.
void WriterHandle::shut() {
  if (poll_) poll_->close();
  if (bell_poll_) bell_poll_->close();
  poll_ = bell_poll_ = nullptr;
  // Before the memory goes: an open claim is aborted, so the consumer is not left before a record
  // that nobody will commit.
  open_claims_.clear();
  if (ring_) {
    shared_->stop_waiting(bell_.get());
    taken_to_ = ring_->taken_position();
    // The ring of a maker that left takes no more claims; other handles still settle theirs.
    if (owner_) ring_->close();
  }
  bell_.reset();
  ring_ = nullptr;
  shared_.reset();
}

void WriterHandle::on_environment_end(void* self) { static_cast<WriterHandle*>(self)->shut(); }

}  // namespace fabric::addon
