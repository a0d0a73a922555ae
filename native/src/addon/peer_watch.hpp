// Tells an event loop that the process on the other end of a Unix socket has ended. Beside the
// socket's own end: a child that was forked without exec keeps the socket open.
#pragma once

#include <napi.h>

#include "fabric/memory.hpp"
#include "loop_poll.hpp"

namespace fabric::addon {

class PeerWatch : public Napi::ObjectWrap<PeerWatch> {
 public:
  static Napi::Function define(Napi::Env env);
  // (socketFd, callback)
  explicit PeerWatch(const Napi::CallbackInfo& info);
  ~PeerWatch() override;

 private:
  Napi::Value gone(const Napi::CallbackInfo& info);  // () -> it had ended before it was watched
  Napi::Value close(const Napi::CallbackInfo& info);

  void on_exit();
  void shut();
  static void on_environment_end(void* self);

  napi_env env_;
  UniqueFd process_;
  Napi::FunctionReference callback_;
  napi_async_context async_context_ = nullptr;
  LoopPoll* poll_ = nullptr;
  bool open_ = false;
};

}  // namespace fabric::addon
