// RingWriter for JavaScript. Converts; the ring itself is fabric::RingWriter. All methods run on the
// thread of the environment that made the handle; several handles, each in its environment, may
// write into one ring at once.
#pragma once

#include <napi.h>

#include <memory>
#include <vector>

#include "loop_poll.hpp"
#include "shared_ring.hpp"

namespace fabric::addon {

class WriterHandle : public Napi::ObjectWrap<WriterHandle> {
 public:
  static Napi::Function define(Napi::Env env);
  // (capacityBytes, hugePages 0..2, startPosition) makes a ring, (ringId) joins one of this process
  explicit WriterHandle(const Napi::CallbackInfo& info);
  ~WriterHandle() override;

 private:
  Napi::Value claim(const Napi::CallbackInfo& info);     // (payloadBytes) -> position | null
  Napi::Value commit(const Napi::CallbackInfo& info);    // (position, batchSequence)
  Napi::Value abort(const Napi::CallbackInfo& info);     // (position)
  Napi::Value taken(const Napi::CallbackInfo& info);     // (position, payloadBytes) -> boolean
  Napi::Value arm_space(const Napi::CallbackInfo& info); // (callback(wake)) -> Arm
  Napi::Value space_moved(const Napi::CallbackInfo& info);
  Napi::Value disarm_space(const Napi::CallbackInfo& info);
  Napi::Value share(const Napi::CallbackInfo& info);
  Napi::Value descriptors(const Napi::CallbackInfo& info);
  Napi::Value close_peer_descriptors(const Napi::CallbackInfo& info);
  Napi::Value stat(const Napi::CallbackInfo& info);
  Napi::Value memory(const Napi::CallbackInfo& info);
  Napi::Value about(const Napi::CallbackInfo& info);
  Napi::Value close(const Napi::CallbackInfo& info);

  void check_open(Napi::Env env) const;
  void check_owner(Napi::Env env) const;
  void open_bell();
  void settle_check(Napi::Env env, const Napi::Value& position_value, std::size_t& index) const;
  void on_space_signal();
  void on_bell();
  void look_for_space(bool ended);
  void start_polls();
  void stop_polls();
  void fire(int wake);
  void stop_waiting();
  void shut();
  static void on_environment_end(void* self);

  napi_env env_;
  std::shared_ptr<SharedRing> shared_;
  RingWriter* ring_ = nullptr;  // of shared_; null once closed
  bool owner_;
  // A batch or a few at a time, so a search by position is short.
  std::vector<Claim> open_claims_;
  Napi::Reference<Napi::ArrayBuffer> buffer_;
  Napi::FunctionReference on_space_;
  napi_async_context async_context_ = nullptr;
  LoopPoll* poll_ = nullptr;  // the space pipe, which all handles of the ring watch
  UniqueFd bell_;             // rung by another handle that read from the pipe
  LoopPoll* bell_poll_ = nullptr;
  std::uint64_t full_at_ = 0;      // the read position that left no room
  std::uint64_t taken_to_ = 0;     // what taken() answers after close()
  std::uint32_t idle_wakeups_ = 0;  // signals in a row without read progress
  bool polled_ = false;
};

}  // namespace fabric::addon
