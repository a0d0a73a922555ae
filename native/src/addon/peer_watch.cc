#include "peer_watch.hpp"

#include "convert.hpp"
#include "fabric/socket.hpp"

namespace fabric::addon {

Napi::Function PeerWatch::define(Napi::Env env) {
  return DefineClass(
      env, "NativePeerWatch",
      {InstanceMethod<&PeerWatch::gone>("gone"), InstanceMethod<&PeerWatch::close>("close")});
}

PeerWatch::PeerWatch(const Napi::CallbackInfo& info)
    : Napi::ObjectWrap<PeerWatch>(info), env_(info.Env()) {
  const int socket = descriptor(info[0], "socketFd");
  callback_ = Napi::Persistent(function(info[1], "callback"));
  guarded(info.Env(), [&] {
    process_ = peer_process(socket);
    if (process_.valid()) poll_ = LoopPoll::open(env_, process_.get(), [this] { on_exit(); });
  });
  napi_async_init(env_, nullptr, Napi::String::New(info.Env(), "fabric:peer"), &async_context_);
  napi_add_env_cleanup_hook(env_, on_environment_end, this);
  open_ = true;
  // Until close() or the end of the environment, or a garbage collection would end the watch.
  Ref();
  if (poll_) poll_->start();
}

PeerWatch::~PeerWatch() { shut(); }

Napi::Value PeerWatch::gone(const Napi::CallbackInfo& info) {
  return Napi::Boolean::New(info.Env(), open_ && !process_.valid());
}

void PeerWatch::on_exit() {
  // A process that ended stays readable.
  poll_->stop();
  Napi::HandleScope scope{Napi::Env(env_)};
  call_from_loop(env_, async_context_, callback_.Value(), 0, nullptr);
}

Napi::Value PeerWatch::close(const Napi::CallbackInfo& info) {
  if (!open_) return info.Env().Undefined();
  open_ = false;
  callback_.Reset();
  napi_remove_env_cleanup_hook(env_, on_environment_end, this);
  if (async_context_) napi_async_destroy(env_, async_context_);
  async_context_ = nullptr;
  shut();
  Unref();
  return info.Env().Undefined();
}

void PeerWatch::shut() {
  if (poll_) poll_->close();
  poll_ = nullptr;
  process_.reset();
}

void PeerWatch::on_environment_end(void* self) { static_cast<PeerWatch*>(self)->shut(); }

}  // namespace fabric::addon
