// One descriptor watched by the event loop of one environment. Only that environment's thread may
// touch it.
#pragma once

#include <node_api.h>

#include <functional>

#include "uv_abi.hpp"

namespace fabric::addon {

class LoopPoll {
 public:
  // Throws RingFailure. Starts stopped and unreferenced. `on_readable` may call close().
  static LoopPoll* open(napi_env env, int fd, std::function<void()> on_readable);

  void start();
  void stop();
  void ref();
  void unref();
  // Stops at once, so the descriptor may be closed right after; the object deletes itself when the
  // loop has let go of the handle. Idempotent until then.
  void close();

 private:
  LoopPoll() = default;
  ~LoopPoll();
  static void on_event(uv_handle_s* handle, int status, int events);
  static void on_closed(uv_handle_s* handle);
  static void on_environment_end(napi_async_cleanup_hook_handle hook, void* self);

  uv_handle_s* handle_ = nullptr;
  // A handle that is open when a worker ends aborts the whole process, hence the hook: the
  // environment waits until on_closed() removes it.
  napi_async_cleanup_hook_handle hook_ = nullptr;
  std::function<void()> on_readable_;
  bool closing_ = false;
};

// Calls `function` as the event loop does: with its own callback scope, and an exception becomes an
// 'uncaughtException' instead of ending the process in C++.
void call_from_loop(napi_env env, napi_async_context context, napi_value function,
                    std::size_t count, const napi_value* arguments);

}  // namespace fabric::addon
