// RingReader for JavaScript. Converts; the ring itself is fabric::RingReader. All methods run on the
// thread of the environment that made it.
#pragma once

#include <napi.h>

#include <optional>
#include <unordered_map>

#include "fabric/memory.hpp"
#include "fabric/ring_reader.hpp"
#include "loop_poll.hpp"

namespace fabric::addon {

class ReaderHandle : public Napi::ObjectWrap<ReaderHandle> {
 public:
  static Napi::Function define(Napi::Env env);
  // (descriptors, found: BigUint64Array(2)); owns the descriptors, also when it throws
  explicit ReaderHandle(const Napi::CallbackInfo& info);
  ~ReaderHandle() override;

 private:
  Napi::Value next(const Napi::CallbackInfo& info);     // () -> payload | null; fills `found`
  Napi::Value wait_sync(const Napi::CallbackInfo& info);  // (timeoutMs, spins) -> boolean
  Napi::Value ended(const Napi::CallbackInfo& info);
  Napi::Value take(const Napi::CallbackInfo& info);     // (position)
  Napi::Value release(const Napi::CallbackInfo& info);  // (position) -> boolean
  Napi::Value held(const Napi::CallbackInfo& info);
  Napi::Value on_readable(const Napi::CallbackInfo& info);
  Napi::Value ref(const Napi::CallbackInfo& info);
  Napi::Value unref(const Napi::CallbackInfo& info);
  Napi::Value about(const Napi::CallbackInfo& info);
  Napi::Value close(const Napi::CallbackInfo& info);

  void check_open(Napi::Env env) const;
  Napi::Value hand_out(Napi::Env env, const Record& record);
  void detach(napi_ref payload);
  void on_wake();
  void shut();
  static void on_environment_end(void* self);

  napi_env env_;
  std::optional<RingAttachment> memory_;
  std::optional<RingReader> ring_;
  // The view of each held record, so that none outlives its bytes whatever JavaScript keeps.
  std::unordered_map<std::uint64_t, napi_ref> views_;
  Napi::Reference<Napi::BigUint64Array> found_;
  std::uint64_t* found_words_ = nullptr;  // [position, batch sequence] of the last record
  Napi::FunctionReference on_readable_;
  napi_async_context async_context_ = nullptr;
  LoopPoll* poll_ = nullptr;
};

}  // namespace fabric::addon
