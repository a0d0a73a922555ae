#include "loop_poll.hpp"

#include <cstdlib>
#include <new>
#include <string>

#include "fabric/errors.hpp"

namespace fabric::addon {

LoopPoll* LoopPoll::open(napi_env env, int fd, std::function<void()> on_readable) {
  uv_loop_s* loop = nullptr;
  if (napi_get_uv_event_loop(env, &loop) != napi_ok) {
    throw RingFailure(ErrorCode::PlatformUnsupported, "this runtime has no libuv event loop");
  }
  auto* self = new LoopPoll();
  self->handle_ = static_cast<uv_handle_s*>(::operator new(uv_handle_size(kUvPoll)));
  self->on_readable_ = std::move(on_readable);
  uv_handle_set_data(self->handle_, self);
  if (const int status = uv_poll_init(loop, self->handle_, fd); status != 0) {
    delete self;
    throw RingFailure(ErrorCode::SystemCallFailed,
                      std::string("uv_poll_init: ") + uv_strerror(status));
  }
  uv_handle_set_data(self->handle_, self);
  uv_unref(self->handle_);
  napi_add_async_cleanup_hook(env, on_environment_end, self, &self->hook_);
  return self;
}

LoopPoll::~LoopPoll() { ::operator delete(handle_); }

void LoopPoll::start() {
  if (!closing_) uv_poll_start(handle_, kUvReadable, on_event);
}

void LoopPoll::stop() {
  if (!closing_) uv_poll_stop(handle_);
}

void LoopPoll::ref() {
  if (!closing_) uv_ref(handle_);
}

void LoopPoll::unref() {
  if (!closing_) uv_unref(handle_);
}

void LoopPoll::close() {
  if (closing_) return;
  closing_ = true;
  uv_poll_stop(handle_);
  uv_close(handle_, on_closed);
}

void LoopPoll::on_event(uv_handle_s* handle, int, int) {
  auto* self = static_cast<LoopPoll*>(uv_handle_get_data(handle));
  // An error is reported as readable too: the read behind the callback then finds out.
  if (!self->closing_) self->on_readable_();
}

void LoopPoll::on_closed(uv_handle_s* handle) {
  auto* self = static_cast<LoopPoll*>(uv_handle_get_data(handle));
  if (self->hook_) napi_remove_async_cleanup_hook(self->hook_);
  delete self;
}

void LoopPoll::on_environment_end(napi_async_cleanup_hook_handle, void* data) {
  static_cast<LoopPoll*>(data)->close();
}

void call_from_loop(napi_env env, napi_async_context context, napi_value function,
                    std::size_t count, const napi_value* arguments) {
  napi_value receiver = nullptr;
  if (napi_get_global(env, &receiver) != napi_ok) return;
  napi_make_callback(env, context, receiver, function, count, arguments, nullptr);
  bool pending = false;
  if (napi_is_exception_pending(env, &pending) != napi_ok || !pending) return;
  napi_value error = nullptr;
  if (napi_get_and_clear_last_exception(env, &error) == napi_ok) napi_fatal_exception(env, error);
}

}  // namespace fabric::addon
